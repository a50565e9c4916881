//! A shared index to compare with: the adaptive radix tree under optimistic lock coupling (Leis, Scheibner, Kemper,
//! Neumann: *The ART of practical synchronization*, 2016), for keys and values of 64 bits that are never removed.
//!
//! ```text
//! node      version │ prefix length, children │ prefix │ keys … │ references …       words of 64 bits
//! version   count of changes · obsolete · locked
//! leaf      key │ value                       what lies alone below a node is a leaf (lazy expansion)
//! ```
//! Nodes of the last byte hold values instead of references; with 256 of them, four words more say which are there.
//!
//! A reader notes a node's version, reads the node, and looks whether the version is still the same before it believes
//! what it read. A writer locks only the nodes that it changes, one or two.
//!
//! *No unsafe code*: all words are atomics in slabs that are never given back, and references are their numbers. So a
//! reader that is late reads something else, never something that is not there, and the version tells it so. A node
//! that was replaced by a larger one is used again with its version going on, which makes it as obsolete as before.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

/// Words of a slab, and how many slabs there can be.
const SLAB: u64 = 1 << 22;
const SLABS: usize = 1 << 10;
/// Words that a writer takes at a time.
const BLOCK: u64 = 1 << 13;

const LOCKED: u64 = 1;
const OBSOLETE: u64 = 2;
const CHANGE: u64 = 4;

/// Words before a node's keys.
const HEADER: u64 = 3;
const META: u64 = 1;
const PREFIX: u64 = 2;

/// The kinds of references, in their lowest bits.
const LEAF: u64 = 1;
const NODE4: u64 = 2;
const NODE16: u64 = 3;
const NODE48: u64 = 4;
const NODE256: u64 = 5;

/// By kind: words of all keys, children, words of a node.
const SHAPES: [(u64, u64, u64); 6] = [
    (0, 0, 0),
    (0, 0, 2),
    (1, 4, 8),
    (2, 16, 24),
    (32, 48, 88),
    (0, 256, 264),
];

/// The depth of the last byte.
const LAST: u64 = 7;

/// What a reader saw was being changed.
struct Changed;

/// The tree.
pub struct OlcArt {
    slabs: Box<[OnceLock<Box<[AtomicU64]>>]>,
    /// The first word that nobody has taken. Only ever added to; guards nothing.
    next: AtomicU64,
    /// A node with 256 children and without prefix, which is never replaced.
    root: u64,
}

/// A writer's own memory.
#[derive(Default)]
pub struct Writer {
    next: u64,
    end: u64,
    /// Nodes to be used again, by kind.
    free: [Vec<u64>; 6],
}

fn place(reference: u64) -> u64 {
    reference >> 3
}

fn kind(reference: u64) -> u64 {
    reference & 7
}

/// The byte of a key at a depth.
fn byte(key: u64, depth: u64) -> u8 {
    (key >> (56 - 8 * depth)) as u8
}

impl OlcArt {
    /// Nothing in it.
    pub fn new() -> Self {
        let mut tree = OlcArt {
            slabs: (0..SLABS).map(|_| OnceLock::new()).collect(),
            next: AtomicU64::new(BLOCK),
            root: 0,
        };
        let mut first = Writer {
            next: 8,
            end: BLOCK,
            ..Writer::default()
        };
        tree.root = tree.take(&mut first, NODE256);
        tree
    }

    /// Bytes taken by writers, including what they have not used yet.
    pub fn bytes(&self) -> u64 {
        self.next.load(Relaxed) * 8
    }

    #[inline(always)]
    fn word(&self, at: u64) -> &AtomicU64 {
        let slab = self.slabs[(at / SLAB) as usize].get_or_init(|| {
            let words = (0..SLAB).map(|_| AtomicU64::new(0));
            words.collect()
        });
        &slab[(at % SLAB) as usize]
    }

    #[inline(always)]
    fn read(&self, at: u64) -> u64 {
        self.word(at).load(Relaxed)
    }

    fn write(&self, at: u64, value: u64) {
        self.word(at).store(value, Relaxed);
    }

    /// The version of a node that is not locked.
    #[inline(always)]
    fn version(&self, node: u64) -> Result<u64, Changed> {
        loop {
            let version = self.word(place(node)).load(Acquire);
            if version & OBSOLETE != 0 {
                return Err(Changed);
            }
            if version & LOCKED == 0 {
                return Ok(version);
            }
            std::hint::spin_loop();
        }
    }

