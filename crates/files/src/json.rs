//! JSON: one object after the other, line by line or not, or an array of objects.
//!
//! ```text
//! {"a": 1}⏎{"a": 2}⏎               lines: a block ends with a line
//! [ {"a": 1}, {"a": 2} ]            an array: its brackets and commas become blanks, a block ends with an object
//! ```

mod decode;
mod detect;
mod fault;
mod layout;

pub(crate) use detect::inspect;

use crate::blocks::Block;
use crate::column::{FileColumn, schema};
use crate::error::{FileError, FileFaultKind, Misfit, TypeOrigin};
use crate::scan::RecordParser;
use datafusion::arrow::array::Array;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use decode::{decode, is_longer};
use fault::{malformed, no_object, stray};
use layout::{JsonLayout, objects, stray_comma};
use serde::de::IgnoredAny;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// Whether a comma stands in front of a closing bracket, perhaps within a string. The decoder takes `{"a": 1,}`.
fn may_end_with_comma(text: &[u8]) -> bool {
    memchr::memchr2_iter(b'}', b']', text).any(|at| {
        let before = text[..at].iter().rev();
        before.copied().find(|byte| !byte.is_ascii_whitespace()) == Some(b',')
    })
}

/// JSON files with all that is known of them.
#[derive(Debug)]
pub(crate) struct JsonFiles {
    pub columns: Vec<FileColumn>,
    origin: TypeOrigin,
    layout: JsonLayout,
}

impl RecordParser for JsonFiles {
    fn columns(&self) -> &[FileColumn] {
        &self.columns
    }

    fn parse(&self, block: &Block, projection: &[usize]) -> Result<RecordBatch, FileError> {
        let columns: Vec<FileColumn> = projection
            .iter()
            .map(|&at| self.columns[at].clone())
            .collect();
        let text = self.text(block)?;
        let rows = memchr::memchr_iter(b'\n', &text).count() + 2;
        // Rows are counted by any column, if none is wanted.
        let decoded = if columns.is_empty() {
            &self.columns[..1]
        } else {
            &columns[..]
        };
        if may_end_with_comma(&text)
            && let Some(fault) = self.broken_record(block)
        {
            return Err(fault);
        }
        let batch = decode(&text, decoded, rows).map_err(|()| self.fault(block, decoded))?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let mut arrays = Vec::with_capacity(columns.len());
        for (column, array) in columns.iter().zip(batch.columns()) {
            let nulls = array.null_count() > 0 && !column.field.is_nullable();
            if nulls
                || column
                    .max_characters
                    .is_some_and(|most| is_longer(array, most))
            {
                return Err(self.fault(block, decoded));
            }
            arrays.push(Arc::clone(array));
        }
        RecordBatch::try_new_with_options(schema(&columns), arrays, &options)
            .map_err(|error| FileError::new(&block.path, FileFaultKind::unreadable(error)))
    }
}

impl JsonFiles {
    /// The text as objects one behind the other.
    fn text<'a>(&self, block: &'a Block) -> Result<Cow<'a, [u8]>, FileError> {
        if self.layout == JsonLayout::Lines {
            return Ok(block.bytes.as_slice().into());
        }
        let mut text = Vec::with_capacity(block.bytes.len());
        let mut end = 0;
        let between = |from: usize, to: usize| {
            let rest = &block.bytes[from..to];
            if let Some(at) = rest.iter().position(|byte| !b" \t\r\n,[]".contains(byte)) {
                return Err(no_object(block, from + at, &rest[at..]));
            }
            let is_last = to == block.bytes.len();
            stray_comma(rest, is_last).map_or(Ok(()), |at| Err(stray(block, from + at)))
        };
        for object in objects(&block.bytes) {
            between(end, object.start)?;
            end = object.end;
            text.extend_from_slice(&block.bytes[object]);
            text.push(b'\n');
        }
        between(end, block.bytes.len())?;
        Ok(text.into())
    }

    /// The first record that breaks a rule of JSON.
    fn broken_record(&self, block: &Block) -> Option<FileError> {
        self.layout
            .records(&block.bytes)
            .into_iter()
            .find_map(|record| {
                let text = &block.bytes[record.clone()];
                let error = serde_json::from_slice::<IgnoredAny>(text).err()?;
                Some(malformed(block, record.start, text, &error))
            })
    }

    /// The first fault of a block in which there is one: found by reading it again, record by record and value by
    /// value.
    fn fault(&self, block: &Block, columns: &[FileColumn]) -> FileError {
        for record in self.layout.records(&block.bytes) {
            let text = &block.bytes[record.clone()];
            let value = match serde_json::from_slice::<Value>(text) {
                Ok(value) => value,
                Err(error) => return malformed(block, record.start, text, &error),
            };
            if !value.is_object() {
                return no_object(block, record.start, text);
            }
            for column in columns {
                let member = value.get(column.field.name());
                let shown = match member {
                    None | Some(Value::Null) => String::new(),
                    Some(Value::String(text)) => text.clone(),
                    Some(other) => other.to_string(),
                };
                let misfit = match decode(text, std::slice::from_ref(column), 1) {
                    Err(()) => Misfit::Type,
                    Ok(batch)
                        if batch.num_rows() == 1
                            && batch.column(0).is_null(0)
                            && !column.field.is_nullable() =>
                    {
                        Misfit::Null
                    }
                    Ok(batch)
                        if column
                            .max_characters
                            .is_some_and(|most| is_longer(batch.column(0), most)) =>
                    {
                        Misfit::Long
                    }
                    Ok(_) => continue,
                };
                let number = self
                    .columns
                    .iter()
                    .position(|other| other.field.name() == column.field.name());
                let column = (number.unwrap_or(0), column);
                return block.misfit(record.start, column, &shown, misfit, self.origin);
            }
        }
        FileError::new(&block.path, FileFaultKind::NoJson)
    }
}
