//! Changes of rows of several data objects, such as a table and the keys of its UNIQUE constraints, that take effect
//! together.
//!
//! ```text
//!            ┌─ Prepare ─▶ owner of the row's key          ─▶ Ready ┐
//! changes ───┤                                                      ├─▶ one timestamp ─▶ Commit to all of them
//!            └─ Prepare ─▶ owner of the key in the other object ─▶ Ready ┘
//!                              │
//!                              └▶ Unexpected, Busy, Elsewhere ─▶ Abort to all of them
//! ```
//!
//! They share the objects' write locks. A prepared owner takes no other change and answers *busy*. So no prepared owner
//! waits for another. Whoever is rejected too often waits for the write locks alone, in the order of the objects'
//! numbers.

use super::{AT_ONCE, OFFERS, keys_found, let_others_go_on};
use crate::clients::client::Client;
use crate::clients::engine::Engine;
use crate::clients::exchange::{Exchange, offer, patience};
use crate::clients::writer::Writer;
use crate::error::EngineError;
use crate::held::partition::{Expected, Prepare, Prepared};
use crate::object::data_object::DataObject;
use crate::object::keys::Keys;
use crate::object::statement::Statement;
use crate::protocol::keys::ExecuteRows;
use crate::protocol::rows::{RowBatch, RowOperation};
use crate::protocol::statements::{Abort, Commit, CommitPoint};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;
use eris_atomics::SharedWrite;
use eris_home::{Found, Newest};
use eris_types::{AeuId, ObjectId, RowId};
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Changes of a few rows that take effect at one timestamp, or not at all. At most one is given for each data object.
pub struct RowChanges {
    engine: Engine,
    client: Client,
    changes: Vec<ObjectChange>,
    /// See [`RowChanges::wait_for_write_locks`].
    write_locks: Vec<SharedWrite>,
    /// Answers may still come; then the session is closed, not kept.
    is_waiting: bool,
}

/// A share of a write lock that somebody waits for.
pub(crate) type AwaitedShare = BoxFuture<'static, SharedWrite>;

/// What changes in one data object.
struct ObjectChange {
    object: Arc<DataObject>,
    /// The rows with these keys end.
    keys: Arc<Keys>,
    expected: Expected,
    rows: Option<RecordBatch>,
}

/// What an attempt came to.
enum Attempt {
    Done,
    Unexpected,
    Busy,
    Elsewhere,
}

impl Engine {
    /// Changes that take effect together: none yet.
    ///
    /// # Errors
    /// There are too many clients and statements.
    pub fn row_changes(&self) -> Result<RowChanges, EngineError> {
        Ok(RowChanges {
            engine: self.clone(),
            client: self.client()?,
            changes: Vec::new(),
            write_locks: Vec::new(),
            is_waiting: false,
        })
    }
}

impl RowChanges {
    /// The rows that were found are to end, if the keys that were looked for still have them, or none; and these are to
    /// be added.
    ///
    /// # Errors
    /// There is no such object, or the rows have other columns, or a NULL where none is allowed.
    pub fn replace(
        &mut self,
        object: ObjectId,
        found: &Found,
        rows: Option<RecordBatch>,
    ) -> Result<(), EngineError> {
        let expected = Expected::Exactly(found.ids.clone());
        self.push(object, keys_found(found), expected, rows)
    }

    /// These rows are to be added, if no row has any of their keys.
    ///
    /// # Errors
    /// As [`RowChanges::replace`].
    pub fn insert(&mut self, object: ObjectId, rows: RecordBatch) -> Result<(), EngineError> {
        let keys = self.engine.object(object)?.key_columns(&rows);
        let keys = Arc::new(Keys::of(&keys, 0, rows.num_rows()));
        let nobody = Expected::Exactly(vec![None; rows.num_rows()]);
        self.push(object, keys, nobody, Some(rows))
    }

    /// The rows that have keys, given as in [`RowClient::get`](super::RowClient::get), are to end, whichever they are;
    /// and these are to be added.
    ///
    /// # Errors
    /// As [`RowChanges::replace`].
    pub fn exchange(
        &mut self,
        object: ObjectId,
        keys: &[ArrayRef],
        rows: Option<RecordBatch>,
    ) -> Result<(), EngineError> {
        let (keys, _) = super::without_nulls(keys);
        self.push(object, keys, Expected::Any, rows)
    }

    fn push(
        &mut self,
        object: ObjectId,
        keys: Arc<Keys>,
        expected: Expected,
        rows: Option<RecordBatch>,
    ) -> Result<(), EngineError> {
        let object = self.engine.object(object)?;
        object.check_writable()?;
        assert!(!object.key.is_empty(), "rows are found by their keys");
        assert!(self.write_locks.is_empty(), "nothing is added any more");
        assert!(
            self.changes
                .iter()
                .all(|other| other.object.id != object.id),
            "one change for each object"
        );
        let rows = rows.filter(|rows| rows.num_rows() > 0);
        if let Some(rows) = &rows {
            object.check(rows, 1)?;
        }
        self.changes.push(ObjectChange {
            object,
            keys,
            expected,
            rows,
        });
        Ok(())
    }

