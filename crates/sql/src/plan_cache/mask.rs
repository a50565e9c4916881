//! A text without its constants.

use std::ops::Range;

/// Longer texts are not looked at: planning them is what takes least.
const LONGEST: usize = 16 << 10;

/// A text in which every number and string is replaced by a mark of its kind.
pub(super) struct Masked<'a> {
    text: &'a str,
    key: String,
    literals: Vec<Range<usize>>,
}

impl<'a> Masked<'a> {
    /// `None`: neither a query nor a write, or one with something that is rare in what is asked again and again – comments, parameters,
    /// strings with a prefix.
    pub fn new(text: &'a str) -> Option<Self> {
        let bytes = text.as_bytes();
        let first = bytes.get(..6)?;
        let is_known = [b"select", b"insert", b"update", b"delete"]
            .iter()
            .any(|word| first.eq_ignore_ascii_case(*word));
        if !is_known || bytes.len() > LONGEST {
            return None;
        }
        let mut masked = Masked {
            text,
            key: String::with_capacity(text.len()),
            literals: Vec::new(),
        };
        let mut at = 0;
        while at < bytes.len() {
            let end = match bytes[at] {
                b'\'' => masked.literal_until(at, quoted(bytes, at)?, "#s"),
                b'0'..=b'9' => masked.literal_until(at, number(bytes, at)?, "#n"),
                b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => return None,
                b'$' | b'?' | b'#' => return None,
                b'-' if bytes.get(at + 1) == Some(&b'-') => return None,
                b'/' if bytes.get(at + 1) == Some(&b'*') => return None,
                b'"' => masked.text_until(at, quoted(bytes, at)?),
                byte if is_word(byte) => {
                    let length = bytes[at..].iter().position(|byte| !is_word(*byte));
                    let end = length.map_or(bytes.len(), |length| at + length);
                    if bytes.get(end) == Some(&b'\'') {
                        return None;
                    }
                    masked.text_until(at, end)
                }
                _ => masked.text_until(at, at + 1),
            };
            at = end;
        }
        Some(masked)
    }

    /// The text with its marks.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The number of constants.
    pub fn len(&self) -> usize {
        self.literals.len()
    }

    /// A constant as it is written.
    pub fn literal(&self, number: usize) -> &'a str {
        &self.text[self.literals[number].clone()]
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
        (self.literals.iter()).position(|literal| literal.start == start)
    }

    fn literal_until(&mut self, start: usize, end: usize, mark: &str) -> usize {
        self.key.push_str(mark);
        self.literals.push(start..end);
        end
    }

    fn text_until(&mut self, start: usize, end: usize) -> usize {
        self.key.push_str(&self.text[start..end]);
        end
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
        let masked = Masked::new(text).unwrap();
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
        let one = Masked::new("SELECT 5, 6").unwrap();
        assert_eq!(one.literal_at(1, 11), Some(1));
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
            assert!(Masked::new(text).is_none(), "{text}");
        }
    }
}
