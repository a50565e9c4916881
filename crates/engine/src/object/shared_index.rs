//! A secondary index that is one tree for all owners of a data object.
//!
//! ```text
//! entry    columns, as in any ordered index │ owner, 2 bytes │ row id, 8 bytes        big-endian
//!
//! 'Lyon'   ┌─ of owner 0 ─┐ ┌─ of owner 3 ─┐
//!          … 0, 7   … 0, 12   … 3, 9                  owners 0 and 3 are asked, no others
//! ```
//!
//! An entry names the owner who has entered it, and only that one takes it out. So nobody has to know which owner has a
//! row: of rows that two owners have, since their keys have moved, there are two entries (docs/decisions/0041).

mod batch;
mod build;

pub(crate) use batch::Batch;
pub(crate) use build::{Gathered, SharedBuild};

use crate::object::coding::{ByteRange, ByteRanges};
use batch::sorted;
use eris_blink::{Entries, PutError, Statistics, Tree};
use eris_numa::{Extent, NodeMemory, OutOfMemory};
use eris_types::{AeuId, ObjectId, RowId};
use std::fmt;
use std::ops::Bound;

/// Bytes behind the columns: of the owner and the row id.
const OWNER_AND_ROW: usize = 10;

/// Bytes of columns that an entry has room for.
pub(crate) const COLUMN_BYTES: usize = eris_blink::KEY_BYTES - OWNER_AND_ROW;

/// Leaves that are looked through in one go.
const SWEPT_LEAVES: usize = 64;

/// Entries that a lookup takes out, of rows that are gone.
const CLEANED: usize = 8_192;

/// So many more entries of rows that are there are met before it ends: there is little to take out.
const KEPT: usize = 256;

/// Entries of other owners that are passed meanwhile.
const PASSED: usize = 1 << 16;

/// The tree.
pub(crate) struct SharedIndex {
    tree: Tree<[u8]>,
    /// On this one's node it lies.
    pub home: AeuId,
}

