//! How an executor finds the rows of a fragment, for planners and `EXPLAIN`.

use eris_types::ColumnId;

/// An index by which a fragment's rows are found.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// The number of the index; `None`: that of the key.
    pub index: Option<u32>,
    /// Its columns.
    pub columns: Vec<ColumnId>,
    /// The conjuncts of the filter, by position, that the index is asked for.
    pub conditions: Vec<usize>,
    /// The probes, likewise.
    pub probes: Vec<usize>,
    /// How many rows it is expected to lead to; `None`: nobody knows.
    pub rows: Option<u64>,
    /// Whether it is followed in its order until there are enough rows.
    pub ordered: bool,
}
