//! The tree: the way down, and what is done at leaves.

use crate::counts::{Count, Counts, Statistics};
use crate::merge::is_few;
use crate::node::{Held, Meta, Node, ROOM, Side};
use crate::range::Range;
use crate::space::Space;
use crate::sync::AtomicU64;
use crate::sync::Ordering::Acquire;
use eris_numa::{NodeMemory, OutOfMemory};
use eris_types::ObjectId;
use std::array;
use std::fmt;
use std::ops::{ControlFlow, RangeBounds};

/// Keys that go down side by side.
const SIDE_BY_SIDE: usize = 32;

/// An ordered map that threads share. Each operation is done at one moment between its call and its return; ranges read
/// leaf by leaf.
///
/// ```
/// # use eris_numa::{HugePages, Memory, Topology};
/// # let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(1 << 30)).unwrap();
/// # let memory = memory.node(eris_types::NodeId(0));
/// let tree = eris_blink::Tree::new(memory, eris_types::ObjectId(1))?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| (0..1000).try_for_each(|key| tree.put(key, key * 2).map(drop)));
///     scope.spawn(|| (1000..2000).try_for_each(|key| tree.put(key, key * 2).map(drop)));
/// });
/// assert_eq!(tree.get(1500), Some(3000));
/// assert_eq!(tree.remove(1500), Some(3000));
/// assert!(tree.range(1498..).map(|(key, _)| key).take(3).eq([1498, 1499, 1501]));
/// # Ok::<(), eris_numa::OutOfMemory>(())
/// ```
pub struct Tree {
    pub(crate) space: Space,
    pub(crate) root: Root,
    pub(crate) counts: Counts,
}

