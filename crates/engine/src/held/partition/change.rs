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

use super::Partition;
use crate::error::EngineError;
use crate::error::store_error;
use crate::held::primary::PrimaryIndex;
use crate::held::unique::rejected;
use crate::object::keys::Keys;
use crate::sequencer::Sequencer;
use arrow_array::RecordBatch;
use eris_column::Home;
use eris_home::{Becomes, Compute};
use eris_store::Encoder;
use eris_types::{RowId, StatementId, Timestamp};
use std::any::Any;
use std::sync::Arc;
use tokio::sync::OwnedRwLockReadGuard;

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Change {
    pub statement: StatementId,
    /// All of this partition; none of an object without a key.
    pub keys: Arc<Keys>,
    pub expected: Expected,
    pub new: New,
    /// The share of the object's write lock, until this is done.
    pub write_lock: Option<OwnedRwLockReadGuard<()>>,
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
    /// All of it; so many rows ended.
    Committed { at: Timestamp, ended: u64 },
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
    pub fn change(&mut self, change: &Change, home: Home<'_>, sequencer: &Sequencer) -> Changed {
        match self.try_change(change, home, sequencer) {
            Ok(changed) => changed,
            Err(error) => {
                self.abort(change.statement);
                Changed::Failed(error)
            }
        }
    }

    fn try_change(
        &mut self,
        change: &Change,
        home: Home<'_>,
        sequencer: &Sequencer,
    ) -> Result<Changed, EngineError> {
        let Change {
            statement,
            keys,
            expected,
            new,
            ..
        } = change;
        if self.is_prepared_by_another(*statement) {
            return Ok(Changed::Busy);
        }
        self.forget_others(*statement);
        let current = (self.index.as_ref()).map_or_else(Vec::new, |index| index.get_many(keys));
        if let Expected::Exactly(expected) = expected
            && *expected != current
        {
            return Ok(Changed::Unexpected);
        }
        let rows = match new {
            New::Nothing => None,
            New::Rows(rows) => Some(rows.clone()),
            New::Computed(compute) => match self.compute(compute.as_ref(), &current) {
                Becomes::Row(row) => {
                    self.object.check(&row, 1)?;
                    Some(row)
                }
                Becomes::Same => return Ok(Changed::Unchanged),
                Becomes::Unclear => return Ok(Changed::Rejected),
            },
        };
        let mut first = None;
        if let Some(rows) = rows {
            let Some(encoded) = self.encode(rows, home)? else {
                return Ok(Changed::Rejected);
            };
            let placed = self.place(*statement, encoded, true);
            first = placed.map_err(|error| store_error(&self.object.name, &error))?;
        }
        let mut ended: Vec<RowId> = current.iter().copied().flatten().collect();
        ended.sort_unstable();
        // Of a key that is named twice; if it is to have two rows, the index rejects them.
        ended.dedup();
        let written = self.write_deletes(*statement, &ended, home);
        written.map_err(|error| store_error(&self.object.name, &error))?;
        let name = &self.object.name;
        if let (Some(first), Some(index)) = (first, &mut self.index)
            && let Err((row, error)) = give_keys(index, keys, &current, first)
        {
            return Err(match error {
                Some(error) => rejected(error, name),
                None => EngineError::DuplicateKey {
                    object: self.object.id,
                    table: name.clone(),
                    key: keys.shown(row, &self.object.key_types()),
                },
            });
        }
        let Some(at) = sequencer.draw() else {
            if let (Some(_), Some(index)) = (first, &mut self.index) {
                take_keys(index, keys, &current, keys.len());
            }
            self.abort(*statement);
            return Ok(Changed::Rejected);
        };
        let _drawn = Drawn { at, sequencer };
        if let (None, Some(index)) = (first, &mut self.index)
            && !ended.is_empty()
        {
            (0..keys.len()).for_each(|row| index.remove(keys, row));
            self.keys_removed = at;
        }
        let horizon = sequencer.horizon();
        if self.index.is_some() && !ended.is_empty() {
            self.ended.add(&ended, at, horizon);
        }
        self.object.set_changed(at);
        self.commit(*statement, at, home, horizon);
        Ok(Changed::Committed {
            at,
            ended: ended.len() as u64,
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
        rows: RecordBatch,
        home: Home<'_>,
    ) -> Result<Option<Encoder>, EngineError> {
        let mut encoder = Encoder::new(self.object.schema.clone(), vec![rows]);
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

/// Gives the keys to new rows with ids from `first` on. On error, with the row that it is about, the index is as
/// before; without a reason the row has the same key as one before it.
fn give_keys(
    index: &mut PrimaryIndex,
    keys: &Keys,
    current: &[Option<RowId>],
    first: RowId,
) -> Result<(), (usize, Option<eris_index::IndexError>)> {
    for (row, before) in current.iter().enumerate() {
        let failure = match index.upsert(keys, row, first.plus(row)) {
            Ok(found) if found == *before => continue,
            Ok(found) => {
                let other = found.expect("a row that was there is there");
                index.replace(keys, row, other);
                None
            }
            Err(error) => Some(error),
        };
        take_keys(index, keys, current, row);
        return Err((row, failure));
    }
    Ok(())
}

/// Gives the first `rows` keys back to the rows that had them.
fn take_keys(index: &mut PrimaryIndex, keys: &Keys, current: &[Option<RowId>], rows: usize) {
    for (row, before) in current[..rows].iter().enumerate() {
        match before {
            Some(before) => index.replace(keys, row, *before),
            None => index.remove(keys, row),
        }
    }
}
