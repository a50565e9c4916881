//! Rows of statements that have not committed: encoded, accounted, invisible.
//!
//! All that can fail is done here, so that a commit cannot: values are checked, memory is allocated.

use arrow_array::RecordBatch;
use eris_column::{CHUNK_ROWS, ColumnChunk, Dictionary, EncodeError, Home};

/// From this size on, a batch becomes a chunk of its own; smaller ones go to the tail, where they are joined.
pub(crate) const SEAL_ROWS: usize = CHUNK_ROWS / 2;

/// Rows that could not be stored. The statement fails, nothing of it stays.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A column could not be encoded.
    #[error("column {column}: {source}")]
    Encode {
        /// The column's name.
        column: String,
        /// Why.
        #[source]
        source: EncodeError,
    },
    /// Batches of one statement have different columns.
    #[error("rows of different shape: {0}")]
    Shape(#[from] arrow_schema::ArrowError),
}

/// What one statement has staged in one segment.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    pub chunks: Vec<StagedChunk>,
}

/// A chunk but for its begin, which commit decides.
#[derive(Debug)]
pub(crate) struct StagedChunk {
    pub columns: Vec<ColumnChunk>,
    pub rows: usize,
    /// So few that they will be joined with others.
    pub few: bool,
}

/// Turns a batch into a chunk column by column, so that its owner can do other work in between.
#[derive(Debug)]
pub struct Encoder {
    batch: RecordBatch,
    columns: Vec<ColumnChunk>,
}

impl Encoder {
    /// Nothing encoded yet.
    ///
    /// # Panics
    /// If the batch has more than [`CHUNK_ROWS`] rows.
    pub fn new(batch: RecordBatch) -> Self {
        assert!(batch.num_rows() <= CHUNK_ROWS);
        Encoder {
            batch,
            columns: Vec::new(),
        }
    }

    /// Whether nothing is left to encode.
    pub fn is_done(&self) -> bool {
        self.columns.len() == self.batch.num_columns()
    }

    /// Encodes the next column; text with a dictionary as its codes, which must have every value.
    pub fn step(
        &mut self,
        dictionaries: &[Option<Dictionary>],
        home: Home<'_>,
    ) -> Result<(), StoreError> {
        let column = self.columns.len();
        let encoded = encode_column(&self.batch, column, dictionaries, home)?;
        self.columns.push(encoded);
        Ok(())
    }

    pub(crate) fn finish(self) -> StagedChunk {
        let rows = self.batch.num_rows();
        StagedChunk {
            columns: self.columns,
            rows,
            few: rows < SEAL_ROWS,
        }
    }
}

/// Encodes every column of `batch`.
pub(crate) fn encode(
    batch: &RecordBatch,
    dictionaries: &[Option<Dictionary>],
    home: Home<'_>,
) -> Result<Vec<ColumnChunk>, StoreError> {
    (0..batch.num_columns())
        .map(|column| encode_column(batch, column, dictionaries, home))
        .collect()
}

fn encode_column(
    batch: &RecordBatch,
    column: usize,
    dictionaries: &[Option<Dictionary>],
    home: Home<'_>,
) -> Result<ColumnChunk, StoreError> {
    let dictionary = dictionaries[column].as_ref();
    ColumnChunk::encode(batch.column(column), dictionary, home).map_err(|source| {
        StoreError::Encode {
            column: batch.schema_ref().field(column).name().clone(),
            source,
        }
    })
}
