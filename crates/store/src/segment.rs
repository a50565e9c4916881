//! The segment and its life: stage, commit or abort, view, collect garbage.

use crate::deletes::bitmap_bytes;
use crate::join::Stored;
use crate::staged::{Staged, StagedChunk};
use crate::tail::{Sealed, Tail};
use crate::{Begin, Chunk, ChunkView, Encoder, Recoder, Rewrite, RowIds, StoreError};
use eris_column::Selection;
use eris_numa::Budget;
use eris_types::{RowId, SegmentId, StatementId, Timestamp};
use std::collections::HashMap;
use std::sync::Arc;

/// A segment takes no more rows once it has given out so many ids, however many of its rows were deleted.
const MOST_IDS: u32 = 1 << 31;

/// A disjoint part of a partition's rows, with everything that moves along when it gets another owner.
#[derive(Debug)]
pub struct Segment {
    id: SegmentId,
    /// The number of the next row.
    next: u32,
    pub(crate) chunks: Vec<Stored>,
    pub(crate) tail: Tail,
    pub(crate) staged: HashMap<StatementId, Staged>,
    /// What chunks and append buffer hold, kept up to date.
    statistics: SegmentStatistics,
}

/// What a segment holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentStatistics {
    /// Committed rows. Deleted ones count until they are collected.
    pub rows: u64,
    /// How many of them are deleted.
    pub deleted: u64,
    /// Their bytes, append buffer and delete vectors included.
    pub bytes: u64,
    /// The newest commit.
    pub newest: Timestamp,
}

/// What a commit did to a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Committed {
    /// Rows that became visible.
    pub inserted: u64,
    /// Rows that ended.
    pub deleted: u64,
}

impl Segment {
    /// An empty segment.
    ///
    /// # Panics
    /// If the number is beyond those that row ids have room for.
    pub fn new(id: SegmentId) -> Self {
        assert!(id.0 < 1 << 31, "row ids have no room for {id}");
        Segment {
            id,
            next: 0,
            chunks: Vec::new(),
            tail: Tail::default(),
            staged: HashMap::new(),
            statistics: SegmentStatistics::default(),
        }
    }

    /// Its identity.
    pub fn id(&self) -> SegmentId {
        self.id
    }

    /// The number of chunks, those included that have not committed; the append buffer is none.
    pub fn chunks(&self) -> usize {
        let staged = self.staged.values().map(|staged| staged.chunks.len());
        self.chunks.len() + staged.sum::<usize>()
    }

    /// The id of the next row that gets one.
    pub fn next_id(&self) -> RowId {
        RowId::new(self.id, self.next)
    }

    /// Whether it has no ids left for further rows.
    pub fn is_exhausted(&self) -> bool {
        self.next >= MOST_IDS
    }