    /// What was read of the node since its version was noted is true.
    #[inline(always)]
    fn check(&self, node: u64, version: u64) -> Result<(), Changed> {
        // What was read before the fence was not written after a lock that the load behind it does not see.
        fence(Acquire);
        match self.read(place(node)) == version {
            true => Ok(()),
            false => Err(Changed),
        }
    }

    /// Locks a node that still has this version.
    fn lock(&self, node: u64, version: u64) -> Result<(), Changed> {
        let word = self.word(place(node));
        let locked = word.compare_exchange(version, version | LOCKED, AcqRel, Relaxed);
        // Whoever sees one of the writes behind the fence sees the lock.
        fence(Release);
        locked.map(|_| ()).map_err(|_| Changed)
    }

    fn unlock(&self, node: u64) {
        let word = self.word(place(node));
        let version = word.load(Relaxed);
        word.store((version & !LOCKED) + CHANGE, Release);
    }

    /// Nobody may use the node any more; the writer may take it for another.
    fn retire(&self, writer: &mut Writer, node: u64) {
        let word = self.word(place(node));
        let version = word.load(Relaxed);
        word.store(((version & !LOCKED) + CHANGE) | OBSOLETE, Release);
        writer.free[kind(node) as usize].push(node);
    }

    /// A node or leaf that nobody else knows: empty, but for a leaf's words.
    fn take(&self, writer: &mut Writer, of: u64) -> u64 {
        let (keys, children, words) = SHAPES[of as usize];
        if let Some(node) = writer.free[of as usize].pop() {
            let version = self.read(place(node));
            (META..HEADER + keys + children).for_each(|at| self.write(place(node) + at, 0));
            self.word(place(node)).store(version & !OBSOLETE, Release);
            return node;
        }
        // A leaf does not cross a line, a node begins one.
        let align = if of == LEAF { 2 } else { 8 };
        let mut at = writer.next.next_multiple_of(align);
        if at + words > writer.end {
            at = self.next.fetch_add(BLOCK, Relaxed);
            writer.end = at + BLOCK;
        }
        writer.next = at + words;
        at << 3 | of
    }

    fn leaf(&self, writer: &mut Writer, key: u64, value: u64) -> u64 {
        let leaf = self.take(writer, LEAF);
        self.write(place(leaf), key);
        self.write(place(leaf) + 1, value);
        leaf
    }

    /// The length of a node's prefix, and its number of children.
    #[inline(always)]
    fn meta(&self, node: u64) -> (u64, u64) {
        let meta = self.read(place(node) + META);
        // A late reader may read anything.
        ((meta & 0xFF).min(8), (meta >> 8).min(256))
    }

    fn set_meta(&self, node: u64, prefix: u64, children: u64) {
        self.write(place(node) + META, prefix | children << 8);
    }

    /// How many bytes of the node's prefix the key has at `depth`.
    #[inline(always)]
    fn matching(&self, node: u64, length: u64, key: u64, depth: u64) -> u64 {
        if length == 0 {
            return 0;
        }
        let prefix = self.read(place(node) + PREFIX);
        let rest = key.checked_shl(8 * depth as u32).unwrap_or(0);
        u64::from((rest ^ prefix).leading_zeros() / 8).min(length)
    }

    /// Where the child of a byte is, if there is one.
    #[inline(always)]
    fn find(&self, node: u64, children: u64, byte: u8, is_last: bool) -> Option<u64> {
        let at = place(node) + HEADER;
        match kind(node) {
            NODE4 => {
                let keys = self.read(at).to_le_bytes();
                let found = (0..children.min(4)).find(|&child| keys[child as usize] == byte);
                found.map(|child| at + 1 + child)
            }
            NODE16 => {
                let low = matches(self.read(at), byte);
                let high = matches(self.read(at + 1), byte);
                let used = (1u32 << children.min(16)) - 1;
                let found = (low | high << 8) & used;
                (found != 0).then(|| at + 2 + u64::from(found.trailing_zeros()))
            }
            NODE48 => {
                let numbers = self.read(at + u64::from(byte) / 8).to_le_bytes();
                let number = u64::from(numbers[usize::from(byte) % 8]);
                (1..=48).contains(&number).then(|| at + 32 + number - 1)
            }
            _ if is_last => {
                let present = self.read(at + 256 + u64::from(byte) / 64);
                (present >> (byte % 64) & 1 == 1).then(|| at + u64::from(byte))
            }
            _ => Some(at + u64::from(byte)).filter(|&at| self.read(at) != 0),
        }
    }

