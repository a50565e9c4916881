//! Statements that write.

use crate::HomeError;
use arrow_array::RecordBatch;
use eris_types::{ObjectId, RowId};
use futures::future::BoxFuture;
use std::fmt::Debug;

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
