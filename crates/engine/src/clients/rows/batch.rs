//! The part of an operation on rows that belongs to one owner: it goes there and comes back with what was found or done.

use crate::held::partition::{Change, Changed, Fetched, Prepare, Prepared};
use crate::object::data_object::DataObject;
use crate::object::keys::{KeyRange, Keys};
use crate::tasks::owner::Owner;
use eris_types::{AeuId, ColumnId, Timestamp};
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

    /// Whether some of its keys are not this AEU's, or were not when its snapshot was taken: they have been shifted since whoever asks has looked.
    fn is_elsewhere(
        &self,
        object: &DataObject,
        aeu: AeuId,
        snapshot: impl Fn(&Read) -> Timestamp,
    ) -> bool {
        if !object.ranges.has_shifted() {
            return false;
        }
        // First the snapshot: what it shows was published before.
        let snapshot = match self {
            Operation::Get(_, read) | Operation::Range(.., read) => snapshot(read),
            _ => Timestamp::NEVER,
        };
        let Some(ranges) = object.ranges.get() else {
            return false;
        };
        let is_other = |owner: AeuId| owner != aeu;
        ranges.since > snapshot
            || match self {
                Operation::Range(keys, ..) => ranges
                    .parts(keys)
                    .into_iter()
                    .any(|(owner, _)| is_other(owner)),
                _ => self.keys().is_some_and(|keys| {
                    let mut numbers = ranges.routing(keys).into_iter();
                    numbers.any(|number| is_other(ranges.get(number)))
                }),
            }
    }

    /// The answer to who has to look again whose the keys are.
    fn refused(&self) -> Operation {
        match self {
            Operation::Change(_) => Operation::Changed(Changed::Busy),
            Operation::Prepare(_) => Operation::Prepared(Prepared::Busy),
            _ => Operation::Found(None),
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
            operation if operation.is_elsewhere(&self.object, aeu, snapshot) => operation.refused(),
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
