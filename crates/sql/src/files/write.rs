//! Rows as a file of each format: pieces are encoded side by side and appended in order.

use super::compression::Compression;
use super::csv::{CsvStyle, format};
use super::failed;
use super::format::Format;
use super::sink::Sink;
use crate::error::SqlError;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::{FileWriter, StreamWriter};
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::LineDelimited;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::parquet::arrow::ArrowSchemaConverter;
use datafusion::parquet::arrow::add_encoded_arrow_schema_to_metadata;
use datafusion::parquet::arrow::arrow_writer::{
    ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves,
};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::writer::SerializedFileWriter;
use std::fmt::Display;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Timestamps in text, as SQL writes them.
pub(super) const TIMESTAMP: &str = "%Y-%m-%d %H:%M:%S%.f";
/// The same with a zone.
pub(super) const TIMESTAMP_ZONED: &str = "%Y-%m-%d %H:%M:%S%.f%:z";

/// How a file is written.
#[derive(Clone, Debug)]
pub(super) struct WriteOptions {
    pub format: Format,
    pub csv: CsvStyle,
    /// Of text.
    pub compression: Compression,
    pub parquet: WriterProperties,
    /// Rows that are encoded as one piece: of Parquet, a row group.
    pub piece_rows: usize,
}

/// Bytes in memory that are encoded as one piece, even if they are fewer rows.
pub(super) const PIECE_BYTES: usize = 64 << 20;

/// A piece of the file.
pub(super) enum Piece {
    Bytes(Vec<u8>),
    RowGroup(Vec<ArrowColumnChunk>),
    Batches(Vec<RecordBatch>),
}

/// What turns rows into pieces; several threads use it.
pub(super) struct Encoder {
    options: WriteOptions,
    schema: SchemaRef,
    row_groups: Option<ArrowRowGroupWriterFactory>,
    path: PathBuf,
}

/// The file under way.
pub(super) struct FileUnderWay {
    target: Target,
    path: PathBuf,
}

enum Target {
    Text(Sink),
    Parquet(Box<SerializedFileWriter<BufWriter<Sink>>>),
    File(Box<FileWriter<BufWriter<Sink>>>),
    Stream(Box<StreamWriter<BufWriter<Sink>>>),
}

fn why(path: &Path) -> impl Fn(&dyn Display) -> SqlError + '_ {
    |error| {
        failed(
            &path.to_string_lossy(),
            format!("cannot be written: {error}"),
        )
    }
}

/// Begins a file with these columns.
pub(super) fn create(
    path: &Path,
    schema: &Schema,
    options: WriteOptions,
) -> Result<(Encoder, FileUnderWay), SqlError> {
    let why = why(path);
    let schema = Arc::new(portable(schema));
    let mut sink = Sink::create(path)?;
    let mut row_groups = None;
    let target = match options.format {
        Format::Csv => {
            if options.csv.header {
                let names = schema.fields().iter().map(|field| field.name().as_str());
                let line = options.csv.header_line(names);
                let line = line.map_err(|error| why(&error))?.into_bytes();
                let line = options
                    .compression
                    .pack(line)
                    .map_err(|error| why(&error))?;
                sink.write_all(&line).map_err(|error| why(&error))?;
            }
            Target::Text(sink)
        }
        Format::Json => Target::Text(sink),
        Format::Parquet => {
            let mut properties = options.parquet.clone();
            add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
            let descriptor = ArrowSchemaConverter::new().convert(&schema);
            let descriptor = descriptor.map_err(|error| why(&error))?;
            let root = descriptor.root_schema_ptr();
            let writer =
                SerializedFileWriter::new(BufWriter::new(sink), root, Arc::new(properties));
            let writer = writer.map_err(|error| why(&error))?;
            row_groups = Some(ArrowRowGroupWriterFactory::new(
                &writer,
                Arc::clone(&schema),
            ));
            Target::Parquet(Box::new(writer))
        }
        Format::Arrow => {
            let sink = BufWriter::new(sink);
            let stream = path.extension().is_some_and(|ending| ending == "arrows");
            if stream {
                let writer = StreamWriter::try_new(sink, &schema).map_err(|error| why(&error))?;
                Target::Stream(Box::new(writer))
            } else {
                let writer = FileWriter::try_new(sink, &schema).map_err(|error| why(&error))?;
                Target::File(Box::new(writer))
            }
        }
    };
    let encoder = Encoder {
        options,
        schema,
        row_groups,
        path: path.to_owned(),
    };
    let file = FileUnderWay {
        target,
        path: path.to_owned(),
    };
    Ok((encoder, file))
}

/// The schema with types that every reader knows: texts with offsets instead of views.
fn portable(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Utf8View => Arc::new(Field::new(
            field.name(),
            DataType::Utf8,
            field.is_nullable(),
        )),
        _ => Arc::clone(field),
    });
    Schema::new(fields.collect::<Vec<_>>())
}