impl SharedIndex {
    /// An empty one, in the memory of its home's node.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(home: AeuId, memory: NodeMemory, object: ObjectId) -> Result<Self, OutOfMemory> {
        let tree = Tree::of_bytes(memory, object)?;
        Ok(SharedIndex { tree, home })
    }

    /// Enters consecutive rows of an owner. How many were not there.
    ///
    /// # Errors
    /// No memory. None of them is there then.
    pub fn enter<'v>(
        &self,
        owner: AeuId,
        values: impl Iterator<Item = &'v [u8]>,
        first: RowId,
    ) -> Result<usize, PutError> {
        let batch = Batch::new(owner, values, first);
        // So leaves are held once for many of them.
        let entries = sorted(std::iter::once(&batch));
        let entries: Vec<(&[u8], u64)> = entries.iter().map(|entry| (*entry, 0)).collect();
        let mut new = entries.len();
        let put = self.tree.put_many(&entries, |_, _| new -= 1);
        if let Err(error) = put {
            self.remove(entries.iter().map(|(entry, _)| *entry));
            return Err(error);
        }
        Ok(new)
    }

    /// Takes consecutive rows of an owner out. How many were there.
    pub fn leave<'v>(
        &self,
        owner: AeuId,
        values: impl Iterator<Item = &'v [u8]>,
        first: RowId,
    ) -> usize {
        let batch = Batch::new(owner, values, first);
        let entries = sorted(std::iter::once(&batch));
        self.remove(entries.iter().copied())
    }

    fn remove<'e>(&self, entries: impl Iterator<Item = &'e [u8]>) -> usize {
        let entries: Vec<&[u8]> = entries.collect();
        let mut removed = 0;
        self.tree.remove_many(&entries, |_, _| removed += 1);
        removed
    }

    /// The rows of ranges and their owners, in no order. `None`: this takes more than so many steps.
    pub fn find(&self, ranges: &ByteRanges, most: usize) -> Option<Vec<(AeuId, RowId)>> {
        let mut found = Vec::new();
        let mut entries = Entries::default();
        for (number, range) in ranges.iter().enumerate() {
            let mut leaves = self.tree.range(bounds(range));
            while leaves.next_leaf(&mut entries) {
                if number + found.len() + entries.len() > most {
                    return None;
                }
                found.extend(entries.iter().map(|(key, _)| {
                    let (_, owner, row) = parts(key);
                    (owner, row)
                }));
            }
        }
        Some(found)
    }

    /// Shows entries of a range in order, or from its end: the columns, the owner and the row. `visit` says whether to
    /// go on; so does this.
    pub fn walk(
        &self,
        range: &ByteRange,
        descending: bool,
        mut visit: impl FnMut(&[u8], AeuId, RowId) -> bool,
    ) -> bool {
        let mut leaves = self.tree.range(bounds(range));
        let mut entries = Entries::default();
        let mut show = |(key, _): (&[u8], u64)| {
            let (columns, owner, row) = parts(key);
            visit(columns, owner, row)
        };
        loop {
            let goes_on = match descending {
                true if leaves.next_leaf_back(&mut entries) => entries.iter().rev().all(&mut show),
                false if leaves.next_leaf(&mut entries) => entries.iter().all(&mut show),
                _ => return true,
            };
            if !goes_on {
                return false;
            }
        }
    }

    /// Takes out entries of an owner whose rows are gone, of those that come first in ranges, or last in each, until
    /// most are of rows that are there. How many.
    ///
    /// Each owner gets as far as the others, however many entries they have. An order in which one comes much later
    /// than the others is of no use to queries, so they would not clean it.
    pub fn clean<'r>(
        &self,
        owner: AeuId,
        ranges: impl Iterator<Item = &'r ByteRange>,
        from_end: bool,
        is_gone: &impl Fn(RowId) -> bool,
    ) -> usize {
        let (mut removed, mut kept, mut passed) = (0, 0, 0);
        let mut entries = Entries::default();
        for range in ranges {
            let mut leaves = self.tree.range(bounds(range));
            while removed < CLEANED
                && kept < removed + KEPT
                && passed < PASSED
                && match from_end {
                    true => leaves.next_leaf_back(&mut entries),
                    false => leaves.next_leaf(&mut entries),
                }
            {
                let (own, gone) = self.remove_gone(owner, &entries, is_gone);
                removed += gone;
                kept += own - gone;
                passed += entries.len() - own;
            }
        }
        removed
    }

    /// The same of all in some leaves behind an entry, or from the beginning. How many were taken out, and the entry
    /// behind which it goes on; `None`: that was all.
    pub fn sweep(
        &self,
        owner: AeuId,
        behind: Option<&[u8]>,
        is_gone: impl Fn(RowId) -> bool,
    ) -> (usize, Option<Vec<u8>>) {
        let mut removed = 0;
        let last = self.some_leaves(behind, |entries| {
            removed += self.remove_gone(owner, entries, &is_gone).1;
        });
        (removed, last)
    }

    /// Shows the entries of some leaves behind one, or from the beginning. The entry behind which it goes on; `None`:
    /// that was all.
    fn some_leaves(
        &self,
        behind: Option<&[u8]>,
        mut show: impl FnMut(&Entries),
    ) -> Option<Vec<u8>> {
        let low = behind.map_or(Bound::Unbounded, Bound::Excluded);
        let mut leaves = self.tree.range((low, Bound::Unbounded));
        let mut entries = Entries::default();
        let mut last = None;
        for _ in 0..SWEPT_LEAVES {
            if !leaves.next_leaf(&mut entries) {
                return None;
            }
            if let Some((key, _)) = entries.iter().next_back() {
                last = Some(key.to_vec());
            }
            show(&entries);
        }
        last
    }

    /// How many of these entries are an owner's, and how many of them were taken out.
    fn remove_gone(
        &self,
        owner: AeuId,
        entries: &Entries,
        is_gone: &impl Fn(RowId) -> bool,
    ) -> (usize, usize) {
        let mut own = 0;
        let gone = entries.iter().filter_map(|(entry, _)| {
            let (_, other, row) = parts(entry);
            own += usize::from(other == owner);
            (other == owner && is_gone(row)).then_some(entry)
        });
        let gone = self.remove(gone);
        (own, gone)
    }

    /// The memory that it is.
    pub fn extents(&self, all: &mut Vec<Extent>) {
        self.tree.extents(all);
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> u64 {
        self.tree.bytes() as u64
    }

    /// What it looks like. This reads all leaves.
    pub fn statistics(&self) -> Statistics {
        self.tree.statistics()
    }
}

impl fmt::Debug for SharedIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedIndex({} levels)", self.tree.height())
    }
}

fn bounds(range: &ByteRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    let high = range.high.as_deref();
    let high = high.map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(&range.low), high)
}

/// The columns of an entry, its owner and its row.
fn parts(key: &[u8]) -> (&[u8], AeuId, RowId) {
    let (columns, tail) = key.split_at(key.len() - OWNER_AND_ROW);
    let tail: [u8; OWNER_AND_ROW] = tail.try_into().expect("an entry has a tail");
    let [a, b, row @ ..] = tail;
    let owner = AeuId(u16::from_be_bytes([a, b]));
    (columns, owner, RowId(u64::from_be_bytes(row)))
}
