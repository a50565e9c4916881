//! Aligned columns for people.
//!
//! ```text
//! ┌──────┬─────────┐
//! │ year │ revenue │      numbers to the right, text to the left,
//! ├──────┼─────────┤      NULL spelled out, control characters escaped
//! │ 1994 │   12.50 │
//! │ NULL │    0.10 │
//! └──────┴─────────┘
//! ```
//!
//! The first [`SAMPLE`] rows decide the widths; the rows after them are written as they come, and a wider value pushes its
//! line out of alignment instead of making the program hold a result of any size.

use super::cell::{Cells, Kind};
use super::{FormatError, ResultWriter};
use arrow::array::{Array, RecordBatch};
use arrow::datatypes::Schema;
use std::io::Write;
use unicode_width::UnicodeWidthStr;

/// Rows that are held to find the columns' widths.
const SAMPLE: usize = 1_000;

/// Writes one result as a table.
pub struct TableWriter<W> {
    out: W,
    numbers: Vec<bool>,
    widths: Vec<usize>,
    /// The head and the first rows, while widths are still being found.
    held: Option<Vec<Vec<String>>>,
    line: String,
}

impl<W: Write> TableWriter<W> {
    /// A writer into `out`.
    pub fn new(out: W) -> Self {
        TableWriter {
            out,
            numbers: Vec::new(),
            widths: Vec::new(),
            held: None,
            line: String::new(),
        }
    }

    fn rule(&mut self, [left, middle, right]: [&str; 3]) -> Result<(), FormatError> {
        self.line.clear();
        for (index, width) in self.widths.iter().enumerate() {
            self.line.push_str(if index == 0 { left } else { middle });
            self.line.extend(std::iter::repeat_n('─', width + 2));
        }
        self.line.push_str(right);
        self.line.push('\n');
        Ok(self.out.write_all(self.line.as_bytes())?)
    }

    fn row(&mut self, cells: &[String]) -> Result<(), FormatError> {
        self.line.clear();
        for (index, cell) in cells.iter().enumerate() {
            let fill = self.widths[index].saturating_sub(cell.width());
            let (before, after) = if self.numbers[index] {
                (fill, 0)
            } else {
                (0, fill)
            };
            self.line.push_str("│ ");
            self.line.extend(std::iter::repeat_n(' ', before));
            self.line.push_str(cell);
            self.line.extend(std::iter::repeat_n(' ', after + 1));
        }
        self.line.push_str("│\n");
        Ok(self.out.write_all(self.line.as_bytes())?)
    }

    /// Fixes the widths and writes what was held.
    fn release(&mut self) -> Result<(), FormatError> {
        let Some(held) = self.held.take() else {
            return Ok(());
        };
        for row in &held {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.width());
            }
        }
        self.rule(["┌", "┬", "┐"])?;
        let (head, rows) = held.split_first().expect("begin put the head first");
        self.row(head)?;
        self.rule(["├", "┼", "┤"])?;
        rows.iter().try_for_each(|row| self.row(row))
    }
}

/// The text without anything that moves a terminal's cursor.
fn printable(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() {
            clean.extend(character.escape_default());
        } else {
            clean.push(character);
        }
    }
    clean
}

impl<W: Write> ResultWriter for TableWriter<W> {
    fn begin(&mut self, schema: &Schema) -> Result<(), FormatError> {
        let fields = schema.fields();
        self.numbers = fields
            .iter()
            .map(|f| Kind::of(f.data_type()) == Kind::Number)
            .collect();
        self.widths = vec![0; fields.len()];
        self.held = Some(vec![
            fields.iter().map(|field| printable(field.name())).collect(),
        ]);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        let columns = batch
            .columns()
            .iter()
            .map(|array| Cells::new(array as &dyn Array));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let mut text = String::new();
        for row in 0..batch.num_rows() {
            let mut cells = Vec::with_capacity(columns.len());
            for column in &columns {
                column.read(row, &mut text)?;
                cells.push(if column.is_null(row) {
                    "NULL".into()
                } else {
                    printable(&text)
                });
            }
            match &mut self.held {
                Some(held) => {
                    held.push(cells);
                    if held.len() > SAMPLE {
                        self.release()?;
                    }
                }
                None => self.row(&cells)?,
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), FormatError> {
        self.release()?;
        self.rule(["└", "┴", "┘"])
    }
}

#[cfg(test)]
mod tests {
    use super::SAMPLE;
    use crate::format::Format;
    use crate::format::test_support::{batch, no_rows, print};
    use arrow::array::{Int32Array, StringArray};
    use std::sync::Arc;

    #[test]
    fn numbers_right_text_left_null_spelled_out() {
        let texts = StringArray::from(vec![Some("日本"), Some("a\tb\u{1b}"), None]);
        let numbers = Int32Array::from(vec![Some(1), None, Some(-300)]);
        let batch = batch(vec![("text", Arc::new(texts)), ("n", Arc::new(numbers))]);
        let expected = "\
┌────────────┬──────┐
│ text       │    n │
├────────────┼──────┤
│ 日本       │    1 │
│ a\\tb\\u{1b} │ NULL │
│ NULL       │ -300 │
└────────────┴──────┘
";
        assert_eq!(print(Format::Table, &[batch]), expected);
    }

    #[test]
    fn a_result_without_rows_keeps_its_head() {
        assert_eq!(
            print(Format::Table, &[no_rows()]),
            "┌───┬────┐\n│ n │ at │\n├───┼────┤\n└───┴────┘\n"
        );
    }

    #[test]
    fn rows_after_the_sample_keep_coming_with_its_widths() {
        let mut values = vec![1; SAMPLE];
        values.extend([1_000_000, 2]);
        let text = print(
            Format::Table,
            &[batch(vec![("n", Arc::new(Int32Array::from(values)))])],
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), SAMPLE + 2 + 4);
        assert_eq!(&lines[lines.len() - 3..], ["│ 1000000 │", "│ 2 │", "└───┘"]);
    }
}
