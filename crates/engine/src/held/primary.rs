//! The index of a partition's key: from keys to the rows that have them now.

use crate::held::reorganize::{Reorganizable, Watched};
use crate::object::keys::{KeyRange, Keys, is_word};
use arrow_schema::DataType;
use eris_column::ObjectMemory;
use eris_index::IndexError;
use eris_numa::Extent;
use eris_types::RowId;
use std::ops::{Bound, Range};

/// From keys to the rows that have them now, in one partition.
#[derive(Debug)]
pub(crate) enum PrimaryIndex {
    Words(Watched<u64>),
    Bytes(Watched<[u8]>),
}

impl PrimaryIndex {
    /// For keys of columns of these types.
    pub fn new<'a>(types: impl Iterator<Item = &'a DataType>, home: ObjectMemory<'_>) -> Self {
        let memory = home.memory.clone();
        match is_word(types) {
            true => PrimaryIndex::Words(Watched::new(memory, home.object)),
            false => PrimaryIndex::Bytes(Watched::new(memory, home.object)),
        }
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
        let rows: Vec<u64> = match (self, keys) {
            (PrimaryIndex::Words(index), KeyRange::Words(bounds)) => {
                let range = index.range(*bounds);
                range.map(|(_, row)| row).take(limit).collect()
            }
            (PrimaryIndex::Bytes(index), KeyRange::Bytes((from, to))) => {
                let bounds = (bound(from), bound(to));
                let range = index.range(bounds);
                range.map(|(_, row)| row).take(limit).collect()
            }
            _ => unreachable!("keys of other columns"),
        };
        rows.into_iter().map(RowId).collect()
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
            PrimaryIndex::Words(index) => index,
            PrimaryIndex::Bytes(index) => index,
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
            PrimaryIndex::Words(index) => index.trim(),
            PrimaryIndex::Bytes(index) => index.trim(),
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

fn bound(of: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    of.as_ref().map(Vec::as_slice)
}
