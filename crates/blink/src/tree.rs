//! The tree: the way down, and what is done at leaves.

use crate::counts::{Count, Counts, Statistics};
use crate::key::Key;
#[cfg(not(loom))]
use crate::long_keys::LongKeys;
use crate::merge::is_few;
use crate::node::{Held, Node, Side};
use crate::range::Range;
use crate::space::Space;
use crate::sync::AtomicU64;
use crate::sync::Ordering::Acquire;
#[cfg(not(loom))]
use eris_numa::Extent;
use eris_numa::{NodeMemory, OutOfMemory};
use eris_types::ObjectId;
use std::fmt;
use std::ops::{ControlFlow, RangeBounds};

/// An ordered map that threads share: `Tree` of 64-bit keys, `Tree<[u8]>` of byte strings, both to 64-bit values.
///
/// Each operation is done at one moment between its call and its return; ranges read leaf by leaf.
///
/// ```
/// # use eris_numa::{HugePages, Memory, Topology};
/// # let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(1 << 30)).unwrap();
/// # let memory = memory.node(eris_types::NodeId(0));
/// let tree = eris_blink::Tree::new(memory.clone(), eris_types::ObjectId(1))?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| (0..1000).try_for_each(|key| tree.put(key, key * 2).map(drop)));
///     scope.spawn(|| (1000..2000).try_for_each(|key| tree.put(key, key * 2).map(drop)));
/// });
/// assert_eq!(tree.get(1500), Some(3000));
/// assert_eq!(tree.remove(1500), Some(3000));
/// assert!(tree.range(1498..).map(|(key, _)| key).take(3).eq([1498, 1499, 1501]));
///
/// let names = eris_blink::Tree::of_bytes(memory, eris_types::ObjectId(2))?;
/// names.put_many(&[(b"Bayer", 1), (b"Lehman", 2), (b"Yao", 3)], |_, _| ())?;
/// assert_eq!(names.get(b"Lehman"), Some(2));
/// assert!(names.range(&b"C"[..]..).map(|(_, value)| value).eq([2, 3]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Tree<K: Key + ?Sized = u64> {
    pub(crate) space: Space<K>,
    pub(crate) root: Root,
    pub(crate) counts: Counts,
    #[cfg(not(loom))]
    pub(crate) long_keys: LongKeys<K>,
}

/// The level of the root 8 bits, the first node of that level. All read it, so it has a line of its own.
#[repr(align(128))]
pub(crate) struct Root(pub AtomicU64);

/// What a key was before, and its leaf if it is still held.
pub(crate) type Done<'a, K> = (Option<u64>, Option<(u32, Held<'a, K>)>);

/// The same, if there was memory.
pub(crate) type Put<'a, K> = Result<Done<'a, K>, OutOfMemory>;

/// Where the way down goes on.
#[derive(Clone, Copy)]
enum Step<T> {
    Found(T),
    /// A node of the level below, or of the same one.
    Down(u32),
    Right(u32),
    /// The number was an old one.
    FromRoot,
}

pub(crate) fn root_word(number: u32, level: u8) -> u64 {
    u64::from(level) << 32 | u64::from(number)
}

impl Tree {
    /// An empty tree of 64-bit keys in the memory of a node, accounted to an object.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(memory: NodeMemory, object: ObjectId) -> Result<Self, OutOfMemory> {
        Tree::with_no_entries(memory, object)
    }
}

impl Tree<[u8]> {
    /// An empty tree of byte strings, of at most [`KEY_BYTES`](crate::KEY_BYTES), in the memory of a node, accounted to
    /// an object.
    ///
    /// # Errors
    /// There is no memory.
    pub fn of_bytes(memory: NodeMemory, object: ObjectId) -> Result<Self, OutOfMemory> {
        Tree::with_no_entries(memory, object)
    }
}

impl<K: Key + ?Sized> Tree<K> {
    fn with_no_entries(memory: NodeMemory, object: ObjectId) -> Result<Self, OutOfMemory> {
        let space = Space::<K>::new(memory, object)?;
        let number = space.take(0)?;
        let none = K::Entries::default();
        K::write(&mut space.node(number).hold(), (0, 0), (None, None), &none);
        Ok(Tree {
            space,
            root: Root(AtomicU64::new(root_word(number, 0))),
            counts: Counts::default(),
            #[cfg(not(loom))]
            long_keys: LongKeys::default(),
        })
    }

