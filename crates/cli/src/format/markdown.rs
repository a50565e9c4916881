//! A Markdown table, as most renderers understand it.
//!
//! Numbers are right-aligned by the rule line. A `|` in a value is escaped and a line end becomes `<br>`, for a row is
//! one line. Columns are not padded, so rows can be written as they arrive.

use super::cell::{Cells, Kind};
use super::{FormatError, Layout, ResultWriter};
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use std::io::Write;

/// Writes one result as a Markdown table.
pub struct MarkdownWriter<W> {
    out: W,
    layout: Layout,
    line: String,
}

impl<W: Write> MarkdownWriter<W> {
    /// A writer into `out`.
    pub fn new(out: W, layout: Layout) -> Self {
        MarkdownWriter {
            out,
            layout,
            line: String::new(),
        }
    }

    fn push(&mut self, cell: &str) {
        self.line
            .push_str(if self.line.is_empty() { "| " } else { " | " });
        for character in cell.chars() {
            match character {
                '|' => self.line.push_str("\\|"),
                '\n' => self.line.push_str("<br>"),
                '\r' => {}
                other => self.line.push(other),
            }
        }
    }

    fn finish_line(&mut self) -> Result<(), FormatError> {
        self.line.push_str(" |\n");
        self.out.write_all(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }
}

impl<W: Write> ResultWriter for MarkdownWriter<W> {
    fn begin(&mut self, schema: &Schema) -> Result<(), FormatError> {
        for field in schema.fields() {
            self.push(field.name());
        }
        self.finish_line()?;
        for field in schema.fields() {
            self.push(match Kind::of(field.data_type()) {
                Kind::Number => "---:",
                _ => "---",
            });
        }
        self.finish_line()
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        let columns = Cells::of(batch)?;
        let mut text = String::new();
        let null = self.layout.null().to_owned();
        for row in 0..batch.num_rows() {
            for cells in &columns {
                if cells.is_null(row) {
                    self.push(&null);
                } else {
                    cells.read(row, &mut text)?;
                    self.push(&text);
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
    use crate::format::test_support::{batch, no_rows, print};
    use arrow::array::{Int32Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn cells_stay_in_their_row_and_column() {
        let texts = StringArray::from(vec![Some("a|b"), Some("two\r\nlines"), None]);
        let numbers = Int32Array::from(vec![1, 20, 300]);
        let batch = batch(vec![("t", Arc::new(texts)), ("n", Arc::new(numbers))]);
        assert_eq!(
            print(Format::Markdown, &[batch]),
            "| t | n |\n| --- | ---: |\n| a\\|b | 1 |\n| two<br>lines | 20 |\n| NULL | 300 |\n"
        );
    }

    #[test]
    fn a_result_without_rows_keeps_its_head() {
        assert_eq!(
            print(Format::Markdown, &[no_rows()]),
            "| n | at |\n| ---: | --- |\n"
        );
    }
}
