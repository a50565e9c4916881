//! Keys that no two rows have: checked by the owner when all rows of a statement are staged, before it may commit.
//!
//! ```text
//! STAGE … DELETE … acknowledged ─▶ CHECK ─▶ every new key goes into the partition's index:
//!     it is new                             ─▶ noted, to be taken out again if the statement is given up
//!     a row has it that the statement ends  ─▶ is the new row's from now on; the same
//!     another row has it                    ─▶ REFUSED, and everything is as before
//! COMMIT ─▶ keys of ended rows that no new row has go
//! ```
//!
//! Who adds or ends rows of an object with a key has its turn at it, so the index knows one statement at a time that has not
//! committed, and holds for the newest rows otherwise. Readers do not use it. Rows with the same key are of the same partition,
//! so that each owner can tell for itself.

use crate::error::EngineError;
use crate::keys::{Keys, PrimaryIndex};
use crate::object::DataObject;
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use eris_index::IndexError;
use eris_numa::{Budget, OutOfMemory, Reservation};
use eris_types::RowId;

/// Keys that are checked in one slice.
const SLICE_ROWS: usize = 2_048;

/// What a statement that has not committed does to the keys of a partition.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Rows that were staged, in order.
    added: Vec<KeyedRows>,
    /// Rows that will end, and their keys. Ids ascend within each.
    ended: Vec<KeyedRows>,
    /// The ids of these, ascending.
    ended_ids: Vec<RowId>,
    /// How many rows of which part of `added` are in the index.
    done: (usize, usize),
    /// Of these, what was another row's before: the part, the row in it, and that row.
    replaced: Vec<(usize, usize, RowId)>,
    reserved: Vec<Reservation>,
}

/// Rows and the columns of their keys.
#[derive(Debug)]
struct KeyedRows {
    columns: Vec<ArrayRef>,
    ids: Ids,
}

#[derive(Debug)]
enum Ids {
    From(RowId),
    Each(Vec<RowId>),
}

impl KeyedRows {
    fn rows(&self) -> usize {
        self.columns[0].len()
    }

    fn id(&self, row: usize) -> RowId {
        match &self.ids {
            Ids::From(first) => first.plus(row),
            Ids::Each(ids) => ids[row],
        }
    }
}

impl Pending {
    /// Rows were staged and got ids from `first` on.
    pub fn add(
        &mut self,
        columns: Vec<ArrayRef>,
        first: RowId,
        budget: &Budget,
    ) -> Result<(), OutOfMemory> {
        self.reserve(&columns, budget)?;
        self.added.push(KeyedRows {
            columns,
            ids: Ids::From(first),
        });
        Ok(())
    }

    /// These rows will end.
    pub fn end(
        &mut self,
        columns: Vec<ArrayRef>,
        ids: Vec<RowId>,
        budget: &Budget,
    ) -> Result<(), OutOfMemory> {
        self.reserve(&columns, budget)?;
        self.ended_ids.extend(&ids);
        self.ended.push(KeyedRows {
            columns,
            ids: Ids::Each(ids),
        });
        Ok(())
    }

    fn reserve(&mut self, columns: &[ArrayRef], budget: &Budget) -> Result<(), OutOfMemory> {
        let bytes: usize = columns
            .iter()
            .map(|column| column.get_array_memory_size())
            .sum();
        self.reserved.push(budget.try_reserve(bytes as u64)?);
        Ok(())
    }

    /// All rows that will end are known.
    pub fn begin_check(&mut self) {
        self.ended_ids.sort_unstable();
    }

    /// Puts some more keys into the index; says whether these were the last.
    ///
    /// # Errors
    /// A key that another row has, or no memory. What was done before is still to be undone.
    pub fn check(
        &mut self,
        index: &mut PrimaryIndex,
        object: &DataObject,
    ) -> Result<bool, EngineError> {
        let (part, first) = self.done;
        let Some(rows) = self.added.get(part) else {
            return Ok(true);
        };
        let count = SLICE_ROWS.min(rows.rows() - first);
        let keys = Keys::of(&rows.columns, first, count);
        let (present, failure) = index.insert(&keys, |row| rows.id(first + row));
        for (row, other) in present.iter().enumerate() {
            match other {
                None => {}
                // Unless a row of this batch has taken it over meanwhile.
                Some(other)
                    if self.ended_ids.binary_search(other).is_ok()
                        && index.get(&keys, row) == Some(*other) =>
                {
                    index.replace(&keys, row, rows.id(first + row));
                    self.replaced.push((part, first + row, *other));
                }
                Some(_) => {
                    // Those behind it are not counted as done.
                    let behind = row + 1..present.len();
                    behind
                        .filter(|&row| present[row].is_none())
                        .for_each(|row| index.remove(&keys, row));
                    return Err(EngineError::DuplicateKey {
                        table: object.name.clone(),
                        key: shown(&rows.columns, first + row),
                    });
                }
            }
            self.done = (part, first + row + 1);
        }
        if let Some(error) = failure {
            return Err(refused(error, object));
        }
        if self.done.1 == rows.rows() {
            self.done = (part + 1, 0);
        }
        Ok(false)
    }

    /// Takes out of the index what was put in.
    pub fn undo(self, index: &mut PrimaryIndex) {
        let mut replaced = self.replaced.into_iter().peekable();
        for (part, rows) in self.added.iter().enumerate() {
            let done = match part.cmp(&self.done.0) {
                std::cmp::Ordering::Less => rows.rows(),
                std::cmp::Ordering::Equal => self.done.1,
                std::cmp::Ordering::Greater => 0,
            };
            let keys = Keys::of(&rows.columns, 0, done);
            for row in 0..done {
                match replaced.next_if(|(of, at, _)| (*of, *at) == (part, row)) {
                    Some((.., other)) => index.replace(&keys, row, other),
                    None => index.remove(&keys, row),
                }
            }
        }
        index.trim();
    }

    /// The rows that end, whose keys may then be nobody's.
    pub fn ended_ids(&self) -> &[RowId] {
        &self.ended_ids
    }

    /// Removes the keys that nobody has any more.
    pub fn commit(self, index: &mut PrimaryIndex) {
        for rows in &self.ended {
            let keys = Keys::of(&rows.columns, 0, rows.rows());
            for row in 0..rows.rows() {
                if index.get(&keys, row) == Some(rows.id(row)) {
                    index.remove(&keys, row);
                }
            }
        }
        // A few keys leave room for the next ones.
        if self.ended_ids.len() >= SLICE_ROWS {
            index.trim();
        }
    }
}

pub(crate) fn refused(error: IndexError, object: &DataObject) -> EngineError {
    let (table, reason) = (object.name.clone(), error.to_string());
    match error {
        IndexError::OutOfMemory(_) => EngineError::OutOfMemory { table, reason },
        _ => EngineError::Store { table, reason },
    }
}

/// The key of a row, for messages.
fn shown(columns: &[ArrayRef], row: usize) -> String {
    let options = FormatOptions::default();
    let values = columns.iter().map(|column| {
        let formatter = ArrayFormatter::try_new(column, &options);
        formatter.map_or_else(|_| "?".to_owned(), |shown| shown.value(row).to_string())
    });
    values.collect::<Vec<_>>().join(", ")
}
