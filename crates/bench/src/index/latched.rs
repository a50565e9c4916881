//! A B-link tree with a reader-writer latch in each node (Mühlig, *B-link-trees for DB/OS Co-Design*, Algorithm 1):
//! what tasks and optimistic readers are compared with.
//!
//! ```text
//! word  0      latch: readers, or the writer
//!       1      right 32 bits │ count 16 │ level 16
//!       2      high fence
//!       4 …    30 keys, those behind the last one the greatest number; 30 values or children
//! ```
//! It is as good as it is with latches: nodes, search and memory are those of the tree that it is compared with, a
//! latch is one word, and one node is latched at a time. Only entries are put in; nothing is taken out.

use super::error::IndexBenchError;
use super::keys::{KeySequence, value};
use super::structure::{Structure, count_right, memory, mixed_operation, no_memory};
use super::threads::{on_threads, share};
use eris_atomics::Lock;
use eris_engine::Settings;
use eris_numa::{AtomicBuffer, Memory, NodeMemory, OutOfMemory};
use eris_types::{NodeId, ObjectId};
use std::hint::{select_unpredictable, spin_loop};
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::thread::yield_now;

const WORDS: usize = 64;
const ROOM: usize = 30;
const KEYS: usize = 4;
const VALUES: usize = KEYS + ROOM;
const STEPS: [usize; 5] = [15, 8, 4, 2, 1];

const WRITER: u64 = 1 << 32;
/// Turns of waiting before the core is given to others.
const SPINS: u32 = 64;

/// Nodes of a slab, and the most slabs.
const SLAB: usize = 4096;
const SLABS: usize = 1 << 16;

type Node = [AtomicU64; WORDS];

struct Tree {
    memory: NodeMemory,
    slabs: Box<[OnceLock<AtomicBuffer>]>,
    making: Lock<()>,
    next: AtomicU32,
    /// Level 8 bits, number 32.
    root: AtomicU64,
}

struct Meta {
    right: u32,
    count: usize,
    level: u8,
}

fn wait(turns: &mut u32) {
    *turns += 1;
    match *turns % SPINS {
        0 => yield_now(),
        _ => spin_loop(),
    }
}

/// What became of an entry.
enum Put {
    /// It is there; what it replaced.
    Done(Option<u64>),
    /// The node was split to make room: its parent has to know the separator, and the node to the right of it.
    Split(u64, u32),
}

/// A node that is latched.
struct Latched<'a> {
    node: &'a Node,
    is_writer: bool,
}

impl Drop for Latched<'_> {
    fn drop(&mut self) {
        match self.is_writer {
            true => self.node[0].store(0, Release),
            false => {
                self.node[0].fetch_sub(1, Release);
            }
        }
    }
}

impl Latched<'_> {
    fn word(&self, at: usize) -> u64 {
        self.node[at].load(Relaxed)
    }

    fn set(&self, at: usize, word: u64) {
        self.node[at].store(word, Relaxed);
    }

    fn meta(&self) -> Meta {
        let word = self.word(1);
        Meta {
            right: word as u32,
            count: (word >> 32) as u16 as usize,
            level: (word >> 48) as u8,
        }
    }

    fn set_meta(&self, meta: &Meta) {
        let (right, count) = (u64::from(meta.right), meta.count as u64);
        self.set(1, u64::from(meta.level) << 48 | count << 32 | right);
    }

    fn position(&self, key: u64) -> usize {
        let mut below = 0;
        for step in STEPS {
            let next = below + step;
            below = select_unpredictable(self.word(KEYS + next - 1) < key, next, below);
        }
        below
    }

    fn insert(&self, at: usize, count: usize, key: u64, value: u64) {
        for first in [KEYS, VALUES] {
            for place in (first + at..first + count).rev() {
                self.set(place + 1, self.word(place));
            }
        }
        self.set(KEYS + at, key);
        self.set(VALUES + at, value);
    }
}

impl Tree {
    fn new(memory: NodeMemory) -> Result<Self, OutOfMemory> {
        let tree = Tree {
            memory,
            slabs: (0..SLABS).map(|_| OnceLock::new()).collect(),
            making: Lock::default(),
            next: AtomicU32::new(1),
            root: AtomicU64::new(0),
        };
        let root = tree.write(tree.make(0)?);
        root.set(2, u64::MAX);
        let number = tree.next.load(Relaxed) - 1;
        tree.root.store(u64::from(number), Release);
        drop(root);
        Ok(tree)
    }