    /// Waits for the write locks at all objects, as
    /// [`RowClient::wait_for_write_lock`](super::RowClient::wait_for_write_lock) does. After it, nothing may be added.
    pub async fn wait_for_write_locks(&mut self) {
        if !self.write_locks.is_empty() {
            return;
        }
        let is_something = |change: &ObjectChange| change.keys.len() > 0 || change.rows.is_some();
        self.changes.retain(is_something);
        // In the order in which everybody takes them.
        self.changes.sort_by_key(|change| change.object.id);
        for change in &self.changes {
            let write_lock = shared_write_lock(&self.engine, &change.object).await;
            self.write_locks.push(write_lock);
        }
    }

    /// Makes all of it take effect. `false`: nothing did, for a key has another row than was expected, or a row was to
    /// be added whose key another row has.
    ///
    /// # Errors
    /// Nothing took effect: an object was dropped, there is no memory, or an owner panicked.
    pub async fn commit(mut self) -> Result<bool, EngineError> {
        for _ in 0..OFFERS {
            self.wait_for_write_locks().await;
            if self.changes.is_empty() {
                return Ok(true);
            }
            match self.attempt().await? {
                Attempt::Done => return Ok(true),
                Attempt::Unexpected => {
                    self.see_changes().await?;
                    return Ok(false);
                }
                Attempt::Elsewhere => break,
                Attempt::Busy => {}
            }
            self.write_locks.clear();
            let_others_go_on().await;
        }
        self.write_locks.clear();
        self.commit_alone().await
    }

    /// Waits until what owners have said is visible.
    async fn see_changes(&self) -> Result<(), EngineError> {
        let visible = self.engine.snapshot();
        if self
            .changes
            .iter()
            .any(|change| change.object.changed() > visible)
        {
            self.engine.barrier().await?;
        }
        Ok(())
    }

    /// Has all owners prepare, and commit if all of them can.
    async fn attempt(&mut self) -> Result<Attempt, EngineError> {
        let statement = Arc::new(Statement {
            id: self.engine.next_statement(),
            aborted: AtomicBool::new(false),
        });
        let mut exchange = Exchange::<ExecuteRows>::new(ObjectId(0));
        let mut owners = Vec::new();
        for change in &self.changes {
            let Some(parts) = change.split(&self.engine) else {
                return Ok(Attempt::Elsewhere);
            };
            for (aeu, keys, expected, rows) in parts {
                let prepare = Prepare {
                    statement: Arc::clone(&statement),
                    keys,
                    expected,
                    rows,
                };
                let batch = Box::new(RowBatch {
                    object: Arc::clone(&change.object),
                    operation: RowOperation::Prepare(prepare),
                });
                exchange.push_of(change.object.id, aeu, batch);
                owners.push((Arc::clone(&change.object), aeu));
            }
        }
        let mut open = OpenStatement {
            client: &mut self.client,
            statement,
            owners,
            has_ended: false,
        };
        self.is_waiting = true;
        exchange.begin(&self.engine, open.client);
        exchange.answered(open.client).await;
        self.is_waiting = false;
        let parts = exchange.finish();
        let parts = parts.map_err(|message| EngineError::Panicked {
            worker: "an owner".to_owned(),
            table: self.changes[0].object.name.clone(),
            message,
        })?;
        let mut deleted = Vec::with_capacity(open.owners.len());
        let mut rejected = None;
        for (part, (object, _)) in parts.zip(&open.owners) {
            match part.operation {
                RowOperation::Prepared(Prepared::Ready(rows)) => {
                    deleted.push((Arc::clone(object), rows));
                }
                RowOperation::Prepared(Prepared::Unexpected) => {
                    rejected = rejected.or(Some(Attempt::Unexpected));
                }
                RowOperation::Prepared(Prepared::Busy) => {
                    rejected = rejected.or(Some(Attempt::Busy))
                }
                RowOperation::Prepared(Prepared::Elsewhere) => {
                    rejected = rejected.or(Some(Attempt::Elsewhere));
                }
                RowOperation::Prepared(Prepared::Failed(error)) => return Err(error),
                _ => return Err(EngineError::NoSuchObject(object.id)),
            }
        }
        if let Some(rejected) = rejected {
            return Ok(rejected);
        }
        let engine = &self.engine;
        let sequencer = &engine.shared().sequencer;
        let at = poll_fn(|cx| sequencer.poll_draw(cx)).await;
        open.commit(
            engine,
            CommitPoint::new(at, Arc::clone(sequencer), deleted.len()),
        );
        engine.shared().applied(at).await;
        // Others build on it while it is being flushed.
        self.write_locks.clear();
        engine.shared().visible(at).await?;
        for (object, rows) in deleted {
            engine.shared().collect_after(&object, rows, at);
        }
        Ok(Attempt::Done)
    }