    /// Adds a child to a node that is locked, or that nobody knows yet; `false` if it is full.
    fn add(&self, node: u64, byte: u8, child: u64, is_last: bool) -> bool {
        let (prefix, children) = self.meta(node);
        let at = place(node) + HEADER;
        let (keys, room, _) = SHAPES[kind(node) as usize];
        if children == room {
            return false;
        }
        match kind(node) {
            NODE4 | NODE16 => self.set_byte(at, children as usize, byte),
            NODE48 => self.set_byte(at, usize::from(byte), children as u8 + 1),
            _ => {}
        }
        match kind(node) {
            NODE256 => {
                self.write(at + u64::from(byte), child);
                if is_last {
                    let present = at + 256 + u64::from(byte) / 64;
                    self.write(present, self.read(present) | 1 << (byte % 64));
                }
            }
            _ => self.write(at + keys + children, child),
        }
        self.set_meta(node, prefix, children + 1);
        true
    }

    fn set_byte(&self, at: u64, number: usize, byte: u8) {
        let word = at + number as u64 / 8;
        let mut bytes = self.read(word).to_le_bytes();
        bytes[number % 8] = byte;
        self.write(word, u64::from_le_bytes(bytes));
    }

    /// A larger node with the same children.
    fn grown(&self, writer: &mut Writer, node: u64, is_last: bool) -> u64 {
        let larger = self.take(writer, kind(node) + 1);
        let (prefix, children) = self.meta(node);
        self.set_meta(larger, prefix, 0);
        self.write(place(larger) + PREFIX, self.read(place(node) + PREFIX));
        for byte in 0..=255 {
            if let Some(child) = self.find(node, children, byte, is_last) {
                let is_added = self.add(larger, byte, self.read(child), is_last);
                assert!(
                    is_added,
                    "a larger node has room for the children of a smaller"
                );
            }
        }
        larger
    }

    /// The value of a key.
    pub fn get(&self, key: u64) -> Option<u64> {
        loop {
            if let Ok(found) = self.try_get(key) {
                return found;
            }
        }
    }

    #[inline]
    fn try_get(&self, key: u64) -> Result<Option<u64>, Changed> {
        let mut node = self.root;
        let mut version = self.version(node)?;
        let mut depth = 0;
        loop {
            let (length, children) = self.meta(node);
            if self.matching(node, length, key, depth) < length {
                self.check(node, version)?;
                return Ok(None);
            }
            depth += length;
            // Beyond the last byte is only a late reader of a prefix that is none.
            let child = (depth <= LAST)
                .then(|| self.find(node, children, byte(key, depth), depth == LAST))
                .flatten();
            let child = child.map(|at| self.read(at));
            self.check(node, version)?;
            let Some(child) = child.filter(|_| depth < LAST) else {
                return Ok(child);
            };
            if kind(child) == LEAF {
                let at = place(child);
                return Ok((self.read(at) == key).then(|| self.read(at + 1)));
            }
            let below = self.version(child)?;
            self.check(node, version)?;
            (node, version) = (child, below);
            depth += 1;
        }
    }

    /// Puts an entry in; the value that it replaces.
    pub fn upsert(&self, writer: &mut Writer, key: u64, value: u64) -> Option<u64> {
        loop {
            if let Ok(before) = self.try_upsert(writer, key, value) {
                return before;
            }
        }
    }