/// The level of the root 8 bits, the first node of that level. All read it, so it has a line of its own.
#[repr(align(128))]
pub(crate) struct Root(pub AtomicU64);

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
    /// An empty tree in the memory of a node, accounted to an object.
    ///
    /// # Errors
    /// There is no memory.
    pub fn new(memory: NodeMemory, object: ObjectId) -> Result<Self, OutOfMemory> {
        let space = Space::new(memory, object)?;
        let number = space.take(0)?;
        let mut root = space.node(number).hold();
        root.truncate(0);
        root.set_meta(Meta::new(0, 0, 0).first(true).last(true));
        drop(root);
        Ok(Tree {
            space,
            root: Root(AtomicU64::new(root_word(number, 0))),
            counts: Counts::default(),
        })
    }

    /// How many levels it has: at least one.
    pub fn height(&self) -> usize {
        usize::from(self.root().1) + 1
    }

    /// The first node of the highest level, and that level.
    pub(crate) fn root(&self) -> (u32, u8) {
        let root = self.root.0.load(Acquire);
        (root as u32, (root >> 32) as u8)
    }

    /// What it looks like, and what has been done. It reads all leaves.
    pub fn statistics(&self) -> Statistics {
        let (mut leaves, mut entries) = (0, 0);
        let mut range = self.range(..);
        while let Some(count) = range.skip_leaf() {
            leaves += 1;
            entries += count as u64;
        }
        Statistics {
            height: self.height(),
            nodes: self.space.taken(),
            entries,
            fill: entries as f64 / (leaves * ROOM) as f64,
            splits: self.counts.of(Count::Splits),
            merges: self.counts.of(Count::Merges),
            right_moves: self.counts.of(Count::RightMoves),
            restarts: self.counts.of(Count::Restarts),
        }
    }

    /// One step from a node of a level towards that of a lower one, where `found` is done.
    #[inline]
    fn step<T>(
        &self,
        (number, at): (u32, u8),
        (key, level): (u64, u8),
        found: impl Fn(u32, Node<'_>) -> T,
    ) -> ControlFlow<T, (u32, u8)> {
        let step = (self.space.node(number)).read(|node| match node.side(key, at) {
            Side::Here if at == level => Step::Found(found(number, node)),
            Side::Here => Step::Down(node.child(key)),
            Side::Right => Step::Right(node.meta().right()),
            Side::Elsewhere => Step::FromRoot,
        });
        let next = match step {
            Step::Found(found) => return ControlFlow::Break(found),
            Step::Down(below) => (below, at - 1),
            Step::Right(right) => (right, at),
            Step::FromRoot => self.root(),
        };
        // All of its lines at once; the search would wait for one after the other.
        self.space.node(next.0).prefetch();
        ControlFlow::Continue(next)
    }

    /// What `found` says of the node of a level that has a key. `None`: the tree has no such level yet.
    #[inline]
    pub(crate) fn find<T>(
        &self,
        key: u64,
        level: u8,
        found: impl Fn(u32, Node<'_>) -> T,
    ) -> Option<T> {
        let mut way = self.root();
        while way.1 >= level {
            match self.step(way, (key, level), &found) {
                ControlFlow::Break(found) => return Some(found),
                ControlFlow::Continue(next) => way = next,
            }
        }
        None
    }

    /// The node of a level that has a key, held, if this is it or leads to it by right links.
    fn hold_from(&self, mut number: u32, key: u64, level: u8) -> Option<Held<'_>> {
        loop {
            let held = self.space.node(number).hold();
            match held.node.side(key, level) {
                Side::Here => return Some(held),
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
    pub(crate) fn hold(&self, key: u64, level: u8) -> Option<Held<'_>> {
        loop {
            let number = self.find(key, level, |number, _| number)?;
            if let Some(held) = self.hold_from(number, key, level) {
                return Some(held);
            }
        }
    }

    fn hold_leaf(&self, key: u64) -> Held<'_> {
        self.hold(key, 0).expect("every tree has leaves")
    }

    /// The value of a key.
    pub fn get(&self, key: u64) -> Option<u64> {
        let found = self.find(key, 0, |_, leaf| value_of(leaf, key));
        found.expect("every tree has leaves")
    }

    /// The values of many keys, in their order. Each is looked up for itself.
    ///
    /// # Panics
    /// If there are not as many places as keys.
    pub fn get_many(&self, keys: &[u64], values: &mut [Option<u64>]) {
        assert_eq!(keys.len(), values.len(), "a place for each key");
        let parts = values.chunks_mut(SIDE_BY_SIDE);
        for (keys, values) in keys.chunks(SIDE_BY_SIDE).zip(parts) {
            self.find_side_by_side(keys.iter().copied(), |_, key, leaf| value_of(leaf, key))
                .into_iter()
                .zip(values)
                .for_each(|(found, value)| *value = found.flatten());
        }
    }

    /// What `found` says of the leaves that have these keys, in their order; at most [`SIDE_BY_SIDE`].
    #[inline]
    fn find_side_by_side<T: Copy>(
        &self,
        keys: impl ExactSizeIterator<Item = u64> + Clone,
        found: impl Fn(u32, u64, Node<'_>) -> T,
    ) -> [Option<T>; SIDE_BY_SIDE] {
        let mut all = [0; SIDE_BY_SIDE];
        let mut left = keys.len();
        all.iter_mut()
            .zip(keys)
            .for_each(|(place, key)| *place = key);
        let mut ways = [self.root(); SIDE_BY_SIDE];
        let mut under_way: [usize; SIDE_BY_SIDE] = array::from_fn(|at| at);
        let mut results = [None; SIDE_BY_SIDE];
        while left > 0 {
            let mut still = 0;
            for place in 0..left {
                let of = under_way[place];
                let key = all[of];
                // While the next node of one comes, the others take their steps.
                match self.step(ways[of], (key, 0), |number, leaf| found(number, key, leaf)) {
                    ControlFlow::Break(found) => results[of] = Some(found),
                    ControlFlow::Continue(next) => {
                        ways[of] = next;
                        under_way[still] = of;
                        still += 1;
                    }
                }
            }
            left = still;
        }
        results
    }

    /// Puts an entry in. The value that the key had before, if it was there.
    ///
    /// # Errors
    /// There is no memory; nothing is changed then.
    pub fn put(&self, key: u64, value: u64) -> Result<Option<u64>, OutOfMemory> {
        self.space.prepare();
        self.put_into(self.hold_leaf(key), key, value)
    }

    /// Puts many entries in, each as [`put`](Self::put) does, in their order. `replaced` is told of each that has
    /// replaced one: its position, and the value before.
    ///
    /// # Errors
    /// There is no memory for one; those before it are there.
    pub fn put_many(
        &self,
        entries: &[(u64, u64)],
        mut replaced: impl FnMut(usize, u64),
    ) -> Result<(), OutOfMemory> {
        for (part, some) in entries.chunks(SIDE_BY_SIDE).enumerate() {
            self.space.prepare();
            let keys = some.iter().map(|(key, _)| *key);
            let leaves = self.find_side_by_side(keys, |number, _, _| number);
            for (at, (&(key, value), leaf)) in some.iter().zip(leaves).enumerate() {
                let held = leaf.and_then(|number| self.hold_from(number, key, 0));
                let held = held.unwrap_or_else(|| self.hold_leaf(key));
                if let Some(before) = self.put_into(held, key, value)? {
                    replaced(part * SIDE_BY_SIDE + at, before);
                }
            }
        }
        Ok(())
    }

    fn put_into(
        &self,
        mut leaf: Held<'_>,
        key: u64,
        value: u64,
    ) -> Result<Option<u64>, OutOfMemory> {
        let at = leaf.node.position(key);
        if has(leaf.node, at, key) {
            let before = leaf.node.value(at);
            leaf.set_value(at, value);
            return Ok(Some(before));
        }
        self.enter(leaf, (at, key), (at, value))?;
        Ok(None)
    }

    /// Takes an entry out: the value of the key, if it was there.
    pub fn remove(&self, key: u64) -> Option<u64> {
        let mut leaf = self.hold_leaf(key);
        let at = leaf.node.position(key);
        if !has(leaf.node, at, key) {
            return None;
        }
        let (meta, before) = (leaf.node.meta(), leaf.node.value(at));
        let left = meta.count() - 1;
        leaf.take_out(at, at);
        leaf.set_meta(meta.with_count(left));
        drop(leaf);
        if is_few(left) {
            self.merge(key, 0);
        }
        Some(before)
    }

    /// The entries with keys in a range, ascending, or from the back descending. An entry that is there all the time is
    /// among them, once; of what is put in or taken out meanwhile any part may be.
    pub fn range(&self, keys: impl RangeBounds<u64>) -> Range<'_> {
        Range::new(self, keys)
    }
}

/// Whether a leaf has a key at its position.
fn has(leaf: Node<'_>, at: usize, key: u64) -> bool {
    at < leaf.meta().count() && leaf.key(at) == key
}

fn value_of(leaf: Node<'_>, key: u64) -> Option<u64> {
    let at = leaf.position(key);
    has(leaf, at, key).then(|| leaf.value(at))
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({} levels)", self.height())
    }
}
