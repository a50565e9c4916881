//! Rows by their ids: what an index leads to.
//!
//! ```text
//! ids 7 8 90 4711 ──▶ chunk of 7 … 60,000: positions 7 8 90      of rows that the snapshot sees
//!                 └─▶ chunk of 4,000 …:   position 711
//! ```

use crate::join::Stored;
use crate::{Chunk, ChunkView, Segment};
use eris_column::{ColumnChunk, Selection};
use eris_types::{RowId, StatementId, Timestamp};
use std::sync::Arc;

impl Segment {
    fn all(&self) -> impl Iterator<Item = &Stored> {
        self.chunks.iter().chain(&self.append_buffer.levels)
    }

    /// Those of `ids`, which ascend, that the snapshot sees: each chunk that has some, with their positions.
    pub fn view_of_rows(
        &self,
        ids: &[RowId],
        snapshot: Timestamp,
    ) -> impl Iterator<Item = ChunkView> {
        self.all().filter_map(move |stored| {
            let seen = stored.seen(stored.positions(ids), snapshot);
            let rows: Vec<u32> = seen.map(|row| row as u32).collect();
            if rows.is_empty() {
                return None;
            }
            let rows = Some(rows.into());
            Some(ChunkView {
                rows,
                ..stored.view(snapshot)?
            })
        })
    }

    /// Whether the snapshot sees a row.
    pub fn sees(&self, id: RowId, snapshot: Timestamp) -> bool {
        self.row(id, snapshot).is_some()
    }

    /// Whether a row with this id is here that a snapshot from `horizon` on sees, or that is uncommitted.
    pub fn may_be_seen(&self, id: RowId, horizon: Timestamp) -> bool {
        let lives = |stored: &Stored| {
            let deleted = stored.deletes.at(horizon);
            let row = stored.positions(&[id]).next();
            row.is_some_and(|row| deleted.is_none_or(|deleted| !deleted.contains(row)))
        };
        self.all().any(lives)
            || self.uncommitted.values().any(|uncommitted| {
                let mut chunks = uncommitted.chunks.iter();
                chunks.any(|chunk| match (&chunk.kept, chunk.first) {
                    (Some(kept), _) => kept.has(id),
                    (None, Some(first)) => (first.0..first.plus(chunk.rows).0).contains(&id.0),
                    (None, None) => false,
                })
            })
    }

    /// The statements with rows that are uncommitted.
    pub fn uncommitted_statements(&self) -> impl Iterator<Item = StatementId> {
        let uncommitted = self.uncommitted.iter();
        uncommitted
            .filter(|(_, uncommitted)| !uncommitted.chunks.is_empty())
            .map(|(statement, _)| *statement)
    }

    /// The uncommitted chunks of a statement with new rows, in order: their columns, and the id of their first row, if
    /// it has one already.
    pub fn uncommitted_rows(
        &self,
        statement: StatementId,
    ) -> impl DoubleEndedIterator<Item = (&[Arc<ColumnChunk>], Option<RowId>)> {
        let uncommitted = self
            .uncommitted
            .get(&statement)
            .map_or(&[][..], |uncommitted| &uncommitted.chunks);
        let new = uncommitted.iter().filter(|chunk| chunk.kept.is_none());
        new.map(|chunk| (&chunk.columns[..], chunk.first))
    }

    /// Whether a statement has rows here, uncommitted, that were another owner's and keep their ids.
    pub fn receives_rows(&self, statement: StatementId) -> bool {
        let uncommitted = self.uncommitted.get(&statement);
        uncommitted.is_some_and(|uncommitted| {
            let mut chunks = uncommitted.chunks.iter();
            chunks.any(|chunk| chunk.kept.is_some())
        })
    }

    /// Every chunk with committed rows, frozen.
    pub fn chunks_of_rows(&self) -> impl Iterator<Item = Arc<Chunk>> {
        self.all().map(|stored| stored.chunk.clone())
    }

    /// Every sealed chunk with the rows in it that are not deleted, in the order in which they were sealed.
    pub fn living_sealed(&self) -> impl Iterator<Item = (&Chunk, Selection)> {
        self.chunks.iter().map(living)
    }

    /// The same of the append buffer.
    pub fn living_buffered(&self) -> impl Iterator<Item = (&Chunk, Selection)> {
        self.append_buffer.levels.iter().map(living)
    }

    /// Every chunk with the rows in it that are not deleted, as far as any commit here has said: the newest sealed one
    /// first, behind them those of the append buffer. Those without such rows are left out.
    pub fn living_chunks(&self) -> impl Iterator<Item = (Arc<Chunk>, Selection)> {
        let all = self.chunks.iter().rev().chain(&self.append_buffer.levels);
        all.filter_map(|stored| {
            let living = stored.living_rows(0..stored.chunk.rows(), Timestamp::NEVER);
            (!living.is_empty()).then(|| (stored.chunk.clone(), living))
        })
    }

    /// How many rows there are, uncommitted ones included.
    pub fn all_rows(&self) -> usize {
        let uncommitted = self
            .uncommitted
            .values()
            .flat_map(|uncommitted| &uncommitted.chunks);
        self.all().map(|stored| stored.chunk.rows()).sum::<usize>()
            + uncommitted.map(|chunk| chunk.rows).sum::<usize>()
    }
}

impl Stored {
    /// Those of the rows at some positions that the snapshot sees.
    fn seen(
        &self,
        positions: impl Iterator<Item = usize>,
        snapshot: Timestamp,
    ) -> impl Iterator<Item = usize> {
        let deleted = self.deletes.at(snapshot);
        positions.filter(move |&row| {
            self.chunk.is_inserted(row, snapshot)
                && deleted.is_none_or(|deleted| !deleted.contains(row))
        })
    }
}

/// A chunk with its rows that are not deleted.
fn living(stored: &Stored) -> (&Chunk, Selection) {
    let rows = stored.living_rows(0..stored.chunk.rows(), Timestamp::NEVER);
    (&stored.chunk, rows)
}
