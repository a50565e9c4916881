//! Rows by their keys: batches of lookups, ranges and writes without a fragment or a statement of several steps.
//!
//! ```text
//! keys ── split by range ──▶ owners: index ─▶ chunk, position ─▶ values of the wanted columns, in the order of the keys
//!
//! rows ──┬── all of one owner ──▶ checked, staged and committed there in one go, in place if the AEU is parked
//!        └── otherwise ─────────▶ the object's turn, a lookup of what they replace, and a statement over several owners
//! ```
//!
//! What is read belongs to one snapshot. The index knows the newest rows only, so that a batch of several owners which finds
//! newer ones than its snapshot reads again. Changes of one owner need no turn of their own: the owner executes one after the
//! other. They share the object's turn, so that they do not come between the reading and the writing of another statement.
//! A row that depends on the one before can be computed at its owner, in the same go.
//! Rows of several objects change [together].

mod batch;
mod together;

pub(crate) use batch::RowBatch;
pub use together::RowChanges;

use crate::client::Client;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::exchange::Exchange;
use crate::keys::{KeyRange, Keys, is_word};
use crate::object::DataObject;
use crate::partition::{Change, Changed, Compute, Expected, Fetched, New};
use crate::protocol::{ABORT, ROWS};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use arrow_select::interleave::interleave;
use batch::{Operation, Read};
use eris_route::Split;
use eris_types::{AeuId, ColumnId, ObjectId, RowId, Timestamp};
use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::ops::{Bound, Deref, DerefMut};
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard};

/// A statement of more rows takes several steps, so that its owner can do other work in between.
const AT_ONCE: usize = 1_024;
/// How often a change is offered to owners while others are about to commit there, before it waits for its turn.
const OFFERS: usize = 16;
/// How often a batch reads at a newer snapshot before it waits for its turn.
const READS: usize = 8;

/// One session's way to the rows of a data object with a key. Operations on few rows take microseconds and mostly happen in
/// the calling thread.
///
/// ```
/// # use eris_engine::{Engine, Partitioning, Settings};
/// # use eris_numa::{HugePages, Topology};
/// # use eris_types::ColumnId;
/// # use arrow_array::{ArrayRef, Int64Array, RecordBatch, cast::AsArray, types::Int64Type};
/// # use arrow_schema::{DataType, Field, Schema};
/// # use std::sync::Arc;
/// # let settings = Settings { topology: Topology::fake(1, 2), huge_pages: HugePages::Never, memory_limit: Some(64 << 20) };
/// # let engine = Engine::start(settings)?;
/// let field = |name| Field::new(name, DataType::Int64, true);
/// let schema = Arc::new(Schema::new(vec![field("k"), field("v")]));
/// let (k, v) = (ColumnId(0), ColumnId(1));
/// let object = engine.create_with_key("t", schema.clone(), Partitioning::Size, &[k])?;
/// let column = |values: &[i64]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
///
/// futures::executor::block_on(async {
///     let mut rows = engine.rows(object)?;
///     rows.put(RecordBatch::try_new(schema, vec![column(&[3, 1]), column(&[30, 10])]).unwrap()).await?;
///     let found = rows.get(&[column(&[1, 2, 3])], &[v]).await?;
///     assert_eq!(found.of, [0, 2]);
///     assert_eq!(found.rows.column(0).as_primitive::<Int64Type>().values(), &[10, 30]);
///     assert_eq!(rows.remove(&[column(&[1])]).await?, 1);
///     Ok::<(), eris_engine::EngineError>(())
/// })?;
/// # Ok::<(), eris_engine::EngineError>(())
/// ```
pub struct RowClient {
    engine: Engine,
    object: Arc<DataObject>,
    client: Client,
    split: Split,
    /// Answers to an operation that was given up may still come; then the session is closed, not kept.
    is_waiting: bool,
    /// See [`RowClient::keeping`].
    kept: Option<Arc<dyn Any + Send + Sync>>,
    /// See [`RowClient::wait_for_turn`].
    turn: Option<OwnedRwLockReadGuard<()>>,
}

