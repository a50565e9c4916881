//! Changing rows by their keys: at their owner in one go, if there is one, or as a statement under its write lock.
//!
//! Changes of one owner need no write lock of their own: the owner executes one after the other. They share the
//! object's write lock, so that they do not come between the reading and the writing of another statement. A row that
//! depends on the one before can be computed at its owner, in the same go.

use super::{
    AT_ONCE, OFFERS, RowClient, keys_found, let_others_go_on, same, together, without_nulls,
};
use crate::clients::exchange::Exchange;
use crate::error::EngineError;
use crate::held::partition::{Changed, Expected, New, RowChange};
use crate::object::keys::Keys;
use crate::protocol::rows::RowOperation;
use crate::protocol::statements::Abort;
use arrow_array::{ArrayRef, RecordBatch};
use eris_home::{Compute, Computed, Found};
use eris_types::{AeuId, RowId};
use std::sync::Arc;

/// What became of a change that depends on what was there.
enum ChangeOutcome {
    Done(u64),
    Unexpected,
    Unchanged,
    /// Its owner cannot do it now.
    Rejected,
}

impl RowClient {
    /// Waits for the write lock at the object that the next change takes. A change cannot be given up once it has
    /// begun, and others may have the write lock for long: who wants to be able to stop meanwhile waits before.
    pub async fn wait_for_write_lock(&mut self) {
        if self.write_lock.is_none() {
            self.write_lock = Some(together::shared_write_lock(&self.engine, &self.object).await);
        }
    }

    /// Puts rows in, all columns of them; each replaces the row that has its key, if there is one. All or nothing.
    /// Returns how many were replaced.
    ///
    /// # Errors
    /// They have other columns, or a NULL where none is allowed, two of them have the same key, or there is no memory.
    pub async fn put(&mut self, rows: RecordBatch) -> Result<u64, EngineError> {
        self.object.check(&rows, 1)?;
        let keys = Arc::new(self.keys_of(&rows));
        let new = New::Rows(rows);
        match self.write(&keys, Expected::Any, new).await? {
            ChangeOutcome::Done(replaced) => Ok(replaced),
            _ => unreachable!("everything was expected"),
        }
    }

    /// Puts rows in, if no row has any of their keys; otherwise nothing happens, and the answer is `false`.
    ///
    /// # Errors
    /// As [`RowClient::put`].
    pub async fn insert(&mut self, rows: RecordBatch) -> Result<bool, EngineError> {
        self.object.check(&rows, 1)?;
        let keys = Arc::new(self.keys_of(&rows));
        let nobody = Expected::Exactly(vec![None; rows.num_rows()]);
        let outcome = self.write(&keys, nobody, New::Rows(rows)).await?;
        let is_done = matches!(outcome, ChangeOutcome::Done(_));
        if !is_done {
            // It tells of a row that nobody may see before.
            self.see_changes().await?;
        }
        Ok(is_done)
    }

    /// Removes the rows that have keys; returns how many there were. All or nothing.
    ///
    /// # Errors
    /// As [`RowClient::get`].
    ///
    /// # Panics
    /// As [`RowClient::get`].
    pub async fn remove(&mut self, keys: &[ArrayRef]) -> Result<u64, EngineError> {
        self.check_types(keys);
        let (keys, _) = without_nulls(keys);
        match self.write(&keys, Expected::Any, New::Nothing).await? {
            ChangeOutcome::Done(removed) => Ok(removed),
            _ => unreachable!("everything was expected"),
        }
    }

    /// Puts rows in, one for each key that was looked for, in that order, if these keys still have the rows that were
    /// found, or none; otherwise nothing happens, and the answer is `false`.
    ///
    /// # Errors
    /// As [`RowClient::put`].
    ///
    /// # Panics
    /// If there are not as many rows as keys that are not NULL. That they have these keys is up to the caller.
    pub async fn put_if_unchanged(
        &mut self,
        found: &Found,
        rows: RecordBatch,
    ) -> Result<bool, EngineError> {
        assert_eq!(rows.num_rows(), found.ids.len(), "a row per key");
        self.object.check(&rows, 1)?;
        let expected = Expected::Exactly(found.ids.clone());
        let outcome = self
            .write(&keys_found(found), expected, New::Rows(rows))
            .await?;
        Ok(matches!(outcome, ChangeOutcome::Done(_)))
    }

    /// Has its owner compute the row that is to have a key from the one that has it: in one go, where the row is, so
    /// that nobody comes in between (docs/decisions/0019). The key is given as one array of length one per column.
    ///
    /// # Errors
    /// As [`RowClient::put`].
    ///
    /// # Panics
    /// As [`RowClient::get`], and if it is not one key or has a NULL. That the row has this key is up to the caller.
    pub async fn compute(
        &mut self,
        key: &[ArrayRef],
        compute: Arc<dyn Compute>,
    ) -> Result<Computed, EngineError> {
        self.check_types(key);
        let (keys, _) = without_nulls(key);
        assert_eq!(keys.len(), 1, "one key");
        let computed = self.write(&keys, Expected::Any, New::Computed(compute));
        Ok(match computed.await? {
            ChangeOutcome::Done(_) => Computed::Put,
            ChangeOutcome::Unchanged => Computed::Same,
            ChangeOutcome::Rejected => Computed::Rejected,
            ChangeOutcome::Unexpected => unreachable!("everything was expected"),
        })
    }

