//! One line per value, for rows that are wider than a line.
//!
//! ```text
//! ─[ 1 ]──────────
//! name  │ Bruno
//! spent │ NULL
//! ```
//!
//! Rows are written as they arrive.

use super::cell::{self, Cell};
use super::{FormatError, Layout, ResultWriter};
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use std::io::Write;
use unicode_width::UnicodeWidthStr;

/// Rows that are made into text at once.
const AT_ONCE: usize = 1024;

/// Writes one result, a record after the other.
pub struct RecordWriter<W> {
    out: W,
    layout: Layout,
    names: Vec<String>,
    width: usize,
    written: u64,
}

impl<W: Write> RecordWriter<W> {
    /// A writer into `out`.
    pub fn new(out: W, layout: Layout) -> Self {
        RecordWriter {
            out,
            layout,
            names: Vec::new(),
            width: 0,
            written: 0,
        }
    }

    /// The columns' names; before any row.
    pub fn names(&mut self, names: Vec<String>) {
        self.width = names.iter().map(|name| name.width()).max().unwrap_or(0);
        self.names = names;
    }

    /// One row.
    pub fn record(&mut self, cells: &[Cell]) -> Result<(), FormatError> {
        self.written += 1;
        let title = format!("─[ {} ]", self.written);
        let rule = (self.width + 3).max(16).saturating_sub(title.width());
        let mut text = format!("{title}{}\n", "─".repeat(rule));
        for (name, cell) in self.names.iter().zip(cells) {
            text.push_str(name);
            text.extend(std::iter::repeat_n(' ', self.width - name.width()));
            text.push_str(" │ ");
            if cell.null && self.layout.style {
                text.push_str(&format!("\x1b[2m{}\x1b[0m", cell.text));
            } else {
                text.push_str(&cell.text);
            }
            text.push('\n');
        }
        Ok(self.out.write_all(text.as_bytes())?)
    }
}

/// The names of a schema's columns.
pub fn names(schema: &Schema) -> Vec<String> {
    let fields = schema.fields().iter();
    fields.map(|field| cell::printable(field.name())).collect()
}

impl<W: Write> ResultWriter for RecordWriter<W> {
    fn begin(&mut self, schema: &Schema) -> Result<(), FormatError> {
        self.names(names(schema));
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        for from in (0..batch.num_rows()).step_by(AT_ONCE) {
            let to = batch.num_rows().min(from + AT_ONCE);
            for row in cell::rows(batch, from..to, self.layout.null())? {
                self.record(&row)?;
            }
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
    fn each_value_has_its_line() {
        let texts = StringArray::from(vec![Some("a"), None]);
        let numbers = Int32Array::from(vec![1, 2]);
        let batch = batch(vec![("text", Arc::new(texts)), ("n", Arc::new(numbers))]);
        assert_eq!(
            print(Format::Line, &[batch]),
            "─[ 1 ]──────────\ntext │ a\nn    │ 1\n─[ 2 ]──────────\ntext │ NULL\nn    │ 2\n"
        );
        assert_eq!(print(Format::Line, &[no_rows()]), "");
    }
}
