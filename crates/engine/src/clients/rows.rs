//! Rows by their keys: batches of lookups, ranges and writes without a fragment or a statement of several steps.
//!
//! ```text
//! keys ── split by range ──▶ owners: index ─▶ chunk, position ─▶ values of wanted columns, in the order of the keys
//!
//! rows ──┬── all of one owner ──▶ checked, written and committed there in one go, in place if the AEU is parked
//!        └── otherwise ─────────▶ the write lock, a lookup of what they replace, one statement of several owners
//! ```
//!
//! They are [read] at one snapshot, and [written](mod@write) at their owners. Rows of several objects change
//! [together].

mod read;
mod together;
mod write;

pub use together::RowChanges;
pub(crate) use together::{AwaitedShare, shared_write_lock, try_shared_write_lock};

use super::client::Client;
use super::engine::Engine;
use super::exchange::Exchange;
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use crate::object::keys::Keys;
use crate::protocol::keys::ExecuteRows;
use crate::protocol::rows::{RowBatch, RowOperation};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use eris_atomics::{ExclusiveWrite, SharedWrite};
use eris_home::{Found, Newest};
use eris_route::Split;
use eris_types::{AeuId, ColumnId, ObjectId};
use std::any::Any;
use std::fmt;
use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::task::Poll;

/// A statement of more rows, or a batch of more ranges, takes several steps, so that owners can do other work in
/// between.
const AT_ONCE: usize = 1_024;
/// How often a change is offered to owners while others are about to commit there, before it waits for the write lock.
const OFFERS: usize = 16;

/// One session's way to the rows of a data object with a key. Operations on few rows take microseconds and mostly
/// happen in the calling thread.
///
/// ```
/// # use eris_engine::{Engine, Partitioning, Settings};
/// # use eris_numa::{HugePages, Topology};
/// # use eris_types::ColumnId;
/// # use arrow_array::{ArrayRef, Int64Array, RecordBatch, cast::AsArray, types::Int64Type};
/// # use arrow_schema::{DataType, Field, Schema};
/// # use std::sync::Arc;
/// # let topology = Topology::fake(1, 2);
/// # let settings = Settings { topology, huge_pages: HugePages::Never, memory_limit: Some(64 << 20), database: None };
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
    pub(crate) engine: Engine,
    pub(crate) object: Arc<DataObject>,
    client: Client,
    split: Split,
    /// The columns that were read last, and the schema of the batch: mostly those of the next read, too.
    shape: Option<(Arc<[ColumnId]>, SchemaRef)>,
    /// Answers to an operation that was given up may still come; then the session is closed, not kept.
    is_waiting: bool,
    /// See [`RowClient::keeping`].
    kept: Option<Arc<dyn Any + Send + Sync>>,
    /// See [`RowClient::wait_for_write_lock`].
    pub(crate) write_lock: Option<SharedWrite>,
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
            shape: None,
            is_waiting: false,
            kept: None,
            write_lock: None,
        })
    }
}

impl RowClient {
    /// The same for changes that depend on something, such as locks: it is kept until their owners are done with them,
    /// even if whoever asked for a change gives up in between.
    pub fn keeping(&mut self, kept: Arc<dyn Any + Send + Sync>) -> Keeping<'_> {
        self.kept = Some(kept);
        Keeping(self)
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

    /// Waits for the right to be the only one that changes rows, and until what was changed before is applied.
    async fn exclusive_lock(&mut self) -> ExclusiveWrite {
        // Nobody waits for it while he shares it.
        self.write_lock = None;
        self.engine.shared().write_lock(&self.object).await
    }

    /// Waits until what was changed up to now is applied: what an owner has said of it must be what the next read says.
    async fn settle_changes(&self) {
        if self.object.changed() > self.engine.newest(Newest::Applied) {
            self.engine.settle().await;
        }
    }

    /// Waits until what was changed up to now is visible: what an owner has said of it must be what a snapshot says.
    async fn see_changes(&self) -> Result<(), EngineError> {
        if self.object.changed() > self.engine.snapshot() {
            self.engine.barrier().await?;
        }
        Ok(())
    }

    /// The owner of all these keys, if there is one.
    fn only_owner(&self, keys: &Keys) -> Option<AeuId> {
        let ranges = self.object.ranges.look();
        let ranges = ranges.as_ref()?;
        same(ranges.routing(keys).into_iter().map(|key| ranges.get(key)))
    }

    fn part(&self, operation: RowOperation) -> Box<RowBatch> {
        Box::new(RowBatch {
            object: self.object.clone(),
            operation,
        })
    }

    /// Has all parts executed.
    async fn exchange(
        &mut self,
        exchange: &mut Exchange<ExecuteRows>,
    ) -> Result<Vec<RowOperation>, EngineError> {
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

/// The keys of which no part is NULL, and their positions if these are not all.
fn without_nulls(columns: &[ArrayRef]) -> (Arc<Keys>, Option<Vec<u32>>) {
    let rows = columns.first().map_or(0, |column| column.len());
    let keys = Keys::of(columns, 0, rows);
    if columns.iter().all(|column| column.null_count() == 0) {
        return (Arc::new(keys), None);
    }
    let is_whole = |row: &u32| columns.iter().all(|column| column.is_valid(*row as usize));
    let whole: Vec<u32> = (0..rows as u32).filter(is_whole).collect();
    (Arc::new(keys.pick(&whole)), Some(whole))
}

/// The keys that were looked for.
fn keys_found(found: &Found) -> Arc<Keys> {
    let keys = Arc::clone(&found.keys).downcast();
    keys.expect("the engine has found them")
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
