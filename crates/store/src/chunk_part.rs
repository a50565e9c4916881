//! Some rows of a chunk, as they go from owner to owner.

use crate::{Chunk, RowIds};
use eris_column::Selection;
use eris_types::RowId;
use std::sync::Arc;

/// Rows of a chunk that another owner gets.
#[derive(Clone, Debug)]
pub struct ChunkPart {
    /// The chunk.
    pub chunk: Arc<Chunk>,
    /// Which of its rows.
    pub rows: Selection,
}

/// What is known of rows that keep their ids.
#[derive(Debug)]
pub(crate) struct KeptRows {
    pub ids: Arc<RowIds>,
    /// The rows of the chunk that are others', and how many these are.
    pub others: Option<(Box<[u64]>, usize)>,
}

impl ChunkPart {
    /// How many rows these are, and about how many bytes.
    pub fn size(&self) -> (u64, u64) {
        let (rows, all) = (self.rows.count() as u64, self.chunk.rows() as u64);
        (rows, self.chunk.bytes() as u64 * rows / all.max(1))
    }

    /// What a bitmap of the chunk's rows takes.
    pub(crate) fn bitmap_bytes(&self) -> u64 {
        size_of_val(self.rows.words()) as u64
    }
}

impl KeptRows {
    /// Whether the row is one of these.
    pub fn has(&self, id: RowId) -> bool {
        let mine = |row: usize| match &self.others {
            Some((words, _)) => words[row / 64] >> (row % 64) & 1 == 0,
            None => true,
        };
        self.ids.position(id).is_some_and(mine)
    }
}
