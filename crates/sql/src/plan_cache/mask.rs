//! A text without its constants.

use super::NotShort;
use std::ops::Range;

/// Longer texts are not looked at: planning them is what takes least.
const LONGEST: usize = 16 << 10;

/// A text's key – every number and string in it is replaced by a mark of its kind – and where these are.
#[derive(Debug)]
pub(crate) struct Mask {
    key: String,
    literals: Vec<Range<usize>>,
    is_query: bool,
}

/// A text and its mask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Masked<'a> {
    text: &'a str,
    mask: &'a Mask,
}

impl Mask {
    /// # Errors
    /// It is neither a query nor a write, or has something that is rare in what is asked again and again: comments,
    /// parameters, strings with a prefix.
    pub fn new(text: &str) -> Result<Self, NotShort> {
        Mask::from(text, 0)
    }

    /// Of what is explained by `EXPLAIN [VERBOSE] …`.
    ///
    /// # Errors
    /// As for [`Mask::new`].
    pub fn of_explained(text: &str) -> Result<Self, NotShort> {
        let mut rest = text;
        for word in ["explain", "verbose"] {
            if let Some(first) = rest.get(..word.len())
                && first.eq_ignore_ascii_case(word)
            {
                rest = rest[word.len()..].trim_start();
            }
        }
        Mask::from(text, text.len() - rest.len())
    }

    /// Of what begins there.
    fn from(text: &str, start: usize) -> Result<Self, NotShort> {
        let bytes = text.as_bytes();
        let first = bytes.get(start..start + 6).ok_or(NotShort::Kind)?;
        let is = |word: &[u8]| first.eq_ignore_ascii_case(word);
        let is_query = is(b"select");
        if !(is_query || is(b"insert") || is(b"update") || is(b"delete")) {
            return Err(NotShort::Kind);
        }
        if bytes.len() > LONGEST {
            return Err(NotShort::LongText);
        }
        let mut mask = Mask {
            key: String::with_capacity(text.len() - start),
            literals: Vec::new(),
            is_query,
        };
        mask.scan(text, start).ok_or(NotShort::UnusualText)?;
        Ok(mask)
    }

    fn scan(&mut self, text: &str, start: usize) -> Option<()> {
        let bytes = text.as_bytes();
        let mut at = start;
        while at < bytes.len() {
            let end = match bytes[at] {
                b'\'' => self.literal_until(at, quoted(bytes, at)?, "#s"),
                b'0'..=b'9' => self.literal_until(at, number(bytes, at)?, "#n"),
                b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => return None,
                b'$' | b'?' | b'#' => return None,
                b'-' if bytes.get(at + 1) == Some(&b'-') => return None,
                b'/' if bytes.get(at + 1) == Some(&b'*') => return None,
                b'"' => self.text_until(text, at, quoted(bytes, at)?),
                byte if is_word(byte) => {
                    let length = bytes[at..].iter().position(|byte| !is_word(*byte));
                    let end = length.map_or(bytes.len(), |length| at + length);
                    if bytes.get(end) == Some(&b'\'') {
                        return None;
                    }
                    self.text_until(text, at, end)
                }
                _ => self.text_until(text, at, at + 1),
            };
            at = end;
        }
        Some(())
    }

    /// Together with the text that it was made of.
    pub fn of<'a>(&'a self, text: &'a str) -> Masked<'a> {
        Masked { text, mask: self }
    }

    fn literal_until(&mut self, start: usize, end: usize, mark: &str) -> usize {
        self.key.push_str(mark);
        self.literals.push(start..end);
        end
    }

    fn text_until(&mut self, text: &str, start: usize, end: usize) -> usize {
        self.key.push_str(&text[start..end]);
        end
    }
}

