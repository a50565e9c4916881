//! Rows of statements that have not committed: encoded, accounted, invisible.
//!
//! All that can fail is done here, so that a commit cannot: values are checked, memory is allocated.

use crate::ChunkNumber;
use crate::chunk_part::{ChunkPart, KeptRows};
use arrow_array::builder::NullBufferBuilder;
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat;
use eris_column::{CHUNK_ROWS, ColumnChunk, Dictionary, EncodeError, ObjectMemory, Unknown};
use eris_numa::{OutOfMemory, Reservation};
use eris_types::RowId;
use std::sync::Arc;

/// From this size on, a batch becomes a chunk of its own; smaller ones go to the append buffer, where they are joined.
const SEAL_ROWS: usize = CHUNK_ROWS / 2;

/// The same in bytes, of wide rows. To join them would take much memory, and readers save nothing.
const SEAL_BYTES: usize = 4 << 20;

/// Whether these rows are so few that they are joined with others.
pub(crate) fn are_few(columns: &[Arc<ColumnChunk>], rows: usize) -> bool {
    let bytes = columns.iter().map(|column| column.bytes());
    rows < SEAL_ROWS && bytes.sum::<usize>() < SEAL_BYTES
}

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
    /// An index of the rows cannot take them.
    #[error("an index cannot take the rows: {0}")]
    Index(String),
    /// There is no room to note which rows are deleted.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// Batches of one statement have different columns.
    #[error("rows of different shape: {0}")]
    Shape(#[from] arrow_schema::ArrowError),
}

/// What one statement has not committed in one segment.
#[derive(Debug, Default)]
pub(crate) struct Uncommitted {
    pub chunks: Vec<UncommittedChunk>,
    /// The rows that it deletes, ascending.
    pub deleted: Vec<RowId>,
    /// Rows that another owner gets as they are.
    pub given: Vec<ChunkPart>,
    /// For the delete vectors.
    pub reserved: Vec<Reservation>,
}

/// A chunk but for the timestamp of its rows, which the commit decides.
#[derive(Debug)]
pub(crate) struct UncommittedChunk {
    pub columns: Vec<Arc<ColumnChunk>>,
    pub rows: usize,
    /// So few that they will be joined with others.
    pub few: bool,
    /// Its first row's id, if it has been given out already.
    pub first: Option<RowId>,
    /// Of rows that were another owner's and keep their ids.
    pub kept: Option<KeptRows>,
    /// Its stored form, for the log, if it has few rows.
    pub form: Option<Vec<u8>>,
    /// Its number in chunk files, if it has many.
    pub number: ChunkNumber,
}

impl UncommittedChunk {
    /// Of new rows, which get their ids at the commit or before.
    pub fn new(columns: Vec<Arc<ColumnChunk>>, rows: usize) -> Self {
        let few = are_few(&columns, rows);
        UncommittedChunk {
            few,
            columns,
            rows,
            first: None,
            kept: None,
            form: None,
            number: match few {
                true => ChunkNumber::default(),
                false => ChunkNumber::open(),
            },
        }
    }
}

/// Turns batches into a chunk column by column, so that its owner can do other work in between.
///
/// ```text
/// batches ──(text that has a dictionary)──▶ look_up ──▶ codes ─┐
///    └──────(one column's pieces, joined)──────────────────────┴─▶ step ──▶ column chunk
/// ```
/// Only one column at a time is in one piece: that fits into the second-level cache, all columns do not.
#[derive(Debug)]
pub struct Encoder {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    rows: usize,
    /// Of columns of text whose strings have been looked up, whether or not all were found.
    codes: Vec<Option<Result<Vec<u32>, Unknown>>>,
    columns: Vec<ColumnChunk>,
}

impl Encoder {
    /// Nothing encoded yet. The schema names the columns in errors.
    ///
    /// # Panics
    /// If the batches have more than [`CHUNK_ROWS`] rows.
    pub fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        assert!(rows <= CHUNK_ROWS);
        Encoder {
            codes: schema.fields().iter().map(|_| None).collect(),
            columns: Vec::with_capacity(schema.fields().len()),
            schema,
            batches,
            rows,
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The rows, in pieces.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// Looks up all text that has a dictionary. Returns the columns with strings that their dictionaries do not have,
    /// and these; they have to be looked up again with a dictionary that has them before the column is encoded, or
    /// there must be none for it any more.
    pub fn look_up(&mut self, dictionaries: &[Option<Dictionary>]) -> Vec<(usize, Arc<[String]>)> {
        let mut missing = Vec::new();
        for (column, dictionary) in dictionaries.iter().enumerate() {
            let Some(dictionary) = dictionary else {
                self.codes[column] = None;
                continue;
            };
            let codes = match self.codes[column].take() {
                Some(Ok(codes)) => Ok(codes),
                Some(Err(unknown)) => unknown.look_up(dictionary),
                None => {
                    let pieces = self.batches.iter();
                    dictionary.look_up(pieces.map(|batch| batch.column(column).as_string_view()))
                }
            };
            if let Err(unknown) = &codes {
                missing.push((column, unknown.strings().clone()));
            }
            self.codes[column] = Some(codes);
        }
        missing
    }

    /// Whether nothing is left to encode.
    pub fn is_done(&self) -> bool {
        self.columns.len() == self.schema.fields().len()
    }

    /// Encodes the next column; text with a dictionary as its codes, which must have every value.
    pub fn step(
        &mut self,
        dictionaries: &[Option<Dictionary>],
        home: ObjectMemory<'_>,
    ) -> Result<(), StoreError> {
        let column = self.columns.len();
        let pieces: Vec<&dyn Array> = (self.batches.iter())
            .map(|batch| batch.column(column).as_ref())
            .collect();
        let dictionary = dictionaries[column].as_ref();
        let name = self.schema.field(column).name();
        let encoded = match (dictionary, self.codes[column].take(), &pieces[..]) {
            (Some(_), Some(Ok(codes)), pieces) => {
                ColumnChunk::encode_codes(&codes, nulls(pieces).as_ref(), home)
                    .map_err(|source| encode_error(name, source))
            }
            (_, _, [piece]) => encode_column(*piece, name, dictionary, home),
            (_, _, pieces) => encode_column(&concat(pieces)?, name, dictionary, home),
        };
        self.columns.push(encoded?);
        Ok(())
    }

    pub(crate) fn finish(self) -> UncommittedChunk {
        let columns = self.columns.into_iter().map(Arc::new).collect();
        UncommittedChunk::new(columns, self.rows)
    }
}

/// Which rows of all pieces are NULL, if any is.
fn nulls(pieces: &[&dyn Array]) -> Option<NullBuffer> {
    let mut nulls = NullBufferBuilder::new(CHUNK_ROWS);
    for piece in pieces {
        match piece.nulls() {
            Some(some) => nulls.append_buffer(some),
            None => nulls.append_n_non_nulls(piece.len()),
        }
    }
    nulls.finish()
}

pub(crate) fn encode_column(
    values: &dyn Array,
    name: &str,
    dictionary: Option<&Dictionary>,
    home: ObjectMemory<'_>,
) -> Result<ColumnChunk, StoreError> {
    ColumnChunk::encode(values, dictionary, home).map_err(|source| encode_error(name, source))
}

pub(crate) fn encode_error(name: &str, source: EncodeError) -> StoreError {
    StoreError::Encode {
        column: name.to_owned(),
        source,
    }
}
