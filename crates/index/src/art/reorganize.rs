//! What is used together lies together: nodes on the way to the keys that are asked for most are moved into fresh
//! slabs, hottest first. (art-tlb-misses: *TLB misses – the missing issue of adaptive radix tree?*, Section 5.)
//!
//! ```text
//! lookups ──► Samples, a ring of some keys         Reorganization
//!             [ 7 3 7 9 7 3 … ] ──── by count ───► 7, 3, 9 … ──► the nodes and records on the way to 7, then to 3, …
//!                                                                moved into hot slabs, unless they are there already
//! ```
//! With small pages the few slabs that most lookups touch then have all their pages in the translation buffer; with any
//! pages, their lines lie densely in the caches' sets.
//!
//! It works in slices. Between them the tree may change, so each slice starts at the root. A node is copied, then its
//! one reference is set to the copy. What changes afterwards is as hot as before, for only growing and shrinking move a
//! node, and those are rare.

use super::node::{BranchNode, Prefix, with_inner, with_value};
use super::reference::{NodeKind, Ref};
use super::{Art, Key, Link};
use crate::IndexError;

/// A ring of keys that were asked for, some of many: the newest replace the oldest.
#[derive(Clone, Debug)]
pub struct Samples<K: Key + ?Sized> {
    keys: Vec<K::Owned>,
    capacity: usize,
    taken: u64,
    /// Where the next one goes.
    at: usize,
    /// One key of so many is taken, on average.
    every: u64,
    /// Keys to pass over until then.
    skip: u64,
    random: u64,
}

impl<K: Key + ?Sized> Samples<K> {
    /// Room for `capacity` keys, of which one in `every` is taken on average.
    ///
    /// # Panics
    /// If one of them is zero.
    pub fn new(capacity: usize, every: u64) -> Self {
        assert!(
            capacity > 0 && every > 0,
            "{capacity} samples, one of {every} keys"
        );
        Samples {
            keys: Vec::new(),
            capacity,
            taken: 0,
            at: 0,
            every,
            skip: 0,
            random: 0x9E37_79B9_7F4A_7C15,
        }
    }

    /// Notes keys that are being asked for.
    pub fn note(&mut self, keys: &[K::View<'_>]) {
        self.note_each(keys.len(), |position| keys[position]);
    }

    /// Notes so many keys that are being asked for, each by its position; `key` is asked for the few that are taken.
    pub fn note_each<'a>(&mut self, count: usize, key: impl Fn(usize) -> K::View<'a>) {
        let mut next = self.skip;
        while next < count as u64 {
            let key = K::own(key(next as usize));
            self.taken += 1;
            if self.keys.len() < self.capacity {
                self.keys.push(key);
            } else {
                self.keys[self.at] = key;
            }
            self.at = (self.at + 1) % self.capacity;
            // At random, or patterns in the keys would decide which are seen.
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            next += 1 + self.random % (2 * self.every - 1);
        }
        self.skip = next - count as u64;
    }

    /// Keys in the ring.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether none has been taken.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Keys taken so far, those included that newer ones have replaced.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// The keys of the ring, the oldest first; the ring is empty afterwards.
    pub fn take(&mut self) -> Vec<K::Owned> {
        let mut keys = std::mem::take(&mut self.keys);
        let oldest = std::mem::take(&mut self.at) % keys.len().max(1);
        keys.rotate_left(oldest);
        keys
    }

    /// The distinct keys of the ring with how often they are in it, the most frequent first.
    pub fn hottest(&self) -> Vec<(K::Owned, usize)> {
        let mut sorted = self.keys.clone();
        sorted.sort_unstable();
        let same = sorted.chunk_by(|a, b| a == b);
        let mut counted: Vec<_> = same.map(|keys| (keys[0].clone(), keys.len())).collect();
        counted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counted
    }
}

/// What a lookup touches of one node or record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The address of the node or record.
    pub address: usize,
    /// Its size in bytes.
    pub bytes: usize,
    /// Two addresses within it that the lookup reads, perhaps in one line: the keys, and the child if there is one.
    pub reads: [usize; 2],
}

/// A reorganisation under way.
#[derive(Debug)]
pub struct Reorganization<K: Key + ?Sized> {
    /// Hottest first.
    keys: Vec<K::Owned>,
    /// Of the keys, how many are done.
    done: usize,
    moved: usize,
    bytes: usize,
}

impl<K: Key + ?Sized> Reorganization<K> {
    /// Begins to move what leads to these keys, hottest first, such as [`Samples::hottest`] has them. What an earlier
    /// reorganisation made hot is ordinary memory from now on.
    pub fn begin(tree: &mut Art<K>, hottest: impl IntoIterator<Item = K::Owned>) -> Self {
        tree.space.cool();
        Reorganization {
            keys: hottest.into_iter().collect(),
            done: 0,
            moved: 0,
            bytes: 0,
        }
    }

