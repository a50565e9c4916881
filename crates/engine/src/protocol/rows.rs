//! The part of an operation on rows that belongs to one owner: it goes there and comes back with what was found or
//! done.

use crate::held::partition::{Changed, Fetched, Prepare, Prepared, RowChange};
use crate::object::data_object::DataObject;
use crate::object::keys::{KeyRange, Keys};
use eris_home::Newest;
use eris_types::{AeuId, ColumnId, Timestamp};
use std::sync::Arc;

/// An operation on rows of one partition, and what came of it.
pub(crate) struct RowBatch {
    pub object: Arc<DataObject>,
    pub operation: RowOperation,
}

/// What is to be done, or was.
#[derive(Debug)]
pub(crate) enum RowOperation {
    /// Read the rows with these keys.
    Get(Arc<Keys>, Read),
    /// Read the rows with keys between two, so many at most.
    Range(KeyRange, usize, Read),
    /// What was read; `None` if the index knows newer rows than the snapshot.
    Found(Option<Fetched>),
    /// Change rows.
    Change(Box<RowChange>),
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
    pub at: ReadAt,
}

/// At which snapshot rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadAt {
    /// The newest, as the owner sees it.
    Newest(Newest),
    /// This one.
    Snapshot(Timestamp),
}

impl RowOperation {
    /// The keys that it names, if it does.
    pub fn keys(&self) -> Option<&Keys> {
        match self {
            RowOperation::Get(keys, _) => Some(keys),
            RowOperation::Change(change) => Some(&change.keys),
            RowOperation::Prepare(prepare) => Some(&prepare.keys),
            _ => None,
        }
    }

    /// The change that it is, if it is one.
    pub fn change(&self) -> Option<&RowChange> {
        match self {
            RowOperation::Change(change) => Some(change),
            _ => None,
        }
    }

    /// Whether some of its keys are not this AEU's, or were not when its snapshot was taken: they have been shifted
    /// since whoever asks has looked.
    pub fn is_elsewhere(
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
            RowOperation::Get(_, read) | RowOperation::Range(.., read) => snapshot(read),
            _ => Timestamp::NEVER,
        };
        let Some(ranges) = object.ranges.get() else {
            return false;
        };
        let is_other = |owner: AeuId| owner != aeu;
        ranges.since > snapshot
            || match self {
                RowOperation::Range(keys, ..) => ranges
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
    pub fn rejected(&self) -> RowOperation {
        match self {
            RowOperation::Change(_) => RowOperation::Changed(Changed::Busy),
            RowOperation::Prepare(_) => RowOperation::Prepared(Prepared::Busy),
            _ => RowOperation::Found(None),
        }
    }
}
