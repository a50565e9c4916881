//! The index of a partition's key: from keys to the rows that have them now.
//!
//! Keys change owners within a node by a tree that both [share](shared) until [each has its own](keyed): why that is so
//! is in docs/decisions/0023.

mod keyed;
mod shared;
mod span;
#[cfg(test)]
mod tests;

pub(crate) use keyed::Unsharing;

use crate::held::reorganize::{Reorganizable, Watched};
use crate::object::keys::{KeyRange, Keys, is_word};
use arrow_schema::DataType;
use eris_column::ObjectMemory;
use eris_index::{Art, IndexError};
use eris_numa::Extent;
use eris_types::RowId;
use keyed::Keyed;
use shared::Shared;
use span::Span;
use std::ops::{Bound, Range};

/// From keys to the rows that have them now, in one partition.
pub(crate) enum PrimaryIndex {
    Words(Keyed<u64>),
    Bytes(Keyed<[u8]>),
}

/// Entries of some keys for another owner, in a tree that it shares.
pub(crate) enum SharedKeys {
    Words(Shared<u64>),
    Bytes(Shared<[u8]>),
}

impl PrimaryIndex {
    /// For keys of columns of these types.
    pub fn new<'a>(types: impl Iterator<Item = &'a DataType>, home: ObjectMemory<'_>) -> Self {
        let memory = home.memory.clone();
        match is_word(types) {
            true => PrimaryIndex::Words(Watched::new(memory, home.object).into()),
            false => PrimaryIndex::Bytes(Watched::new(memory, home.object).into()),
        }
    }

    /// Of numbers, in a tree that was built.
    pub fn of_words(tree: Art<u64>) -> Self {
        PrimaryIndex::Words(Watched::from(tree).into())
    }

    /// Of bytes, likewise.
    pub fn of_bytes(tree: Art<[u8]>) -> Self {
        PrimaryIndex::Bytes(Watched::from(tree).into())
    }

    /// Adds keys of some rows unless they are there, one after the other; per key the row that has it then. Stops at
    /// the first for which there is no room, and says why. The rows' ids are those from that of row 0 on.
    pub fn insert(
        &mut self,
        keys: &Keys,
        rows: Range<usize>,
        first: RowId,
    ) -> (Vec<Option<RowId>>, Option<IndexError>) {
        let mut present = vec![None; rows.len()];
        let id = |row: usize| first.plus(row);
        let inserted = match (self, keys) {
            (PrimaryIndex::Words(index), Keys::Words(words)) => {
                let entries: Vec<_> = rows.map(|row| (words[row], id(row).0)).collect();
                index.insert_many(&entries, &mut present)
            }
            (PrimaryIndex::Bytes(index), keys) => {
                let entries = rows.map(|row| (keys.bytes(row), id(row).0));
                let entries: Vec<_> = entries.collect();
                index.insert_many(&entries, &mut present)
            }
            _ => unreachable!("keys of other columns"),
        };
        let failure = inserted.err().map(|failed| {
            present.truncate(failed.done);
            failed.error
        });
        let present = present.into_iter().map(|other| other.map(RowId));
        (present.collect(), failure)
    }

    /// Gives a key to a row; the row that has had it.
    pub fn upsert(
        &mut self,
        keys: &Keys,
        row: usize,
        id: RowId,
    ) -> Result<Option<RowId>, IndexError> {
        let before = match (self, keys) {
            (PrimaryIndex::Words(index), Keys::Words(words)) => index.upsert(words[row], id.0),
            (PrimaryIndex::Bytes(index), keys) => index.upsert(keys.bytes(row), id.0),
            _ => unreachable!("keys of other columns"),
        };
        before.map(|before| before.map(RowId))
    }

    /// Gives a key that is there to another row.
    pub fn replace(&mut self, keys: &Keys, row: usize, id: RowId) {
        assert!(
            matches!(self.upsert(keys, row, id), Ok(Some(_))),
            "replacing the value of a key needs no memory"
        );
    }

    /// The rows that have the keys.
    pub fn get_many(&self, keys: &Keys) -> Vec<Option<RowId>> {
        let mut values = vec![None; keys.len()];
        match (self, keys) {
            (PrimaryIndex::Words(index), Keys::Words(words)) => index.get_many(words, &mut values),
            (PrimaryIndex::Bytes(index), keys) => {
                let keys: Vec<&[u8]> = (0..keys.len()).map(|row| keys.bytes(row)).collect();
                index.get_many(&keys, &mut values);
            }
            _ => unreachable!("keys of other columns"),
        }
        values.into_iter().map(|value| value.map(RowId)).collect()
    }

    /// The rows whose keys lie between two, `limit` at most, in the order of their keys.
    pub fn range(&self, keys: &KeyRange, limit: usize) -> Vec<RowId> {
        let mut rows = Vec::new();
        if limit > 0 {
            self.visit(keys, false, |row| {
                rows.push(row);
                rows.len() < limit
            });
        }
        rows
    }

    /// Visits the rows whose keys lie between two in the order of their keys, or backwards, until `visit` says no.
    pub fn visit(&self, keys: &KeyRange, descending: bool, mut visit: impl FnMut(RowId) -> bool) {
        match (self, keys) {
            (PrimaryIndex::Words(index), KeyRange::Words((from, to))) => {
                let bounds = (from.as_ref(), to.as_ref());
                index.visit(bounds, descending, |_, row| visit(RowId(row)));
            }
            (PrimaryIndex::Bytes(index), KeyRange::Bytes((from, to))) => {
                let kept = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|key| Box::from(&key[..]));
                let (from, to) = (kept(from), kept(to));
                let bounds = (from.as_ref(), to.as_ref());
                index.visit(bounds, descending, |_, row| visit(RowId(row)));
            }
            _ => unreachable!("keys of other columns"),
        }
    }

    /// Visits the keys between two, as bytes, and their rows, in the order of the keys, until `visit` says no.
    pub fn visit_keys(&self, keys: &KeyRange, mut visit: impl FnMut(Box<[u8]>, RowId) -> bool) {
        match (self, keys) {
            (PrimaryIndex::Words(index), KeyRange::Words((from, to))) => {
                let bounds = (from.as_ref(), to.as_ref());
                index.visit(bounds, false, |key, row| {
                    visit(Box::new(key.to_be_bytes()), RowId(row))
                });
            }
            (PrimaryIndex::Bytes(index), KeyRange::Bytes((from, to))) => {
                let kept = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|key| Box::from(&key[..]));
                let (from, to) = (kept(from), kept(to));
                let bounds = (from.as_ref(), to.as_ref());
                index.visit(bounds, false, |key, row| visit(Box::from(key), RowId(row)));
            }
            _ => unreachable!("keys of other columns"),
        }
    }

    /// The rows that have keys that are numbers.
    pub fn rows_of_words(&self, words: &[u64]) -> Vec<Option<u64>> {
        let mut found = vec![None; words.len()];
        match self {
            PrimaryIndex::Words(index) => index.get_many(words, &mut found),
            PrimaryIndex::Bytes(_) => unreachable!("keys of other columns"),
        }
        found
    }

    /// The rows that have keys that are bytes.
    pub fn rows_of_bytes(&self, keys: &[&[u8]]) -> Vec<Option<u64>> {
        let mut found = vec![None; keys.len()];
        match self {
            PrimaryIndex::Bytes(index) => index.get_many(keys, &mut found),
            PrimaryIndex::Words(_) => unreachable!("keys of other columns"),
        }
        found
    }

    /// Whether keys are numbers.
    pub fn has_words(&self) -> bool {
        matches!(self, PrimaryIndex::Words(_))
    }

    /// Shares keys with another owner: the part that it gets; from the first to before the end. `None`: some of them
    /// have come lately, and are in a shared tree still.
    pub fn share(&mut self, keys: &KeyRange) -> Option<SharedKeys> {
        match self {
            PrimaryIndex::Words(index) => index.share(&word_span(keys)).map(SharedKeys::Words),
            PrimaryIndex::Bytes(index) => index.share(&byte_span(keys)).map(SharedKeys::Bytes),
        }
    }

    /// Whether keys can be [shared](Self::share).
    pub fn can_share(&self, keys: &KeyRange) -> bool {
        match self {
            PrimaryIndex::Words(index) => index.can_share(&word_span(keys)),
            PrimaryIndex::Bytes(index) => index.can_share(&byte_span(keys)),
        }
    }

    /// Keys that were [shared](Self::share) are another owner's from now on.
    pub fn give(&mut self, keys: &KeyRange) {
        match self {
            PrimaryIndex::Words(index) => index.give(word_span(keys)),
            PrimaryIndex::Bytes(index) => index.give(byte_span(keys)),
        }
    }

    /// Takes over keys that another owner has shared.
    pub fn take(&mut self, keys: SharedKeys) {
        match (self, keys) {
            (PrimaryIndex::Words(index), SharedKeys::Words(keys)) => index.take(keys),
            (PrimaryIndex::Bytes(index), SharedKeys::Bytes(keys)) => index.take(keys),
            _ => unreachable!("keys of other columns"),
        }
    }

    /// Whether its tree has all of its entries, and no others.
    pub fn is_unshared(&self) -> bool {
        match self {
            PrimaryIndex::Words(index) => index.is_unshared(),
            PrimaryIndex::Bytes(index) => index.is_unshared(),
        }
    }

    /// Brings some entries to where they belong.
    ///
    /// # Errors
    /// No memory.
    pub fn unshare(&mut self) -> Result<Unsharing, IndexError> {
        match self {
            PrimaryIndex::Words(index) => index.unshare(),
            PrimaryIndex::Bytes(index) => index.unshare(),
        }
    }

    /// The row that has the key.
    pub fn get(&self, keys: &Keys, row: usize) -> Option<RowId> {
        let found = match (self, keys) {
            (PrimaryIndex::Words(index), Keys::Words(words)) => index.get(words[row]),
            (PrimaryIndex::Bytes(index), keys) => index.get(keys.bytes(row)),
            _ => unreachable!("keys of other columns"),
        };
        found.map(RowId)
    }

    /// For what has nothing to do with the keys.
    pub fn reorganizable(&mut self) -> &mut dyn Reorganizable {
        match self {
            PrimaryIndex::Words(index) => &mut index.own,
            PrimaryIndex::Bytes(index) => &mut index.own,
        }
    }

    /// The memory of its tree.
    pub fn extents(&self, all: &mut Vec<Extent>) {
        match self {
            PrimaryIndex::Words(index) => index.extents(all),
            PrimaryIndex::Bytes(index) => index.extents(all),
        }
    }

    /// Whether no key is there.
    pub fn is_empty(&self) -> bool {
        match self {
            PrimaryIndex::Words(index) => index.is_empty(),
            PrimaryIndex::Bytes(index) => index.is_empty(),
        }
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        match self {
            PrimaryIndex::Words(index) => index.clear(),
            PrimaryIndex::Bytes(index) => index.clear(),
        }
    }

    /// Gives back memory in which nothing is left.
    pub fn trim(&mut self) {
        match self {
            PrimaryIndex::Words(index) => index.own.trim(),
            PrimaryIndex::Bytes(index) => index.own.trim(),
        }
    }

    /// Removes a key.
    pub fn remove(&mut self, keys: &Keys, row: usize) {
        match (self, keys) {
            (PrimaryIndex::Words(index), Keys::Words(words)) => index.remove(words[row]),
            (PrimaryIndex::Bytes(index), keys) => index.remove(keys.bytes(row)),
            _ => unreachable!("keys of other columns"),
        };
    }
}

/// The span of keys from the first to before the end.
fn word_span(keys: &KeyRange) -> Span<u64> {
    let KeyRange::Words(bounds) = keys else {
        unreachable!("keys of other columns");
    };
    match *bounds {
        (Bound::Excluded(_), _) | (_, Bound::Included(_)) => unreachable!("no ends of a span"),
        (low, end) => Span {
            low: key_of(low),
            end: key_of(end),
        },
    }
}

fn byte_span(keys: &KeyRange) -> Span<[u8]> {
    let KeyRange::Bytes(bounds) = keys else {
        unreachable!("keys of other columns");
    };
    match bounds.clone() {
        (Bound::Excluded(_), _) | (_, Bound::Included(_)) => unreachable!("no ends of a span"),
        (low, end) => Span {
            low: key_of(low).map(Into::into),
            end: key_of(end).map(Into::into),
        },
    }
}

fn key_of<T>(bound: Bound<T>) -> Option<T> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}
