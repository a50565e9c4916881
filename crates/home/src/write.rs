//! Statements that write.

use crate::HomeError;
use arrow_array::RecordBatch;
use eris_fragment::{Fragment, FragmentReport};
use eris_types::{ObjectId, RowId};
use futures::future::BoxFuture;
use std::fmt::{self, Debug};
use std::sync::Arc;

/// The rows of one statement on their way into one or several data objects. All of them take effect at one timestamp,
/// or none does. Dropped without [`Write::commit`] it leaves no trace.
///
/// ```text
/// append, delete … ─▶ check: everything has arrived, keys are unique ─▶ commit: visible
///                                                                 ▲
///                                     up to here the statement can be given up
/// ```
pub trait Write: Debug + Send {
    /// Adds rows: the object's columns with exactly its types. Waits while enough is under way.
    ///
    /// # Errors
    /// Rows of another shape, a NULL where none is allowed, or no memory. The statement is lost then; later calls
    /// return the error again.
    fn append(
        &mut self,
        object: ObjectId,
        rows: RecordBatch,
    ) -> BoxFuture<'_, Result<(), HomeError>>;

    /// Adds the rows of a fragment that yields the object's columns with exactly its types, each where it is found:
    /// they do not pass through this process's statement. `None`: the home cannot do that, or not well, and nothing was
    /// begun; then the fragment's rows are read, and [appended](Write::append).
    ///
    /// # Errors
    /// The fragment cannot be begun.
    fn append_from(
        &mut self,
        _object: ObjectId,
        _fragment: &Fragment,
    ) -> Result<Option<Appending<'_>>, HomeError> {
        Ok(None)
    }

    /// Deletes rows, each at most once in the statement.
    ///
    /// # Errors
    /// There is no memory to remember them.
    ///
    /// # Panics
    /// If the statement only adds rows: it comes from [`Home::add`](crate::Home::add).
    fn delete(
        &mut self,
        object: ObjectId,
        rows: &mut dyn ExactSizeIterator<Item = RowId>,
    ) -> Result<(), HomeError>;

    /// All of a commit that takes time: waits until all rows have arrived, waits for the write lock of what only adds
    /// rows, and sees to it that no two rows have the same key. Nothing may be added or deleted afterwards.
    ///
    /// # Errors
    /// As [`Write::append`]; a key that another row has; or rows to be deleted that are gone.
    fn check(&mut self) -> BoxFuture<'_, Result<(), HomeError>>;

    /// Makes all of it visible; [checks](Write::check) before, if that was not done. Once this was polled the commit
    /// may take effect even if the future is dropped.
    ///
    /// # Errors
    /// As [`Write::check`]; nothing took effect.
    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<(), HomeError>>;
}

/// Rows that are being added where they are found.
pub struct Appending<'a> {
    /// What the fragment did so far.
    pub report: Arc<dyn Fn() -> FragmentReport + Send + Sync>,
    /// How many rows it added, once all of them are there. Dropped before, or on an error, the statement is lost.
    pub done: BoxFuture<'a, Result<u64, HomeError>>,
}

impl Debug for Appending<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Appending")
    }
}
