//! Rows as CSV text.

use crate::error::shortened;
use datafusion::arrow::array::Array;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::FormatOptions;
use eris_exact::text::{VALUE_FORMAT, formatter};
use std::fmt::Write;

/// How CSV is written.
#[derive(Clone, Debug)]
pub struct CsvStyle {
    /// Whether the first line names the columns.
    pub header: bool,
    /// What separates fields.
    pub delimiter: String,
    /// `None`: nothing is quoted.
    pub quote: Option<u8>,
    /// What is put in front of a quote within quotes.
    pub escape: u8,
    /// What stands for NULL.
    pub null: String,
    /// How dates are written, if not as SQL writes them: `%d.%m.%Y`.
    pub date_format: Option<String>,
    /// How timestamps are written, if not as SQL writes them.
    pub timestamp_format: Option<String>,
}

impl Default for CsvStyle {
    fn default() -> Self {
        CsvStyle {
            header: true,
            delimiter: ",".to_owned(),
            quote: Some(b'"'),
            escape: b'"',
            null: String::new(),
            date_format: None,
            timestamp_format: None,
        }
    }
}

impl CsvStyle {
    /// The names of the columns as a line.
    ///
    /// # Errors
    /// As [`fn@format`].
    pub(crate) fn header_line<'a>(
        &self,
        names: impl Iterator<Item = &'a str>,
    ) -> Result<String, ArrowError> {
        let mut line = String::new();
        for (at, name) in names.enumerate() {
            if at > 0 {
                line.push_str(&self.delimiter);
            }
            self.push(&mut line, name)?;
        }
        line.push('\n');
        Ok(line)
    }

    /// A text, in quotes if it would be read as something else without.
    fn push(&self, line: &mut String, text: &str) -> Result<(), ArrowError> {
        let first = self.delimiter.as_bytes().first().copied();
        let special = |byte: u8| {
            matches!(byte, b'\n' | b'\r') || Some(byte) == first || Some(byte) == self.quote
        };
        match self.quote {
            Some(quote) if text == self.null || text.bytes().any(special) => {
                line.push(quote.into());
                for c in text.chars() {
                    if c == char::from(quote) || c == char::from(self.escape) {
                        line.push(self.escape.into());
                    }
                    line.push(c);
                }
                line.push(quote.into());
            }
            None if text.bytes().any(special) => {
                return Err(ArrowError::CsvError(format!(
                    "'{}' holds a delimiter or line end, and QUOTE '' leaves it without quotes",
                    shortened(text)
                )));
            }
            _ => line.push_str(text),
        }
        Ok(())
    }
}

/// The rows as lines.
///
/// # Errors
/// A text that would be read as several fields, because nothing is quoted.
pub(crate) fn format(style: &CsvStyle, batch: &RecordBatch) -> Result<String, ArrowError> {
    let timestamps = style.timestamp_format.as_deref();
    let mut options: FormatOptions<'_> =
        VALUE_FORMAT.with_date_format(style.date_format.as_deref());
    if let Some(format) = timestamps {
        options = options
            .with_timestamp_format(Some(format))
            .with_timestamp_tz_format(Some(format));
    }
    let columns = batch.columns().iter();
    let columns = columns
        .map(|column| {
            let formatter = formatter(column, &options)?;
            Ok((column.logical_nulls(), formatter))
        })
        .collect::<Result<Vec<_>, ArrowError>>()?;
    let mut lines = String::with_capacity(batch.num_rows() * columns.len() * 8);
    let mut cell = String::new();
    for row in 0..batch.num_rows() {
        for (at, (nulls, formatter)) in columns.iter().enumerate() {
            if at > 0 {
                lines.push_str(&style.delimiter);
            }
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                lines.push_str(&style.null);
                continue;
            }
            cell.clear();
            write!(cell, "{}", formatter.value(row))
                .map_err(|_| ArrowError::CsvError(format!("row {row} cannot be shown")))?;
            style.push(&mut lines, &cell)?;
        }
        lines.push('\n');
    }
    Ok(lines)
}
