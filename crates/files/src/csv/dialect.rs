//! What separates fields and records, and where records end.

use memchr::{memchr, memchr2, memrchr};
use std::fmt;

/// What separates fields: mostly one byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimiter {
    pub(crate) first: u8,
    /// The bytes behind the first.
    rest: Vec<u8>,
}

impl From<u8> for Delimiter {
    fn from(byte: u8) -> Self {
        Delimiter {
            first: byte,
            rest: Vec::new(),
        }
    }
}

impl Delimiter {
    /// These characters; none if there are none, or one of them ends lines.
    pub fn new(text: &str) -> Option<Delimiter> {
        let (first, rest) = text.as_bytes().split_first()?;
        (!text.contains(['\n', '\r'])).then(|| Delimiter {
            first: *first,
            rest: rest.to_vec(),
        })
    }

    /// Whether it stands there.
    pub(crate) fn is_at(&self, bytes: &[u8], at: usize) -> bool {
        bytes.get(at) == Some(&self.first)
            && (self.rest.is_empty() || bytes[at + 1..].starts_with(&self.rest))
    }

    pub(crate) fn width(&self) -> usize {
        1 + self.rest.len()
    }
}

impl fmt::Display for Delimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = [&[self.first], &self.rest[..]].concat();
        f.write_str(&String::from_utf8_lossy(&bytes))
    }
}

/// The characters with a meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CsvDialect {
    pub delimiter: Delimiter,
    /// Ends a line: `\n`, in front of which a `\r` is dropped, or only `\r`.
    pub newline: u8,
    pub quote: Option<u8>,
    /// Within quotes: what makes the next character an ordinary one. Mostly the quote itself.
    pub escape: Option<u8>,
    /// A line that begins with it is none.
    pub comment: Option<u8>,
    /// Every record may end with a delimiter more, as TPC's generators write them.
    pub trailing: bool,
}

impl Default for CsvDialect {
    fn default() -> Self {
        CsvDialect {
            delimiter: Delimiter::from(b','),
            newline: b'\n',
            quote: Some(b'"'),
            escape: Some(b'"'),
            comment: None,
            trailing: false,
        }
    }
}

impl CsvDialect {
    /// Where the last whole record ends. The bytes begin with a record.
    ///
    /// A quote has a meaning only at the beginning of a field, so it does not do to count them: the walk goes from
    /// quote to line end to quote.
    pub fn last_end(&self, bytes: &[u8]) -> Option<usize> {
        let quote = match self.quote {
            Some(quote) if memchr(quote, bytes).is_some() => quote,
            _ => return memrchr(self.newline, bytes).map(|at| at + 1),
        };
        let mut end = None;
        let mut at = self.skip_comments(bytes, 0);
        while let Some(next) = memchr2(quote, self.newline, bytes.get(at..)?) {
            let place = at + next;
            if bytes[place] == self.newline {
                end = Some(place + 1);
                at = self.skip_comments(bytes, place + 1);
            } else if self.begins_field(bytes, place) {
                match self.closing_quote(bytes, place + 1) {
                    Some(closing) => at = closing + 1,
                    None => return end,
                }
            } else {
                at = place + 1;
            }
        }
        end
    }

    /// Whether a line is no comment, and not empty unless that is a record, too. The bytes begin with a line.
    pub fn has_record(&self, bytes: &[u8], empty_is_record: bool) -> bool {
        let lines = bytes.strip_suffix(&[self.newline]).unwrap_or(bytes);
        let mut lines = lines.split(|byte| *byte == self.newline);
        lines.any(|line| match line {
            [] | [b'\r'] => empty_is_record,
            [first, ..] => Some(*first) != self.comment,
        })
    }

    /// Behind the comments that begin at the beginning of a line.
    fn skip_comments(&self, bytes: &[u8], mut at: usize) -> usize {
        while self.comment.is_some() && bytes.get(at).copied() == self.comment {
            match memchr(self.newline, &bytes[at..]) {
                Some(end) => at += end + 1,
                None => return bytes.len(),
            }
        }
        at
    }

    fn begins_field(&self, bytes: &[u8], at: usize) -> bool {
        let delimiter = at.checked_sub(self.delimiter.width());
        at == 0
            || bytes[at - 1] == self.newline
            || delimiter.is_some_and(|at| self.delimiter.is_at(bytes, at))
    }

    /// The quote that closes a text which begins at `at`.
    pub fn closing_quote(&self, bytes: &[u8], mut at: usize) -> Option<usize> {
        let quote = self.quote?;
        let escape = self.escape.unwrap_or(quote);
        loop {
            let next = at + memchr2(quote, escape, bytes.get(at..)?)?;
            let doubled = escape == quote && bytes.get(next + 1) == Some(&quote);
            if doubled || (bytes[next] == escape && escape != quote) {
                at = next + 2;
            } else {
                return Some(next);
            }
        }
    }
}