    /// How many levels it has: at least one.
    pub fn height(&self) -> usize {
        usize::from(self.root().1) + 1
    }

    /// The first node of the highest level, and that level.
    #[inline]
    pub(crate) fn root(&self) -> (u32, u8) {
        let root = self.root.0.load(Acquire);
        (root as u32, (root >> 32) as u8)
    }

    /// What it looks like, and what has been done. It reads all leaves.
    pub fn statistics(&self) -> Statistics {
        let (mut leaves, mut entries, mut size) = (0, 0, 0);
        let mut next = Some(K::own(K::least()));
        while let Some(key) = next {
            let leaf = self.find(K::lend(&key), 0, |_, leaf| {
                let high = (!leaf.meta().is_last()).then(|| K::fences(leaf).1);
                (leaf.count(), K::size(leaf), high)
            });
            let (count, used, high) = leaf.expect("every tree has leaves");
            leaves += 1;
            entries += count as u64;
            size += used;
            next = high.and_then(|high| K::successor(K::lend(&high)));
        }
        Statistics {
            height: self.height(),
            nodes: self.space.taken(),
            entries,
            fill: size as f64 / (leaves * K::SPACE) as f64,
            splits: self.counts.of(Count::Splits),
            merges: self.counts.of(Count::Merges),
            right_moves: self.counts.of(Count::RightMoves),
            restarts: self.counts.of(Count::Restarts),
        }
    }

