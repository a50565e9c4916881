//! What separates fields and records, and where records end.

use memchr::{memchr, memchr2, memrchr};

/// Ends a line; a `\r` in front of it is dropped.
pub(crate) const NEWLINE: u8 = b'\n';

/// The characters with a meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CsvDialect {
    pub delimiter: u8,
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
            delimiter: b',',
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
            _ => return memrchr(NEWLINE, bytes).map(|at| at + 1),
        };
        let mut end = None;
        let mut at = self.skip_comments(bytes, 0);
        while let Some(next) = memchr2(quote, NEWLINE, bytes.get(at..)?) {
            let place = at + next;
            if bytes[place] == NEWLINE {
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
        let lines = bytes.strip_suffix(&[NEWLINE]).unwrap_or(bytes);
        let mut lines = lines.split(|byte| *byte == NEWLINE);
        lines.any(|line| match line {
            [] | [b'\r'] => empty_is_record,
            [first, ..] => Some(*first) != self.comment,
        })
    }

    /// Behind the comments that begin at the beginning of a line.
    fn skip_comments(&self, bytes: &[u8], mut at: usize) -> usize {
        while self.comment.is_some() && bytes.get(at).copied() == self.comment {
            match memchr(NEWLINE, &bytes[at..]) {
                Some(end) => at += end + 1,
                None => return bytes.len(),
            }
        }
        at
    }

    fn begins_field(&self, bytes: &[u8], at: usize) -> bool {
        at == 0 || bytes[at - 1] == self.delimiter || bytes[at - 1] == NEWLINE
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
