//! What a data object is made of.

use arrow_schema::SchemaRef;
use eris_types::ColumnId;

/// A data object that is to be made.
#[derive(Clone, Debug)]
pub struct ObjectDefinition {
    /// What messages call it. Names are the catalogue's business.
    pub name: String,
    /// Its columns.
    pub schema: SchemaRef,
    /// How it is cut into partitions; an object with a key is cut by ranges of the key, whatever this says.
    pub partitioning: Partitioning,
    /// Columns of which no two rows have the same values, and no row NULL. Empty: it has no key.
    pub key: Vec<ColumnId>,
    /// Whether it ends with the process at the latest, also where others are durable.
    pub is_temporary: bool,
}

/// How a data object is cut into partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitioning {
    /// By size: every worker gets about as many rows, wherever they come from (ERIS paper, Section 3.1).
    Size,
    /// By ranges of a column; the bounds are quantiles of the first rows written, and of those that lie above all
    /// before.
    Range(ColumnId),
}