    /// Whether it has neither rows nor statements that work on it.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.tail.levels.is_empty() && self.staged.is_empty()
    }

    /// Keeps the encoded rows for `statement`, invisible until its commit.
    ///
    /// # Panics
    /// If the encoder is not done.
    pub fn stage(&mut self, statement: StatementId, rows: Encoder) {
        assert!(rows.is_done());
        let staged = self.staged.entry(statement).or_default();
        staged.chunks.push(rows.finish());
    }

    /// The same, and gives out the ids that the rows will have, which are not used again if the statement is given up. For
    /// segments in which one statement stages at a time; the ids of others would not ascend.
    ///
    /// # Panics
    /// If the encoder is not done.
    pub fn stage_with_ids(&mut self, statement: StatementId, rows: Encoder) -> RowId {
        assert!(rows.is_done());
        let first = RowId::new(self.id, self.next);
        self.next += rows.rows() as u32;
        let staged = self.staged.entry(statement).or_default();
        staged.chunks.push(StagedChunk {
            first: Some(first),
            ..rows.finish()
        });
        first
    }

    /// The rows that `statement` will delete: their chunks, their positions and their ids.
    pub fn staged_deletes(
        &self,
        statement: StatementId,
    ) -> impl Iterator<Item = (Arc<Chunk>, Vec<usize>, Vec<RowId>)> + '_ {
        let ids = (self.staged.get(&statement)).map_or(&[][..], |staged| &staged.deleted);
        let stored = self.chunks.iter().chain(&self.tail.levels);
        stored.filter_map(move |stored| {
            let positions: Vec<usize> = stored.positions(ids).collect();
            let ids = positions.iter().map(|&row| stored.chunk.ids().get(row));
            let ids: Vec<RowId> = ids.collect();
            (!positions.is_empty()).then(|| (stored.chunk.clone(), positions, ids))
        })
    }

    /// Notes that `statement` will delete those rows of `ids`, which ascend, that are here; returns how many these are.
    ///
    /// # Errors
    /// There is no memory for what the commit will have to write down. Nothing is noted then.
    pub fn stage_deletes(
        &mut self,
        statement: StatementId,
        ids: &[RowId],
        budget: &Budget,
    ) -> Result<u64, StoreError> {
        let (mut found, mut bytes) = (0, 0);
        for stored in self.chunks.iter().chain(&self.tail.levels) {
            let here = stored.positions(ids).count();
            found += here;
            if here > 0 {
                bytes += bitmap_bytes(stored.chunk.rows());
            }
        }
        if found > 0 {
            let reserved = budget.try_reserve(bytes as u64)?;
            let staged = self.staged.entry(statement).or_default();
            staged.deleted.extend(ids);
            staged.reserved = Some(reserved);
        }
        Ok(found as u64)
    }

    /// Makes the statement's rows visible to snapshots from `at` on, and those that it deletes invisible. Cannot fail.
    pub fn commit(
        &mut self,
        statement: StatementId,
        at: Timestamp,
        horizon: Timestamp,
        budget: &Budget,
    ) -> Committed {
        let mut committed = Committed::default();
        let Some(staged) = self.staged.remove(&statement) else {
            return committed;
        };
        self.statistics.newest = self.statistics.newest.max(at);
        drop(staged.reserved);
        if !staged.deleted.is_empty() {
            for stored in self.chunks.iter_mut().chain(&mut self.tail.levels) {
                let deleted = stored.delete(&staged.deleted, at, budget);
                if deleted > 0 {
                    stored.deletes.forget(horizon);
                    committed.deleted += deleted as u64;
                }
            }
        }
        for staged in staged.chunks {
            let StagedChunk {
                columns, rows, few, ..
            } = staged;
            committed.inserted += rows as u64;
            let first = staged.first.unwrap_or_else(|| {
                let first = RowId::new(self.id, self.next);
                self.next += rows as u32;
                first
            });
            match few {
                true => self.tail.push(at, columns, first, rows),
                false => {
                    let begins = vec![Begin { at, end: rows }];
                    let chunk = Chunk::new(columns, RowIds::from(first, rows), begins);
                    self.chunks.push(Stored::new(chunk));
                }
            }
        }
        self.count();
        committed
    }

    /// Forgets what the statement has staged.
    pub fn abort(&mut self, statement: StatementId) {
        self.staged.remove(&statement);
    }

    /// Whether the append buffer has become so long or so ragged that its owner should settle it.
    pub fn is_unsettled(&self) -> bool {
        self.tail.is_ragged() || self.tail.rows() >= eris_column::CHUNK_ROWS
    }

    /// Makes the append buffer into full chunks and few levels. On error, which is a want of memory, all rows stay where
    /// they are and can be read.
    pub fn settle(&mut self, recoder: Recoder<'_>) -> Result<(), StoreError> {
        if self.tail.levels.is_empty() {
            return Ok(());
        }
        let settled = self.seal_and_join(recoder);
        self.count();
        settled
    }

    fn seal_and_join(&mut self, recoder: Recoder<'_>) -> Result<(), StoreError> {
        while let Sealed::Rows(chunk) = self.tail.seal(recoder)? {
            self.chunks.extend(chunk);
        }
        self.tail.join(recoder)
    }

    /// Forgets deletions that no snapshot from `horizon` on can tell apart, and chunks that none can see; begins to rewrite
    /// chunks that are mostly garbage by then, if there are any. The append buffer gets rid of its own when it is settled.
    pub fn collect(&mut self, horizon: Timestamp) -> Option<Rewrite> {
        self.chunks.retain(|stored| stored.living(horizon) > 0);
        for stored in self.chunks.iter_mut().chain(&mut self.tail.levels) {
            stored.deletes.forget(horizon);
        }
        self.count();
        Rewrite::find(self.id, &self.chunks, horizon)
    }

    /// Puts what was rewritten in the place of the old chunks.
    ///
    /// # Panics
    /// If it is not done, or of another segment.
    pub fn finish_rewrite(&mut self, rewrite: Rewrite, budget: &Budget) {
        assert!(rewrite.is_done() && rewrite.segment() == self.id);
        rewrite.finish(&mut self.chunks, budget);
        self.count();
    }

    /// Every chunk in which the snapshot may see a row, the append buffer's included, frozen as of now.
    pub fn view(&self, snapshot: Timestamp) -> impl Iterator<Item = ChunkView> + '_ {
        let all = self.chunks.iter().chain(&self.tail.levels);
        all.filter_map(move |stored| stored.view(snapshot))
    }

    /// The chunk with a row that the snapshot sees; `None` if it sees no such row.
    pub fn view_of_row(&self, row: RowId, snapshot: Timestamp) -> Option<ChunkView> {
        let mut all = self.chunks.iter().chain(&self.tail.levels);
        all.find_map(|stored| {
            let position = stored.positions(&[row]).next()?;
            let view = stored.view(snapshot)?;
            let mut selection = Selection::none(view.chunk.rows());
            selection.insert(position);
            view.visible(snapshot, &mut selection);
            (selection.count() == 1).then_some(view)
        })
    }

    /// Every chunk with committed rows, first the sealed ones, and how many of its rows are deleted.
    pub fn stored(&self) -> impl Iterator<Item = (Arc<Chunk>, usize)> + '_ {
        let all = self.chunks.iter().chain(&self.tail.levels);
        all.map(|stored| (stored.chunk.clone(), stored.deletes.count()))
    }

    /// The sealed chunks from the `first` on, for statistics that are kept up to date step by step.
    pub fn sealed_since(&self, first: usize) -> impl Iterator<Item = &Chunk> {
        self.chunks[first..].iter().map(|stored| &*stored.chunk)
    }

    /// The chunks of the append buffer.
    pub fn tail_chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.tail.levels.iter().map(|stored| &*stored.chunk)
    }

    /// What it holds.
    pub fn statistics(&self) -> SegmentStatistics {
        self.statistics
    }

    fn count(&mut self) {
        let mut statistics = SegmentStatistics {
            newest: self.statistics.newest,
            ..SegmentStatistics::default()
        };
        for Stored { chunk, deletes } in self.chunks.iter().chain(&self.tail.levels) {
            statistics.rows += chunk.rows() as u64;
            statistics.deleted += deletes.count() as u64;
            statistics.bytes += (chunk.bytes() + deletes.bytes()) as u64;
        }
        self.statistics = statistics;
    }
}
