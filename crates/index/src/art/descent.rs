//! A group of keys on its way down.
//!
//! A lookup in a large tree is a chain of cache misses, and between them branches that nobody can predict: what kind of
//! node comes next. A group of keys takes both out of each other's way. All keys go down level by level; in each round
//! every key does one step, whose memory was asked for one round before:
//!
//! ```text
//! lists of this round            one loop per list, in which nothing depends on the kind          lists of the next
//! Inner256  [ 3 0 7 9 … ]  ──►   child = node[byte of key]                                        Inner6  [ 3 … ]
//! Inner6    [ 1 4 … ]            kind of child ──► which list;  place of child ──► prefetch ──►   Record  [ 0 7 1 … ]
//! Record    [ 2 8 … ]            is this the key? done                                            …
//! ```
//!
//! The list is chosen by an index instead of a branch: the kind lies in the reference, so that nothing of the child
//! itself is needed for it. Wide nodes have their child in another line than the byte that leads to it; for them there
//! is a step between, in the lists of children and values that are still under way.

use super::node::{BranchNode, Inner6, Inner12, Inner25, Inner51, Inner256, Node, Prefix};
use super::node::{Value7, Value14, Value28, Value56, Value256};
use super::reference::{KINDS, NodeKind, Ref};
use super::space::unit;
use super::{Art, Key};
use crate::LINE;
use crate::prefetch::prefetch;
use crate::slabs::SLAB_BITS;
use std::ptr::NonNull;

/// Keys that go down together.
pub(super) const LANES: usize = 64;

/// The list of children under way takes the place of references to nothing, which need none.
const CHILD: usize = NodeKind::None as usize;
/// The list of values under way.
const VALUE: usize = KINDS;
const LISTS: usize = KINDS + 1;

/// Which lanes are at which kind of node.
struct Lists {
    lanes: [[u8; LANES]; LISTS],
    lengths: [u8; LISTS],
}

impl Lists {
    const EMPTY: Lists = Lists {
        lanes: [[0; LANES]; LISTS],
        lengths: [0; LISTS],
    };

    #[inline(always)]
    fn push(&mut self, list: usize, lane: u8) {
        // A lane is in one list at a time, so that none gets longer than there are lanes.
        self.lanes[list][self.lengths[list] as usize % LANES] = lane;
        self.lengths[list] += 1;
    }

    #[inline(always)]
    fn of(&self, list: usize) -> &[u8] {
        &self.lanes[list][..self.lengths[list] as usize]
    }
}

/// How to get from a reference to an address, by kind.
#[derive(Clone, Copy)]
struct Way {
    bases: *const NonNull<u8>,
    unit: u32,
    /// Lines per byte of the key in nodes that have all of them, times 2¹⁶.
    scale: u32,
    /// Distance to the second line to ask for; zero if there is none.
    second: usize,
}

/// Groups on their way down, one after the other.
pub(super) struct Descent<'a, K: Key + ?Sized> {
    lanes: Lanes<'a, K>,
    /// Of this round and of the next, in turn.
    lists: [Lists; 2],
}

struct Lanes<'a, K: Key + ?Sized> {
    tree: &'a Art<K>,
    ways: [Way; KINDS],
    /// By lane: where its node lies, or the child or value that is under way.
    places: [NonNull<u8>; LANES],
    /// By lane: bytes of the key that lie above.
    depths: [u32; LANES],
}

impl<'a, K: Key + ?Sized> Descent<'a, K> {
    pub(super) fn new(tree: &'a Art<K>) -> Self {
        let way = |kind: usize| {
            let slabs = tree.space.slabs(KIND[kind]);
            Way {
                bases: slabs.bases(),
                unit: unit(KIND[kind]),
                scale: match KIND[kind] {
                    NodeKind::Inner256 => (1 << 16) / 16,
                    NodeKind::Value256 => (1u32 << 16).div_ceil(7),
                    _ => 0,
                },
                second: match KIND[kind] {
                    NodeKind::Inner25 | NodeKind::Value14 => LINE,
                    _ => 0,
                },
            }
        };
        Descent {
            lanes: Lanes {
                tree,
                ways: std::array::from_fn(way),
                places: [NonNull::dangling(); LANES],
                depths: [0; LANES],
            },
            lists: [Lists::EMPTY; 2],
        }
    }

    /// Looks up up to [`LANES`] keys and tells what is found, by lane, each lane once, in any order.
    pub(super) fn run<'k>(
        &mut self,
        lanes: usize,
        key: impl Fn(usize) -> K::View<'k>,
        mut found: impl FnMut(usize, Option<u64>),
    ) {
        let root = self.lanes.tree.root;
        if root.is_none() {
            (0..lanes).for_each(|lane| found(lane, None));
            return;
        }
        let [now, next] = &mut self.lists;
        let (mut now, mut next) = (now, next);
        for lane in 0..lanes {
            self.lanes.advance(next, lane as u8, key(lane), root, 0);
        }
        while next.lengths != [0; LISTS] {
            std::mem::swap(&mut now, &mut next);
            // SAFETY: `advance` has put each lane in the list of what lies at its place.
            unsafe { self.lanes.round(now, next, &key, &mut found) };
            now.lengths = [0; LISTS];
        }
    }
}