impl Encoder {
    /// Rows of one piece.
    pub fn piece_rows(&self) -> usize {
        self.options.piece_rows
    }

    /// A piece of these rows; `number` counts pieces.
    pub fn encode(&self, number: usize, batches: Vec<RecordBatch>) -> Result<Piece, SqlError> {
        let why = why(&self.path);
        let text = |text: Vec<u8>| {
            let packed = self.options.compression.pack(text);
            packed.map(Piece::Bytes).map_err(|error| why(&error))
        };
        match self.options.format {
            Format::Csv => {
                let mut lines = Vec::new();
                for batch in &batches {
                    let formatted = format(&self.options.csv, batch);
                    lines.extend(formatted.map_err(|error| why(&error))?.into_bytes());
                }
                text(lines)
            }
            Format::Json => text(json(&batches).map_err(|error| why(&error))?),
            Format::Parquet => {
                let row_groups = self.row_groups.as_ref().expect("made with the file");
                let encoded = || -> datafusion::parquet::errors::Result<_> {
                    let mut writers = row_groups.create_column_writers(number)?;
                    for batch in &batches {
                        let batch = self.cast(batch)?;
                        let mut writer = writers.iter_mut();
                        for (field, column) in self.schema.fields().iter().zip(batch.columns()) {
                            for leaf in compute_leaves(field, column)? {
                                writer.next().expect("a writer per leaf").write(&leaf)?;
                            }
                        }
                    }
                    writers.into_iter().map(|writer| writer.close()).collect()
                };
                encoded().map(Piece::RowGroup).map_err(|error| why(&error))
            }
            Format::Arrow => {
                let batches = batches.iter().map(|batch| self.cast(batch));
                let batches = batches.collect::<Result<_, _>>();
                batches.map(Piece::Batches).map_err(|error| why(&error))
            }
        }
    }

    fn cast(&self, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| cast(column, field.data_type()));
        RecordBatch::try_new(Arc::clone(&self.schema), columns.collect::<Result<_, _>>()?)
    }
}

/// The rows as lines of JSON.
fn json(batches: &[RecordBatch]) -> Result<Vec<u8>, ArrowError> {
    let builder = WriterBuilder::new()
        .with_explicit_nulls(true)
        .with_timestamp_format(TIMESTAMP.to_owned())
        .with_timestamp_tz_format(TIMESTAMP_ZONED.to_owned());
    let mut writer = builder.build::<_, LineDelimited>(Vec::new());
    for batch in batches {
        writer.write(batch)?;
    }
    writer.finish()?;
    Ok(writer.into_inner())
}

impl FileUnderWay {
    /// Appends the next piece.
    pub fn append(&mut self, piece: Piece) -> Result<(), SqlError> {
        let why = why(&self.path);
        match (&mut self.target, piece) {
            (Target::Text(sink), Piece::Bytes(bytes)) => {
                sink.write_all(&bytes).map_err(|error| why(&error))
            }
            (Target::Parquet(writer), Piece::RowGroup(chunks)) => {
                let append = || -> datafusion::parquet::errors::Result<_> {
                    let mut row_group = writer.next_row_group()?;
                    for chunk in chunks {
                        chunk.append_to_row_group(&mut row_group)?;
                    }
                    row_group.close()
                };
                append().map(drop).map_err(|error| why(&error))
            }
            (Target::File(writer), Piece::Batches(batches)) => batches
                .iter()
                .try_for_each(|batch| writer.write(batch))
                .map_err(|error| why(&error)),
            (Target::Stream(writer), Piece::Batches(batches)) => batches
                .iter()
                .try_for_each(|batch| writer.write(batch))
                .map_err(|error| why(&error)),
            _ => unreachable!("the encoder makes pieces for this format"),
        }
    }

    /// Writes the end, and gives the file its name.
    pub fn finish(self) -> Result<(), SqlError> {
        let why = why(&self.path);
        let unbuffered = |buffered: BufWriter<Sink>| {
            let sink = buffered.into_inner();
            sink.map_err(|error| why(&error.into_error()))
        };
        let sink = match self.target {
            Target::Text(sink) => sink,
            Target::Parquet(writer) => {
                unbuffered(writer.into_inner().map_err(|error| why(&error))?)?
            }
            Target::File(mut writer) => {
                writer.finish().map_err(|error| why(&error))?;
                unbuffered(writer.into_inner().map_err(|error| why(&error))?)?
            }
            Target::Stream(mut writer) => {
                writer.finish().map_err(|error| why(&error))?;
                unbuffered(writer.into_inner().map_err(|error| why(&error))?)?
            }
        };
        sink.finish().map_err(|error| why(&error))
    }
}