    /// Removes the rows that were found, if all keys that were looked for still have them, or none; otherwise nothing
    /// happens, and the answer is `false`.
    ///
    /// # Errors
    /// As [`RowClient::remove`].
    pub async fn remove_if_unchanged(&mut self, found: &Found) -> Result<bool, EngineError> {
        let expected = Expected::Exactly(found.ids.clone());
        let outcome = self
            .write(&keys_found(found), expected, New::Nothing)
            .await?;
        Ok(matches!(outcome, ChangeOutcome::Done(_)))
    }

    /// Changes the rows of keys.
    async fn write(
        &mut self,
        keys: &Arc<Keys>,
        expected: Expected,
        new: New,
    ) -> Result<ChangeOutcome, EngineError> {
        self.object.check_writable()?;
        let is_assigned = self.object.ranges.look().is_some();
        for _ in 0..OFFERS {
            // While it is shared, keys stay whose they are.
            self.wait_for_write_lock().await;
            let owner = match &new {
                New::Rows(_) if is_assigned => self.only_owner_assigned(keys),
                New::Computed(compute) if is_assigned && compute.may_add() => {
                    self.only_owner_assigned(keys)
                }
                _ => self.only_owner(keys),
            };
            let Some(owner) = owner.filter(|_| keys.len() <= AT_ONCE) else {
                break;
            };
            let change = RowChange {
                statement: self.engine.next_statement(),
                keys: Arc::clone(keys),
                expected: expected.clone(),
                new: new.clone(),
                write_lock: None,
                kept: self.kept.clone(),
            };
            match self.change(owner, change).await? {
                Changed::Committed { at, deleted } => {
                    self.engine.shared().visible(at).await?;
                    let shared = self.engine.shared();
                    shared.collect_after(&self.object, deleted, at);
                    return Ok(ChangeOutcome::Done(deleted));
                }
                Changed::Unexpected => {
                    self.settle_changes().await;
                    return Ok(ChangeOutcome::Unexpected);
                }
                Changed::Unchanged => {
                    self.see_changes().await?;
                    return Ok(ChangeOutcome::Unchanged);
                }
                Changed::Failed(error) => return Err(error),
                Changed::Rejected => break,
                Changed::Busy => let_others_go_on().await,
            }
        }
        self.write_lock = None;
        let rows = match new {
            New::Nothing => None,
            New::Rows(rows) => Some(rows),
            New::Computed(_) => return Ok(ChangeOutcome::Rejected),
        };
        let mut writer = self.engine.changer(self.object.id).await?;
        let current = self.fetch_alone(keys, &Arc::default()).await?.ids;
        if matches!(&expected, Expected::Exactly(expected) if *expected != current) {
            return Ok(ChangeOutcome::Unexpected);
        }
        let mut deleted: Vec<RowId> = current.into_iter().flatten().collect();
        // Of a key that is named twice; if it is to have two rows, its owner rejects them.
        deleted.sort_unstable();
        deleted.dedup();
        let count = deleted.len() as u64;
        writer.delete(deleted.into_iter())?;
        if let Some(rows) = rows {
            writer.append(rows).await?;
        }
        writer.commit().await?;
        Ok(ChangeOutcome::Done(count))
    }

    /// Has one owner execute a change.
    async fn change(
        &mut self,
        owner: AeuId,
        mut change: RowChange,
    ) -> Result<Changed, EngineError> {
        let object = self.object.clone();
        // It goes to the owner with the change: whoever gives the statement up may not give the write lock away.
        self.wait_for_write_lock().await;
        change.write_lock = self.write_lock.take();
        let statement = change.statement;
        let mut exchange = Exchange::new(object.id);
        exchange.push(owner, self.part(RowOperation::Change(Box::new(change))));
        let mut parts = self.exchange(&mut exchange).await.inspect_err(|_| {
            // What a panic has left half-way.
            self.client.send(owner, object.id, statement, Abort);
            self.client.flush_all();
        })?;
        match parts.pop() {
            Some(RowOperation::Changed(changed)) => Ok(changed),
            _ => Err(EngineError::NoSuchObject(object.id)),
        }
    }

    /// The same for rows that are to be written: it stays their owner.
    fn only_owner_assigned(&self, keys: &Keys) -> Option<AeuId> {
        let aeus = self.engine.topology().aeus().len();
        let (ranges, numbers) = self.object.ranges.assign(std::slice::from_ref(keys), aeus);
        same(numbers.into_iter().flatten().map(|key| ranges.get(key)))
    }
}
