//! The part of a batch of keys that belongs to one owner: it goes there and comes back with what was found.

use super::KeyObject;
use eris_index::IndexError;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What is to be done with the keys.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operation {
    /// `values` become those of `keys`.
    Get,
    /// `entries` are put in; `values` become those that were there.
    Put,
    /// `values` become those that `keys` had.
    Remove,
    /// `entries` become those from `first` to `last`, so many at most.
    Range { first: u64, last: u64, limit: usize },
}

/// Keys and what belongs to them; the vectors keep their memory from batch to batch.
pub(crate) struct KeyBatch {
    object: Arc<KeyObject>,
    pub(super) operation: Operation,
    pub(super) keys: Vec<u64>,
    pub(super) entries: Vec<(u64, u64)>,
    pub(super) values: Vec<Option<u64>>,
    /// Why not all entries were put in.
    pub(super) failure: Option<IndexError>,
}

impl KeyBatch {
    pub(super) fn new(object: Arc<KeyObject>) -> Self {
        KeyBatch {
            object,
            operation: Operation::Get,
            keys: Vec::new(),
            entries: Vec::new(),
            values: Vec::new(),
            failure: None,
        }
    }

    /// Empties it for another operation.
    pub(super) fn begin(&mut self, operation: Operation) {
        self.operation = operation;
        self.keys.clear();
        self.entries.clear();
        self.values.clear();
        self.failure = None;
    }

    /// Whether its index was dropped.
    pub fn is_dropped(&self) -> bool {
        self.object.dropped.load(Ordering::Acquire)
    }
}
