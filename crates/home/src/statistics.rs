//! What planners may know of a data object.

use eris_fragment::Scalar;
use eris_types::Timestamp;

/// A data object's size and values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectStatistics {
    /// Committed rows that are not deleted.
    pub rows: u64,
    /// Deleted rows that are not collected yet. What is said of columns counts them.
    pub deleted: u64,
    /// Rows of sealed chunks, deleted ones included.
    pub sealed: u64,
    /// Bytes of all these in memory, append buffers included.
    pub bytes: u64,
    /// The newest commit of rows or deletions that is counted: exact for snapshots from here on until something else is
    /// committed.
    pub newest: Timestamp,
    /// Per column.
    pub columns: Vec<ColumnStatistics>,
}

impl ObjectStatistics {
    /// Rows of sealed chunks that are not stored by a key order in this column.
    pub fn unordered(&self, column: usize) -> u64 {
        let ordered = self.columns.get(column).map_or(0, |column| column.ordered);
        self.sealed.saturating_sub(ordered)
    }
}

/// A column's values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ColumnStatistics {
    /// NULLs.
    pub nulls: u64,
    /// The least value, unless unknown, of strings, or without any.
    pub min: Option<Scalar>,
    /// The greatest value, likewise.
    pub max: Option<Scalar>,
    /// About how many distinct values there are, if that is known: exact where the column has a dictionary.
    pub distinct: Option<u64>,
    /// Rows of sealed chunks that are stored by a key order.
    pub ordered: u64,
}