    /// One step from a node of a level towards that of a lower one, where `found` is done. The memory of the next node
    /// is asked for.
    #[inline]
    pub(crate) fn step<T>(
        &self,
        way: (u32, u8),
        key: (K::Ref<'_>, u8),
        found: impl FnMut(u32, Node<'_, K>) -> T,
    ) -> ControlFlow<T, (u32, u8)> {
        let step = self.take_step(way, key, found);
        if let ControlFlow::Continue(next) = &step {
            eris_kernels::prefetch(&self.space.node(next.0).words()[..K::AHEAD]);
        }
        step
    }

    /// The same, and no memory is asked for.
    #[inline]
    pub(crate) fn take_step<T>(
        &self,
        (number, at): (u32, u8),
        (key, level): (K::Ref<'_>, u8),
        mut found: impl FnMut(u32, Node<'_, K>) -> T,
    ) -> ControlFlow<T, (u32, u8)> {
        let step = (self.space.node(number)).read(|node| match K::side(node, key, at) {
            Side::Here if at == level => Step::Found(found(number, node)),
            Side::Here => Step::Down(K::child(node, key)),
            Side::Right => Step::Right(node.meta().right()),
            Side::Elsewhere => Step::FromRoot,
        });
        ControlFlow::Continue(match step {
            Step::Found(found) => return ControlFlow::Break(found),
            Step::Down(below) => (below, at - 1),
            Step::Right(right) => (right, at),
            Step::FromRoot => self.root(),
        })
    }

    /// What `found` says of the node of a level that has a key, as it was at one time. It may be asked several times;
    /// the last one counts. `None`: the tree has no such level yet.
    #[inline]
    pub(crate) fn find<T>(
        &self,
        key: K::Ref<'_>,
        level: u8,
        mut found: impl FnMut(u32, Node<'_, K>) -> T,
    ) -> Option<T> {
        let mut way = self.root();
        while way.1 >= level {
            match self.step(way, (key, level), &mut found) {
                ControlFlow::Break(found) => return Some(found),
                ControlFlow::Continue(next) => way = next,
            }
        }
        None
    }

    /// The node of a level that has a key, and its number, held, if this is it or leads to it by right links.
    #[inline]
    pub(crate) fn hold_from(
        &self,
        mut number: u32,
        key: K::Ref<'_>,
        level: u8,
    ) -> Option<(u32, Held<'_, K>)> {
        loop {
            let held = self.space.node(number).hold();
            match K::side(held.node, key, level) {
                Side::Here => return Some((number, held)),
                Side::Right => {
                    self.counts.add(Count::RightMoves);
                    number = held.node.meta().right();
                }
                Side::Elsewhere => {
                    self.counts.add(Count::Restarts);
                    return None;
                }
            }
        }
    }

    /// The node of a level that has a key, held. `None` as above.
    pub(crate) fn hold(&self, key: K::Ref<'_>, level: u8) -> Option<Held<'_, K>> {
        self.hold_numbered(key, level).map(|(_, held)| held)
    }

    #[inline]
    fn hold_numbered(&self, key: K::Ref<'_>, level: u8) -> Option<(u32, Held<'_, K>)> {
        loop {
            let number = self.find(key, level, |number, _| number)?;
            if let Some(held) = self.hold_from(number, key, level) {
                return Some(held);
            }
        }
    }

    #[inline]
    pub(crate) fn hold_leaf(&self, key: K::Ref<'_>) -> (u32, Held<'_, K>) {
        self.hold_numbered(key, 0).expect("every tree has leaves")
    }

    /// The value of a key.
    pub fn get(&self, key: K::Ref<'_>) -> Option<u64> {
        let found = self.find(key, 0, |_, leaf| value_of(leaf, key));
        found.expect("every tree has leaves")
    }

    /// Puts an entry in. The value that the key had before, if it was there.
    ///
    /// # Errors
    /// There is no memory, or the key is too long; nothing is changed then.
    pub fn put(&self, key: K::Ref<'_>, value: u64) -> Result<Option<u64>, K::Error> {
        K::check(key)?;
        self.space.prepare();
        Ok(self.put_into(self.hold_leaf(key), key, value)?.0)
    }

    #[inline]
    pub(crate) fn put_into<'a>(
        &'a self,
        (number, mut leaf): (u32, Held<'a, K>),
        key: K::Ref<'_>,
        value: u64,
    ) -> Put<'a, K> {
        let (at, is_there) = K::find(leaf.node, key);
        if is_there {
            let before = K::value(leaf.node, at);
            K::set_value(&mut leaf, at, value);
            return Ok((Some(before), Some((number, leaf))));
        }
        if K::insert(&mut leaf, at, key, value) {
            return Ok((None, Some((number, leaf))));
        }
        self.split(leaf, at, key, value)?;
        Ok((None, None))
    }

    /// Takes an entry out: the value of the key, if it was there.
    pub fn remove(&self, key: K::Ref<'_>) -> Option<u64> {
        self.remove_from(self.hold_leaf(key), key).0
    }

    #[inline]
    pub(crate) fn remove_from<'a>(
        &'a self,
        (number, mut leaf): (u32, Held<'a, K>),
        key: K::Ref<'_>,
    ) -> Done<'a, K> {
        let (at, is_there) = K::find(leaf.node, key);
        if !is_there {
            return (None, Some((number, leaf)));
        }
        let (before, size) = (K::value(leaf.node, at), K::size(leaf.node));
        K::take_out(&mut leaf, at);
        if !is_few::<K>(leaf.node.count(), size, K::size(leaf.node)) {
            return (Some(before), Some((number, leaf)));
        }
        drop(leaf);
        self.merge(key, 0);
        (Some(before), None)
    }

    /// The entries with keys in a range, ascending, or from the back descending. An entry that is there all the time is
    /// among them, once; of what is put in or taken out meanwhile any part may be.
    pub fn range<'k>(&self, keys: impl RangeBounds<K::Ref<'k>>) -> Range<'_, K> {
        Range::new(self, keys)
    }
}

#[inline]
pub(crate) fn value_of<K: Key + ?Sized>(leaf: Node<'_, K>, key: K::Ref<'_>) -> Option<u64> {
    let (at, is_there) = K::find(leaf, key);
    is_there.then(|| K::value(leaf, at))
}

#[cfg(not(loom))]
impl<K: Key + ?Sized> Tree<K> {
    /// The memory that it is.
    pub fn extents(&self, all: &mut Vec<Extent>) {
        self.space.extents(all);
    }

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        let mut all = Vec::new();
        self.extents(&mut all);
        all.iter().map(Extent::bytes).sum()
    }
}

impl<K: Key + ?Sized> fmt::Debug for Tree<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({} levels)", self.height())
    }
}
