//! A partition that was read back: its segments are there, and all else follows from the rows.
//!
//! ```text
//! segments, by who had opened them ─▶ rows whose keys are another's are given to it ─▶ index of the key
//! ```
//!
//! Which rows are whose, the ranges say that were found last. Rows that were linked have kept their ids, so their
//! segment is that of the owner who wrote them.

use super::{NEXT_SEGMENT, Partition};
use crate::durability::Log;
use crate::error::{EngineError, store_error};
use crate::held::bulk::{Bulk, BulkStep};
use crate::held::primary::PrimaryIndex;
use crate::held::unique::{Added, rejected};
use crate::object::data_object::DataObject;
use crate::object::keys::Keys;
use crate::object::ranges::Assignment;
use eris_column::{ObjectMemory, Selection};
use eris_store::{Chunk, ChunkPart, Segment};
use eris_types::{AeuId, RowId, SegmentId, StatementId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// No other statement has this number.
const RESTORING: StatementId = StatementId(0);
/// From so many rows on, the index is built at once.
const BULK_ROWS: usize = 4_096;

/// Segments get numbers behind this one from now on.
pub(crate) fn pass_segment(last: SegmentId) {
    NEXT_SEGMENT.fetch_max(last.0 + 1, Ordering::Relaxed);
}

/// Rows that belong to another owner.
pub(crate) struct Misplaced {
    pub owner: AeuId,
    segment: SegmentId,
    part: ChunkPart,
}

impl Partition {
    /// Of segments that were read back, in the order of their numbers.
    pub fn restored(
        object: Arc<DataObject>,
        owner: AeuId,
        log: Option<&Log>,
        segments: Vec<Segment>,
        plain: &[bool],
        home: ObjectMemory<'_>,
    ) -> Self {
        let mut partition = Partition::new(object, owner, log, home);
        partition.segments = segments;
        partition.refresh_dictionaries(plain);
        partition.tally.reset();
        partition
    }

    /// The rows here whose keys are another owner's.
    pub fn misplaced(&self, assignment: &Assignment) -> Vec<Misplaced> {
        let mut misplaced = Vec::new();
        for (segment, chunk, rows) in self.living() {
            let numbers = self.key_numbers(&chunk, &rows, assignment);
            let mut by_owner: BTreeMap<AeuId, Selection> = BTreeMap::new();
            for (row, number) in rows.iter_ones().zip(numbers) {
                let owner = assignment.get(number);
                if owner != self.owner {
                    let none = || Selection::none(chunk.rows());
                    by_owner.entry(owner).or_insert_with(none).insert(row);
                }
            }
            misplaced.extend(by_owner.into_iter().map(|(owner, rows)| {
                let chunk = Arc::clone(&chunk);
                let part = ChunkPart { chunk, rows };
                Misplaced {
                    owner,
                    segment,
                    part,
                }
            }));
        }
        misplaced
    }

    /// Gives up rows that are another's.
    ///
    /// # Errors
    /// There is no memory to note which these are.
    pub fn give_misplaced(
        &mut self,
        misplaced: &[Misplaced],
        at: Timestamp,
        home: ObjectMemory<'_>,
    ) -> Result<(), EngineError> {
        for one in misplaced {
            let mut segments = self.segments.iter_mut();
            let segment = segments.find(|segment| segment.id() == one.segment);
            let segment = segment.expect("they were found in it");
            let given = segment.give(RESTORING, one.part.clone(), home.memory.budget());
            given.map_err(|error| store_error(&self.object.name, &error))?;
        }
        self.commit_restored(at, home);
        Ok(())
    }

    /// Takes rows over.
    ///
    /// # Errors
    /// As [`Partition::give_misplaced`].
    pub fn take_misplaced(
        &mut self,
        misplaced: &[&Misplaced],
        at: Timestamp,
        home: ObjectMemory<'_>,
    ) -> Result<(), EngineError> {
        for one in misplaced {
            let found = self
                .segments
                .iter()
                .position(|other| other.id() == one.segment);
            let place = found.unwrap_or_else(|| {
                // In front: the last one takes new rows.
                self.segments.insert(0, Segment::of_others(one.segment));
                0
            });
            let received = self.segments[place].receive(RESTORING, &one.part, home.memory.budget());
            received.map_err(|error| store_error(&self.object.name, &error))?;
        }
        self.commit_restored(at, home);
        Ok(())
    }

    fn commit_restored(&mut self, at: Timestamp, home: ObjectMemory<'_>) {
        for segment in &mut self.segments {
            // Nobody reads what was there before.
            segment.commit(RESTORING, at, at, home.memory.budget());
        }
        self.tally.reset();
    }

    /// Leaves out rows that were deleted, builds the index of the key, and tells the object's ranges, and planners,
    /// what is here.
    ///
    /// # Errors
    /// There is no memory, or two rows have one key.
    pub fn index_restored(
        &mut self,
        through: Timestamp,
        home: ObjectMemory<'_>,
    ) -> Result<(), EngineError> {
        self.collect_restored(through, home);
        self.tell_planners();
        let Some(mut index) = self.index.take() else {
            return Ok(());
        };
        let built = self.build_index(&mut index, home);
        self.index = Some(index);
        built
    }

    /// Short of memory, garbage stays where it is until it is collected as usual.
    fn collect_restored(&mut self, through: Timestamp, home: ObjectMemory<'_>) {
        while let Some(mut rewrite) = self.collect(home, through) {
            while !rewrite.is_done() {
                match self.rewrite(rewrite, home, through) {
                    Ok(Some(next)) => rewrite = next,
                    Ok(None) | Err(_) => return,
                }
            }
            let _ = self.rewrite(rewrite, home, through);
        }
    }

    fn build_index(
        &self,
        index: &mut PrimaryIndex,
        home: ObjectMemory<'_>,
    ) -> Result<(), EngineError> {
        let mut added: Vec<Added> = Vec::new();
        let ranges = self.object.ranges.get();
        for (_, chunk, rows) in self.living() {
            if let Some(ranges) = &ranges {
                let numbers = self.key_numbers(&chunk, &rows, ranges);
                self.object.ranges.count(&numbers);
            }
            let columns = self.key_columns(&chunk, &rows);
            added.extend(runs(&chunk, &rows).into_iter().map(|(place, first, rows)| {
                let keys = Keys::of(&columns, place, rows);
                Added { keys, first }
            }));
        }
        let name = &self.object.name;
        let twice = |keys: &Keys, row: usize| {
            let key = keys.shown(row, &self.object.key_types());
            EngineError::Open(format!(
                "the database is damaged: table {name} has two rows with the key ({key})"
            ))
        };
        if added.iter().map(|part| part.keys.len()).sum::<usize>() >= BULK_ROWS {
            let mut bulk = Bulk::new();
            loop {
                match bulk
                    .step(&added, home)
                    .map_err(|error| rejected(error, name))?
                {
                    BulkStep::Again => {}
                    BulkStep::Duplicate(row) => {
                        return Err(twice(&added[row.part()].keys, row.row()));
                    }
                    BulkStep::Done(built) => {
                        *index = *built;
                        return Ok(());
                    }
                    // One by one they need none but the index's.
                    BulkStep::NoRoom => break,
                }
            }
        }
        for part in &added {
            let all = 0..part.keys.len();
            let (present, failure) = index.insert(&part.keys, all, part.first);
            if let Some(row) = present.iter().position(Option::is_some) {
                return Err(twice(&part.keys, row));
            }
            if let Some(failure) = failure {
                return Err(rejected(failure, name));
            }
        }
        Ok(())
    }

    /// All chunks with their rows that are not deleted.
    fn living(&self) -> impl Iterator<Item = (SegmentId, Arc<Chunk>, Selection)> {
        self.segments.iter().flat_map(|segment| {
            let living = segment.living_chunks();
            living.map(|(chunk, rows)| (segment.id(), chunk, rows))
        })
    }
}

/// Rows of a chunk as runs with consecutive ids: the place of the first among these rows, its id, and how many.
fn runs(chunk: &Chunk, rows: &Selection) -> Vec<(usize, RowId, usize)> {
    let mut runs: Vec<(usize, RowId, usize)> = Vec::new();
    for (place, row) in rows.iter_ones().enumerate() {
        let id = chunk.ids().get(row);
        match runs.last_mut() {
            Some((_, first, rows)) if first.plus(*rows) == id => *rows += 1,
            _ => runs.push((place, id, 1)),
        }
    }
    runs
}