    fn node(&self, number: u32) -> &Node {
        let slab = self.slabs[number as usize / SLAB].get();
        let words = slab.expect("nodes lie in slabs").words();
        &words.as_chunks().0[number as usize % SLAB]
    }

    /// A node without keys.
    fn make(&self, level: u8) -> Result<u32, OutOfMemory> {
        let number = self.next.fetch_add(1, Relaxed);
        let slab = &self.slabs[number as usize / SLAB];
        if slab.get().is_none() {
            let _one = self.making.lock();
            if slab.get().is_none() {
                let bytes = SLAB * WORDS * size_of::<u64>();
                let made = AtomicBuffer::from(self.memory.allocate(ObjectId(1), bytes)?);
                let _ = slab.set(made);
            }
        }
        let node = self.write(number);
        (KEYS..KEYS + ROOM).for_each(|at| node.set(at, u64::MAX));
        node.set_meta(&Meta {
            right: 0,
            count: 0,
            level,
        });
        Ok(number)
    }

    fn read(&self, number: u32) -> Latched<'_> {
        let (node, mut turns) = (self.node(number), 0);
        loop {
            let latch = node[0].load(Relaxed);
            let free = latch & WRITER == 0;
            if free
                && node[0]
                    .compare_exchange_weak(latch, latch + 1, Acquire, Relaxed)
                    .is_ok()
            {
                return Latched {
                    node,
                    is_writer: false,
                };
            }
            wait(&mut turns);
        }
    }

    fn write(&self, number: u32) -> Latched<'_> {
        let (node, mut turns) = (self.node(number), 0);
        while node[0]
            .compare_exchange_weak(0, WRITER, Acquire, Relaxed)
            .is_err()
        {
            wait(&mut turns);
        }
        Latched {
            node,
            is_writer: true,
        }
    }

    fn root(&self) -> (u32, u8) {
        let root = self.root.load(Acquire);
        (root as u32, (root >> 32) as u8)
    }

    /// The node of a level that has a key, or one to the left of it. `None`: there is no such level yet.
    fn find(&self, key: u64, level: u8) -> Option<u32> {
        let (mut number, mut at) = self.root();
        while at > level {
            let node = self.read(number);
            if key > node.word(2) {
                number = node.meta().right;
            } else {
                number = node.word(VALUES + node.position(key)) as u32;
                at -= 1;
            }
            eris_kernels::prefetch(self.node(number));
        }
        (at == level).then_some(number)
    }

    fn get(&self, key: u64) -> Option<u64> {
        let mut number = self.find(key, 0)?;
        loop {
            let leaf = self.read(number);
            if key > leaf.word(2) {
                number = leaf.meta().right;
                continue;
            }
            let at = leaf.position(key);
            let is_there = at < leaf.meta().count && leaf.word(KEYS + at) == key;
            return is_there.then(|| leaf.word(VALUES + at));
        }
    }

    /// Puts an entry in; the value that it replaced.
    fn put(&self, mut key: u64, mut value: u64) -> Result<Option<u64>, OutOfMemory> {
        let mut level = 0;
        loop {
            let Some(number) = self.find(key, level) else {
                // A separator for a level that is still to be made.
                if self.make_root(level, key, value)? {
                    return Ok(None);
                }
                continue;
            };
            match self.put_at(number, level, key, value)? {
                Put::Done(before) => return Ok(before),
                Put::Split(separator, right) => {
                    (key, value, level) = (separator, u64::from(right), level + 1);
                }
            }
        }
    }

    /// A root above the present one, whose left half is this one.
    fn make_root(&self, level: u8, separator: u64, right: u64) -> Result<bool, OutOfMemory> {
        let old = self.root.load(Acquire);
        if (old >> 32) as u8 >= level {
            return Ok(false);
        }
        let number = self.make(level)?;
        let root = self.write(number);
        for (at, (key, child)) in [(separator, old & 0xFFFF_FFFF), (u64::MAX, right)]
            .iter()
            .enumerate()
        {
            root.set(KEYS + at, *key);
            root.set(VALUES + at, *child);
        }
        root.set(2, u64::MAX);
        root.set_meta(&Meta {
            right: 0,
            count: 2,
            level,
        });
        drop(root);
        let new = u64::from(level) << 32 | u64::from(number);
        Ok(self
            .root
            .compare_exchange(old, new, AcqRel, Relaxed)
            .is_ok())
    }

    /// Puts an entry into a node or one to the right of it.
    fn put_at(&self, mut number: u32, level: u8, key: u64, value: u64) -> Result<Put, OutOfMemory> {
        let (node, meta) = loop {
            let node = self.write(number);
            let meta = node.meta();
            if key <= node.word(2) {
                break (node, meta);
            }
            number = meta.right;
        };
        let at = node.position(key);
        let (mut value, is_there) = (value, at < meta.count && node.word(KEYS + at) == key);
        if level == 0 && is_there {
            let before = node.word(VALUES + at);
            node.set(VALUES + at, value);
            return Ok(Put::Done(Some(before)));
        }
        if level > 0 {
            // The child that was split keeps what is below the separator, the new one gets the entry that it had.
            let left = node.word(VALUES + at);
            node.set(VALUES + at, value);
            value = left;
        }
        if meta.count < ROOM {
            node.insert(at, meta.count, key, value);
            let count = meta.count + 1;
            node.set_meta(&Meta { count, ..meta });
            return Ok(Put::Done(None));
        }
        self.split(&node, &meta, (at, key, value))
    }

    fn split(
        &self,
        node: &Latched<'_>,
        meta: &Meta,
        (at, key, value): (usize, u64, u64),
    ) -> Result<Put, OutOfMemory> {
        let number = self.make(meta.level)?;
        let right = self.write(number);
        let half = ROOM / 2;
        for from in half..ROOM {
            right.set(KEYS + from - half, node.word(KEYS + from));
            right.set(VALUES + from - half, node.word(VALUES + from));
            node.set(KEYS + from, u64::MAX);
        }
        let separator = node.word(KEYS + half - 1);
        right.set(2, node.word(2));
        let mut counts = [half, ROOM - half];
        if key <= separator {
            node.insert(at, half, key, value);
            counts[0] += 1;
        } else {
            right.insert(at - half, ROOM - half, key, value);
            counts[1] += 1;
        }
        right.set_meta(&Meta {
            count: counts[1],
            ..*meta
        });
        node.set(2, separator);
        node.set_meta(&Meta {
            right: number,
            count: counts[0],
            level: meta.level,
        });
        Ok(Put::Split(separator, number))
    }
}

