//! A chunk: up to 65,536 rows of every column, immutable.
//!
//! ```text
//!            column 0   column 1   column 2 …      inserted (runs of rows of one commit)
//! row 0     ┌────────┐ ┌────────┐ ┌────────┐      ┌─────────────────┐
//! …         │encoded │ │encoded │ │encoded │      │ t7 up to row 40 │
//! row n-1   └────────┘ └────────┘ └────────┘      │ t9 up to row n  │
//!                                                 └─────────────────┘
//! ```
//!
//! A chunk sealed from one statement has one run, so that visibility is one comparison. Its rows have [ids](RowIds)
//! that stay theirs when chunks are joined or rewritten.

use crate::{ChunkNumber, DeletedRows, RowIds};
use eris_column::{ColumnChunk, Selection};
use eris_numa::{CopyBlock, CopyEngine};
use eris_types::{ColumnId, Timestamp};
use std::sync::Arc;

/// Values that are decoded together.
const VECTOR_ROWS: usize = 1024;

/// The commit of a run of consecutive rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InsertedRun {
    /// When the rows became visible.
    pub at: Timestamp,
    /// One past the last row of the run.
    pub end: usize,
}

/// Rows of all columns, encoded.
#[derive(Debug)]
pub struct Chunk {
    columns: Box<[Arc<ColumnChunk>]>,
    rows: usize,
    inserted: Arc<[InsertedRun]>,
    newest: Timestamp,
    ids: Arc<RowIds>,
    bytes: usize,
    number: ChunkNumber,
}

impl Chunk {
    /// A chunk of rows with these ids, whose `inserted` cover them in order.
    ///
    /// # Panics
    /// If a column has another number of rows, or the runs do not end with the last row.
    pub fn new(columns: Vec<ColumnChunk>, ids: RowIds, inserted: Vec<InsertedRun>) -> Self {
        let columns = columns.into_iter().map(Arc::new).collect();
        Chunk::sharing(columns, ChunkNumber::default(), Arc::new(ids), inserted)
    }

    /// The same of columns and ids that other chunks may have, too.
    pub fn sharing(
        columns: Vec<Arc<ColumnChunk>>,
        number: ChunkNumber,
        ids: Arc<RowIds>,
        inserted: Vec<InsertedRun>,
    ) -> Self {
        let rows = ids.rows();
        assert!(columns.iter().all(|column| column.rows() == rows));
        assert_eq!(inserted.last().map_or(0, |run| run.end), rows);
        let bytes = columns.iter().map(|column| column.bytes()).sum::<usize>() + ids.bytes();
        Chunk {
            bytes,
            columns: columns.into(),
            rows,
            newest: inserted.iter().map(|run| run.at).max().unwrap_or_default(),
            inserted: inserted.into(),
            ids,
            number,
        }
    }

    /// The same rows, with one column in another form.
    ///
    /// # Panics
    /// If that has another number of rows.
    pub(crate) fn with_column(&self, column: ColumnId, form: ColumnChunk) -> Self {
        assert_eq!(form.rows(), self.rows);
        let mut columns = self.columns.clone();
        columns[column.index()] = Arc::new(form);
        Chunk {
            bytes: columns.iter().map(|column| column.bytes()).sum::<usize>() + self.ids.bytes(),
            columns,
            rows: self.rows,
            inserted: self.inserted.clone(),
            newest: self.newest,
            ids: self.ids.clone(),
            number: self.number.clone(),
        }
    }

    /// The same rows, with these columns copied into a block; `None` if it has no room.
    fn copied(
        &self,
        columns: &[ColumnId],
        block: &mut CopyBlock,
        engine: CopyEngine,
    ) -> Option<Self> {
        let mut all = self.columns.clone();
        for column in columns {
            let copied = all[column.index()].copied(block, engine)?;
            all[column.index()] = Arc::new(copied);
        }
        Some(Chunk {
            columns: all,
            rows: self.rows,
            inserted: self.inserted.clone(),
            newest: self.newest,
            ids: self.ids.clone(),
            bytes: self.bytes,
            number: self.number.clone(),
        })
    }

    /// The ids of the rows.
    pub fn ids(&self) -> &RowIds {
        &self.ids
    }

    /// The same, for another chunk of these rows.
    pub(crate) fn shared_ids(&self) -> &Arc<RowIds> {
        &self.ids
    }

    /// The number of its columns in chunk files.
    pub fn number(&self) -> &ChunkNumber {
        &self.number
    }

    /// The number of rows, visible or not.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// One column.
    pub fn column(&self, column: ColumnId) -> &ColumnChunk {
        &self.columns[column.index()]
    }

    /// All columns, in the order of the schema.
    pub fn columns(&self) -> &[Arc<ColumnChunk>] {
        &self.columns
    }