/// Rows that have been found by their keys.
#[derive(Debug)]
pub struct Found {
    /// The wanted columns of the rows, in the order of the keys.
    pub rows: RecordBatch,
    /// Per row, the position of its key.
    pub of: Vec<u32>,
    keys: Arc<Keys>,
    ids: Vec<Option<RowId>>,
}

impl Found {
    /// The ids of the rows, for a statement that is to delete them.
    pub fn row_ids(&self) -> impl Iterator<Item = RowId> + '_ {
        self.ids.iter().copied().flatten()
    }
}

/// See [`RowClient::keeping`].
#[derive(Debug)]
pub struct Keeping<'a>(&'a mut RowClient);

impl Deref for Keeping<'_> {
    type Target = RowClient;

    fn deref(&self) -> &RowClient {
        self.0
    }
}

impl DerefMut for Keeping<'_> {
    fn deref_mut(&mut self) -> &mut RowClient {
        self.0
    }
}

impl Drop for Keeping<'_> {
    fn drop(&mut self) {
        self.0.kept = None;
    }
}

/// What became of a change that depends on what was there.
enum Outcome {
    Done(u64),
    Unexpected,
    Unchanged,
    /// Its owner cannot do it now.
    Refused,
}

/// What became of a row that was to be computed. See [`RowClient::compute`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    /// It is there.
    Put,
    /// Nothing changed.
    Same,
    /// Nothing changed, for the row's owner cannot compute it, or not now. It has to be read, and put in, if it is unchanged then.
    Refused,
}

impl Engine {
    /// A way to the rows of a data object by its key.
    ///
    /// # Errors
    /// There is no such object, or there are too many clients and statements.
    ///
    /// # Panics
    /// If it has no key.
    pub fn rows(&self, id: ObjectId) -> Result<RowClient, EngineError> {
        let object = self.object(id)?;
        assert!(!object.key.is_empty(), "rows are found by their keys");
        Ok(RowClient {
            engine: self.clone(),
            object,
            client: self.client()?,
            split: Split::default(),
            is_waiting: false,
            kept: None,
            turn: None,
        })
    }
}

