//! Comma-separated values after RFC 4180, with a header line. Lines end in `\n`.
//!
//! NULL is an empty field and the empty string is `""`, so that both survive a round trip.

use super::cell::Cells;
use super::{FormatError, Layout, ResultWriter};
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use std::io::Write;

/// Writes one result as CSV.
pub struct CsvWriter<W> {
    out: W,
    layout: Layout,
    line: String,
}

impl<W: Write> CsvWriter<W> {
    /// A writer into `out`.
    pub fn new(out: W, layout: Layout) -> Self {
        CsvWriter {
            out,
            layout,
            line: String::new(),
        }
    }

    fn finish_line(&mut self) -> Result<(), FormatError> {
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }
}

/// Appends a field that is not NULL.
fn push_field(line: &mut String, field: &str, separator: &str) {
    let needs_quotes =
        field.is_empty() || field.contains(['"', '\n', '\r']) || field.contains(separator);
    if !needs_quotes {
        return line.push_str(field);
    }
    line.push('"');
    for part in field.split_inclusive('"') {
        line.push_str(part);
        if part.ends_with('"') {
            line.push('"');
        }
    }
    line.push('"');
}

impl<W: Write> ResultWriter for CsvWriter<W> {
    fn begin(&mut self, schema: &Schema) -> Result<(), FormatError> {
        if !self.layout.headers {
            return Ok(());
        }
        for (index, field) in schema.fields().iter().enumerate() {
            if index > 0 {
                self.line.push_str(&self.layout.separator);
            }
            push_field(&mut self.line, field.name(), &self.layout.separator);
        }
        self.finish_line()
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        let columns = Cells::of(batch)?;
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            for (index, cells) in columns.iter().enumerate() {
                if index > 0 {
                    self.line.push_str(&self.layout.separator);
                }
                if cells.is_null(row) {
                    if let Some(null) = &self.layout.null {
                        self.line.push_str(null);
                    }
                } else {
                    cells.read(row, &mut text)?;
                    push_field(&mut self.line, &text, &self.layout.separator);
                }
            }
            self.finish_line()?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), FormatError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::format::Format;
    use crate::format::test_support::{batch, every_kind, no_rows, print};
    use arrow::array::StringArray;
    use std::sync::Arc;

    #[test]
    fn null_and_the_empty_string_differ() {
        let texts = StringArray::from(vec![Some(""), None, Some(" ")]);
        let numbers = arrow::array::Int32Array::from(vec![Some(1), None, Some(3)]);
        let batch = batch(vec![("t", Arc::new(texts)), ("n", Arc::new(numbers))]);
        assert_eq!(print(Format::Csv, &[batch]), "t,n\n\"\",1\n,\n ,3\n");
    }

    #[test]
    fn separators_quotes_and_line_ends_are_quoted() {
        let texts = StringArray::from(vec![
            "a,b",
            "say \"hi\"",
            "\"",
            "two\nlines",
            "cr\r",
            "plain",
        ]);
        let batch = batch(vec![("a \"name\"", Arc::new(texts))]);
        assert_eq!(
            print(Format::Csv, &[batch]),
            "\"a \"\"name\"\"\"\n\"a,b\"\n\"say \"\"hi\"\"\"\n\"\"\"\"\n\"two\nlines\"\n\"cr\r\"\nplain\n"
        );
    }

    #[test]
    fn batches_follow_each_other_under_one_header() {
        let text = print(Format::Csv, &[every_kind(), every_kind()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(
            lines[0],
            "flag,big,huge,price,ratio,name,day,moment,instant"
        );
        assert_eq!(
            lines[1],
            "true,-9223372036854775808,18446744073709551615,-12.50,0.1,Ünï,1994-01-01,\
             1994-01-01 08:30:00.500,1994-01-01 08:30:00+00:00"
        );
        assert_eq!(lines[2], ",,,,,,,,");
    }

    #[test]
    fn a_result_without_rows_is_its_header() {
        assert_eq!(print(Format::Csv, &[no_rows()]), "n,at\n");
    }
}
