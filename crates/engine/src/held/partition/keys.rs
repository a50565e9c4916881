//! Rows with some keys that another owner of the node gets as they are.
//!
//! ```text
//! former owner     chunk by chunk: which rows have such keys? ─▶ rows noted, tree shared ─ Commit: deleted, given up
//! new owner                          OfferedRows ─▶ kept with their ids, uncommitted      ─ Commit: inserted, its own
//! ```
//!
//! The statement has the write lock, so that no row comes or goes between the look and the commit. No row and no entry
//! is copied: see [`eris_store::ChunkPart`] and [`SharedKeys`]. Secondary indexes do not know rows that come so; a
//! partition that has some by then builds them anew.

use super::Partition;
use crate::held::index_part::IndexPart;
use crate::held::primary::{PrimaryIndex, SharedKeys, Unsharing};
use crate::object::keys::{KeyRange, Keys, is_word};
use crate::object::ranges::Assignment;
use arrow_array::ArrayRef;
use eris_column::{ColumnPredicate, Domain, ObjectMemory, Selection, ZoneRange};
use eris_index::IndexError;
use eris_kernels::Isa;
use eris_store::{Chunk, ChunkPart, Segment, StoreError};
use eris_types::{SegmentId, StatementId, Timestamp};
use std::sync::Arc;

/// Keys that are to get another owner: those whose numbers lie between two, both included.
#[derive(Clone, Debug)]
pub(crate) struct KeySelection {
    pub numbers: (i64, i64),
    /// The ranges of the object's keys as they are.
    pub assignment: Arc<Assignment>,
}

/// Keys that a statement gives another owner when it commits.
pub(super) struct Offered {
    statement: StatementId,
    keys: KeyRange,
    /// As long as somebody has a part of it, the tree stays shared.
    _stays_shared: SharedKeys,
}

/// Rows with some keys, and their entries, for another owner.
pub(crate) struct OfferedRows {
    pub rows: Vec<(SegmentId, ChunkPart)>,
    pub keys: SharedKeys,
    /// The columns whose text is stored as it is from now on.
    pub plain: Arc<[bool]>,
}

impl KeySelection {
    /// The keys.
    fn keys(&self, is_word: bool) -> KeyRange {
        let all = KeyRange::new(
            (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded),
            is_word,
        );
        let (low, high) = self.numbers;
        let low = (low > i64::MIN).then_some(low);
        self.assignment.clipped(&all, low, high.checked_add(1))
    }
}

impl OfferedRows {
    /// How many rows, and about how many bytes.
    pub fn size(&self) -> (u64, u64) {
        let sizes = self.rows.iter().map(|(_, part)| part.size());
        sizes.fold((0, 0), |(rows, bytes), (more, of)| {
            (rows + more, bytes + of)
        })
    }
}

impl Partition {
    /// The chunks with the rows that are not deleted, for a statement that has the write lock and is about to give some
    /// away. `None`: they can only be copied, for there are secondary indexes, or their keys have come lately.
    pub fn begin_offer(
        &mut self,
        statement: StatementId,
        selection: &KeySelection,
    ) -> Option<Vec<(SegmentId, Arc<Chunk>, Selection)>> {
        self.forget_others(statement);
        let index = self.index.as_ref()?;
        let keys = selection.keys(index.has_words());
        if !self.secondary.is_empty() || !index.can_share(&keys) {
            return None;
        }
        let chunks = self.segments.iter().flat_map(|segment| {
            let living = segment.living_chunks();
            living.map(|(chunk, rows)| (segment.id(), chunk, rows))
        });
        Some(chunks.collect())
    }

    /// Leaves those rows of a chunk selected whose keys are selected; whether it had to look at them.
    pub fn select_keys(
        &self,
        chunk: &Chunk,
        selection: &KeySelection,
        rows: &mut Selection,
    ) -> bool {
        let (low, high) = selection.numbers;
        if (low, high) == (i64::MIN, i64::MAX) {
            return false;
        }
        if let [column] = *self.object.key
            && is_word(self.object.key_types())
        {
            let column = chunk.column(column);
            debug_assert_eq!(column.domain(), Domain::Integer);
            if let ZoneRange::Integer(least, greatest) = column.zone().range {
                if low <= least && greatest <= high {
                    return false;
                }
                if greatest < low || high < least {
                    rows.clear();
                    return false;
                }
            }
            let predicate = ColumnPredicate::Integers { low, high };
            column.filter(Isa::best(), &predicate, rows);
            return true;
        }
        let keys = self.keys_of(chunk, rows);
        let numbers = selection.assignment.routing(&keys);
        let places: Vec<usize> = rows.iter_ones().collect();
        for (row, number) in places.into_iter().zip(numbers) {
            if number < low || number > high {
                rows.remove(row);
            }
        }
        true
    }

