//! Entries that lie one behind the other.
//!
//! ```text
//! length, 2 bytes │ entry │ length │ entry │ …
//! ```

use super::{OWNER_AND_ROW, parts};
use eris_types::{AeuId, RowId};

/// Entries, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Batch(Vec<u8>);

/// An entry and its first bytes as a number, in the order of entries.
pub(super) type Headed<'a> = (u128, &'a [u8]);

/// The first bytes of an entry as a number, in the order of entries.
pub(super) fn head(entry: &[u8]) -> u128 {
    if let Some(first) = entry.first_chunk() {
        return u128::from_be_bytes(*first);
    }
    let mut head = [0; 16];
    head[..entry.len()].copy_from_slice(entry);
    u128::from_be_bytes(head)
}

/// Puts an entry behind others.
#[inline]
pub(super) fn write_entry(bytes: &mut Vec<u8>, value: &[u8], owner: AeuId, row: RowId) {
    let mut tail = [0; OWNER_AND_ROW];
    tail[..2].copy_from_slice(&owner.0.to_be_bytes());
    tail[2..].copy_from_slice(&row.0.to_be_bytes());
    debug_assert_eq!(parts(&tail), (&[][..], owner, row));
    bytes.extend_from_slice(value);
    bytes.extend_from_slice(&tail);
}

impl Batch {
    /// None yet, with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Batch(Vec::with_capacity(bytes))
    }

    /// Of consecutive rows.
    pub fn new<'v>(owner: AeuId, values: impl Iterator<Item = &'v [u8]>, first: RowId) -> Self {
        let mut batch = Batch::default();
        for (row, value) in values.enumerate() {
            batch.push(value, owner, first.plus(row));
        }
        batch
    }

    /// Puts an entry behind the others.
    pub fn push(&mut self, value: &[u8], owner: AeuId, row: RowId) {
        self.push_length(value.len() + OWNER_AND_ROW);
        write_entry(&mut self.0, value, owner, row);
    }

    /// Puts one that is complete behind the others.
    #[inline]
    pub fn push_entry(&mut self, entry: &[u8]) {
        self.push_length(entry.len());
        self.0.extend_from_slice(entry);
    }

    #[inline]
    fn push_length(&mut self, bytes: usize) {
        let length = u16::try_from(bytes).expect("entries are short");
        self.0.extend_from_slice(&length.to_le_bytes());
    }

    /// Takes all entries of another one, which keeps its memory.
    pub fn take_all(&mut self, other: &mut Batch) {
        self.0.extend_from_slice(&other.0);
        other.0.clear();
    }

    /// Bytes of all entries.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Bytes that an entry takes in a batch.
    pub fn bytes_of(entry: &[u8]) -> usize {
        size_of::<u16>() + entry.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first_chunk()?;
            let (entry, behind) = behind.split_at(u16::from_le_bytes(*length).into());
            rest = behind;
            Some(entry)
        })
    }
}

/// The entries of batches in their order, each once.
pub(super) fn sorted<'a>(batches: impl Iterator<Item = &'a Batch>) -> Vec<&'a [u8]> {
    let entries: Vec<&[u8]> = batches.flat_map(Batch::iter).collect();
    let Some(first) = entries.first() else {
        return Vec::new();
    };
    let common = (entries.iter()).fold(first.len(), |common, entry| {
        let both = first[..common].iter().zip(*entry);
        both.take_while(|(a, b)| a == b).count()
    });
    // Most differ in the bytes behind what all have in common, which are compared at once.
    let heads = entries.iter().map(|entry| head_behind(entry, common));
    let mut order: Vec<(u64, u32)> = heads.zip(0..).collect();
    order.sort_unstable();
    let mut sorted: Vec<&[u8]> = order.iter().map(|(_, at)| entries[*at as usize]).collect();
    let mut begin = 0;
    for equal in order.chunk_by(|a, b| a.0 == b.0) {
        if equal.len() > 1 {
            sorted[begin..begin + equal.len()].sort_unstable();
        }
        begin += equal.len();
    }
    sorted.dedup();
    sorted
}

/// Eight bytes of an entry as a number, in the order of entries that have the bytes before in common.
fn head_behind(entry: &[u8], common: usize) -> u64 {
    let behind = &entry[common..];
    if let Some(first) = behind.first_chunk() {
        return u64::from_be_bytes(*first);
    }
    let mut head = [0; 8];
    head[..behind.len()].copy_from_slice(behind);
    u64::from_be_bytes(head)
}
