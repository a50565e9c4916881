//! A statement that one partition can execute alone: checked, written and committed without a pause.
//!
//! ```text
//! keys ─▶ rows that have them ── as expected? ─▶ compute ─▶ encode ─▶ index ─▶ draw a timestamp ─▶ commit
//!                                     │             │          │         │             │
//!                                     ▼             ▼          ▼         ▼             ▼
//!                                 Unexpected    Unchanged,  Rejected    Failed       Rejected:  all is as before
//!                                               Rejected
//! ```
//!
//! The owner executes one at a time, so those that share the object's write lock need no order among them. For the same
//! reason it can compute a row from the one that it replaces: nobody comes in between, and nothing has to be tried
//! again.

mod together;

pub(crate) use together::Run;

use super::Partition;
use crate::error::EngineError;
use crate::error::store_error;
use crate::held::superseded::{SupersedingCommit, key_bytes};
use crate::held::unique::rejected;
use crate::object::keys::Keys;
use crate::sequencer::Sequencer;
use arrow_array::RecordBatch;
use eris_atomics::SharedWrite;
use eris_column::ObjectMemory;
use eris_home::{Becomes, Compute};
use eris_store::{Encoder, StoreError};
use eris_types::{RowId, StatementId, Timestamp};
use std::any::Any;
use std::sync::Arc;

/// What is to be done.
#[derive(Debug)]
pub(crate) struct RowChange {
    pub statement: StatementId,
    /// All of this partition; none of an object without a key.
    pub keys: Arc<Keys>,
    pub expected: Expected,
    pub new: New,
    /// The share of the object's write lock, until this is done.
    pub write_lock: Option<SharedWrite>,
    /// What it depends on, until this is done.
    #[expect(dead_code, reason = "held until it is dropped")]
    pub kept: Option<Arc<dyn Any + Send + Sync>>,
}

/// Which rows have the keys from now on.
#[derive(Clone, Debug)]
pub(crate) enum New {
    /// None.
    Nothing,
    /// These, in the order of the keys.
    Rows(RecordBatch),
    /// What is computed from the row that has the one key.
    Computed(Arc<dyn Compute>),
}

/// Which rows have the keys before.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    /// Whichever do.
    Any,
    /// These.
    Exactly(Vec<Option<RowId>>),
}

/// What was done.
#[derive(Debug)]
pub(crate) enum Changed {
    /// All of it; so many rows were deleted.
    Committed { at: Timestamp, deleted: u64 },
    /// Nothing: what was computed is as it was.
    Unchanged,
    /// Nothing: other rows have the keys than was expected.
    Unexpected,
    /// Nothing: it takes other AEUs, too, or a row cannot be computed here.
    Rejected,
    /// Nothing: somebody else is about to commit.
    Busy,
    /// Nothing, for this reason.
    Failed(EngineError),
}

impl Partition {
    /// Executes a change.
    pub fn change(
        &mut self,
        change: &RowChange,
        home: ObjectMemory<'_>,
        sequencer: &Sequencer,
    ) -> Changed {
        let changed = self.try_change(change, home, sequencer);
        changed.unwrap_or_else(Changed::Failed)
    }

    fn try_change(
        &mut self,
        change: &RowChange,
        home: ObjectMemory<'_>,
        sequencer: &Sequencer,
    ) -> Result<Changed, EngineError> {
        let RowChange {
            statement, keys, ..
        } = change;
        if self.is_prepared_by_another(*statement) {
            return Ok(Changed::Busy);
        }
        self.forget_others(*statement);
        let current = (self.index.as_ref()).map_or_else(Vec::new, |index| index.get_many(keys));
        let rows = match self.rows_of(change, &current)? {
            Ok(rows) => rows,
            Err(otherwise) => return Ok(otherwise),
        };
        let added = match rows {
            None => None,
            Some(rows) => match self.encode(vec![rows], home)? {
                None => return Ok(Changed::Rejected),
                encoded => encoded,
            },
        };
        let mut uncommitted = Uncommitted {
            partition: self,
            statement: *statement,
            keys,
            current: &current,
            given: 0,
            is_committed: false,
        };
        let (first, deleted) = uncommitted.write(added, home)?;
        // Whoever waits for room in the log goes another way.
        if !uncommitted.partition.has_room(*statement, home)? {
            return Ok(Changed::Rejected);
        }
        match sequencer.draw(home.memory.node()) {
            None => Ok(Changed::Rejected),
            Some(at) => Ok(uncommitted.commit(at, first, &deleted, home, sequencer)),
        }
    }

