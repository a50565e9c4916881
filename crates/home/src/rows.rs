//! Rows that are found by their keys.

use arrow_array::{ArrayRef, RecordBatch};
use eris_types::RowId;
use std::any::Any;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// The bounds of a range of keys, each one value per column of the key, in arrays of length one.
pub type KeyBounds<'a> = (Bound<&'a [ArrayRef]>, Bound<&'a [ArrayRef]>);

/// Which rows are the newest ones for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newest {
    /// Those that everybody may see.
    Visible,
    /// What was committed and may still be lost with the process, too: for a statement that changes what it finds, and
    /// whose own commit comes behind.
    Applied,
}

/// Rows that have been found by their keys.
pub struct Found {
    /// The wanted columns of the rows, in the order of the keys.
    pub rows: RecordBatch,
    /// Per row, the position of its key.
    pub of: Vec<u32>,
    /// Per key without NULL, its row if there is one.
    pub ids: Vec<Option<RowId>>,
    /// The keys in the home's own form, for changes of the rows that were found.
    pub keys: Arc<dyn Any + Send + Sync>,
}

impl Found {
    /// The ids of the rows, for a statement that is to delete them.
    pub fn row_ids(&self) -> impl Iterator<Item = RowId> + '_ {
        self.ids.iter().copied().flatten()
    }
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Found({} of {} keys)", self.of.len(), self.ids.len())
    }
}