    fn try_upsert(
        &self,
        writer: &mut Writer,
        key: u64,
        value: u64,
    ) -> Result<Option<u64>, Changed> {
        let mut node = self.root;
        let mut version = self.version(node)?;
        let mut parent = (node, version);
        let mut depth = 0;
        loop {
            let (length, children) = self.meta(node);
            let common = self.matching(node, length, key, depth);
            if common < length {
                self.check(node, version)?;
                self.lock(parent.0, parent.1)?;
                if self.lock(node, version).is_err() {
                    self.unlock(parent.0);
                    return Err(Changed);
                }
                self.split_prefix(writer, parent.0, node, common, depth, (key, value));
                self.unlock(node);
                self.unlock(parent.0);
                return Ok(None);
            }
            depth += length;
            if depth > LAST {
                return Err(Changed);
            }
            let is_last = depth == LAST;
            let at = self.find(node, children, byte(key, depth), is_last);
            let child = at.map_or(0, |at| self.read(at));
            self.check(node, version)?;
            let Some(at) = at else {
                let room = SHAPES[kind(node) as usize].1;
                if children == room {
                    return self.grow(writer, parent, (node, version), depth, (key, value));
                }
                self.lock(node, version)?;
                let child = self.entry(writer, depth, (key, value));
                let is_added = self.add(node, byte(key, depth), child, is_last);
                assert!(is_added, "there is room");
                self.unlock(node);
                return Ok(None);
            };
            if is_last {
                self.lock(node, version)?;
                self.write(at, value);
                self.unlock(node);
                return Ok(Some(child));
            }
            if kind(child) == LEAF {
                let leaf = place(child);
                let other = self.read(leaf);
                self.lock(node, version)?;
                if other == key {
                    let before = self.word(leaf + 1).swap(value, Relaxed);
                    self.unlock(node);
                    return Ok(Some(before));
                }
                self.write(
                    at,
                    self.fork(writer, depth + 1, (child, other), (key, value)),
                );
                self.unlock(node);
                return Ok(None);
            }
            let below = self.version(child)?;
            self.check(node, version)?;
            parent = (node, version);
            (node, version) = (child, below);
            depth += 1;
        }
    }

    /// Replaces a full node by a larger one with one child more.
    fn grow(
        &self,
        writer: &mut Writer,
        parent: (u64, u64),
        (node, version): (u64, u64),
        depth: u64,
        (key, value): (u64, u64),
    ) -> Result<Option<u64>, Changed> {
        self.lock(parent.0, parent.1)?;
        if self.lock(node, version).is_err() {
            self.unlock(parent.0);
            return Err(Changed);
        }
        let larger = self.grown(writer, node, depth == LAST);
        let child = self.entry(writer, depth, (key, value));
        let is_added = self.add(larger, byte(key, depth), child, depth == LAST);
        assert!(is_added, "it is larger");
        let above = depth - self.meta(node).0 - 1;
        self.replace(parent.0, byte(key, above), larger);
        self.retire(writer, node);
        self.unlock(parent.0);
        Ok(None)
    }

    /// The child of a node at `depth` that is a single entry.
    fn entry(&self, writer: &mut Writer, depth: u64, (key, value): (u64, u64)) -> u64 {
        match depth {
            LAST => value,
            _ => self.leaf(writer, key, value),
        }
    }

    /// A node with two entries below `depth`.
    fn fork(
        &self,
        writer: &mut Writer,
        depth: u64,
        (leaf, other): (u64, u64),
        (key, value): (u64, u64),
    ) -> u64 {
        let common = u64::from((key ^ other).leading_zeros() / 8) - depth;
        let fork = self.take(writer, NODE4);
        self.set_meta(fork, common, 0);
        self.write(place(fork) + PREFIX, key << (8 * depth));
        let at = depth + common;
        let new = self.entry(writer, at, (key, value));
        // The old leaf is read by nobody who comes later.
        let old = match at {
            LAST => self.read(place(leaf) + 1),
            _ => leaf,
        };
        self.add(fork, byte(other, at), old, at == LAST);
        self.add(fork, byte(key, at), new, at == LAST);
        fork
    }

    /// A node whose prefix the key has only `common` bytes of goes below a new one.
    fn split_prefix(
        &self,
        writer: &mut Writer,
        parent: u64,
        node: u64,
        common: u64,
        depth: u64,
        (key, value): (u64, u64),
    ) {
        let (length, children) = self.meta(node);
        let prefix = self.read(place(node) + PREFIX);
        let fork = self.take(writer, NODE4);
        self.set_meta(fork, common, 0);
        self.write(place(fork) + PREFIX, prefix);
        // The node's own byte comes after this one, so that this is not the last.
        let leaf = self.leaf(writer, key, value);
        self.add(fork, byte(prefix, common), node, false);
        self.add(fork, byte(key, depth + common), leaf, false);
        self.set_meta(node, length - common - 1, children);
        self.write(place(node) + PREFIX, prefix << (8 * common) << 8);
        self.replace(parent, byte(key, depth - 1), fork);
    }

