//! Rows of statements that have not committed: encoded, accounted, invisible.
//!
//! All that can fail is done here, so that a commit cannot: values are checked, memory is allocated.

use arrow_array::{ArrayRef, RecordBatch};
use eris_column::{CHUNK_ROWS, ColumnChunk, Dictionary, EncodeError, Home};
use eris_numa::{OutOfMemory, Reservation};
use eris_types::RowId;

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
    /// There is no room to note which rows are deleted.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// Batches of one statement have different columns.
    #[error("rows of different shape: {0}")]
    Shape(#[from] arrow_schema::ArrowError),
}

/// What one statement has staged in one segment.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    pub chunks: Vec<StagedChunk>,
    /// The rows that it deletes, ascending.
    pub deleted: Vec<RowId>,
    /// For the delete vectors.
    pub reserved: Option<Reservation>,
}

/// A chunk but for its begin, which commit decides.
#[derive(Debug)]
pub(crate) struct StagedChunk {
    pub columns: Vec<ColumnChunk>,
    pub rows: usize,
    /// So few that they will be joined with others.
    pub few: bool,
    /// Its first row's id, if it has been given out already.
    pub first: Option<RowId>,
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

    /// The rows.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
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
        let schema = self.batch.schema_ref();
        let encoded = encode_column(
            self.batch.column(column),
            schema.field(column).name(),
            dictionaries[column].as_ref(),
            home,
        )?;
        self.columns.push(encoded);
        Ok(())
    }

    pub(crate) fn finish(self) -> StagedChunk {
        let rows = self.batch.num_rows();
        StagedChunk {
            columns: self.columns,
            rows,
            few: rows < SEAL_ROWS,
            first: None,
        }
    }
}

pub(crate) fn encode_column(
    values: &ArrayRef,
    name: &str,
    dictionary: Option<&Dictionary>,
    home: Home<'_>,
) -> Result<ColumnChunk, StoreError> {
    ColumnChunk::encode(values, dictionary, home).map_err(|source| StoreError::Encode {
        column: name.to_owned(),
        source,
    })
}