    /// Of how many keys everything is moved, and of how many in all.
    pub fn progress(&self) -> (usize, usize) {
        (self.done, self.keys.len())
    }

    /// Nodes and records moved so far.
    pub fn moved(&self) -> usize {
        self.moved
    }

    /// Bytes of what was moved so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A slice: moves nodes and records until at least `most` were, or all is done; a key whose nodes are all moved
    /// already counts as one. Says whether all is done.
    ///
    /// # Errors
    /// No memory for another hot slab. The tree is sound, and what was moved stays so; the same slice may be tried
    /// again.
    pub fn step(&mut self, tree: &mut Art<K>, most: usize) -> Result<bool, IndexError> {
        let mut left = most;
        while left > 0
            && let Some(key) = self.keys.get(self.done)
        {
            let before = self.moved;
            tree.heat(K::view(key), &mut self.moved, &mut self.bytes)?;
            self.done += 1;
            left = left.saturating_sub((self.moved - before).max(1));
        }
        Ok(self.done == self.keys.len())
    }
}

impl<K: Key + ?Sized> Art<K> {
    /// Moves everything on the way to a key to hot slabs, and counts it and its bytes.
    fn heat(
        &mut self,
        key: K::View<'_>,
        moved: &mut usize,
        bytes: &mut usize,
    ) -> Result<(), IndexError> {
        let mut link = Link::ROOT;
        let mut at = self.root;
        let mut depth = 0;
        while !at.is_none() {
            // SAFETY: references in the tree lead to live nodes and records, and the kind says the type; the old place
            // is given back when the link leads to the copy.
            unsafe {
                if !self.space.is_hot(at) {
                    let copy = self.space.copy_hot(at)?;
                    self.set(link, copy);
                    self.space.give(at);
                    at = copy;
                    *moved += 1;
                    *bytes += self.space.slabs(at.kind()).slot_bytes(at.place());
                }
                let Some((below, byte, child)) = self.below_of(at, key, depth) else {
                    break;
                };
                link = Link { node: at, byte };
                (at, depth) = (child, below);
            }
        }
        Ok(())
    }

    /// What lies below a node on the way to a key, if anything does: its depth, the byte that leads to it, and it.
    ///
    /// # Safety
    /// The reference is one of the live tree, at this depth on the way to the key.
    unsafe fn below_of(&self, at: Ref, key: K::View<'_>, depth: usize) -> Option<(usize, u8, Ref)> {
        // SAFETY: by contract; the kind says the type.
        unsafe {
            with_inner!(at.kind(), N => {
                let byte = K::byte(key, depth)?;
                Some((depth + 1, byte, self.space.node::<N>(at).find(byte)?))
            }, NodeKind::Prefix => {
                let prefix = self.space.node::<Prefix>(at);
                let all = K::matching(prefix, key, depth) == prefix.bytes().len();
                all.then(|| (depth + prefix.bytes().len(), 0, prefix.child))
            }, _ => None)
        }
    }

    /// The nodes, and the record, that a lookup of this key goes through, from the root on: for models of caches and
    /// translation buffers.
    pub fn trace(&self, key: K::View<'_>, mut visit: impl FnMut(Visit)) {
        let mut at = self.root;
        let mut depth = 0;
        while !at.is_none() {
            // SAFETY: references in the tree lead to live nodes and records.
            unsafe {
                let address = self.space.pointer(at.kind(), at).addr().get();
                let child = self.child_address(at, key, depth);
                visit(Visit {
                    address,
                    bytes: self.space.slabs(at.kind()).slot_bytes(at.place()),
                    reads: match (at.kind(), child) {
                        // Without keys of their own.
                        (NodeKind::Inner256 | NodeKind::Value256, Some(child)) => [child; 2],
                        (_, child) => [address, child.unwrap_or(address)],
                    },
                });
                let Some((below, _, child)) = self.below_of(at, key, depth) else {
                    break;
                };
                (at, depth) = (child, below);
            }
        }
    }

    /// Where a node has its child on the way to a key, or the value, if it has one.
    ///
    /// # Safety
    /// The reference is one of the live tree, at this depth on the way to the key.
    unsafe fn child_address(&self, at: Ref, key: K::View<'_>, depth: usize) -> Option<usize> {
        // SAFETY: by contract; the kind says the type.
        unsafe {
            with_inner!(at.kind(), N => {
                let node = self.space.node::<N>(at);
                node.locate(K::byte(key, depth)?).map(|child| std::ptr::from_ref(child).addr())
            }, _ => with_value!(at.kind(), N => {
                let node = self.space.node::<N>(at);
                node.locate(K::byte(key, depth)?).map(|child| std::ptr::from_ref(child).addr())
            }, _ => None))
        }
    }
}
