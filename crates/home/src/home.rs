//! The trait that every home of tables has.

use crate::{
    Balancer, Balancing, Budget, Definitions, Durability, Found, HeldSnapshot, HomeError,
    HugePages, Inspection, KeyIndexes, KeyOrders, Newest, NodeDescription, ObjectDefinition,
    ObjectStatistics, Ownership, ReadBandwidth, Samples, SecondaryIndexes, SingleRows, Traffic,
    Usage, WorkerDescription, Write,
};
use arrow_array::ArrayRef;
use eris_fragment::Executor;
use eris_types::{ColumnId, ObjectId};
use futures::future::BoxFuture;
use std::sync::Arc;

/// Whoever holds tables: data objects by number, their rows in versions, and statements over them.
///
/// Reads go through [`Executor`]. A statement takes a snapshot with [`Home::hold`] and reads all its fragments at it.
/// It writes with [`Home::add`] or [`Home::change`], and its commit takes effect at one timestamp, or not at all.
pub trait Home: Executor {
    /// Makes an empty data object. No two objects ever have the same number.
    ///
    /// # Errors
    /// A column has a type that cannot be stored, or rows cannot be cut as asked.
    fn create(&self, definition: ObjectDefinition) -> BoxFuture<'_, Result<ObjectId, HomeError>>;

    /// Drops a data object. Its memory has been given back when this is done, but for what running fragments hold.
    ///
    /// # Errors
    /// There is no such object.
    fn drop_object(&self, object: ObjectId) -> BoxFuture<'_, Result<(), HomeError>>;

    /// The newest snapshot that is known here, held for a reader. It shows every commit that this process has waited
    /// for, and no commit half-way.
    fn hold(&self) -> HeldSnapshot;

    /// The same of [what is applied](Newest::Applied).
    fn hold_applied(&self) -> HeldSnapshot;

    /// Waits until every commit that has begun here is visible. This includes those of statements that were given up
    /// meanwhile.
    ///
    /// # Errors
    /// The disk has failed, so that some never will be.
    fn barrier(&self) -> BoxFuture<'_, Result<(), HomeError>>;

    /// The same until they are [applied](Newest::Applied).
    fn settle(&self) -> BoxFuture<'_, ()>;

    /// What a data object holds now. It is exact for a snapshot from [`ObjectStatistics::newest`] on, unless something
    /// was committed in between.
    ///
    /// # Errors
    /// There is no such object.
    fn statistics(&self, object: ObjectId) -> Result<ObjectStatistics, HomeError>;

    /// The rows of a data object, perhaps with some that are deleted: less work than its
    /// [statistics](Self::statistics).
    ///
    /// # Errors
    /// There is no such object.
    fn row_count(&self, object: ObjectId) -> Result<u64, HomeError>;

    /// The rows that have keys, given as one array per column of the object's key. A key of which a part is NULL has no
    /// row.
    ///
    /// # Errors
    /// There is no such object.
    ///
    /// # Panics
    /// If the object has no key, or the arrays are not of the key's types.
    fn lookup<'a>(
        &'a self,
        object: ObjectId,
        keys: &'a [ArrayRef],
        columns: Arc<[ColumnId]>,
        newest: Newest,
    ) -> BoxFuture<'a, Result<Found, HomeError>>;

    /// Begins a statement that only adds rows to these objects.
    ///
    /// # Errors
    /// There is no such object.
    fn add(&self, objects: &[ObjectId]) -> Result<Box<dyn Write>, HomeError>;

    /// Begins a statement that deletes rows of these objects and may add others. It waits for all such statements
    /// before it, in the order in which they asked. What it reads from then on is what it will find when it commits,
    /// but for rows that others add.
    ///
    /// # Errors
    /// There is no such object.
    fn change<'a>(
        &'a self,
        objects: &'a [ObjectId],
    ) -> BoxFuture<'a, Result<Box<dyn Write>, HomeError>>;

    /// What tables and statements may take together. Operators above the fragments take their memory from it, too.
    fn budget(&self) -> &Budget;

    /// What each data object holds on each node.
    fn usage(&self) -> Vec<Usage>;

    /// How many workers there are: as many streams of rows can be filled at a time.
    fn worker_count(&self) -> usize;

    /// The workers and what they have done.
    fn workers(&self) -> Vec<WorkerDescription>;

    /// The nodes with memory of their own.
    fn nodes(&self) -> Vec<NodeDescription>;

    /// Whether data lies on huge pages, as the home was started.
    fn huge_pages(&self) -> HugePages;

    /// What has been read from other nodes since the start, by pair of nodes and kind; empty where nothing is counted.
    fn traffic(&self) -> Vec<Traffic> {
        Vec::new()
    }

    /// The machine whose links between nodes are imitated, if they are slowed down for what [is
    /// paced](crate::TrafficKind::is_paced).
    fn paced_as(&self) -> Option<String> {
        None
    }

    /// What each door says of a run with such links.
    fn paced_note(&self) -> Option<String> {
        let machine = self.paced_as()?;
        Some(format!(
            "chunks that are read on other nodes come as slowly as on {machine}; nothing else is slowed down"
        ))
    }

    /// Measures what workers can read from memory, in a tenth of a second or so. It blocks. `None`: that cannot be
    /// measured, or not now.
    fn measure_bandwidth(&self) -> Option<ReadBandwidth> {
        None
    }

    /// What a data object consists of.
    ///
    /// # Errors
    /// There is no such object.
    fn inspect(&self, object: ObjectId) -> BoxFuture<'_, Result<Inspection, HomeError>>;

    /// Few rows by their keys, in microseconds. Without it they are read by [`Home::lookup`] and written by
    /// [`Home::change`].
    fn single_rows(&self) -> Option<&dyn SingleRows> {
        None
    }

    /// Secondary indexes. Without them there is no CREATE INDEX.
    fn secondary_indexes(&self) -> Option<&dyn SecondaryIndexes> {
        None
    }

    /// Samples of rows. Without them planners guess.
    fn samples(&self) -> Option<&dyn Samples> {
        None
    }

    /// Columns that are stored by an order of keys. Without it all columns stay as they are.
    fn key_orders(&self) -> Option<&dyn KeyOrders> {
        None
    }

    /// Indexes of keys whose nodes can be brought into another order.
    fn key_indexes(&self) -> Option<&dyn KeyIndexes> {
        None
    }

    /// Which worker has what.
    fn ownership(&self) -> Option<&dyn Ownership> {
        None
    }

    /// Definitions that outlive the process. Without them all ends with it.
    fn definitions(&self) -> Option<&dyn Definitions> {
        None
    }

    /// What it does that outlives the process. Without it all ends with it.
    fn durability(&self) -> Option<&dyn Durability> {
        None
    }

    /// Begins to make the workers' loads equal; this ends when the balancer is dropped. `None`: there is nothing to
    /// balance.
    ///
    /// # Errors
    /// It cannot be started.
    fn balancer(&self, _balancing: Balancing) -> Result<Option<Box<dyn Balancer>>, HomeError> {
        Ok(None)
    }
}
