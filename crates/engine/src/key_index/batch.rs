//! The part of a batch of keys that belongs to one owner: it goes there and comes back with what was found. What
//! belongs to another owner by now goes on to that one before it comes back.

use super::object::KeyObject;
use super::shift::Shift;
use eris_index::IndexError;
use std::sync::Arc;

/// What is to be done with the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyOperation {
    /// `values` become those of `keys`.
    Get,
    /// `entries` are put in; `values` become those that were there.
    Put,
    /// `values` become those that `keys` had.
    Remove,
    /// `entries` become those within `rest`, and `runs` tell of which range they are.
    Ranges,
}

/// What is still to be done.
#[derive(Debug)]
pub(crate) enum Rest {
    /// All keys.
    All,
    /// Those at these positions, ascending.
    Positions(Vec<u32>),
    /// Parts of ranges that are to be read.
    Reads(Vec<RangeRead>),
}

/// What is to be read of a range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangeRead {
    /// The number of the range.
    pub range: usize,
    /// From this key on.
    pub low: u64,
    /// To this one.
    pub high: u64,
    /// So many entries at most of each owner.
    pub limit: usize,
}

/// Keys and what belongs to them; the vectors keep their memory from batch to batch.
pub(crate) struct KeyBatch {
    pub(crate) object: Arc<KeyObject>,
    pub(crate) operation: KeyOperation,
    pub(crate) keys: Vec<u64>,
    pub(crate) entries: Vec<(u64, u64)>,
    /// Of whom the entries are that were read, in their order: the range, and how many.
    pub(crate) runs: Vec<(usize, usize)>,
    pub(crate) values: Vec<Option<u64>>,
    pub(crate) rest: Rest,
    /// Why not all entries were put in.
    pub(crate) failure: Option<IndexError>,
    /// Keys that have another owner than the tables say, so that the batch took a detour.
    pub(crate) news: Option<Shift>,
}

impl KeyBatch {
    pub(crate) fn new(object: Arc<KeyObject>) -> Self {
        KeyBatch {
            object,
            operation: KeyOperation::Get,
            keys: Vec::new(),
            entries: Vec::new(),
            runs: Vec::new(),
            values: Vec::new(),
            rest: Rest::All,
            failure: None,
            news: None,
        }
    }

    /// Empties it for another operation.
    pub(crate) fn begin(&mut self, operation: KeyOperation) {
        self.operation = operation;
        self.keys.clear();
        self.entries.clear();
        self.runs.clear();
        self.values.clear();
        self.rest = Rest::All;
        self.failure = None;
        self.news = None;
    }

    /// Whether its index was dropped.
    pub fn is_dropped(&self) -> bool {
        self.object.is_dropped()
    }

    /// For how many keys something is still to be done, or for how many parts of ranges.
    pub(crate) fn left(&self) -> usize {
        match &self.rest {
            Rest::All => self.keys.len().max(self.entries.len()),
            Rest::Positions(positions) => positions.len(),
            Rest::Reads(reads) => reads.len(),
        }
    }

    /// The first key for which something is still to be done; none once the batch can go back.
    pub(crate) fn next_key(&self) -> Option<u64> {
        let key = |position: u32| match self.operation {
            KeyOperation::Put => self.entries[position as usize].0,
            _ => self.keys[position as usize],
        };
        match &self.rest {
            Rest::All => None,
            Rest::Positions(positions) => positions.first().map(|&position| key(position)),
            Rest::Reads(reads) => reads.first().map(|read| read.low),
        }
    }
}
