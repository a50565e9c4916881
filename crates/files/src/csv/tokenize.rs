//! From bytes to fields.
//!
//! ```text
//! text    7,"a ""b""",⏎8,c,d⏎
//! fields  [0..1] [3..10 quoted escaped] [12..12] [13..14] …      record by record, no byte is copied
//! starts  0, 13                                                  where each record begins
//! ```

use super::dialect::CsvDialect;

/// A field's bytes, without its quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CsvField {
    pub start: u32,
    /// With two flags on top.
    end: u32,
}

const QUOTED: u32 = 1 << 31;
const ESCAPED: u32 = 1 << 30;
/// A text that is tokenized at once must be shorter than this.
pub(crate) const MOST_BYTES: usize = (1 << 30) - 1;

impl CsvField {
    fn new(start: usize, end: usize, flags: u32) -> Self {
        CsvField {
            start: start as u32,
            end: end as u32 | flags,
        }
    }

    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.end & !(QUOTED | ESCAPED)) as usize
    }

    pub fn is_quoted(self) -> bool {
        self.end & QUOTED != 0
    }

    /// Whether something within is escaped.
    pub fn is_escaped(self) -> bool {
        self.end & ESCAPED != 0
    }

    fn is_blank(self) -> bool {
        self.range().is_empty() && !self.is_quoted()
    }
}

/// Fields, record by record.
#[derive(Debug, Default)]
pub(crate) struct CsvRecords {
    pub fields: Vec<CsvField>,
    /// Where each record begins in the text.
    pub starts: Vec<u32>,
    /// Behind each record's last field; only where they may differ in number.
    pub ends: Vec<u32>,
}

impl CsvRecords {
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// The fields of a record, where their number was left open.
    pub fn record(&self, record: usize) -> &[CsvField] {
        let from = record.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.fields[from as usize..self.ends[record] as usize]
    }
}

/// What makes a text no records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MalformedRecord {
    /// Where the record begins.
    pub start: usize,
    pub fault: RecordFault,
}

/// A fault of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordFault {
    /// Another number of fields than there are columns.
    Fields(usize),
    /// A quote that nothing closes, in this column.
    Unclosed(usize),
    /// Something between a closing quote and the delimiter, in this column, from here on.
    BehindQuote(usize, usize),
}

/// Tokenizes whole records. `width` is the number of columns, if known; then every record has to have as many.
pub(crate) fn tokenize(
    dialect: &CsvDialect,
    text: &[u8],
    width: Option<usize>,
    records: &mut CsvRecords,
) -> Result<(), MalformedRecord> {
    assert!(text.len() <= MOST_BYTES, "blocks are cut smaller");
    let mut at = 0;
    while at < text.len() {
        if dialect.comment.is_some_and(|comment| comment == text[at]) {
            at = line_end(dialect, text, at) + 1;
            continue;
        }
        let start = at;
        let first = records.fields.len();
        loop {
            let column = records.fields.len() - first;
            let (field, end) = field(dialect, text, at).map_err(|fault| MalformedRecord {
                start,
                fault: fault.in_column(column),
            })?;
            records.fields.push(field);
            if !dialect.delimiter.is_at(text, end) {
                at = end + 1;
                break;
            }
            at = end + dialect.delimiter.width();
        }
        let mut count = records.fields.len() - first;
        let last = records.fields[first + count - 1];
        if count == 1 && last.is_blank() && width != Some(1) {
            // An empty line.
            records.fields.truncate(first);
            continue;
        }
        if let Some(width) = width {
            if dialect.trailing && count == width + 1 && last.is_blank() {
                records.fields.pop();
                count -= 1;
            }
            if count != width {
                records.fields.truncate(first);
                return Err(MalformedRecord {
                    start,
                    fault: RecordFault::Fields(count),
                });
            }
        } else {
            records.ends.push(records.fields.len() as u32);
        }
        records.starts.push(start as u32);
    }
    Ok(())
}

