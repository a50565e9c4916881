//! Which worker has what, where a home's workers own parts of data objects.

use crate::HomeError;
use eris_types::{AeuId, NodeId, ObjectId};
use futures::future::BoxFuture;

/// Tells where the parts of data objects are.
pub trait Ownership: Send + Sync {
    /// The partitions of a data object, one of each worker.
    ///
    /// # Errors
    /// There is no such object.
    fn partitions(&self, object: ObjectId) -> Result<Vec<PartitionStatus>, HomeError>;

    /// Where the memory of a data object is: those parts that take any, by owner and kind.
    ///
    /// # Errors
    /// There is no such object.
    fn locate(&self, object: ObjectId) -> BoxFuture<'_, Result<Vec<PartLocation>, HomeError>>;
}

/// One worker's partition of a data object.
#[derive(Clone, Debug)]
pub struct PartitionStatus {
    /// Its owner.
    pub aeu: AeuId,
    /// The node on whose memory it lies.
    pub node: NodeId,
    /// The keys whose rows it has, or the values of the column that rows are partitioned by, as a string such as
    /// `>= 10 and < 20`; `None` if rows are partitioned by size, or there were none yet.
    pub ranges: Option<String>,
    /// Rows that are not deleted.
    pub rows: u64,
    /// Bytes of all rows, deleted ones included.
    pub bytes: u64,
    /// Keys that were asked for per second lately: over the last second or some more.
    pub accesses: f64,
    /// Bytes that its owner has scanned per second, those of other partitions included.
    pub scanned: f64,
    /// The share of that time in which its owner was busy with the object.
    pub busy: f64,
}

/// What one owner has of a data object, and where.
#[derive(Clone, Debug)]
pub struct PartLocation {
    /// The owner.
    pub aeu: AeuId,
    /// Its node, on which all of it should be.
    pub node: NodeId,
    /// What it is.
    pub part: StoredPart,
    /// Bytes that were allocated.
    pub bytes: u64,
    /// Bytes of pages that there are; `None` where the system does not tell.
    pub resident: Option<u64>,
    /// Bytes of these that are on another node; `None` also if nodes are made up.
    pub elsewhere: Option<u64>,
}

/// A kind of what an owner has of a data object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoredPart {
    /// Column chunks of committed rows, append buffer included: values and validity.
    Rows,
    /// The index of the key.
    Key,
    /// A secondary index, by its number.
    Index(u32),
}