    /// The rows that a change puts in, if its keys have these rows now; or why nothing is done.
    fn rows_of(
        &self,
        change: &RowChange,
        current: &[Option<RowId>],
    ) -> Result<Result<Option<RecordBatch>, Changed>, EngineError> {
        if let Expected::Exactly(expected) = &change.expected
            && *expected != current
        {
            return Ok(Err(Changed::Unexpected));
        }
        Ok(match &change.new {
            New::Nothing => Ok(None),
            New::Rows(rows) => Ok(Some(rows.clone())),
            New::Computed(compute) => match self.compute(compute.as_ref(), current) {
                Becomes::Row(row) => {
                    self.object.check(&row, 1)?;
                    Ok(Some(row))
                }
                Becomes::Same => Err(Changed::Unchanged),
                Becomes::Unclear => Err(Changed::Rejected),
            },
        })
    }

    /// What becomes of the only row among these.
    fn compute(&self, compute: &dyn Compute, current: &[Option<RowId>]) -> Becomes {
        let [current] = current else {
            return Becomes::Unclear;
        };
        let Some(row) = current else {
            return compute.compute(None);
        };
        // The newest: whoever has changed it has committed here, whether or not others see that yet.
        match self.row(*row, compute.reads(), Timestamp::NEVER) {
            Some(columns) => compute.compute(Some(&columns)),
            None => Becomes::Unclear,
        }
    }

    /// The rows encoded; `None` if there is text among them that has no code yet.
    pub(super) fn encode(
        &self,
        rows: Vec<RecordBatch>,
        home: ObjectMemory<'_>,
    ) -> Result<Option<Encoder>, EngineError> {
        let mut encoder = Encoder::new(self.object.schema.clone(), rows);
        if !encoder.look_up(&self.dictionaries).is_empty() {
            return Ok(None);
        }
        while !encoder.is_done() {
            let encoded = encoder.step(&self.dictionaries, home);
            encoded.map_err(|error| store_error(&self.object.name, &error))?;
        }
        Ok(Some(encoder))
    }
}

/// A timestamp that is finished when this is dropped, come what may: one that is never finished stops all others.
struct Drawn<'a> {
    at: Timestamp,
    sequencer: &'a Sequencer,
}

impl Drop for Drawn<'_> {
    fn drop(&mut self) {
        self.sequencer.finish(self.at);
    }
}

/// What a change has written so far: undone when this is dropped, unless it was committed.
struct Uncommitted<'a> {
    partition: &'a mut Partition,
    statement: StatementId,
    keys: &'a Keys,
    /// The rows that had the keys.
    current: &'a [Option<RowId>],
    /// So many of the keys lead to new rows.
    given: usize,
    is_committed: bool,
}

