//! Keys that no two rows have: checked by the owner when all rows of a statement are written, before it may commit.
//!
//! ```text
//! Insert … Delete … acknowledged ─▶ Check ─▶ every new key goes into the partition's index:
//!     it is new                               ─▶ noted, to be taken out again if the statement is given up
//!     a row has it that the statement deletes ─▶ is the new row's from now on; the same
//!     another row has it                      ─▶ Rejected, and everything is as before
//! Commit ─▶ keys of deleted rows that no new row has go
//! ```
//!
//! Who adds or deletes rows of an object with a key has its write lock, so the index knows one statement at a time that
//! has not committed, and holds for the newest rows otherwise. Readers do not use it. Rows with the same key are of the
//! same partition, so that each owner can tell for itself.

use crate::error::EngineError;
use crate::held::bulk::{Bulk, BulkStep};
use crate::held::primary::PrimaryIndex;
use crate::object::data_object::DataObject;
use crate::object::keys::Keys;
use eris_column::ObjectMemory;
use eris_index::IndexError;
use eris_numa::{Budget, OutOfMemory, Reservation};
use eris_types::RowId;

/// Keys that are checked in one slice.
const SLICE_ROWS: usize = 2_048;

/// From so many keys on, an empty index is built at once.
const BULK_ROWS: usize = 2 * SLICE_ROWS;

/// The id of a row that has none yet. Segments are numbered from 1.
const NO_ID: RowId = RowId(0);

/// What a statement that has not committed does to the keys of a partition.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Rows that were written, in order.
    added: Vec<Added>,
    /// Rows that will be deleted, and their keys. Ids ascend within each.
    deleted: Vec<(Keys, Vec<RowId>)>,
    /// The ids of these, ascending.
    deleted_ids: Vec<RowId>,
    /// The work on all keys together, if that is how they are checked.
    bulk: Option<Box<Bulk>>,
    /// The index has these keys and no others.
    is_whole: bool,
    /// How many rows of which part of `added` are in the index.
    done: (usize, usize),
    /// Of these, what was another row's before: the part, the row in it, and that row.
    replaced: Vec<(usize, usize, RowId)>,
    reserved: Vec<Reservation>,
}

/// The keys of rows that were written together.
#[derive(Debug)]
pub(crate) struct Added {
    pub keys: Keys,
    /// The id of the first one, given out when the keys are checked if not before.
    pub first: RowId,
}

impl Pending {
    /// Rows with these keys were written; `first` is the id of the first one, if it has been given out.
    pub fn add(
        &mut self,
        keys: Keys,
        first: Option<RowId>,
        budget: &Budget,
    ) -> Result<(), OutOfMemory> {
        self.reserved
            .push(budget.try_reserve(keys.memory() as u64)?);
        let first = first.unwrap_or(NO_ID);
        self.added.push(Added { keys, first });
        Ok(())
    }

    /// These rows will be deleted.
    pub fn delete(
        &mut self,
        keys: Keys,
        ids: Vec<RowId>,
        budget: &Budget,
    ) -> Result<(), OutOfMemory> {
        let bytes = keys.memory() + 2 * size_of_val(&ids[..]);
        self.reserved.push(budget.try_reserve(bytes as u64)?);
        self.deleted_ids.extend(&ids);
        self.deleted.push((keys, ids));
        Ok(())
    }

