//! A file under way: what its format wants at the beginning and the end, and pieces between.

use super::WriteOptions;
use super::encode::{FileEncoder, FilePiece, portable};
use crate::blocking::blocking;
use crate::error::{Cause, FileError, FileFaultKind};
use crate::foreign::parquet_columns;
use crate::format::Format;
use crate::sink::{Sink, writing};
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::ipc::writer::{FileWriter, StreamWriter};
use datafusion::parquet::arrow::add_encoded_arrow_schema_to_metadata;
use datafusion::parquet::arrow::arrow_writer::ArrowRowGroupWriterFactory;
use datafusion::parquet::file::writer::SerializedFileWriter;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file with all its rows, but without its name. Dropped before [`FileUnderWay::finish`], it leaves nothing.
pub struct FileUnderWay {
    writer: FormatWriter,
    path: PathBuf,
}

/// What knows a format's beginning and end.
enum FormatWriter {
    Text(Sink),
    Parquet(Box<SerializedFileWriter<BufWriter<Sink>>>),
    ArrowFile(Box<FileWriter<BufWriter<Sink>>>),
    ArrowStream(Box<StreamWriter<BufWriter<Sink>>>),
}

/// Begins a file with these columns.
pub(super) fn begin(
    path: &Path,
    schema: &Schema,
    options: WriteOptions,
) -> Result<(FileEncoder, FileUnderWay), FileError> {
    if path.as_os_str().is_empty() {
        return Err(FileError::new(path, FileFaultKind::NoName));
    }
    if path.to_string_lossy().contains("://") {
        return Err(FileError::new(path, FileFaultKind::Remote));
    }
    let schema = Arc::new(portable(schema, options.format));
    let sink = Sink::create(path)?;
    let mut row_groups = None;
    let writer = writing(path, || {
        Ok(match options.format {
            Format::Csv => FormatWriter::Text(with_header(sink, &schema, &options)?),
            Format::Json => FormatWriter::Text(sink),
            Format::Parquet => {
                let mut properties = options.parquet.clone();
                add_encoded_arrow_schema_to_metadata(&schema, &mut properties);
                let root = parquet_columns(&schema)?;
                let sink = BufWriter::new(sink);
                let writer = SerializedFileWriter::new(sink, root, Arc::new(properties))?;
                row_groups = Some(ArrowRowGroupWriterFactory::new(
                    &writer,
                    Arc::clone(&schema),
                ));
                FormatWriter::Parquet(Box::new(writer))
            }
            Format::Arrow if path.extension().is_some_and(|ending| ending == "arrows") => {
                let writer = StreamWriter::try_new(BufWriter::new(sink), &schema)?;
                FormatWriter::ArrowStream(Box::new(writer))
            }
            Format::Arrow => {
                let writer = FileWriter::try_new(BufWriter::new(sink), &schema)?;
                FormatWriter::ArrowFile(Box::new(writer))
            }
        })
    })?;
    let encoder = FileEncoder {
        options,
        schema,
        row_groups,
        path: path.to_owned(),
    };
    let file = FileUnderWay {
        writer,
        path: path.to_owned(),
    };
    Ok((encoder, file))
}

fn with_header(mut sink: Sink, schema: &Schema, options: &WriteOptions) -> Result<Sink, Cause> {
    if options.csv.header {
        let names = schema.fields().iter().map(|field| field.name().as_str());
        let line = options.csv.header_line(names)?.into_bytes();
        sink.write_all(&options.compression.pack(line)?)?;
    }
    Ok(sink)
}

impl FileUnderWay {
    /// Appends the next piece.
    pub(super) fn append(&mut self, piece: FilePiece) -> Result<(), FileError> {
        writing(&self.path, || {
            match (&mut self.writer, piece) {
                (FormatWriter::Text(sink), FilePiece::Bytes(bytes)) => sink.write_all(&bytes)?,
                (FormatWriter::Parquet(writer), FilePiece::RowGroup(chunks)) => {
                    let mut row_group = writer.next_row_group()?;
                    for chunk in chunks {
                        chunk.append_to_row_group(&mut row_group)?;
                    }
                    row_group.close()?;
                }
                (FormatWriter::ArrowFile(writer), FilePiece::Batches(batches)) => {
                    batches.iter().try_for_each(|batch| writer.write(batch))?;
                }
                (FormatWriter::ArrowStream(writer), FilePiece::Batches(batches)) => {
                    batches.iter().try_for_each(|batch| writer.write(batch))?;
                }
                _ => unreachable!("the encoder makes pieces for this format"),
            }
            Ok(())
        })
    }

    /// Writes the end, and gives the file its name.
    ///
    /// # Errors
    /// It cannot be written; then it is as if it had never been begun.
    pub async fn finish(self) -> Result<(), FileError> {
        blocking(move || {
            writing(&self.path, || {
                let sink = match self.writer {
                    FormatWriter::Text(sink) => sink,
                    FormatWriter::Parquet(writer) => unbuffered(writer.into_inner()?)?,
                    FormatWriter::ArrowFile(mut writer) => {
                        writer.finish()?;
                        unbuffered(writer.into_inner()?)?
                    }
                    FormatWriter::ArrowStream(mut writer) => {
                        writer.finish()?;
                        unbuffered(writer.into_inner()?)?
                    }
                };
                Ok(sink.finish()?)
            })
        })
        .await
    }
}

fn unbuffered(buffered: BufWriter<Sink>) -> Result<Sink, std::io::Error> {
    buffered.into_inner().map_err(|error| error.into_error())
}