    /// The same in steps over any owners, under write locks that nobody shares.
    async fn commit_alone(&mut self) -> Result<bool, EngineError> {
        let mut writers = Vec::with_capacity(self.changes.len());
        for change in &self.changes {
            writers.push(self.engine.changer(change.object.id).await?);
        }
        for (change, writer) in self.changes.iter().zip(&mut writers) {
            let mut rows = self.engine.rows(change.object.id)?;
            let current = rows.fetch_alone(&change.keys, &Arc::default()).await?.ids;
            if matches!(&change.expected, Expected::Exactly(expected) if *expected != current) {
                return Ok(false);
            }
            let mut deleted: Vec<RowId> = current.into_iter().flatten().collect();
            deleted.sort_unstable();
            deleted.dedup();
            writer.delete(deleted.into_iter())?;
            if let Some(rows) = &change.rows {
                writer.append(rows.clone()).await?;
            }
        }
        match Writer::commit_all(writers).await {
            Ok(()) => Ok(true),
            Err(EngineError::DuplicateKey { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// What one owner has to do: the keys that end and what rows they are expected to have, and the rows that are added.
type Part = (AeuId, Keys, Expected, Option<RecordBatch>);

impl ObjectChange {
    /// Each owner's part. `None`: there are no owners yet, or there is more to do than is done at once.
    fn split(&self, engine: &Engine) -> Option<Vec<Part>> {
        let ranges = self.object.ranges.get()?;
        let rows = self.rows.as_ref().map_or(0, RecordBatch::num_rows);
        if self.keys.len().max(rows) > AT_ONCE {
            return None;
        }
        let mut parts: BTreeMap<AeuId, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
        let mut ranges = ranges;
        if let Some(rows) = &self.rows {
            let keys = Keys::of(&self.object.key_columns(rows), 0, rows.num_rows());
            let aeus = engine.topology().aeus().len();
            let (assigned, numbers) = self.object.ranges.assign(&[keys], aeus);
            for (row, number) in (0..).zip(numbers.into_iter().flatten()) {
                parts.entry(assigned.get(number)).or_default().1.push(row);
            }
            ranges = assigned;
        }
        for (key, number) in (0..).zip(ranges.routing(&self.keys)) {
            parts.entry(ranges.get(number)).or_default().0.push(key);
        }
        let parts = parts.into_iter().map(|(aeu, (keys, rows))| {
            let expected = match &self.expected {
                Expected::Any => Expected::Any,
                Expected::Exactly(ids) => {
                    Expected::Exactly(keys.iter().map(|&key| ids[key as usize]).collect())
                }
            };
            let rows = (self.rows.as_ref().filter(|_| !rows.is_empty())).map(|all| {
                take_record_batch(all, &UInt32Array::from(rows)).expect("they are among them")
            });
            (aeu, self.keys.pick(&keys), expected, rows)
        });
        Some(parts.collect())
    }
}

/// A statement that owners may have prepared. Dropped before its commit, it is given up.
struct OpenStatement<'a> {
    client: &'a mut Client,
    statement: Arc<Statement>,
    owners: Vec<(Arc<DataObject>, AeuId)>,
    has_ended: bool,
}

impl OpenStatement<'_> {
    /// Tells all owners. From here on nobody can stop it.
    fn commit(&mut self, engine: &Engine, commit: CommitPoint) {
        assert!(
            !self.owners.is_empty(),
            "the last owner finishes the timestamp"
        );
        self.has_ended = true;
        let (at, commit) = (commit.at, Commit(Arc::new(commit)));
        for (object, _) in &self.owners {
            object.set_changed(at);
        }
        let (until, statement) = (patience(), self.statement.id);
        for (object, aeu) in &self.owners {
            let client = &mut *self.client;
            let has_committed = engine.runtime().is_some_and(|runtime| {
                offer(runtime, *aeu, until, |aeu| {
                    client.execute_in_place(aeu, object.id, statement, commit.clone());
                })
            });
            if !has_committed {
                self.client.send(*aeu, object.id, statement, commit.clone());
                self.client.flush();
            }
        }
        self.client.flush_all();
    }
}

impl Drop for OpenStatement<'_> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        self.statement.aborted.store(true, Ordering::Release);
        for (object, aeu) in &self.owners {
            self.client.send(*aeu, object.id, self.statement.id, Abort);
        }
        self.client.flush_all();
    }
}

/// The write lock at an object, shared with others that change rows as their owners order it, if nobody has to be
/// waited for.
pub(crate) fn try_shared_write_lock(engine: &Engine, object: &DataObject) -> Option<SharedWrite> {
    let shared = object.write_lock.try_share()?;
    (object.changed_alone() <= engine.newest(Newest::Applied)).then_some(shared)
}

/// The write lock at an object, shared with others that change rows as their owners order it.
pub(crate) async fn shared_write_lock(engine: &Engine, object: &DataObject) -> SharedWrite {
    if let Some(shared) = try_shared_write_lock(engine, object) {
        return shared;
    }
    let shared = object.write_lock.share().await;
    if object.changed_alone() > engine.newest(Newest::Applied) {
        // The statement that had it last did not wait for its commit.
        engine.settle().await;
    }
    shared
}

impl Drop for RowChanges {
    fn drop(&mut self) {
        if !self.is_waiting {
            self.engine.give_back(&mut self.client);
        }
    }
}

impl fmt::Debug for RowChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowChanges({} objects)", self.changes.len())
    }
}