    /// How many rows were written in each part.
    pub fn parts(&self) -> impl Iterator<Item = usize> + '_ {
        self.added.iter().map(|part| part.keys.len())
    }

    /// All rows that will be deleted are known, and the ids that the first rows of the parts without have got.
    pub fn begin_check(&mut self, ids: impl Iterator<Item = RowId>, index: &PrimaryIndex) {
        let without = self.added.iter_mut().filter(|part| part.first == NO_ID);
        without
            .zip(ids)
            .for_each(|(part, first)| part.first = first);
        self.deleted_ids.sort_unstable();
        let rows: usize = self.parts().sum();
        if index.is_empty() && rows >= BULK_ROWS {
            self.bulk = Some(Box::new(Bulk::new()));
        }
    }

    /// Puts some more keys into the index; says whether these were the last.
    ///
    /// # Errors
    /// A key that another row has, or no memory. What was done before is still to be undone.
    pub fn check(
        &mut self,
        index: &mut PrimaryIndex,
        object: &DataObject,
        home: ObjectMemory<'_>,
    ) -> Result<bool, EngineError> {
        if let Some(bulk) = &mut self.bulk {
            let step = bulk
                .step(&self.added, home)
                .map_err(|error| rejected(error, &object.name))?;
            match step {
                BulkStep::Again => return Ok(false),
                BulkStep::Duplicate(place) => {
                    return Err(self.duplicate(place.part(), place.row(), object));
                }
                BulkStep::Done(built) => {
                    *index = *built;
                    self.bulk = None;
                    self.is_whole = true;
                    return Ok(true);
                }
                // One by one they need none but the index's.
                BulkStep::NoRoom => self.bulk = None,
            }
        }
        if self.is_whole {
            return Ok(true);
        }
        let (part, first) = self.done;
        let Some(rows) = self.added.get(part) else {
            return Ok(true);
        };
        let until = rows.keys.len().min(first + SLICE_ROWS);
        let (present, failure) = index.insert(&rows.keys, first..until, rows.first);
        for (row, other) in (first..until).zip(&present) {
            match other {
                None => {}
                // Unless a row of this batch has taken it over meanwhile.
                Some(other)
                    if self.deleted_ids.binary_search(other).is_ok()
                        && index.get(&rows.keys, row) == Some(*other) =>
                {
                    index.replace(&rows.keys, row, rows.first.plus(row));
                    self.replaced.push((part, row, *other));
                }
                Some(_) => {
                    // Those behind it are not counted as done.
                    let behind = row + 1..first + present.len();
                    behind
                        .filter(|&row| present[row - first].is_none())
                        .for_each(|row| index.remove(&rows.keys, row));
                    return Err(self.duplicate(part, row, object));
                }
            }
            self.done = (part, row + 1);
        }
        if let Some(error) = failure {
            return Err(rejected(error, &object.name));
        }
        if self.done.1 == rows.keys.len() {
            self.done = (part + 1, 0);
        }
        Ok(false)
    }

    fn duplicate(&self, part: usize, row: usize, object: &DataObject) -> EngineError {
        EngineError::DuplicateKey {
            object: object.id,
            table: object.name.clone(),
            key: self.added[part].keys.shown(row, &object.key_types()),
        }
    }

    /// Takes out of the index what was put in.
    pub fn undo(self, index: &mut PrimaryIndex) {
        if self.is_whole {
            return index.clear();
        }
        let mut replaced = self.replaced.into_iter().peekable();
        for (part, rows) in self.added.iter().enumerate() {
            let done = match part.cmp(&self.done.0) {
                std::cmp::Ordering::Less => rows.keys.len(),
                std::cmp::Ordering::Equal => self.done.1,
                std::cmp::Ordering::Greater => 0,
            };
            for row in 0..done {
                match replaced.next_if(|(of, at, _)| (*of, *at) == (part, row)) {
                    Some((.., other)) => index.replace(&rows.keys, row, other),
                    None => index.remove(&rows.keys, row),
                }
            }
        }
        index.trim();
    }

    /// If a row was added by the statement: the row that has its key as long as the statement has not committed, or
    /// none.
    pub fn before(&self, row: RowId) -> Option<Option<RowId>> {
        let mut parts = self.added.iter().enumerate();
        let (part, at) = parts.find_map(|(part, added)| {
            let at = row.0.checked_sub(added.first.0)? as usize;
            (added.first != NO_ID && at < added.keys.len()).then_some((part, at))
        })?;
        let replaced = &self.replaced;
        let found = replaced.binary_search_by_key(&(part, at), |(part, at, _)| (*part, *at));
        Some(found.ok().map(|found| replaced[found].2))
    }

    /// The rows that are added: the first of consecutive ids, and how many.
    pub fn added(&self) -> impl Iterator<Item = (RowId, usize)> {
        self.added.iter().map(|part| (part.first, part.keys.len()))
    }

    /// Of the rows that are added and replace others: both ids.
    pub fn replaced(&self) -> impl Iterator<Item = (RowId, RowId)> {
        let replaced = self.replaced.iter();
        replaced.map(|(part, row, before)| (self.added[*part].first.plus(*row), *before))
    }

    /// The rows that are deleted, whose keys may then be nobody's.
    pub fn deleted_ids(&self) -> &[RowId] {
        &self.deleted_ids
    }

    /// Removes the keys that nobody has any more, and says which.
    pub fn commit(self, index: &mut PrimaryIndex, mut removed: impl FnMut(&Keys, usize, RowId)) {
        for (keys, ids) in &self.deleted {
            for (row, id) in ids.iter().enumerate() {
                if index.get(keys, row) == Some(*id) {
                    index.remove(keys, row);
                    removed(keys, row, *id);
                }
            }
        }
        // A few keys leave room for the next ones.
        if self.deleted_ids.len() >= SLICE_ROWS {
            index.trim();
        }
    }
}

/// Why keys could not be put into an index.
pub(crate) fn rejected(error: IndexError, table: &str) -> EngineError {
    let (table, reason) = (table.to_owned(), error.to_string());
    match error {
        IndexError::OutOfMemory(_) => EngineError::OutOfMemory { table, reason },
        _ => EngineError::Store { table, reason },
    }
}
