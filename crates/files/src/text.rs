//! Texts in memory, read as the files would be that hold them.

use crate::blocks::{Cutting, TextSource};
use crate::csv::{self, CsvOptions, WantedColumns};
use crate::encoding::TextCoding;
use crate::error::FileError;
use crate::json;
use crate::progress::ReadProgress;
use crate::scan::RecordParser;
use datafusion::arrow::record_batch::RecordBatch;

/// The rows of a CSV text, a batch for each block of about so many bytes.
///
/// # Errors
/// What is wrong with the text, which is no file and is called `text`.
pub fn csv_rows(
    text: &[u8],
    options: &CsvOptions,
    block: usize,
) -> Result<Vec<RecordBatch>, FileError> {
    let source = TextSource::Bytes(text.into());
    let parser = csv::inspect(&source, options, &WantedColumns::Found)?;
    let cutting = options.cutting(&parser.dialect, Some(parser.columns.len()));
    rows(&source, &parser, Cutting { block, ..cutting })
}

/// The rows of a JSON text, a batch for each block of about so many bytes.
///
/// # Errors
/// What is wrong with the text, which is no file and is called `text`.
pub fn json_rows(text: &[u8], block: usize) -> Result<Vec<RecordBatch>, FileError> {
    let source = TextSource::Bytes(text.into());
    let (parser, cutting) = json::inspect(&source, [], TextCoding::default(), None)?;
    rows(&source, &parser, Cutting { block, ..cutting })
}

fn rows(
    source: &TextSource,
    parser: &impl RecordParser,
    cutting: Cutting,
) -> Result<Vec<RecordBatch>, FileError> {
    let all: Vec<usize> = (0..parser.columns().len()).collect();
    let mut cutter = source.cut_rows(&cutting, &ReadProgress::default())?;
    let mut batches = Vec::new();
    while let Some(block) = cutter.next()? {
        batches.push(parser.parse(&block, &all)?);
    }
    Ok(batches)
}
