//! Query results as text: one file per format, each a writer from record batches into any [`io::Write`].
//!
//! What holds for every format:
//!
//! - Numbers are exact. Integers never pass through a float, decimals keep every digit of their scale, floats are the
//!   shortest text that reads back as the same float. `NaN`, `Infinity` and `-Infinity` are written with these words.
//! - Dates and timestamps are ISO 8601: `1994-01-01`, `1994-01-01 08:30:00`, `1994-01-01 08:30:00+00:00`.
//! - Rows are written as they arrive. No writer holds more than the few rows it needs to choose column widths.
//!
//! The writers know no database, which is why their tests need none.

mod cell;
mod csv;
mod fit;
mod json;
mod layout;
mod markdown;
mod record;
mod table;
mod writer;

pub use cell::{Cells, Kind};
pub use layout::{Expanded, Layout, Shown};
pub use writer::{FormatError, ResultWriter};

use std::io;

/// The forms in which results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Aligned columns with a frame, for people.
    #[default]
    Table,
    /// Comma-separated values with a header line (RFC 4180); NULL is empty, the empty string is "".
    Csv,
    /// One JSON array of objects per statement.
    Json,
    /// One JSON object per row and line.
    Jsonl,
    /// A Markdown table.
    Markdown,
    /// One line per value, for rows that are wider than a line.
    Line,
}

impl Format {
    /// A writer of this format for one result, whole and plain.
    pub fn writer<'a, W: io::Write + 'a>(self, out: W) -> Box<dyn ResultWriter + 'a> {
        self.laid_out(out, &Layout::default())
    }

    /// A writer of this format for one result.
    pub fn laid_out<'a, W>(self, out: W, layout: &Layout) -> Box<dyn ResultWriter + 'a>
    where
        W: io::Write + 'a,
    {
        let layout = layout.clone();
        match self {
            Format::Table if layout.expanded != Expanded::On => {
                Box::new(table::TableWriter::new(out, layout))
            }
            Format::Table | Format::Line => Box::new(record::RecordWriter::new(out, layout)),
            Format::Csv => Box::new(csv::CsvWriter::new(out, layout)),
            Format::Json => Box::new(json::JsonWriter::array(out)),
            Format::Jsonl => Box::new(json::JsonWriter::lines(out)),
            Format::Markdown => Box::new(markdown::MarkdownWriter::new(out, layout)),
        }
    }

    /// Whether people read it, who are told how many rows there were.
    pub fn is_for_people(self) -> bool {
        matches!(self, Format::Table | Format::Line)
    }

    /// Whether programs read it that expect JSON, of errors too.
    pub fn is_json(self) -> bool {
        matches!(self, Format::Json | Format::Jsonl)
    }
}

#[cfg(test)]
pub mod test_support {
    //! One result with a column of every kind, and a writer run over it.

    use super::{Format, FormatError, Layout};
    use arrow::array::*;
    use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
    use std::sync::Arc;

    /// Runs a format over batches of one schema.
    pub fn print(format: Format, batches: &[RecordBatch]) -> String {
        let mut out = Vec::new();
        write(format, batches, &mut out).expect("a Vec takes everything");
        String::from_utf8(out).expect("results are UTF-8")
    }

    /// As [`print`], laid out.
    pub fn print_as(format: Format, layout: &Layout, batches: &[RecordBatch]) -> String {
        let mut out = Vec::new();
        let mut writer = format.laid_out(&mut out, layout);
        writer.begin(&batches[0].schema()).expect("written");
        for batch in batches {
            writer.batch(batch).expect("written");
        }
        writer.end().expect("written");
        drop(writer);
        String::from_utf8(out).expect("results are UTF-8")
    }

    /// As [`print`], into any output.
    pub fn write(
        format: Format,
        batches: &[RecordBatch],
        out: &mut dyn std::io::Write,
    ) -> Result<(), FormatError> {
        let mut writer = format.writer(out);
        writer.begin(&batches[0].schema())?;
        for batch in batches {
            writer.batch(batch)?;
        }
        writer.end()
    }

    /// A batch from named columns.
    pub fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
            .collect();
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("equal lengths")
    }

    /// Two rows, the second all NULL, with the values that text forms get wrong.
    pub fn every_kind() -> RecordBatch {
        batch(vec![
            ("flag", Arc::new(BooleanArray::from(vec![Some(true), None]))),
            (
                "big",
                Arc::new(Int64Array::from(vec![Some(i64::MIN), None])),
            ),
            (
                "huge",
                Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])),
            ),
            (
                "price",
                Arc::new(
                    Decimal128Array::from(vec![Some(-1_250), None])
                        .with_precision_and_scale(38, 2)
                        .expect("valid"),
                ),
            ),
            ("ratio", Arc::new(Float64Array::from(vec![Some(0.1), None]))),
            (
                "name",
                Arc::new(StringViewArray::from(vec![Some("Ünï"), None])),
            ),
            ("day", Arc::new(Date32Array::from(vec![Some(8_766), None]))),
            (
                "moment",
                Arc::new(TimestampMicrosecondArray::from(vec![
                    Some(757_413_000_500_000),
                    None,
                ])),
            ),
            (
                "instant",
                Arc::new(
                    TimestampSecondArray::from(vec![Some(757_413_000), None])
                        .with_timezone("+00:00"),
                ),
            ),
        ])
    }

    /// A batch without rows.
    pub fn no_rows() -> RecordBatch {
        RecordBatch::new_empty(Arc::new(Schema::new(vec![
            Field::new("n", DataType::Int32, true),
            Field::new("at", DataType::Timestamp(TimeUnit::Second, None), true),
        ])))
    }
}

#[cfg(test)]
mod tests {
    use super::test_support::{every_kind, write};
    use super::*;
    use clap::ValueEnum;

    /// Takes some bytes, then behaves like a pipe whose reader has gone.
    struct Closing(usize);

    impl io::Write for Closing {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let taken = bytes.len().min(self.0);
            self.0 -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_format_reports_a_closed_pipe_as_one() {
        for format in Format::value_variants() {
            let error = write(*format, &[every_kind()], &mut Closing(20)).expect_err("closed");
            assert!(error.is_closed_pipe(), "{format:?}: {error}");
        }
    }

    #[test]
    fn a_full_disk_is_not_a_closed_pipe() {
        let error = FormatError::from(io::Error::from(io::ErrorKind::StorageFull));
        assert!(!error.is_closed_pipe());
    }
}