    /// The encoded size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The newest commit among the rows.
    pub fn newest(&self) -> Timestamp {
        self.newest
    }

    /// The commits of the rows, in order of the rows.
    pub fn inserted(&self) -> &[InsertedRun] {
        &self.inserted
    }

    /// Whether the row at a position was inserted up to `snapshot`.
    pub(crate) fn is_inserted(&self, position: usize, snapshot: Timestamp) -> bool {
        self.newest <= snapshot || {
            let run = self.inserted.partition_point(|run| run.end <= position);
            self.inserted[run].at <= snapshot
        }
    }

    /// Takes the rows out of `selection` that were inserted after `snapshot`.
    fn retain_inserted(&self, snapshot: Timestamp, selection: &mut Selection) {
        if self.newest <= snapshot {
            return;
        }
        let mut first = 0;
        for run in self.inserted.iter() {
            if run.at > snapshot {
                clear(selection.words_mut(), first, run.end);
            }
            first = run.end;
        }
    }
}

/// A chunk as the readers of one snapshot see it: what a work queue holds.
#[derive(Clone, Debug)]
pub struct ChunkView {
    /// The rows.
    pub chunk: Arc<Chunk>,
    /// The rows that were deleted up to the snapshot.
    pub deleted: Option<Arc<DeletedRows>>,
    /// The positions of the only rows that are wanted, ascending; `None`: all.
    pub rows: Option<Arc<[u32]>>,
}

impl ChunkView {
    /// The same rows, with these columns copied into a block; `None` if it has no room.
    pub fn copied(
        &self,
        columns: &[ColumnId],
        block: &mut CopyBlock,
        engine: CopyEngine,
    ) -> Option<Self> {
        Some(ChunkView {
            chunk: Arc::new(self.chunk.copied(columns, block, engine)?),
            deleted: self.deleted.clone(),
            rows: self.rows.clone(),
        })
    }

    /// Whether every row is visible at `snapshot`, so that [`ChunkView::visible`] need not be called.
    pub fn all_visible(&self, snapshot: Timestamp) -> bool {
        self.chunk.newest <= snapshot && self.deleted.is_none()
    }

    /// How many rows are visible at `snapshot`, which is that of the view, if all rows were inserted by then.
    pub fn count_visible(&self, snapshot: Timestamp) -> Option<usize> {
        let deleted = self.deleted.as_deref().map_or(0, DeletedRows::count);
        (self.chunk.newest <= snapshot).then_some(self.chunk.rows - deleted)
    }

    /// The part of a column's bytes that is read for the rows that are wanted: that of their vectors.
    pub fn touched(&self, bytes: usize) -> u64 {
        let Some(rows) = &self.rows else {
            return bytes as u64;
        };
        let vector = |row: &u32| *row as usize / VECTOR_ROWS;
        let changes = rows
            .windows(2)
            .filter(|pair| vector(&pair[0]) != vector(&pair[1]));
        let vectors = changes.count() + usize::from(!rows.is_empty());
        (bytes * vectors / self.chunk.rows.div_ceil(VECTOR_ROWS).max(1)) as u64
    }

    /// Takes the rows out of `selection` that are not yet or no longer visible at `snapshot`, which is that of the
    /// view.
    pub fn visible(&self, snapshot: Timestamp, selection: &mut Selection) {
        self.chunk.retain_inserted(snapshot, selection);
        if let Some(deleted) = &self.deleted {
            let words = selection.words_mut().iter_mut().zip(deleted.words());
            words.for_each(|(word, deleted)| *word &= !deleted);
        }
    }

    /// The same of rows at some positions.
    pub fn retain_visible(&self, snapshot: Timestamp, rows: &mut Vec<u32>) {
        let deleted = self.deleted.as_deref();
        rows.retain(|&row| {
            let row = row as usize;
            self.chunk.is_inserted(row, snapshot)
                && deleted.is_none_or(|deleted| !deleted.contains(row))
        });
    }
}

/// Clears the bits `first..end`.
fn clear(words: &mut [u64], first: usize, end: usize) {
    for (index, word) in words.iter_mut().enumerate() {
        let base = index * 64;
        let from = first.clamp(base, base + 64) - base;
        let to = end.clamp(base, base + 64) - base;
        if from < to {
            let ones = if to - from == 64 {
                u64::MAX
            } else {
                ((1 << (to - from)) - 1) << from
            };
            *word &= !ones;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::clear;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn clearing_a_range_clears_exactly_its_bits(first in 0usize..200, len in 0usize..200) {
            let end = (first + len).min(256);
            let mut words = [u64::MAX; 4];
            clear(&mut words, first, end);
            for row in 0..256 {
                let set = words[row / 64] >> (row % 64) & 1 == 1;
                prop_assert_eq!(set, !(first..end).contains(&row));
            }
        }
    }
}
