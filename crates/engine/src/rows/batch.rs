//! The part of an operation on rows that belongs to one owner: it goes there and comes back with what was found or done.

use crate::keys::{KeyRange, Keys};
use crate::object::DataObject;
use crate::owner::Owner;
use crate::partition::{Change, Changed, Fetched, Prepare, Prepared};
use eris_types::{ColumnId, Timestamp};
use std::sync::Arc;

/// An operation on rows of one partition, and what came of it.
pub(crate) struct RowBatch {
    pub object: Arc<DataObject>,
    pub operation: Operation,
}

/// What is to be done, or was.
#[derive(Debug)]
pub(crate) enum Operation {
    /// Read the rows with these keys.
    Get(Arc<Keys>, Read),
    /// Read the rows with keys between two, so many at most.
    Range(KeyRange, usize, Read),
    /// What was read; `None` if the index knows newer rows than the snapshot.
    Found(Option<Fetched>),
    /// Change rows.
    Change(Box<Change>),
    /// What became of it.
    Changed(Changed),
    /// Do a statement's part, but for its commit.
    Prepare(Prepare),
    /// What came of it.
    Prepared(Prepared),
    /// The object was dropped.
    Gone,
}

/// What is wanted of rows.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub columns: Arc<[ColumnId]>,
    /// `None`: the newest, as the owner sees it.
    pub snapshot: Option<Timestamp>,
}

impl Operation {
    /// The keys that it names, if it does.
    fn keys(&self) -> Option<&Keys> {
        match self {
            Operation::Get(keys, _) => Some(keys),
            Operation::Change(change) => Some(&change.keys),
            Operation::Prepare(prepare) => Some(&prepare.keys),
            _ => None,
        }
    }
}

impl RowBatch {
    /// Executes the operation; its result takes its place.
    pub fn execute(&mut self, owner: &mut Owner) {
        // Who comes after DROP must not bring the partition back.
        if self.object.is_dropped() {
            self.operation = Operation::Gone;
            return;
        }
        let sequencer = owner.sequencer.clone();
        let snapshot = |read: &Read| read.snapshot.unwrap_or_else(|| sequencer.visible());
        let (aeu, loads) = (owner.aeu, &self.object.loads);
        let timed = loads.begin_keys(aeu);
        let (partition, home) = owner.partition(&self.object);
        let keys = self.operation.keys();
        let count = keys.map_or(1, |keys| keys.len());
        let done = match &self.operation {
            Operation::Get(keys, read) => {
                Operation::Found(partition.fetch(keys, &read.columns, snapshot(read)))
            }
            Operation::Range(keys, limit, read) => {
                let columns = &read.columns;
                Operation::Found(partition.fetch_range(keys, *limit, columns, snapshot(read)))
            }
            Operation::Change(change) => {
                Operation::Changed(partition.change(change, home, &sequencer))
            }
            Operation::Prepare(prepare) => Operation::Prepared(partition.prepare(prepare, home)),
            _ => unreachable!("a batch is executed once"),
        };
        loads.end_keys(aeu, timed, count, |some| {
            let ranges = self.object.ranges.get();
            let numbers = ranges.zip(keys);
            numbers.map_or_else(Vec::new, |(ranges, keys)| ranges.routing(&keys.pick(some)))
        });
        self.operation = done;
    }
}
