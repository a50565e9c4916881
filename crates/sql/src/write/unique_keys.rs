//! The keys of a table's UNIQUE constraints, as changes of few rows change them.
//!
//! ```text
//! row (7, 'a@x', 1) becomes (7, 'b@x', 1)     UNIQUE (mail):  'a@x' ends, 'b@x' is added
//!                                             UNIQUE (tax):   nothing
//! ```
//!
//! The rows with these keys are in data objects of their own, and know nothing of the table's rows: where the values
//! stay, there is nothing to be written.

use crate::catalog::Table;
use crate::error::SqlError;
use crate::write::table_writer::without_nulls;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::record_batch::RecordBatch;
use eris_home::{HomeError, RowChanges};
use eris_types::{ColumnId, ObjectId};

/// The UNIQUE constraints of a table.
#[derive(Debug)]
pub(crate) struct UniqueKeys {
    keys: Vec<UniqueKey>,
    /// The columns of all of them, each once.
    columns: Vec<usize>,
}

#[derive(Debug)]
struct UniqueKey {
    object: ObjectId,
    /// Its columns in the table.
    columns: Vec<usize>,
    /// The same among the columns of all.
    places: Vec<usize>,
}

/// What becomes of the keys of one constraint.
pub(crate) struct KeyChange {
    object: ObjectId,
    /// Keys that end, an array per column.
    ends: Vec<ArrayRef>,
    added: Option<RecordBatch>,
}

impl KeyChange {
    /// Adds it to others.
    pub fn add_to(self, changes: &mut dyn RowChanges) -> Result<(), HomeError> {
        changes.exchange(self.object, &self.ends, self.added)
    }
}

impl UniqueKeys {
    /// Those of a table.
    pub fn of(table: &Table) -> Self {
        let columns = table.unique_columns();
        let place = |column: &usize| {
            let place = columns.iter().position(|other| other == column);
            place.expect("the columns are of all of them")
        };
        let keys = table.uniques.iter().map(|unique| {
            let own = unique.positions(table);
            UniqueKey {
                object: unique.object(),
                places: own.iter().map(place).collect(),
                columns: own,
            }
        });
        let keys = keys.collect();
        UniqueKeys { keys, columns }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The columns whose old values [`UniqueKeys::changes`] wants.
    pub fn reads(&self) -> impl Iterator<Item = ColumnId> + '_ {
        self.columns.iter().map(|&column| ColumnId(column as u32))
    }

    /// What has to be done where rows with the values `old` of [`UniqueKeys::reads`] end and others with all columns of
    /// the table are added; nothing, where one row is replaced by one with the same values.
    pub fn changes(
        &self,
        old: Option<&RecordBatch>,
        new: Option<&RecordBatch>,
    ) -> Result<Vec<KeyChange>, SqlError> {
        let mut changes = Vec::new();
        for key in &self.keys {
            let old = old.map(|old| old.project(&key.places)).transpose()?;
            let new = new.map(|new| new.project(&key.columns)).transpose()?;
            if let (Some(old), Some(new)) = (&old, &new)
                && (old.num_rows(), new.num_rows()) == (1, 1)
                && old.columns() == new.columns()
            {
                continue;
            }
            let old = old.map(without_nulls).transpose()?;
            let added = new.map(without_nulls).transpose()?;
            let none = |added: &RecordBatch| added.slice(0, 0);
            let Some(ends) = old.or_else(|| added.as_ref().map(none)) else {
                continue;
            };
            let added = added.filter(|added| added.num_rows() > 0);
            if ends.num_rows() > 0 || added.is_some() {
                changes.push(KeyChange {
                    object: key.object,
                    ends: ends.columns().to_vec(),
                    added,
                });
            }
        }
        Ok(changes)
    }
}
