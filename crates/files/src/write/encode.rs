//! From rows to pieces of a file, by any number of threads.

use super::WriteOptions;
use crate::csv::format;
use crate::error::FileError;
use crate::foreign::uuid_field;
use crate::format::Format;
use crate::sink::writing;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::LineDelimited;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves,
};
use datafusion::parquet::errors::ParquetError;
use eris_exact::text::{TIMESTAMP, TIMESTAMP_ZONED, has_own_text, strings};
use eris_exact::types::UUID_BYTES;
use std::path::PathBuf;
use std::sync::Arc;

/// A piece of the file.
pub(super) enum FilePiece {
    Bytes(Vec<u8>),
    RowGroup(Vec<ArrowColumnChunk>),
    Batches(Vec<RecordBatch>),
}

/// What turns rows into pieces; several threads use it.
pub(super) struct FileEncoder {
    pub options: WriteOptions,
    pub schema: SchemaRef,
    /// Of a Parquet file.
    pub row_groups: Option<ArrowRowGroupWriterFactory>,
    pub path: PathBuf,
}

impl FileEncoder {
    /// Rows of one piece.
    pub fn piece_rows(&self) -> usize {
        self.options.piece_rows
    }

    /// A piece of these rows; `number` counts pieces.
    pub fn encode(&self, number: usize, batches: Vec<RecordBatch>) -> Result<FilePiece, FileError> {
        writing(&self.path, || {
            let text = match self.options.format {
                Format::Csv => {
                    let mut lines = Vec::new();
                    for batch in &batches {
                        lines.extend(format(&self.options.csv, batch)?.into_bytes());
                    }
                    lines
                }
                Format::Json => json(&batches)?,
                Format::Parquet => {
                    return Ok(FilePiece::RowGroup(self.row_group(number, &batches)?));
                }
                Format::Arrow => {
                    let batches = batches.iter().map(|batch| self.cast(batch));
                    return Ok(FilePiece::Batches(batches.collect::<Result<_, _>>()?));
                }
            };
            Ok(FilePiece::Bytes(self.options.compression.pack(text)?))
        })
    }

    fn row_group(
        &self,
        number: usize,
        batches: &[RecordBatch],
    ) -> Result<Vec<ArrowColumnChunk>, ParquetError> {
        let row_groups = self.row_groups.as_ref().expect("made with the file");
        let mut writers = row_groups.create_column_writers(number)?;
        for batch in batches {
            let batch = self.cast(batch)?;
            let mut writer = writers.iter_mut();
            for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                for leaf in compute_leaves(field, column)? {
                    writer.next().expect("a writer per leaf").write(&leaf)?;
                }
            }
        }
        writers.into_iter().map(|writer| writer.close()).collect()
    }

    fn cast(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| match column.data_type() {
            from if is_interval(from) && !is_interval(field.data_type()) => {
                cast(&strings(column)?, field.data_type())
            }
            _ => cast(column, field.data_type()),
        });
        RecordBatch::try_new(Arc::clone(&self.schema), columns.collect::<Result<_, _>>()?)
    }
}

fn is_interval(data_type: &DataType) -> bool {
    *data_type == DataType::Interval(IntervalUnit::MonthDayNano)
}

/// The schema with types that every reader knows: texts and bytes with offsets instead of views, and UUIDs with their
/// name.
///
/// Parquet's own INTERVAL has no microseconds and nothing negative, and readers drop its months. There it is a string.
pub(super) fn portable(schema: &Schema, format: Format) -> Schema {
    let is_string = |data_type: &DataType| {
        *data_type == DataType::Utf8View || format == Format::Parquet && is_interval(data_type)
    };
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        data_type if is_string(data_type) => Arc::new(Field::new(
            field.name(),
            DataType::Utf8,
            field.is_nullable(),
        )),
        DataType::BinaryView => Arc::new(Field::new(
            field.name(),
            DataType::Binary,
            field.is_nullable(),
        )),
        DataType::FixedSizeBinary(UUID_BYTES) => {
            Arc::new(uuid_field(field.name(), field.is_nullable()))
        }
        _ => Arc::clone(field),
    });
    Schema::new(fields.collect::<Vec<_>>())
}

/// The rows with strings for values that JSON has as strings, written as SQL writes them.
fn with_texts(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema_ref();
    let fields = || schema.fields().iter();
    if !fields().any(|field| has_own_text(field.data_type())) {
        return Ok(batch.clone());
    }
    let shown = fields().zip(batch.columns()).map(|(field, column)| {
        Ok(match has_own_text(field.data_type()) {
            true => {
                let field = field.as_ref().clone().with_data_type(DataType::Utf8View);
                (Arc::new(field), strings(column)?)
            }
            false => (Arc::clone(field), Arc::clone(column)),
        })
    });
    let (fields, columns): (Vec<_>, Vec<_>) = shown
        .collect::<Result<Vec<_>, ArrowError>>()?
        .into_iter()
        .unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// The rows as lines of JSON.
fn json(batches: &[RecordBatch]) -> Result<Vec<u8>, ArrowError> {
    let builder = WriterBuilder::new()
        .with_explicit_nulls(true)
        .with_timestamp_format(TIMESTAMP.to_owned())
        .with_timestamp_tz_format(TIMESTAMP_ZONED.to_owned());
    let mut writer = builder.build::<_, LineDelimited>(Vec::new());
    for batch in batches {
        writer.write(&with_texts(batch)?)?;
    }
    writer.finish()?;
    Ok(writer.into_inner())
}