impl Uncommitted<'_> {
    /// Adds rows, deletes those that had the keys, and gives the keys to the new ones. The id of the first, if they get
    /// ids, and the rows that it deletes.
    fn write(
        &mut self,
        added: Option<Encoder>,
        home: ObjectMemory<'_>,
    ) -> Result<(Option<RowId>, Vec<RowId>), EngineError> {
        let mut first = None;
        if let Some(added) = added {
            let placed = self.partition.place(self.statement, added, true);
            first = placed.map_err(|error| self.store_error(&error))?;
        }
        let mut deleted: Vec<RowId> = self.current.iter().copied().flatten().collect();
        deleted.sort_unstable();
        // Of a key that is named twice; if it is to have two rows, the index rejects them.
        deleted.dedup();
        let written = (self.partition).write_deletes(self.statement, &deleted, home);
        written.map_err(|error| self.store_error(&error))?;
        if let Some(first) = first {
            self.give_keys(first)?;
        }
        Ok((first, deleted))
    }

    /// Gives the keys to new rows with ids from `first` on.
    fn give_keys(&mut self, first: RowId) -> Result<(), EngineError> {
        let Some(index) = &mut self.partition.index else {
            return Ok(());
        };
        let object = &self.partition.object;
        for (row, before) in self.current.iter().enumerate() {
            match index.upsert(self.keys, row, first.plus(row)) {
                Ok(found) if found == *before => self.given += 1,
                // A row before it has the same key.
                Ok(found) => {
                    let other = found.expect("a row that was there is there");
                    index.replace(self.keys, row, other);
                    return Err(EngineError::DuplicateKey {
                        object: object.id,
                        table: object.name.clone(),
                        key: self.keys.shown(row, &object.key_types()),
                    });
                }
                Err(error) => return Err(rejected(error, &object.name)),
            }
        }
        Ok(())
    }

    /// Makes all of it visible at a timestamp that was drawn.
    fn commit(
        mut self,
        at: Timestamp,
        first: Option<RowId>,
        deleted: &[RowId],
        home: ObjectMemory<'_>,
        sequencer: &Sequencer,
    ) -> Changed {
        self.is_committed = true;
        let _drawn = Drawn { at, sequencer };
        let Uncommitted {
            partition,
            keys,
            current,
            statement,
            ..
        } = &mut self;
        if let (None, Some(index)) = (first, &mut partition.index)
            && !deleted.is_empty()
        {
            (0..keys.len()).for_each(|row| index.remove(keys, row));
        }
        let seen = sequencer.recently_seen();
        let horizon = seen.horizon;
        match seen.behind {
            None if first.is_none() && !deleted.is_empty() => partition.keys_removed = at,
            None => {}
            Some(visible) if partition.index.is_some() => {
                let commit = superseding(at, first, keys, current);
                partition.supersede(commit, visible, home);
            }
            Some(_) => {}
        }
        if partition.index.is_some() && !deleted.is_empty() {
            partition.deleted.add(deleted, at, horizon);
        }
        partition.object.set_changed(at);
        if partition.commit(*statement, at, home, seen) {
            partition.merge(home, horizon);
        }
        Changed::Committed {
            at,
            deleted: deleted.len() as u64,
        }
    }

    fn store_error(&self, error: &StoreError) -> EngineError {
        store_error(&self.partition.object.name, error)
    }
}

/// What a change has done to the keys: the rows that had them are `current`, and the first of those that have them is
/// `first`.
fn superseding(
    at: Timestamp,
    first: Option<RowId>,
    keys: &Keys,
    current: &[Option<RowId>],
) -> SupersedingCommit {
    let mut commit = SupersedingCommit::at(at);
    let before = current.iter().enumerate();
    let before = before.filter_map(|(row, before)| Some((row, (*before)?)));
    match first {
        Some(first) => {
            commit.added.push((first, keys.len()));
            commit.replaced = before.map(|(row, id)| (first.plus(row), id)).collect();
        }
        None => {
            let mut removed: Vec<_> = before.map(|(row, id)| (key_bytes(keys, row), id)).collect();
            // A key may be named twice.
            removed.sort_unstable();
            removed.dedup();
            commit.removed = removed;
        }
    }
    commit
}

impl Drop for Uncommitted<'_> {
    fn drop(&mut self) {
        if self.is_committed {
            return;
        }
        if let Some(index) = &mut self.partition.index {
            for (row, before) in self.current[..self.given].iter().enumerate() {
                match before {
                    Some(before) => index.replace(self.keys, row, *before),
                    None => index.remove(self.keys, row),
                }
            }
        }
        self.partition.abort(self.statement);
    }
}
