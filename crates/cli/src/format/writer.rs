//! What all formats have in common: a writer, and what can go wrong.

use super::layout::Shown;
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use std::io;

/// Why a result could not be printed.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The output is closed, full or broken.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),
    /// A value has no text form, such as a timestamp outside the calendar.
    #[error("cannot print a value of the result: {0}")]
    Value(#[from] ArrowError),
}

impl FormatError {
    /// Whether the reader of our output has gone, as in `eris … | head`. It saw what it wanted: not an error to report.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, FormatError::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Writes one result: [`begin`](ResultWriter::begin), any number of batches of that schema, [`end`](ResultWriter::end).
pub trait ResultWriter {
    /// What precedes the first row.
    fn begin(&mut self, schema: &Schema) -> Result<(), FormatError>;
    /// The rows of a batch.
    fn batch(&mut self, batch: &RecordBatch) -> Result<(), FormatError>;
    /// What follows the last row. The output is complete, but not flushed.
    fn end(&mut self) -> Result<(), FormatError>;
    /// What of the result the reader can see, once it has ended.
    fn shown(&self) -> Shown {
        Shown::All
    }
}