impl RecordFault {
    fn in_column(self, column: usize) -> Self {
        match self {
            RecordFault::Unclosed(_) => RecordFault::Unclosed(column),
            RecordFault::BehindQuote(_, at) => RecordFault::BehindQuote(column, at),
            other => other,
        }
    }
}

/// The field that begins at `at`, and the delimiter or line end behind it, or the end of the text.
fn field(dialect: &CsvDialect, text: &[u8], at: usize) -> Result<(CsvField, usize), RecordFault> {
    if at < text.len() && Some(text[at]) == dialect.quote {
        return quoted(dialect, text, at);
    }
    let end = plain_end(dialect, text, at);
    Ok((
        CsvField::new(at, before_line_end(dialect, text, at, end), 0),
        end,
    ))
}

/// The next delimiter or line end.
fn plain_end(dialect: &CsvDialect, text: &[u8], mut at: usize) -> usize {
    loop {
        let end = delimiting_byte(dialect, text, at);
        let is_part =
            end < text.len() && text[end] != dialect.newline && !dialect.delimiter.is_at(text, end);
        if !is_part {
            return end;
        }
        at = end + 1;
    }
}

/// The next line end or byte with which a delimiter begins. Eight bytes are compared at once: a byte that is equal
/// becomes zero by XOR, and the least zero byte of a word is found by arithmetic.
fn delimiting_byte(dialect: &CsvDialect, text: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const TOPS: u64 = 0x8080_8080_8080_8080;
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & TOPS;
    let delimiters = ONES * u64::from(dialect.delimiter.first);
    let newlines = ONES * u64::from(dialect.newline);
    while let Some(Ok(eight)) = text.get(at..at + 8).map(<[u8; 8]>::try_from) {
        let word = u64::from_le_bytes(eight);
        let found = zeros(word ^ delimiters) | zeros(word ^ newlines);
        if found != 0 {
            return at + (found.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    let rest = &text[at.min(text.len())..];
    let found = rest
        .iter()
        .position(|&byte| byte == dialect.delimiter.first || byte == dialect.newline);
    found.map_or(text.len(), |found| at + found)
}

fn line_end(dialect: &CsvDialect, text: &[u8], at: usize) -> usize {
    memchr::memchr(dialect.newline, &text[at..]).map_or(text.len(), |end| at + end)
}

/// Where a field ends that ends at `end`: before the `\r` of a `\r\n`.
fn before_line_end(dialect: &CsvDialect, text: &[u8], start: usize, end: usize) -> usize {
    let at_line_end = end >= text.len() || text[end] == dialect.newline;
    if at_line_end && end > start && text[end - 1] == b'\r' {
        end - 1
    } else {
        end
    }
}

fn quoted(dialect: &CsvDialect, text: &[u8], at: usize) -> Result<(CsvField, usize), RecordFault> {
    let closing = dialect
        .closing_quote(text, at + 1)
        .ok_or(RecordFault::Unclosed(0))?;
    let behind = closing + 1;
    let end = plain_end(dialect, text, behind);
    if before_line_end(dialect, text, behind, end) != behind {
        return Err(RecordFault::BehindQuote(0, behind));
    }
    let escaped = dialect
        .escape
        .is_some_and(|escape| memchr::memchr(escape, &text[at + 1..closing]).is_some());
    let flags = if escaped { QUOTED | ESCAPED } else { QUOTED };
    Ok((CsvField::new(at + 1, closing, flags), end))
}

/// The text of an escaped field.
pub(crate) fn unescape(dialect: &CsvDialect, text: &str) -> String {
    let quote = dialect.quote.map(char::from);
    let escape = dialect.escape.map(char::from);
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        let escapes = Some(c) == escape && next.is_some() && (next == quote || next == escape);
        plain.push(if escapes {
            chars.next().unwrap_or(c)
        } else {
            c
        });
    }
    plain
}

impl CsvField {
    /// The field of a text that is the end of a longer one.
    pub fn shifted(self, by: usize) -> Self {
        CsvField {
            start: self.start + by as u32,
            end: self.end + by as u32,
        }
    }
}
