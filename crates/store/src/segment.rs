//! The segment and its life: write, commit or abort, view, collect garbage.

use crate::append_buffer::{AppendBuffer, Sealed};
use crate::deletes::bitmap_bytes;
use crate::extents::Extents;
use crate::join::Stored;
use crate::uncommitted::{Uncommitted, UncommittedChunk};
use crate::{
    Adoption, Chunk, ChunkView, Encoder, InsertedRun, Recoder, Rewrite, RowIds, StoreError,
};
use eris_column::{EncodeError, KeyOrder, ObjectMemory};
use eris_numa::Budget;
use eris_types::{ColumnId, RowId, SegmentId, StatementId, Timestamp};
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
    pub(crate) append_buffer: AppendBuffer,
    pub(crate) uncommitted: HashMap<StatementId, Uncommitted>,
    /// Of each chunk, and of each level of the append buffer.
    extents: Extents,
    /// What chunks and append buffer hold, kept up to date.
    pub(crate) statistics: SegmentStatistics,
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
    /// Rows that were deleted.
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
            append_buffer: AppendBuffer::default(),
            uncommitted: HashMap::new(),
            extents: Extents::default(),
            statistics: SegmentStatistics::default(),
        }
    }

    /// An empty segment for rows that have their ids: they were another owner's, whose segment of this number may take
    /// new rows.
    pub fn of_others(id: SegmentId) -> Self {
        Segment {
            next: MOST_IDS,
            ..Segment::new(id)
        }
    }

    /// Its identity.
    pub fn id(&self) -> SegmentId {
        self.id
    }

    /// The number of chunks, those included that have not committed; the append buffer is none.
    pub fn chunks(&self) -> usize {
        let uncommitted = self
            .uncommitted
            .values()
            .map(|uncommitted| uncommitted.chunks.len());
        self.chunks.len() + uncommitted.sum::<usize>()
    }

    /// The id of the next row that gets one.
    pub fn next_id(&self) -> RowId {
        RowId::new(self.id, self.next)
    }

    /// Ids before this one are given out.
    pub(crate) fn pass(&mut self, id: RowId) {
        self.next = self.next.max(id.0 as u32);
    }

    /// Whether it has no ids left for further rows.
    pub fn is_exhausted(&self) -> bool {
        self.next >= MOST_IDS
    }

    /// Whether it has neither rows nor statements that work on it.
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
            && self.append_buffer.levels.is_empty()
            && self.uncommitted.is_empty()
    }

    /// Keeps the encoded rows for `statement`, invisible until its commit.
    ///
    /// # Panics
    /// If the encoder is not done.
    pub fn insert_uncommitted(&mut self, statement: StatementId, rows: Encoder) {
        assert!(rows.is_done());
        let uncommitted = self.uncommitted.entry(statement).or_default();
        uncommitted.chunks.push(rows.finish());
    }

    /// Keeps rows that were another segment's for `statement`, likewise.
    ///
    /// # Panics
    /// If the adoption is not done.
    pub fn adopt(&mut self, statement: StatementId, rows: Adoption) {
        let uncommitted = self.uncommitted.entry(statement).or_default();
        uncommitted.chunks.push(rows.finish());
    }

    /// Gives out the ids that the statement's rows will have, as far as they have none yet: the first of each batch, in
    /// the order in which these came. They are not used again if the statement is given up. The statement is the
    /// next that commits rows here, or none of its rows ever are: ids ascend.
    pub fn number(&mut self, statement: StatementId) -> Vec<RowId> {
        let (id, next) = (self.id, &mut self.next);
        let uncommitted = self.uncommitted.get_mut(&statement);
        let chunks = uncommitted
            .into_iter()
            .flat_map(|uncommitted| &mut uncommitted.chunks);
        let unnumbered = chunks.filter(|chunk| chunk.first.is_none());
        let numbered = unnumbered.map(|chunk| {
            let first = RowId::new(id, *next);
            *next += chunk.rows as u32;
            chunk.first = Some(first);
            first
        });
        numbered.collect()
    }

    /// The rows that `statement` will delete: their chunks, their positions and their ids.
    pub fn uncommitted_deletes(
        &self,
        statement: StatementId,
    ) -> impl Iterator<Item = (Arc<Chunk>, Vec<usize>, Vec<RowId>)> + '_ {
        let ids =
            (self.uncommitted.get(&statement)).map_or(&[][..], |uncommitted| &uncommitted.deleted);
        self.places(ids).into_iter().filter_map(move |place| {
            let stored = self.at(place);
            let positions: Vec<usize> = stored.living_positions(ids).collect();
            let ids = positions.iter().map(|&row| stored.chunk.ids().get(row));
            let ids: Vec<RowId> = ids.collect();
            (!positions.is_empty()).then(|| (stored.chunk.clone(), positions, ids))
        })
    }

    /// Notes that `statement` will delete those rows of `ids`, which ascend, that are here; returns how many these are.
    ///
    /// # Errors
    /// There is no memory for what the commit will have to write down. Nothing is noted then.
    pub fn delete_uncommitted(
        &mut self,
        statement: StatementId,
        ids: &[RowId],
        budget: &Budget,
    ) -> Result<u64, StoreError> {
        let (mut found, mut bytes) = (0, 0);
        for place in self.places(ids) {
            let stored = self.at(place);
            let here = stored.living_positions(ids).count();
            found += here;
            if here > 0 {
                bytes += bitmap_bytes(stored.chunk.rows());
            }
        }
        if found > 0 {
            let reserved = budget.try_reserve(bytes as u64)?;
            let uncommitted = self.uncommitted.entry(statement).or_default();
            uncommitted.deleted.extend(ids);
            uncommitted.reserved.push(reserved);
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
        let Some(uncommitted) = self.uncommitted.remove(&statement) else {
            return committed;
        };
        self.statistics.newest = self.statistics.newest.max(at);
        drop(uncommitted.reserved);
        for part in &uncommitted.given {
            committed.deleted += self.give_up(part, at, horizon, budget);
        }
        for place in self.places(&uncommitted.deleted) {
            let stored = self.at_mut(place);
            let before = stored.deletes.bytes() as u64;
            let deleted = stored.delete(&uncommitted.deleted, at, horizon, budget) as u64;
            stored.deletes.forget(horizon);
            let after = stored.deletes.bytes() as u64;
            committed.deleted += deleted;
            self.statistics.bytes = self.statistics.bytes + after - before;
        }
        for uncommitted in uncommitted.chunks {
            let UncommittedChunk {
                columns,
                rows,
                few,
                first,
                kept,
                number,
                ..
            } = uncommitted;
            let stored = match kept {
                Some(kept) => {
                    let stored = kept.stored(columns, number, at, budget);
                    let of_others = stored.deletes.count() as u64;
                    committed.inserted += rows as u64 - of_others;
                    self.statistics.rows += of_others;
                    self.statistics.deleted += of_others;
                    stored
                }
                None => {
                    committed.inserted += rows as u64;
                    let first = first.unwrap_or_else(|| {
                        let first = RowId::new(self.id, self.next);
                        self.next += rows as u32;
                        first
                    });
                    let inserted = vec![InsertedRun { at, end: rows }];
                    let ids = Arc::new(RowIds::from(first, rows));
                    Stored::new(Chunk::sharing(columns, number, ids, inserted))
                }
            };
            self.statistics.bytes += (stored.chunk.bytes() + stored.deletes.bytes()) as u64;
            match few {
                true => {
                    let place = self.chunks.len() + self.append_buffer.levels.len();
                    self.extents.insert(place, stored.extent());
                    self.append_buffer.levels.push(stored);
                }
                false => {
                    self.extents.insert(self.chunks.len(), stored.extent());
                    self.chunks.push(stored);
                }
            }
        }
        self.statistics.rows += committed.inserted;
        self.statistics.deleted += committed.deleted;
        committed
    }

    /// Forgets what the statement has not committed.
    pub fn abort(&mut self, statement: StatementId) {
        self.uncommitted.remove(&statement);
    }

    /// Whether the append buffer has become so long or so ragged that its owner should merge it.
    pub fn needs_merge(&self) -> bool {
        self.append_buffer.is_ragged() || self.append_buffer.rows() >= eris_column::CHUNK_ROWS
    }

    /// Whether a reader should merge the append buffer.
    pub fn is_slow_to_read(&self) -> bool {
        self.append_buffer.is_long()
    }

    /// Makes the append buffer into full chunks and few levels. On error, which is a want of memory, all rows stay
    /// where they are and can be read.
    pub fn merge(&mut self, recoder: Recoder<'_>) -> Result<(), StoreError> {
        if self.append_buffer.levels.is_empty() {
            return Ok(());
        }
        let merged = self.seal_and_join(recoder);
        self.count();
        merged
    }

    fn seal_and_join(&mut self, recoder: Recoder<'_>) -> Result<(), StoreError> {
        while let Sealed::Rows(chunk) = self.append_buffer.seal(recoder)? {
            self.chunks.extend(chunk);
        }
        self.append_buffer.join(recoder)
    }

    /// Forgets deletions that no snapshot from `horizon` on can tell apart, and chunks that none can see; begins to
    /// rewrite chunks that are mostly garbage by then, if there are any. The append buffer gets rid of its own when it
    /// is merged.
    pub fn collect(&mut self, horizon: Timestamp) -> Option<Rewrite> {
        self.chunks.retain(|stored| stored.living(horizon) > 0);
        for stored in self.chunks.iter_mut().chain(&mut self.append_buffer.levels) {
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

    /// Stores a column of the sealed chunk at a place by an order of keys, if it is not yet, and if that has all of its
    /// keys and does not take much more room: readers who hold the chunk finish with its old form. Returns how many
    /// rows stay as they are; `None`: there is no such chunk.
    ///
    /// # Errors
    /// The memory of the home is exhausted.
    pub fn recode(
        &mut self,
        place: usize,
        column: ColumnId,
        order: &Arc<KeyOrder>,
        home: ObjectMemory<'_>,
    ) -> Result<Option<u64>, EncodeError> {
        let Some(stored) = self.chunks.get_mut(place) else {
            return Ok(None);
        };
        let old = stored.chunk.column(column);
        if old.order().is_some_and(|other| Arc::ptr_eq(other, order)) {
            return Ok(Some(0));
        }
        let Some(form) = old.stored_by(order, home)? else {
            return Ok(Some(stored.chunk.rows() as u64));
        };
        stored.chunk = Arc::new(stored.chunk.with_column(column, form));
        Ok(Some(0))
    }

    /// Takes stock of its chunks again, after some were [recoded](Self::recode).
    pub fn recount(&mut self) {
        self.count();
    }

    /// Every chunk in which the snapshot may see a row, the append buffer's included, frozen as of now.
    pub fn view(&self, snapshot: Timestamp) -> impl Iterator<Item = ChunkView> + '_ {
        let all = self.chunks.iter().chain(&self.append_buffer.levels);
        all.filter_map(move |stored| stored.view(snapshot))
    }

    /// The chunk with a row that the snapshot sees, and the row's position in it; `None` if it sees no such row.
    pub fn row(&self, row: RowId, snapshot: Timestamp) -> Option<(&Arc<Chunk>, usize)> {
        let (place, position) = self.find(row, snapshot)?;
        Some((&self.at(place).chunk, position))
    }

    /// Where a row is that the snapshot sees.
    fn find(&self, row: RowId, snapshot: Timestamp) -> Option<(usize, usize)> {
        // A row that was given away and has come back is in two chunks, of which a snapshot sees it in one.
        self.extents.having(row).find_map(|place| {
            let stored = self.at(place);
            let position = stored.chunk.ids().position(row)?;
            let is_seen = stored.sees(snapshot, position);
            is_seen.then_some((place, position))
        })
    }

    /// The chunks and levels that may have rows of `ids`, which ascend.
    pub(crate) fn places(&self, ids: &[RowId]) -> Vec<usize> {
        self.extents.places(ids)
    }

    pub(crate) fn at(&self, place: usize) -> &Stored {
        let level = place.checked_sub(self.chunks.len());
        level.map_or_else(
            || &self.chunks[place],
            |level| &self.append_buffer.levels[level],
        )
    }

    pub(crate) fn at_mut(&mut self, place: usize) -> &mut Stored {
        match place.checked_sub(self.chunks.len()) {
            None => &mut self.chunks[place],
            Some(level) => &mut self.append_buffer.levels[level],
        }
    }

    /// Every chunk with committed rows, first the sealed ones, and how many of its rows are deleted.
    pub fn stored(&self) -> impl Iterator<Item = (Arc<Chunk>, usize)> + '_ {
        let all = self.chunks.iter().chain(&self.append_buffer.levels);
        all.map(|stored| (stored.chunk.clone(), stored.deletes.count()))
    }

    /// The sealed chunks from the `first` on, for statistics that are kept up to date step by step.
    pub fn sealed_since(&self, first: usize) -> impl Iterator<Item = &Chunk> {
        self.chunks[first..].iter().map(|stored| &*stored.chunk)
    }

    /// The id of the last row that was sealed.
    pub fn last_sealed_row(&self) -> Option<RowId> {
        self.chunks.last()?.chunk.ids().last()
    }

    /// The chunks of the append buffer from the `first` on, likewise. As long as the version is the same there are only
    /// more.
    pub fn append_buffer_since(&self, first: usize) -> impl Iterator<Item = &Chunk> {
        self.append_buffer.levels[first..]
            .iter()
            .map(|stored| &*stored.chunk)
    }

    /// The version of the append buffer.
    pub fn append_buffer_version(&self) -> u64 {
        self.append_buffer.version
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
        let all = self.chunks.iter().chain(&self.append_buffer.levels);
        self.extents = Extents::new(all.map(Stored::extent));
        for Stored { chunk, deletes } in self.chunks.iter().chain(&self.append_buffer.levels) {
            statistics.rows += chunk.rows() as u64;
            statistics.deleted += deletes.count() as u64;
            statistics.bytes += (chunk.bytes() + deletes.bytes()) as u64;
        }
        self.statistics = statistics;
    }
}