    /// Lets the child of a byte in a locked node be another.
    fn replace(&self, node: u64, byte: u8, child: u64) {
        let children = self.meta(node).1;
        let at = self.find(node, children, byte, false);
        self.write(at.expect("the child is in its parent"), child);
    }
}

/// A bit for each of eight bytes that is this one.
#[inline(always)]
fn matches(word: u64, byte: u8) -> u32 {
    const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
    let differing = word ^ (u64::from(byte) * 0x0101_0101_0101_0101);
    // The highest bit of every byte that is zero, exactly.
    let zero = !(((differing & LOW) + LOW) | differing | LOW);
    // Gathered to eight bits.
    ((zero >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Random;
    use std::collections::BTreeMap;
    use std::thread;

    #[test]
    fn bytes_are_found_where_they_are() {
        for byte in [0, 1, 7, 0x80, 0xFF] {
            assert_eq!(matches(0, byte), if byte == 0 { 0xFF } else { 0 });
            for at in 0..8 {
                let word = u64::from_le_bytes([byte ^ 1; 8]) ^ (1 << (8 * at));
                assert_eq!(matches(word, byte), 1 << at, "{byte} at {at}");
            }
        }
    }

    /// Keys that share few, some and all but the last bytes.
    fn key(random: &mut Random) -> u64 {
        let bits = random.bits();
        match bits % 5 {
            0 => bits,
            1 => bits >> 44,
            2 => (bits >> 48) << 20,
            3 => 0xAABB_CCDD_0000_0000 | (bits >> 50) << 8,
            _ => (bits >> 62) << 40 | (bits >> 30) & 0x3_00FF,
        }
    }

    #[test]
    fn one_thread_sees_what_a_btree_map_would_hold() {
        for seed in 0..20 {
            println!("seed {seed}");
            let mut random = Random(seed);
            let (tree, mut writer) = (OlcArt::new(), Writer::default());
            let mut model = BTreeMap::new();
            for n in 0..20_000 {
                let (put, asked) = (key(&mut random), key(&mut random));
                assert_eq!(tree.upsert(&mut writer, put, n), model.insert(put, n));
                assert_eq!(tree.get(asked), model.get(&asked).copied());
            }
            for (key, value) in &model {
                assert_eq!(tree.get(*key), Some(*value));
            }
            assert!(writer.free.iter().any(|free| !free.is_empty()), "grown");
        }
    }

    /// Every value names its key and a writer, so that a reader notices what does not belong together.
    #[test]
    fn threads_see_whole_entries_and_lose_none() {
        const WRITERS: u64 = 3;
        for seed in 0..4 {
            println!("seed {seed}");
            let tree = OlcArt::new();
            let mut random = Random(seed);
            let keys: Vec<u64> = (0..30_000).map(|_| key(&mut random)).collect();
            let value = |key: u64, writer: u64| (key << 2) | writer;
            thread::scope(|scope| {
                for number in 0..WRITERS {
                    let (tree, keys) = (&tree, &keys);
                    scope.spawn(move || {
                        let mut writer = Writer::default();
                        // All put all keys, each from elsewhere on.
                        let from = keys.len() / 3 * number as usize;
                        for key in keys[from..].iter().chain(&keys[..from]) {
                            tree.upsert(&mut writer, *key, value(*key, number));
                            assert_eq!(tree.get(*key).map(|v| v >> 2), Some(key << 2 >> 2));
                        }
                    });
                }
                for reader in 0..2 {
                    let (tree, keys) = (&tree, &keys);
                    scope.spawn(move || {
                        let mut random = Random(seed << 8 | reader);
                        for _ in 0..100_000 {
                            let key = keys[random.bits() as usize % keys.len()];
                            if let Some(found) = tree.get(key) {
                                assert_eq!(found >> 2, key << 2 >> 2);
                            }
                        }
                    });
                }
            });
            for key in keys {
                assert_eq!(tree.get(key).map(|v| v >> 2), Some(key << 2 >> 2));
            }
        }
    }
}