impl<'a> Masked<'a> {
    /// The text with its marks.
    pub fn key(&self) -> &'a str {
        &self.mask.key
    }

    /// Whether it begins with SELECT.
    pub fn is_query(&self) -> bool {
        self.mask.is_query
    }

    /// The number of constants.
    pub fn len(&self) -> usize {
        self.mask.literals.len()
    }

    /// A constant as it is written.
    pub fn literal(&self, number: usize) -> &'a str {
        &self.text[self.mask.literals[number].clone()]
    }

    /// The constant that begins at this line and character of the text, both counted from 1.
    pub fn literal_at(&self, line: u64, column: u64) -> Option<usize> {
        let line_start = match line.checked_sub(1)? {
            0 => 0,
            ends => self.text.match_indices('\n').nth(ends as usize - 1)?.0 + 1,
        };
        let rest = &self.text[line_start..];
        let offset = rest.char_indices().nth(column.checked_sub(1)? as usize)?.0;
        let start = line_start + offset;
        let mut literals = self.mask.literals.iter();
        literals.position(|literal| literal.start == start)
    }
}

/// The end of what is quoted from here; a doubled quote stands for one.
fn quoted(bytes: &[u8], start: usize) -> Option<usize> {
    let quote = bytes[start];
    let mut at = start + 1;
    loop {
        at += bytes[at..].iter().position(|byte| *byte == quote)? + 1;
        match bytes.get(at) {
            Some(byte) if *byte == quote => at += 1,
            _ => return Some(at),
        }
    }
}

/// The end of the number that begins here: digits, perhaps with a point and more digits.
fn number(bytes: &[u8], start: usize) -> Option<usize> {
    let digits = |from: usize| {
        let length = bytes[from..].iter().position(|byte| !byte.is_ascii_digit());
        length.map_or(bytes.len(), |length| from + length)
    };
    let mut end = digits(start);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    // 1e5, 0x10, 1_000
    match bytes.get(end) {
        Some(byte) if is_word(*byte) || *byte == b'.' => None,
        _ => Some(end),
    }
}

/// Whether it belongs to a word. All of what is not ASCII does: what is between words is ASCII.
fn is_word(byte: u8) -> bool {
    byte == b'_' || byte >= 0x80 || byte.is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_become_marks() {
        let text = "select \"a 1\", b2 FROM t1\n WHERE é = 'it''s' AND c>=1.50 AND d=-7 LIMIT 10";
        let mask = Mask::new(text).unwrap();
        let masked = mask.of(text);
        assert_eq!(
            masked.key(),
            "select \"a 1\", b2 FROM t1\n WHERE é = #s AND c>=#n AND d=-#n LIMIT #n"
        );
        let literals: Vec<_> = (0..masked.len()).map(|n| masked.literal(n)).collect();
        assert_eq!(literals, ["'it''s'", "1.50", "7", "10"]);
        assert_eq!(masked.literal_at(2, 12), Some(0));
        assert_eq!(masked.literal_at(2, 27), Some(1));
        assert_eq!(masked.literal_at(2, 28), None);
        assert_eq!(masked.literal_at(9, 1), None);
        let text = "SELECT 5, 6";
        let one = Mask::new(text).unwrap();
        assert_eq!(one.of(text).literal_at(1, 11), Some(1));
        let text = "explain verbose SELECT 5, 6";
        let one = Mask::of_explained(text).unwrap();
        assert_eq!(one.key, "SELECT #n, #n");
        assert_eq!(one.of(text).literal_at(1, 27), Some(1));
    }

    #[test]
    fn what_is_rare_is_left_alone() {
        for text in [
            "CREATE TABLE t (a INT)",
            "SELECT 1 -- one",
            "SELECT /* one */ 1",
            "SELECT E'a'",
            "SELECT $1",
            "SELECT ?",
            "SELECT 1e5",
            "SELECT .5",
            "SELECT 'open",
            "SELECT \"open",
            "SELECT 1_000",
            "SELECT 0x1F",
        ] {
            assert!(Mask::new(text).is_err(), "{text}");
        }
    }
}