impl<K: Key + ?Sized> Lanes<'_, K> {
    /// Sends a lane on to a child below `depth` bytes.
    #[inline(always)]
    fn advance(&mut self, next: &mut Lists, lane: u8, key: K::View<'_>, child: Ref, depth: u32) {
        let kind = child.kind() as usize;
        let way = &self.ways[kind];
        let in_slab = SLAB_BITS - way.unit;
        let place = child.place() as usize;
        let offset = (place & ((1 << in_slab) - 1)) << way.unit;
        // SAFETY: the child is one of the live tree, so that its slab exists and reaches beyond the offset.
        let start = unsafe { (*way.bases.add(place >> in_slab)).add(offset) };
        let byte = K::byte(key, depth as usize).unwrap_or(0);
        let line = ((u32::from(byte) * way.scale) >> 16) as usize * LINE;
        prefetch(start.map_addr(|start| start.saturating_add(line)));
        prefetch(start.map_addr(|start| start.saturating_add(line + way.second)));
        self.places[lane as usize] = start;
        self.depths[lane as usize] = depth;
        next.push(kind, lane);
    }

    /// The lanes at inner nodes of one class.
    ///
    /// # Safety
    /// The lanes have places of live nodes of the kind of `N`, or of what else their list is for. So below.
    #[inline(always)]
    unsafe fn inner<'k, N: BranchNode<Child = Ref>>(
        &mut self,
        now: &Lists,
        next: &mut Lists,
        key: &impl Fn(usize) -> K::View<'k>,
        found: &mut impl FnMut(usize, Option<u64>),
    ) {
        for &lane in now.of(N::KIND as usize) {
            let depth = self.depths[lane as usize];
            // SAFETY: by contract; the tree is borrowed.
            let node = unsafe { self.places[lane as usize].cast::<N>().as_ref() };
            let byte = K::byte(key(lane as usize), depth as usize);
            let Some(child) = byte.and_then(|byte| node.locate(byte)) else {
                found(lane as usize, None);
                continue;
            };
            if N::FAR {
                prefetch(NonNull::from(child).cast());
                self.places[lane as usize] = NonNull::from(child).cast();
                self.depths[lane as usize] = depth + 1;
                next.push(CHILD, lane);
            } else {
                self.advance(next, lane, key(lane as usize), *child, depth + 1);
            }
        }
    }

    /// The lanes at value nodes of one class.
    #[inline(always)]
    unsafe fn values<'k, N: BranchNode<Child = u64>>(
        &mut self,
        now: &Lists,
        next: &mut Lists,
        key: &impl Fn(usize) -> K::View<'k>,
        found: &mut impl FnMut(usize, Option<u64>),
    ) {
        for &lane in now.of(N::KIND as usize) {
            let depth = self.depths[lane as usize];
            // SAFETY: by contract; the tree is borrowed.
            let node = unsafe { self.places[lane as usize].cast::<N>().as_ref() };
            let byte = K::byte(key(lane as usize), depth as usize);
            match byte.and_then(|byte| node.locate(byte)) {
                Some(value) if N::FAR => {
                    prefetch(NonNull::from(value).cast());
                    self.places[lane as usize] = NonNull::from(value).cast();
                    next.push(VALUE, lane);
                }
                value => found(lane as usize, value.copied()),
            }
        }
    }

    /// The lanes at prefixes.
    #[inline(always)]
    unsafe fn prefixes<'k>(
        &mut self,
        now: &Lists,
        next: &mut Lists,
        key: &impl Fn(usize) -> K::View<'k>,
        found: &mut impl FnMut(usize, Option<u64>),
    ) {
        for &lane in now.of(NodeKind::Prefix as usize) {
            let depth = self.depths[lane as usize];
            // SAFETY: by contract; the tree is borrowed.
            let prefix = unsafe { self.places[lane as usize].cast::<Prefix>().as_ref() };
            let length = prefix.bytes().len();
            let key = key(lane as usize);
            if K::matching(prefix, key, depth as usize) == length {
                self.advance(next, lane, key, prefix.child, depth + length as u32);
            } else {
                found(lane as usize, None);
            }
        }
    }

    /// One step of every lane in the lists.
    unsafe fn round<'k>(
        &mut self,
        now: &Lists,
        next: &mut Lists,
        key: &impl Fn(usize) -> K::View<'k>,
        found: &mut impl FnMut(usize, Option<u64>),
    ) {
        // SAFETY: by contract, each list for its kind; places of children and values came from references to them.
        unsafe {
            for &lane in now.of(CHILD) {
                let child = self.places[lane as usize].cast::<Ref>().read();
                self.advance(
                    next,
                    lane,
                    key(lane as usize),
                    child,
                    self.depths[lane as usize],
                );
            }
            for &lane in now.of(VALUE) {
                found(
                    lane as usize,
                    Some(self.places[lane as usize].cast::<u64>().read()),
                );
            }
            for &lane in now.of(NodeKind::Record as usize) {
                let place = self.places[lane as usize];
                let equal = K::compare(K::read(place), key(lane as usize)).is_eq();
                found(lane as usize, equal.then(|| K::value(place).read()));
            }
            self.prefixes(now, next, key, found);
            self.inner::<Inner6>(now, next, key, found);
            self.inner::<Inner12>(now, next, key, found);
            self.inner::<Inner25>(now, next, key, found);
            self.inner::<Inner51>(now, next, key, found);
            self.inner::<Inner256>(now, next, key, found);
            if K::INLINE {
                self.values::<Value7>(now, next, key, found);
                self.values::<Value14>(now, next, key, found);
                self.values::<Value28>(now, next, key, found);
                self.values::<Value56>(now, next, key, found);
                self.values::<Value256>(now, next, key, found);
            }
        }
    }
}

/// The kinds by number.
const KIND: [NodeKind; KINDS] = [
    NodeKind::None,
    Prefix::KIND,
    Inner6::KIND,
    Inner12::KIND,
    Inner25::KIND,
    Inner51::KIND,
    Inner256::KIND,
    Value7::KIND,
    Value14::KIND,
    Value28::KIND,
    Value56::KIND,
    Value256::KIND,
    NodeKind::Record,
];