/// The tree, filled and asked by threads.
pub struct LatchedTree {
    keys: KeySequence,
    threads: usize,
    memory: Memory,
    tree: Tree,
}

impl LatchedTree {
    pub fn new(
        settings: &Settings,
        keys: KeySequence,
        threads: usize,
    ) -> Result<Self, IndexBenchError> {
        let memory = memory(settings)?;
        let tree = Tree::new(memory.node(NodeId(0))).map_err(no_memory)?;
        Ok(LatchedTree {
            keys,
            threads,
            memory,
            tree,
        })
    }
}

impl Structure for LatchedTree {
    fn name(&self) -> &str {
        "latched B-link"
    }

    fn batch(&self) -> usize {
        1
    }

    fn insert(&mut self, numbers: Range<u64>) -> Result<(), IndexBenchError> {
        on_threads::<IndexBenchError, _>(self.threads, |thread| {
            for number in share(&numbers, thread, self.threads) {
                let key = self.keys.key(number);
                self.tree.put(key, value(key)).map_err(no_memory)?;
            }
            Ok(0)
        })?;
        Ok(())
    }

    fn lookup(&mut self, seed: u64, count: u64) -> Result<u64, IndexBenchError> {
        on_threads(self.threads, |thread| {
            let mut state = (seed << 32) + thread as u64;
            let own = share(&(0..count), thread, self.threads);
            let found = own.map(|_| {
                let key = self.keys.any(&mut state);
                count_right(&[key], &[self.tree.get(key)])
            });
            Ok(found.sum())
        })
    }

    fn mixed(&mut self, keys: &[u64]) -> Result<Option<u64>, IndexBenchError> {
        let right = on_threads(self.threads, |thread| {
            let own = share(&(0..keys.len() as u64), thread, self.threads);
            let operations = own.map(|at| (at as usize, keys[at as usize]));
            let put = |key| self.tree.put(key, value(key));
            let get = |key| self.tree.get(key);
            operations
                .map(|operation| mixed_operation(operation, put, get))
                .sum()
        });
        right.map(Some)
    }

    fn bytes(&mut self) -> Result<Option<u64>, IndexBenchError> {
        Ok(Some(self.memory.budget().used()))
    }
}
