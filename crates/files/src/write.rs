//! Rows as a file of each format: pieces are encoded side by side and appended in order.
//!
//! ```text
//! batches ── pieces ──┬─ encode ─┬── append ── a file of another name ── finish: renamed
//!                     └─ encode ─┘
//! ```

mod encode;
mod under_way;

pub use under_way::FileUnderWay;

use crate::blocking::blocking;
use crate::compression::Compression;
use crate::csv::CsvStyle;
use crate::error::FileError;
use crate::format::Format;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::physical_plan::SendableRecordBatchStream;
use encode::FilePiece;
use futures::{StreamExt, TryStreamExt, stream};
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes in memory that are encoded as one piece, even if they are fewer rows.
const PIECE_BYTES: usize = 64 << 20;

/// How a file is written.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Its format.
    pub format: Format,
    /// The style of CSV.
    pub csv: CsvStyle,
    /// Of text.
    pub compression: Compression,
    /// How Parquet is written.
    pub parquet: WriterProperties,
    /// Rows that are encoded as one piece: of Parquet, a row group.
    pub piece_rows: usize,
}

impl WriteOptions {
    /// With what names of such files end.
    pub fn ending(&self) -> String {
        let compressed = match (self.format, self.compression) {
            (Format::Parquet | Format::Arrow, _) | (_, Compression::None) => "",
            (_, Compression::Gzip) => ".gz",
            (_, Compression::Zstd) => ".zst",
        };
        format!("{}{compressed}", self.format.name())
    }
}

/// Writes all rows into a file, which has its name once it is finished; until then what had it is as it was. So many
/// workers encode, and `wrote` is told of rows as they are written. Returns how many there were.
///
/// # Errors
/// The file cannot be written, or the rows cannot be computed.
pub async fn write(
    rows: SendableRecordBatchStream,
    path: PathBuf,
    options: WriteOptions,
    workers: usize,
    wrote: impl Fn(u64),
) -> Result<(u64, FileUnderWay), FileError> {
    let schema = rows.schema();
    let begin = move || under_way::begin(&path, &schema, options);
    let (encoder, mut file) = blocking(begin).await?;
    let encoder = Arc::new(encoder);
    let pieces = pieces(rows, encoder.piece_rows()).enumerate();
    let mut encoded = pieces
        .map(|(number, piece)| {
            let encoder = Arc::clone(&encoder);
            async move {
                let piece: Vec<RecordBatch> = piece?;
                let rows: usize = piece.iter().map(RecordBatch::num_rows).sum();
                let piece: FilePiece = blocking(move || encoder.encode(number, piece)).await?;
                Ok::<_, FileError>((rows as u64, piece))
            }
        })
        .buffered(workers.max(1))
        .boxed();
    let mut written = 0;
    while let Some((rows, piece)) = encoded.try_next().await? {
        file = blocking(move || {
            file.append(piece)?;
            Ok(file)
        })
        .await?;
        written += rows;
        wrote(rows);
    }
    Ok((written, file))
}

/// Batches by the piece.
fn pieces(
    batches: SendableRecordBatchStream,
    rows: usize,
) -> impl stream::Stream<Item = Result<Vec<RecordBatch>, FileError>> {
    stream::try_unfold((batches, None), move |(mut batches, mut left)| async move {
        let mut piece: Vec<RecordBatch> = Vec::new();
        let (mut room, mut bytes) = (rows, 0);
        while room > 0 && bytes < PIECE_BYTES {
            let next: Option<RecordBatch> = match left.take() {
                Some(left) => Some(left),
                None => batches
                    .try_next()
                    .await
                    .map_err(|error| FileError::Rows(Arc::new(error)))?,
            };
            let Some(batch) = next else {
                break;
            };
            let taken = batch.slice(0, room.min(batch.num_rows()));
            left = Some(batch.slice(taken.num_rows(), batch.num_rows() - taken.num_rows()))
                .filter(|left| left.num_rows() > 0);
            room -= taken.num_rows();
            bytes += taken.get_array_memory_size();
            piece.push(taken);
        }
        Ok((!piece.is_empty()).then_some((piece, (batches, left))))
    })
}
