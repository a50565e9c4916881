//! Few rows by their keys: what statements of one row use.

use crate::{Found, HomeError, KeyBounds, Newest};
use arrow_array::{ArrayRef, RecordBatch};
use eris_types::{ColumnId, ObjectId};
use futures::future::BoxFuture;
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Lookups and changes of few rows without a fragment or a statement of several steps.
pub trait SingleRows: Send + Sync {
    /// A way to the rows of a data object by its key.
    ///
    /// # Errors
    /// There is no such object, or there are too many statements.
    ///
    /// # Panics
    /// If it has no key.
    fn client(&self, object: ObjectId) -> Result<Box<dyn RowClient>, HomeError>;

    /// Changes of several objects that take effect together: none yet.
    ///
    /// # Errors
    /// There are too many statements.
    fn changes(&self) -> Result<Box<dyn RowChanges>, HomeError>;
}

/// What a change depends on, such as locks of tables. It is kept until the change is done, even if whoever asked for
/// the change gives up in between.
pub type Kept = Arc<dyn Any + Send + Sync>;

/// One statement's way to the rows of a data object with a key. Operations on few rows take microseconds and mostly
/// happen in the calling thread.
pub trait RowClient: Debug + Send {
    /// As [`Home::lookup`](crate::Home::lookup).
    ///
    /// # Errors
    /// The object was dropped.
    ///
    /// # Panics
    /// If the arrays are not of the key's types.
    fn get<'a>(
        &'a mut self,
        keys: &'a [ArrayRef],
        columns: Arc<[ColumnId]>,
        newest: Newest,
    ) -> BoxFuture<'a, Result<Found, HomeError>>;

    /// The rows whose keys lie in ranges, all at one snapshot: a batch for each range, `limit` rows at most of each, in
    /// the order of their keys. Ranges may overlap.
    ///
    /// # Errors
    /// As [`RowClient::get`].
    ///
    /// # Panics
    /// As [`RowClient::get`].
    fn ranges<'a>(
        &'a mut self,
        ranges: &'a [KeyBounds<'a>],
        limit: usize,
        columns: Arc<[ColumnId]>,
    ) -> BoxFuture<'a, Result<Vec<RecordBatch>, HomeError>>;

    /// Waits for the write lock that the next change takes. A change cannot be given up once it has begun, and others
    /// may hold the lock for long: who wants to be able to stop meanwhile waits before.
    fn poll_write_lock(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// Puts rows in, all columns of them; each replaces the row that has its key, if there is one. All or nothing.
    /// Returns how many were replaced.
    ///
    /// # Errors
    /// They have other columns, or a NULL where none is allowed; two of them have the same key; or there is no memory.
    fn put(&mut self, rows: RecordBatch, kept: Kept) -> BoxFuture<'_, Result<u64, HomeError>>;

    /// Puts rows in, if no row has any of their keys; otherwise nothing happens, and the answer is `false`.
    ///
    /// # Errors
    /// As [`RowClient::put`].
    fn insert(&mut self, rows: RecordBatch, kept: Kept) -> BoxFuture<'_, Result<bool, HomeError>>;

    /// Puts rows in, one for each key that was looked for, in that order, if these keys still have the rows that were
    /// found, or none; otherwise nothing happens, and the answer is `false`.
    ///
    /// # Errors
    /// As [`RowClient::put`].
    ///
    /// # Panics
    /// If there are not as many rows as keys that are not NULL.
    fn put_if_unchanged<'a>(
        &'a mut self,
        found: &'a Found,
        rows: RecordBatch,
        kept: Kept,
    ) -> BoxFuture<'a, Result<bool, HomeError>>;

    /// Removes the rows that have keys; returns how many there were. All or nothing.
    ///
    /// # Errors
    /// As [`RowClient::get`].
    ///
    /// # Panics
    /// As [`RowClient::get`].
    fn remove<'a>(
        &'a mut self,
        keys: &'a [ArrayRef],
        kept: Kept,
    ) -> BoxFuture<'a, Result<u64, HomeError>>;

    /// Removes the rows that were found, if all keys that were looked for still have them, or none; otherwise nothing
    /// happens, and the answer is `false`.
    ///
    /// # Errors
    /// As [`RowClient::remove`].
    fn remove_if_unchanged<'a>(
        &'a mut self,
        found: &'a Found,
        kept: Kept,
    ) -> BoxFuture<'a, Result<bool, HomeError>>;

    /// Has the row that is to have a key computed from the one that has it: in one go, where the row is, so that nobody
    /// comes in between. The key is given as one array of length one per column.
    ///
    /// # Errors
    /// As [`RowClient::put`].
    ///
    /// # Panics
    /// As [`RowClient::get`], and if it is not one key or has a NULL.
    fn compute<'a>(
        &'a mut self,
        key: &'a [ArrayRef],
        compute: Arc<dyn Compute>,
        kept: Kept,
    ) -> BoxFuture<'a, Result<Computed, HomeError>>;
}

/// Changes of a few rows of several data objects that take effect at one timestamp, or not at all. At most one is given
/// for each object.
pub trait RowChanges: Debug + Send {
    /// The rows that were found are to be deleted, if the keys that were looked for still have them, or none; and these
    /// are to be added.
    ///
    /// # Errors
    /// There is no such object, or the rows have other columns, or a NULL where none is allowed.
    fn replace(
        &mut self,
        object: ObjectId,
        found: &Found,
        rows: Option<RecordBatch>,
    ) -> Result<(), HomeError>;

    /// These rows are to be added, if no row has any of their keys.
    ///
    /// # Errors
    /// As [`RowChanges::replace`].
    fn insert(&mut self, object: ObjectId, rows: RecordBatch) -> Result<(), HomeError>;

    /// The rows that have keys are to be deleted, whichever they are; and these are to be added.
    ///
    /// # Errors
    /// As [`RowChanges::replace`].
    fn exchange(
        &mut self,
        object: ObjectId,
        keys: &[ArrayRef],
        rows: Option<RecordBatch>,
    ) -> Result<(), HomeError>;

    /// Waits for the write locks of all objects, as [`RowClient::poll_write_lock`] does. Nothing may be added
    /// afterwards.
    fn wait_for_write_locks(&mut self) -> BoxFuture<'_, ()>;

    /// Makes all of it take effect. `false`: nothing did, for a key has another row than was expected, or a row was to
    /// be added whose key another row has.
    ///
    /// # Errors
    /// Nothing took effect: an object was dropped, or there is no memory.
    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<bool, HomeError>>;
}

/// Computes the row that is to have a key where the row is that has it now.
pub trait Compute: Debug + Send + Sync {
    /// The columns that it looks at.
    fn reads(&self) -> &[ColumnId];

    /// Whether it may put a row where none is.
    fn may_add(&self) -> bool;

    /// What becomes of the row with the key, of which there are the columns that are looked at; `None`: no row has the
    /// key. It is called in the thread of whoever holds the row and has to be quick.
    fn compute(&self, row: Option<&[ArrayRef]>) -> Becomes;
}

/// What [`Compute`] makes of a row.
#[derive(Debug)]
pub enum Becomes {
    /// This row, which has the same key and all columns, is put in its place.
    Row(RecordBatch),
    /// It stays what it is; none is put where none is.
    Same,
    /// It cannot be computed here.
    Unclear,
}

/// What became of a row that was to be computed. See [`RowClient::compute`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computed {
    /// It is there.
    Put,
    /// Nothing changed.
    Same,
    /// Nothing changed, for whoever holds the row cannot compute it, or not now. It has to be read, and put in, if it
    /// is unchanged then.
    Rejected,
}