impl RowClient {
    /// The same for changes that depend on something, such as locks: it is kept until their owners are done with them, even if whoever
    /// asked for a change gives up in between.
    pub fn keeping(&mut self, kept: Arc<dyn Any + Send + Sync>) -> Keeping<'_> {
        self.kept = Some(kept);
        Keeping(self)
    }

    /// Waits for the turn at the object that the next change takes. A change cannot be given up once it has begun, and others may have the
    /// turn for long: who wants to be able to stop meanwhile waits before.
    pub async fn wait_for_turn(&mut self) {
        if self.turn.is_none() {
            self.turn = Some(together::shared_turn(&self.engine, &self.object).await);
        }
    }

    /// The rows that have keys, given as one array per column of the key. A key of which a part is NULL has no row.
    ///
    /// # Errors
    /// The object was dropped, or an owner panicked.
    ///
    /// # Panics
    /// If the arrays are not of the key's types.
    pub async fn get(
        &mut self,
        keys: &[ArrayRef],
        columns: &[ColumnId],
    ) -> Result<Found, EngineError> {
        self.check_types(keys);
        let (keys, positions) = without_nulls(keys);
        let fetched = self.fetch(&keys, columns).await?;
        let of = fetched.ids.iter().zip(positions);
        Ok(Found {
            of: of.filter_map(|(id, at)| id.map(|_| at)).collect(),
            rows: self.batch(columns, fetched.columns, &fetched.ids),
            ids: fetched.ids,
            keys,
        })
    }

    /// The rows whose keys lie between two, `limit` at most, in the order of their keys. A bound is one value per column of
    /// the key, in arrays of length one.
    ///
    /// # Errors
    /// As [`RowClient::get`].
    ///
    /// # Panics
    /// As [`RowClient::get`].
    pub async fn range(
        &mut self,
        bounds: (Bound<&[ArrayRef]>, Bound<&[ArrayRef]>),
        limit: usize,
        columns: &[ColumnId],
    ) -> Result<RecordBatch, EngineError> {
        let key = |columns: &[ArrayRef]| {
            self.check_types(columns);
            Keys::of(columns, 0, 1)
        };
        let types = self.key_types();
        let is_word = is_word(types);
        let keys = KeyRange::new((bounds.0.map(key), bounds.1.map(key)), is_word);
        for _ in 0..READS {
            if let Some(fetched) = self.try_range(&keys, limit, columns).await? {
                return Ok(self.batch(columns, fetched.columns, &fetched.ids));
            }
            self.engine.settle().await;
        }
        let _turn = self.turn_alone().await;
        let fetched = self.try_range(&keys, limit, columns).await?;
        let fetched = fetched.expect("nobody else changes rows");
        Ok(self.batch(columns, fetched.columns, &fetched.ids))
    }

    /// Puts rows in, all columns of them; each replaces the row that has its key, if there is one. All or nothing. Returns
    /// how many were replaced.
    ///
    /// # Errors
    /// They have other columns, or a NULL where none is allowed, two of them have the same key, or there is no memory.
    pub async fn put(&mut self, rows: RecordBatch) -> Result<u64, EngineError> {
        self.object.check(&rows, 1)?;
        let keys = Arc::new(self.keys_of(&rows));
        let new = New::Rows(rows);
        match self.write(&keys, Expected::Any, new).await? {
            Outcome::Done(replaced) => Ok(replaced),
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
        Ok(matches!(outcome, Outcome::Done(_)))
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
            Outcome::Done(removed) => Ok(removed),
            _ => unreachable!("everything was expected"),
        }
    }

    /// Puts rows in, one for each key that was looked for, in that order, if these keys still have the rows that were found,
    /// or none; otherwise nothing happens, and the answer is `false`.
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
        let outcome = self.write(&found.keys, expected, New::Rows(rows)).await?;
        Ok(matches!(outcome, Outcome::Done(_)))
    }

    /// Has its owner compute the row that is to have a key from the one that has it: in one go, where the row is, so that nobody
    /// comes in between. The key is given as one array of length one per column.
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
            Outcome::Done(_) => Computed::Put,
            Outcome::Unchanged => Computed::Same,
            Outcome::Refused => Computed::Refused,
            Outcome::Unexpected => unreachable!("everything was expected"),
        })
    }

    /// Removes the rows that were found, if all keys that were looked for still have them, or none; otherwise nothing happens,
    /// and the answer is `false`.
    ///
    /// # Errors
    /// As [`RowClient::remove`].
    pub async fn remove_if_unchanged(&mut self, found: &Found) -> Result<bool, EngineError> {
        let expected = Expected::Exactly(found.ids.clone());
        let outcome = self.write(&found.keys, expected, New::Nothing).await?;
        Ok(matches!(outcome, Outcome::Done(_)))
    }

    fn key_types(&self) -> Vec<&arrow_schema::DataType> {
        let key = self.object.key.iter();
        key.map(|column| self.object.schema.field(column.index()).data_type())
            .collect()
    }

    fn check_types(&self, keys: &[ArrayRef]) {
        let types = keys.iter().map(|column| column.data_type());
        assert!(types.eq(self.key_types()), "keys of other types");
    }

    fn keys_of(&self, rows: &RecordBatch) -> Keys {
        Keys::of(&self.object.key_columns(rows), 0, rows.num_rows())
    }

    /// Waits for the right to be the only one that changes rows, and until what was changed before is visible.
    async fn turn_alone(&mut self) -> OwnedRwLockWriteGuard<()> {
        // Nobody waits for it while he shares it.
        self.turn = None;
        let turn = self.object.turn.clone().write_owned().await;
        self.see_changes().await;
        turn
    }

    /// Waits until what was changed up to now is visible: what an owner has said of it must be what a snapshot says.
    async fn see_changes(&self) {
        if self.object.changed() > self.engine.snapshot() {
            self.engine.settle().await;
        }
    }

    /// The rows of keys at one snapshot.
    async fn fetch(
        &mut self,
        keys: &Arc<Keys>,
        columns: &[ColumnId],
    ) -> Result<Fetched, EngineError> {
        for _ in 0..READS {
            if let Some(fetched) = self.try_fetch(keys, columns).await? {
                return Ok(fetched);
            }
            self.engine.settle().await;
        }
        let _turn = self.turn_alone().await;
        let fetched = self.try_fetch(keys, columns).await?;
        Ok(fetched.expect("nobody else changes rows"))
    }

    async fn try_fetch(
        &mut self,
        keys: &Arc<Keys>,
        columns: &[ColumnId],
    ) -> Result<Option<Fetched>, EngineError> {
        let object = self.object.clone();
        let nothing = || Fetched {
            columns: Vec::new(),
            ids: vec![None; keys.len()],
        };
        let Some(ranges) = object.ranges.get() else {
            return Ok(Some(nothing()));
        };
        let mut exchange = Exchange::new(ROWS, object.id);
        let mut read = Read {
            columns: columns.into(),
            snapshot: None,
        };
        if let Some(owner) = self.only_owner(keys) {
            let keys = Arc::clone(keys);
            exchange.push(owner, self.part(Operation::Get(keys, read)));
            let mut parts = self.found(&mut exchange).await?;
            return Ok(parts.pop().expect("one part was sent"));
        }
        // All owners answer for the same snapshot.
        read.snapshot = Some(self.engine.snapshot());
        ranges.table.split(&ranges.routing(keys), &mut self.split);
        let mut positions: Vec<u32> = Vec::with_capacity(keys.len());
        for (owner, of_owner) in ranges.table.parts(&self.split) {
            positions.extend(of_owner);
            let keys = Arc::new(keys.pick(of_owner));
            exchange.push(owner, self.part(Operation::Get(keys, read.clone())));
        }
        let parts = self.found(&mut exchange).await?;
        let parts: Option<Vec<Fetched>> = parts.into_iter().collect();
        Ok(parts.map(|parts| merge(&parts, &positions, columns.len())))
    }

    async fn try_range(
        &mut self,
        keys: &KeyRange,
        limit: usize,
        columns: &[ColumnId],
    ) -> Result<Option<Fetched>, EngineError> {
        let object = self.object.clone();
        let mut parts: Vec<Fetched> = Vec::new();
        let read = Read {
            columns: columns.into(),
            snapshot: Some(self.engine.snapshot()),
        };
        let parts_of_owners = object.ranges.get().into_iter();
        let parts_of_owners = parts_of_owners.flat_map(|ranges| ranges.parts(keys));
        let mut rest = limit;
        // One owner after the other: the first ones mostly have enough.
        for (owner, keys) in parts_of_owners {
            if rest == 0 {
                break;
            }
            let mut exchange = Exchange::new(ROWS, object.id);
            let operation = Operation::Range(keys, rest, read.clone());
            exchange.push(owner, self.part(operation));
            match self.found(&mut exchange).await?.pop().flatten() {
                Some(fetched) => {
                    rest -= fetched.ids.len();
                    parts.push(fetched);
                }
                None => return Ok(None),
            }
        }
        let positions: Vec<u32> = (0..(limit - rest) as u32).collect();
        Ok(Some(merge(&parts, &positions, columns.len())))
    }

    /// Changes the rows of keys.
    async fn write(
        &mut self,
        keys: &Arc<Keys>,
        expected: Expected,
        new: New,
    ) -> Result<Outcome, EngineError> {
        let is_dealt = self.object.ranges.get().is_some();
        for _ in 0..OFFERS {
            let owner = match &new {
                New::Rows(_) if is_dealt => self.only_owner_dealt(keys),
                New::Computed(compute) if is_dealt && compute.may_add() => {
                    self.only_owner_dealt(keys)
                }
                _ => self.only_owner(keys),
            };
            let Some(owner) = owner.filter(|_| keys.len() <= AT_ONCE) else {
                break;
            };
            let change = Change {
                statement: self.engine.next_statement(),
                keys: Arc::clone(keys),
                expected: expected.clone(),
                new: new.clone(),
                turn: None,
                kept: self.kept.clone(),
            };
            match self.change(owner, change).await? {
                Changed::Committed { at, ended } => {
                    self.visible(at).await;
                    self.engine.collect_after(self.object.id, ended, at);
                    return Ok(Outcome::Done(ended));
                }
                Changed::Unexpected => {
                    self.see_changes().await;
                    return Ok(Outcome::Unexpected);
                }
                Changed::Unchanged => {
                    self.see_changes().await;
                    return Ok(Outcome::Unchanged);
                }
                Changed::Failed(error) => return Err(error),
                Changed::Refused => break,
                Changed::Busy => let_others_go_on().await,
            }
        }
        self.turn = None;
        let rows = match new {
            New::Nothing => None,
            New::Rows(rows) => Some(rows),
            New::Computed(_) => return Ok(Outcome::Refused),
        };
        let mut writer = self.engine.changer(self.object.id).await?;
        let current = self.try_fetch(keys, &[]).await?;
        let current = current.expect("nobody else changes rows").ids;
        if matches!(&expected, Expected::Exactly(expected) if *expected != current) {
            return Ok(Outcome::Unexpected);
        }
        let mut ended: Vec<RowId> = current.into_iter().flatten().collect();
        // Of a key that is named twice; if it is to have two rows, its owner refuses them.
        ended.sort_unstable();
        ended.dedup();
        let count = ended.len() as u64;
        writer.delete(ended.into_iter())?;
        if let Some(rows) = rows {
            writer.append(rows).await?;
        }
        writer.commit().await?;
        Ok(Outcome::Done(count))
    }

    /// Has one owner execute a change.
    async fn change(&mut self, owner: AeuId, mut change: Change) -> Result<Changed, EngineError> {
        let object = self.object.clone();
        // It goes to the owner with the change: whoever gives the statement up may not give the turn away.
        self.wait_for_turn().await;
        change.turn = self.turn.take();
        let statement = change.statement;
        let mut exchange = Exchange::new(ROWS, object.id);
        exchange.push(owner, self.part(Operation::Change(Box::new(change))));
        let mut parts = self.exchange(&mut exchange).await.inspect_err(|_| {
            // What a panic has left half-way.
            (self.client).tell(owner, ABORT, object.id, statement.0, &[]);
            self.client.flush_all();
        })?;
        match parts.pop() {
            Some(Operation::Changed(changed)) => Ok(changed),
            _ => Err(EngineError::NoSuchObject(object.id)),
        }
    }

    async fn visible(&self, at: Timestamp) {
        poll_fn(|cx| match self.engine.poll_visible(at, cx) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// The owner of all these keys, if there is one.
    fn only_owner(&self, keys: &Keys) -> Option<AeuId> {
        let ranges = self.object.ranges.get()?;
        same(ranges.routing(keys).into_iter().map(|key| ranges.get(key)))
    }

    /// The same for rows that are to be written: it stays their owner.
    fn only_owner_dealt(&self, keys: &Keys) -> Option<AeuId> {
        let aeus = self.engine.topology().aeus().len();
        let (ranges, numbers) = self.object.ranges.deal(std::slice::from_ref(keys), aeus);
        same(numbers.into_iter().flatten().map(|key| ranges.get(key)))
    }

    fn part(&self, operation: Operation) -> Box<RowBatch> {
        Box::new(RowBatch {
            object: self.object.clone(),
            operation,
        })
    }

    async fn found(
        &mut self,
        exchange: &mut Exchange<RowBatch>,
    ) -> Result<Vec<Option<Fetched>>, EngineError> {
        let parts = self.exchange(exchange).await?.into_iter();
        let found = parts.map(|part| match part {
            Operation::Found(found) => Ok(found),
            _ => Err(EngineError::NoSuchObject(self.object.id)),
        });
        found.collect()
    }

    /// Has all parts executed.
    async fn exchange(
        &mut self,
        exchange: &mut Exchange<RowBatch>,
    ) -> Result<Vec<Operation>, EngineError> {
        self.is_waiting = true;
        exchange.begin(&self.engine, &mut self.client);
        exchange.answered(&mut self.client).await;
        self.is_waiting = false;
        let parts = exchange.finish();
        let parts = parts.map_err(|message| EngineError::Panicked {
            worker: "an owner".to_owned(),
            table: self.object.name.clone(),
            message,
        })?;
        Ok(parts.map(|part| part.operation).collect())
    }

    /// Columns as a batch.
    fn batch(
        &self,
        columns: &[ColumnId],
        arrays: Vec<ArrayRef>,
        ids: &[Option<RowId>],
    ) -> RecordBatch {
        let schema = &self.object.schema;
        let fields = columns
            .iter()
            .map(|column| schema.fields()[column.index()].clone());
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let rows = ids.iter().flatten().count();
        if rows == 0 {
            return RecordBatch::new_empty(schema);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(schema, arrays, &options)
            .expect("columns are what the object says")
    }
}

/// Comes back when the thread's other tasks have been polled.
async fn let_others_go_on() {
    let mut has_waited = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The keys of which no part is NULL, and their positions.
fn without_nulls(columns: &[ArrayRef]) -> (Arc<Keys>, Vec<u32>) {
    let rows = columns.first().map_or(0, |column| column.len());
    let is_whole = |row: &u32| columns.iter().all(|column| column.is_valid(*row as usize));
    let whole: Vec<u32> = (0..rows as u32).filter(is_whole).collect();
    let keys = Keys::of(columns, 0, rows);
    let keys = match whole.len() == rows {
        true => keys,
        false => keys.pick(&whole),
    };
    (Arc::new(keys), whole)
}

/// The answers of several owners as one, `positions` saying which key each answer is about, one owner after the other.
fn merge(parts: &[Fetched], positions: &[u32], columns: usize) -> Fetched {
    let mut ids = vec![None; positions.len()];
    let mut places = vec![None; positions.len()];
    let mut answers = positions.iter();
    for (part, fetched) in parts.iter().enumerate() {
        let mut row = 0;
        for (id, &position) in fetched.ids.iter().zip(&mut answers) {
            if id.is_some() {
                ids[position as usize] = *id;
                places[position as usize] = Some((part, row));
                row += 1;
            }
        }
    }
    let places: Vec<(usize, usize)> = places.into_iter().flatten().collect();
    // Parts without rows have no columns.
    let column = |column: usize| {
        let kind = parts.iter().find_map(|part| part.columns.get(column));
        let empty = arrow_array::new_empty_array(kind?.data_type());
        let arrays = parts.iter();
        let arrays: Vec<&dyn Array> = arrays
            .map(|part| part.columns.get(column).unwrap_or(&empty).as_ref())
            .collect();
        Some(interleave(&arrays, &places).expect("columns of one type"))
    };
    Fetched {
        columns: (0..columns).filter_map(column).collect(),
        ids,
    }
}

impl Drop for RowClient {
    fn drop(&mut self) {
        if !self.is_waiting {
            self.engine.give_back(&mut self.client);
        }
    }
}

impl fmt::Debug for RowClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RowClient({}, {})", self.object.id, self.object.name)
    }
}

/// The one owner, if there is just one.
fn same(mut owners: impl Iterator<Item = AeuId>) -> Option<AeuId> {
    let first = owners.next()?;
    owners.all(|other| other == first).then_some(first)
}
