//! Samples of rows, for planners and for people who look.

use crate::HomeError;
use arrow_array::ArrayRef;
use eris_fragment::Expr;
use eris_types::ObjectId;
use futures::future::BoxFuture;

/// Samples of rows, which are kept while rows are written. They are of no certain snapshot: some of their rows may be
/// deleted, and new ones may be missing.
pub trait Samples: Send + Sync {
    /// For how many rows of an object's sample all conjuncts are true. A column is a position in the object's. `None`:
    /// there is no sample of what they read, or it cannot be told.
    fn find(&self, object: ObjectId, filter: &[Expr]) -> Option<SampledRows>;

    /// The sampled values of each column, owner by owner in the order of the rows. `None`: those of a column are too
    /// long.
    ///
    /// # Errors
    /// There is no such object.
    fn values(&self, object: ObjectId) -> Result<Vec<Option<ArrayRef>>, HomeError>;

    /// Samples the rows of an object again, all that there are, and counts the distinct values of its columns again.
    ///
    /// # Errors
    /// There is no such object.
    fn analyze(&self, object: ObjectId) -> BoxFuture<'_, Result<(), HomeError>>;
}

/// What a filter finds in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledRows {
    /// The rows that the sample stands for. There may be others, which were written since.
    pub of: u64,
    /// The sampled rows.
    pub rows: u64,
    /// Those for which the filter is true.
    pub passed: u64,
}