    /// The numbers of the keys of some rows of a chunk.
    pub fn key_numbers(
        &self,
        chunk: &Chunk,
        rows: &Selection,
        assignment: &Assignment,
    ) -> Vec<i64> {
        assignment.routing(&self.keys_of(chunk, rows))
    }

    fn keys_of(&self, chunk: &Chunk, rows: &Selection) -> Keys {
        Keys::of(&self.key_columns(chunk, rows), 0, rows.count())
    }

    /// The columns of the key, of some rows of a chunk.
    pub(super) fn key_columns(&self, chunk: &Chunk, rows: &Selection) -> Vec<ArrayRef> {
        let columns = self.object.key.iter().map(|column| {
            let data_type = self.object.schema.field(column.index()).data_type();
            let dictionary = self.known[column.index()].as_ref();
            chunk.column(*column).select(rows, data_type, dictionary)
        });
        columns.collect()
    }

    /// Notes that the statement gives these rows away, and shares their entries.
    pub fn offer_keys(
        &mut self,
        statement: StatementId,
        selection: &KeySelection,
        rows: Vec<(SegmentId, ChunkPart)>,
        home: ObjectMemory<'_>,
    ) -> Result<OfferedRows, StoreError> {
        for (id, part) in &rows {
            let segment = self.segments.iter_mut().find(|one| one.id() == *id);
            let segment = segment.expect("its chunk has rows that live");
            segment.give(statement, part.clone(), home.memory.budget())?;
        }
        let index = self.index.as_mut().expect("the object has a key");
        let keys = selection.keys(index.has_words());
        let mut share = || {
            let shared = index.share(&keys);
            shared.expect("looked at the beginning, and nobody has taken keys since")
        };
        // The new owner may have committed, and have copied its part, before this one commits.
        let stays_shared = share();
        let shared = share();
        self.offered = Some(Offered {
            statement,
            keys,
            _stays_shared: stays_shared,
        });
        Ok(OfferedRows {
            rows,
            keys: shared,
            plain: self.dictionaries().iter().map(Option::is_none).collect(),
        })
    }

    /// Keeps rows of another owner for the statement.
    pub fn adopt_keys(
        &mut self,
        statement: StatementId,
        offered: OfferedRows,
        home: ObjectMemory<'_>,
    ) -> Result<(), StoreError> {
        self.forget_others(statement);
        self.refresh_dictionaries(&offered.plain);
        for (id, part) in &offered.rows {
            let found = self.segments.iter().position(|one| one.id() == *id);
            let at = found.unwrap_or_else(|| {
                // In front: the last one takes new rows.
                self.segments.insert(0, Segment::of_others(*id));
                self.tally.reset();
                0
            });
            self.segments[at].receive(statement, part, home.memory.budget())?;
        }
        self.adopted = Some((statement, offered.keys));
        Ok(())
    }

    pub(super) fn commit_keys(&mut self, statement: StatementId, at: Timestamp) {
        let receives = |segment: &Segment| segment.receives_rows(statement);
        if !self.secondary.is_empty() && self.segments.iter().any(receives) {
            (self.secondary.iter_mut()).for_each(IndexPart::set_incomplete);
        }
        let Some(index) = &mut self.index else {
            return;
        };
        if let Some(offered) = self
            .offered
            .take_if(|offered| offered.statement == statement)
        {
            index.give(&offered.keys);
            // Older snapshots see rows here that the index does not know any more.
            self.keys_removed = at;
            self.deleted.forget(at);
        }
        if let Some((_, keys)) = self.adopted.take_if(|(other, _)| *other == statement) {
            index.take(keys);
        }
    }

    pub(super) fn abort_keys(&mut self, statement: StatementId) {
        self.offered
            .take_if(|offered| offered.statement == statement);
        self.adopted.take_if(|(other, _)| *other == statement);
    }

    /// Whether entries of its index are to be brought to where they belong.
    pub fn has_shared_keys(&self) -> bool {
        let index = self.index.as_ref();
        index.is_some_and(|index| !index.is_unshared())
    }

    /// Brings some entries to where they belong.
    pub fn unshare(&mut self) -> Result<Unsharing, IndexError> {
        (self.index.as_mut()).map_or(Ok(Unsharing::Done), PrimaryIndex::unshare)
    }
}
