//! Secondary indexes, where a home has them.

use crate::HomeError;
use eris_types::{ColumnId, ObjectId};
use futures::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Makes and drops indexes of data objects, beside that of the key.
/// [`Executor::access`](eris_fragment::Executor::access) tells which one a fragment uses.
pub trait SecondaryIndexes: Send + Sync {
    /// Makes an index of some columns and waits until it is complete; returns its number. Fragments may use it from
    /// then on. Rows may be read and written meanwhile. `built` counts the rows that are entered.
    ///
    /// # Errors
    /// There is no such object or no memory; nothing is left of the index then.
    ///
    /// # Panics
    /// If there are no columns.
    fn create_index<'a>(
        &'a self,
        object: ObjectId,
        columns: &'a [ColumnId],
        kind: IndexKind,
        built: Arc<AtomicU64>,
    ) -> BoxFuture<'a, Result<u32, HomeError>>;

    /// Drops an index. Fragments that run go on without it.
    ///
    /// # Errors
    /// There is no such object, or there are too many statements.
    fn drop_index(&self, object: ObjectId, index: u32) -> Result<(), HomeError>;

    /// The indexes of a data object.
    ///
    /// # Errors
    /// There is no such object.
    fn indexes(&self, object: ObjectId) -> Result<Vec<IndexStatistics>, HomeError>;
}

/// How values are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// A radix tree: equal values, ranges, beginnings of strings, rows in order.
    Ordered,
    /// A hash table: equal values.
    Hashed,
    /// A B-link tree of all owners: what [`Ordered`](Self::Ordered) finds. Only owners that have the rows are asked.
    Shared,
}

/// What an index holds.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexStatistics {
    /// Its number, of those of its data object.
    pub id: u32,
    /// Its columns.
    pub columns: Vec<ColumnId>,
    /// How values are found.
    pub kind: IndexKind,
    /// Rows that are entered; those that are gone count until they are removed.
    pub entries: u64,
    /// Different values; `None` where nobody counts them.
    pub keys: Option<u64>,
    /// Bytes of memory.
    pub bytes: u64,
    /// Fragments that were led by it.
    pub lookups: u64,
    /// The tree, if all owners share one.
    pub tree: Option<SharedIndexStatistics>,
}

/// What a tree that all owners share looks like.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedIndexStatistics {
    /// Levels.
    pub height: u64,
    /// Nodes of all levels.
    pub nodes: u64,
    /// Which part of the room in leaves is taken, of 1.
    pub fill: f64,
    /// Nodes that were split.
    pub splits: u64,
    /// How often a writer went right because a node had been split.
    pub right_moves: u64,
}
