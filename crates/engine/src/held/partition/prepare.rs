//! The part of a statement over several owners, or several data objects, that one partition has to do: everything but
//! the commit.
//!
//! ```text
//! Prepare ─▶ keys ─▶ rows that have them ── as expected? ─▶ written ─▶ keys put into the index ─▶ ready
//!               │                               │                            │                     │
//!               ▼                               ▼                            ▼                     ├─▶ Commit
//!             Busy                          Unexpected                     Failed                  └─▶ Abort
//! ```
//!
//! Such statements share the object's write lock, like [changes of one partition](super::change), so another one may
//! come between the two. It finds the partition busy, for the index has keys that may yet be taken out again. Nobody
//! waits here: whoever is rejected lets go of all that it has prepared, and tries again. A statement that was given up
//! says so before it gives its write lock away, and what it has left is taken away by the next one, or by its Abort.

use super::{Expected, Partition};
use crate::error::EngineError;
use crate::error::store_error;
use crate::object::keys::Keys;
use crate::object::statement::Statement;
use arrow_array::RecordBatch;
use eris_column::ObjectMemory;
use eris_types::{RowId, StatementId};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What is to be prepared. A statement prepares once per partition.
#[derive(Debug)]
pub(crate) struct Prepare {
    pub statement: Arc<Statement>,
    /// The rows with these keys are deleted; all of this partition.
    pub keys: Keys,
    /// Which these are.
    pub expected: Expected,
    /// Rows that are added, of this partition.
    pub rows: Option<RecordBatch>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// It may commit; so many rows will be deleted.
    Ready(u64),
    /// Nothing was done: other rows have the keys than was expected, or one that is added has the key of one that
    /// stays.
    Unexpected,
    /// Nothing was done: somebody else is about to commit.
    Busy,
    /// Nothing was done: it takes other AEUs, too.
    Elsewhere,
    /// Nothing was done, for this reason.
    Failed(EngineError),
}

impl Partition {
    /// Does all of a statement but the commit.
    pub fn prepare(&mut self, prepare: &Prepare, home: ObjectMemory<'_>) -> Prepared {
        let statement = prepare.statement.id;
        // Its Abort has come before it.
        if prepare.statement.aborted.load(Ordering::Acquire) {
            return Prepared::Unexpected;
        }
        if self.is_prepared_by_another(statement) {
            return Prepared::Busy;
        }
        let prepared = self.try_prepare(prepare, home);
        let prepared = prepared.unwrap_or_else(|error| match error {
            EngineError::DuplicateKey { .. } => Prepared::Unexpected,
            error => Prepared::Failed(error),
        });
        match prepared {
            Prepared::Ready(_) => self.prepared = Some(prepare.statement.clone()),
            _ => self.abort(statement),
        }
        prepared
    }

    fn try_prepare(
        &mut self,
        prepare: &Prepare,
        home: ObjectMemory<'_>,
    ) -> Result<Prepared, EngineError> {
        let statement = prepare.statement.id;
        let index = self.index.as_ref().expect("the object has a key");
        let current = index.get_many(&prepare.keys);
        if let Expected::Exactly(expected) = &prepare.expected
            && *expected != current
        {
            return Ok(Prepared::Unexpected);
        }
        let name = self.object.name.clone();
        if let Some(rows) = &prepare.rows {
            let Some(encoded) = self.encode(vec![rows.clone()], home)? else {
                return Ok(Prepared::Elsewhere);
            };
            let written = self.write(statement, encoded, home);
            written.map_err(|error| store_error(&name, &error))?;
        }
        let mut deleted: Vec<RowId> = current.into_iter().flatten().collect();
        deleted.sort_unstable();
        deleted.dedup();
        let written = self.write_deletes(statement, &deleted, home);
        written.map_err(|error| store_error(&name, &error))?;
        let begun = self.begin_check(statement, home);
        begun.map_err(|error| store_error(&name, &error))?;
        // Whoever waits for room in the log goes another way.
        if !self.reserve_room(statement, home)? {
            return Ok(Prepared::Elsewhere);
        }
        while !self.check(statement, home)? {}
        Ok(Prepared::Ready(deleted.len() as u64))
    }

    /// Whether somebody else has prepared a statement that may yet commit. One that was given up is undone.
    pub(super) fn is_prepared_by_another(&mut self, statement: StatementId) -> bool {
        let Some(prepared) = &self.prepared else {
            return false;
        };
        let other = prepared.id;
        if other == statement || !prepared.aborted.load(Ordering::Acquire) {
            return other != statement;
        }
        self.abort(other);
        false
    }

    /// The statement has committed, or was given up.
    pub(super) fn end_prepared(&mut self, statement: StatementId) {
        self.prepared.take_if(|prepared| prepared.id == statement);
    }
}
