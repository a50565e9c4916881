//! What takes part: each can be filled and asked, by one or more threads.

use super::olc::{OlcArt, Writer};
use super::random::Keys;
use super::{BATCH, IndexBenchError};
use congee::U64Congee;
use eris_engine::{Engine, KeyIndex, Settings};
use eris_index::Art;
use eris_numa::Memory;
use eris_types::{NodeId, ObjectId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::thread;

/// How many entries a range has, each looked at.
fn sum(entries: impl Iterator<Item = (u64, u64)>, length: usize) -> u64 {
    let right = entries
        .take(length)
        .filter(|(key, found)| *found == value(*key));
    right.count() as u64
}

/// A key's value.
pub(super) fn value(key: u64) -> u64 {
    key ^ 1
}

/// A structure under measurement.
pub trait Structure {
    fn name(&self) -> &'static str;
    /// Keys of one call.
    fn batch(&self) -> usize;
    /// Puts the keys of these numbers in.
    fn insert(&mut self, numbers: Range<u64>) -> Result<(), IndexBenchError>;
    /// Looks up so many keys by chance; how many were there with their value.
    fn lookup(&mut self, seed: u64, count: u64) -> Result<u64, IndexBenchError>;
    /// Bytes it holds, if it tells.
    fn bytes(&self) -> Option<u64>;
    /// Reads so many ranges of keys by chance, each of `length` entries from a key on, unless there are fewer; entries
    /// read, or none if it does not do that.
    fn ranges(&mut self, _seed: u64, _count: u64, _length: usize) -> Option<u64> {
        None
    }
}

/// All that can be used by so many threads, for these keys.
pub fn structures(
    settings: &Settings,
    keys: Keys,
    threads: usize,
) -> Result<Vec<Box<dyn Structure>>, IndexBenchError> {
    let mut all: Vec<Box<dyn Structure>> = vec![
        Box::new(Owned::new(settings, keys, threads, BATCH)?),
        Box::new(Owned::new(settings, keys, threads, 1)?),
        Box::new(Routed::new(settings, keys, threads)?),
        Box::new(Olc::new(keys, threads)),
        Box::new(Shared::new(keys, threads)),
    ];
    if threads == 1 {
        all.push(Box::new(Map::new("BTreeMap", keys, BTreeMap::new())));
        all.push(Box::new(Map::new(
            "hashbrown",
            keys,
            hashbrown::HashMap::new(),
        )));
    }
    Ok(all)
}

/// Runs `work` on so many threads; the sum of what they return.
fn on_threads<W>(threads: usize, work: W) -> Result<u64, IndexBenchError>
where
    W: Fn(usize) -> Result<u64, IndexBenchError> + Sync,
{
    thread::scope(|scope| {
        let work = &work;
        let started: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        let ended = started.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.sum()
    })
}

/// The share of a thread in some work.
fn share(work: &Range<u64>, thread: usize, threads: usize) -> Range<u64> {
    let (thread, threads) = (thread as u64, threads as u64);
    let length = work.end - work.start;
    work.start + length * thread / threads..work.start + length * (thread + 1) / threads
}

/// How many values are those of their keys.
fn count_right(keys: &[u64], values: &[Option<u64>]) -> u64 {
    let right = keys.iter().zip(values);
    right
        .filter(|(key, found)| **found == Some(value(**key)))
        .count() as u64
}

/// Numbers that belong to one thread before those of the next, if there are many: as many dense keys as a node has, so
/// that a thread's nodes are as full as those of a range.
const BLOCK: u64 = 256;

/// A tree per thread, of keys that only this thread asks for.
struct Owned {
    keys: Keys,
    batch: usize,
    block: u64,
    trees: Vec<std::sync::Mutex<Art<u64>>>,
}

impl Owned {
    fn new(
        settings: &Settings,
        keys: Keys,
        threads: usize,
        batch: usize,
    ) -> Result<Self, IndexBenchError> {
        let memory = Memory::new(
            &settings.topology,
            settings.huge_pages,
            settings.memory_limit,
        );
        let memory = memory.map_err(|error| IndexBenchError::Memory(error.to_string()))?;
        let tree = |_| Art::new(memory.node(NodeId(0)), ObjectId(1)).into();
        Ok(Owned {
            keys,
            batch,
            block: BLOCK.min(keys.count / threads as u64).max(1),
            trees: (0..threads).map(tree).collect(),
        })
    }

    /// Whose a number is.
    fn thread(&self, number: u64) -> usize {
        (number / self.block % self.trees.len() as u64) as usize
    }

    /// How many numbers a thread has.
    fn count(&self, thread: usize) -> u64 {
        let round = self.block * self.trees.len() as u64;
        let rest = (self.keys.count % round).saturating_sub(thread as u64 * self.block);
        self.keys.count / round * self.block + rest.min(self.block)
    }

    /// The n-th number of a thread's own.
    fn own(&self, n: u64, thread: usize) -> u64 {
        (n / self.block * self.trees.len() as u64 + thread as u64) * self.block + n % self.block
    }
}

impl Structure for Owned {
    fn name(&self) -> &'static str {
        "owned"
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn insert(&mut self, numbers: Range<u64>) -> Result<(), IndexBenchError> {
        on_threads(self.trees.len(), |thread| {
            let mut tree = self.trees[thread].lock().expect("nobody panicked");
            let own = numbers.clone().filter(|n| self.thread(*n) == thread);
            let entry = |n| (self.keys.key(n), value(self.keys.key(n)));
            let mut before = vec![None; self.batch];
            if self.batch == 1 {
                for (key, value) in own.map(entry) {
                    tree.insert(key, value)?;
                }
                return Ok(0);
            }
            let mut own = own.map(entry).peekable();
            while own.peek().is_some() {
                let entries: Vec<(u64, u64)> = own.by_ref().take(self.batch).collect();
                let inserted = tree.insert_many(&entries, &mut before[..entries.len()]);
                inserted.map_err(|refused| refused.error)?;
            }
            Ok(0)
        })?;
        Ok(())
    }

    fn lookup(&mut self, seed: u64, count: u64) -> Result<u64, IndexBenchError> {
        let threads = self.trees.len();
        let owned = &*self;
        on_threads(threads, |thread| {
            let tree = owned.trees[thread].lock().expect("nobody panicked");
            let mut state = (seed << 32) + thread as u64;
            let part = Keys::dense(owned.count(thread));
            let mut key = || owned.keys.key(owned.own(part.any(&mut state), thread));
            let own = share(&(0..count), thread, threads);
            let mut found = 0;
            let (mut keys, mut values) = (vec![0; owned.batch], vec![None; owned.batch]);
            let mut left = (own.end - own.start) as usize;
            while left > 0 {
                let batch = left.min(owned.batch);
                keys[..batch].fill_with(&mut key);
                match owned.batch {
                    1 => values[0] = tree.get(keys[0]),
                    _ => tree.get_many(&keys[..batch], &mut values[..batch]),
                }
                found += count_right(&keys[..batch], &values[..batch]);
                left -= batch;
            }
            Ok(found)
        })
    }

    fn bytes(&self) -> Option<u64> {
        match &self.trees[..] {
            [tree] => Some(tree.lock().expect("nobody panicked").footprint().held as u64),
            // Of random keys each has those of all ranges, which no partition has.
            _ => None,
        }
    }

    fn ranges(&mut self, seed: u64, count: u64, length: usize) -> Option<u64> {
        let ([tree], 1) = (&self.trees[..], self.batch) else {
            return None;
        };
        let tree = tree.lock().expect("nobody panicked");
        let mut state = seed << 32;
        let ranges = (0..count).map(|_| sum(tree.range(self.keys.any(&mut state)..), length));
        Some(ranges.sum())
    }
}

/// An index of Eris, asked by clients.
struct Routed {
    keys: Keys,
    threads: usize,
    engine: Engine,
    index: KeyIndex,
}

impl Routed {
    fn new(settings: &Settings, keys: Keys, threads: usize) -> Result<Self, IndexBenchError> {
        let engine = Engine::start(settings.clone())?;
        Ok(Routed {
            keys,
            threads,
            index: engine.create_key_index("bench", 0..=keys.last()),
            engine,
        })
    }
}

impl Structure for Routed {
    fn name(&self) -> &'static str {
        "routed"
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn insert(&mut self, numbers: Range<u64>) -> Result<(), IndexBenchError> {
        on_threads(self.threads, |thread| {
            let mut client = self.index.client()?;
            let mut before = [None; BATCH];
            let mut own = share(&numbers, thread, self.threads).peekable();
            while own.peek().is_some() {
                let keys = own.by_ref().take(BATCH).map(|n| self.keys.key(n));
                let entries: Vec<(u64, u64)> = keys.map(|key| (key, value(key))).collect();
                client.put(&entries, &mut before[..entries.len()])?;
            }
            Ok(0)
        })?;
        Ok(())
    }

    fn lookup(&mut self, seed: u64, count: u64) -> Result<u64, IndexBenchError> {
        on_threads(self.threads, |thread| {
            let mut client = self.index.client()?;
            let mut state = (seed << 32) + thread as u64;
            let own = share(&(0..count), thread, self.threads);
            let (mut keys, mut values) = ([0; BATCH], [None; BATCH]);
            let mut found = 0;
            let mut left = (own.end - own.start) as usize;
            while left > 0 {
                let batch = left.min(BATCH);
                keys[..batch].fill_with(|| self.keys.any(&mut state));
                client.get(&keys[..batch], &mut values[..batch])?;
                found += count_right(&keys[..batch], &values[..batch]);
                left -= batch;
            }
            Ok(found)
        })
    }

    fn bytes(&self) -> Option<u64> {
        let usage = self.engine.memory().usage();
        let own = usage.iter().filter(|usage| usage.object == self.index.id());
        Some(own.map(|usage| usage.bytes).sum())
    }
}

/// One tree for all threads.
struct Shared {
    keys: Keys,
    threads: usize,
    tree: U64Congee<usize>,
}

impl Shared {
    fn new(keys: Keys, threads: usize) -> Self {
        Shared {
            keys,
            threads,
            tree: U64Congee::default(),
        }
    }
}

impl Structure for Shared {
    fn name(&self) -> &'static str {
        "congee"
    }

    fn batch(&self) -> usize {
        1
    }

    fn insert(&mut self, numbers: Range<u64>) -> Result<(), IndexBenchError> {
        on_threads(self.threads, |thread| {
            let mut own = share(&numbers, thread, self.threads).peekable();
            while own.peek().is_some() {
                let guard = congee::epoch::pin();
                for key in own.by_ref().take(BATCH).map(|n| self.keys.key(n)) {
                    let inserted = self.tree.insert(key, value(key) as usize, &guard);
                    inserted.map_err(|_| IndexBenchError::Memory("congee".to_owned()))?;
                }
            }
            Ok(0)
        })?;
        Ok(())
    }

    fn lookup(&mut self, seed: u64, count: u64) -> Result<u64, IndexBenchError> {
        on_threads(self.threads, |thread| {
            let mut state = (seed << 32) + thread as u64;
            let mut own = share(&(0..count), thread, self.threads).peekable();
            let mut found = 0;
            while own.peek().is_some() {
                let guard = congee::epoch::pin();
                for _ in own.by_ref().take(BATCH) {
                    let key = self.keys.any(&mut state);
                    let is_right = self.tree.get(key, &guard) == Some(value(key) as usize);
                    found += u64::from(is_right);
                }
            }
            Ok(found)
        })
    }

    fn bytes(&self) -> Option<u64> {
        None
    }
}

/// Our own tree for all threads.
struct Olc {
    keys: Keys,
    tree: OlcArt,
    writers: Vec<std::sync::Mutex<Writer>>,
}

impl Olc {
    fn new(keys: Keys, threads: usize) -> Self {
        Olc {
            keys,
            tree: OlcArt::new(),
            writers: (0..threads).map(|_| Default::default()).collect(),
        }
    }
}

impl Structure for Olc {
    fn name(&self) -> &'static str {
        "shared"
    }

    fn batch(&self) -> usize {
        1
    }

    fn insert(&mut self, numbers: Range<u64>) -> Result<(), IndexBenchError> {
        let threads = self.writers.len();
        on_threads(threads, |thread| {
            let mut writer = self.writers[thread].lock().expect("nobody panicked");
            for key in share(&numbers, thread, threads).map(|n| self.keys.key(n)) {
                self.tree.upsert(&mut writer, key, value(key));
            }
            Ok(0)
        })?;
        Ok(())
    }

    fn lookup(&mut self, seed: u64, count: u64) -> Result<u64, IndexBenchError> {
        let threads = self.writers.len();
        on_threads(threads, |thread| {
            let mut state = (seed << 32) + thread as u64;
            let right = share(&(0..count), thread, threads).filter(|_| {
                let key = self.keys.any(&mut state);
                self.tree.get(key) == Some(value(key))
            });
            Ok(right.count() as u64)
        })
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.tree.bytes())
    }
}

/// A map of one thread.
struct Map<M> {
    name: &'static str,
    keys: Keys,
    map: M,
}

/// What such maps have in common.
trait KeyMap {
    fn put(&mut self, key: u64, value: u64);
    fn value(&self, key: u64) -> Option<u64>;
    fn range(&self, _from: u64, _length: usize) -> Option<u64> {
        None
    }
}

impl KeyMap for BTreeMap<u64, u64> {
    fn put(&mut self, key: u64, value: u64) {
        self.insert(key, value);
    }

    fn value(&self, key: u64) -> Option<u64> {
        self.get(&key).copied()
    }

    fn range(&self, from: u64, length: usize) -> Option<u64> {
        Some(sum(
            BTreeMap::range(self, from..).map(|(key, value)| (*key, *value)),
            length,
        ))
    }
}

impl KeyMap for hashbrown::HashMap<u64, u64> {
    fn put(&mut self, key: u64, value: u64) {
        self.insert(key, value);
    }

    fn value(&self, key: u64) -> Option<u64> {
        self.get(&key).copied()
    }
}

impl<M: KeyMap> Map<M> {
    fn new(name: &'static str, keys: Keys, map: M) -> Self {
        Map { name, keys, map }
    }
}

impl<M: KeyMap> Structure for Map<M> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn batch(&self) -> usize {
        1
    }

    fn insert(&mut self, numbers: Range<u64>) -> Result<(), IndexBenchError> {
        for key in numbers.map(|n| self.keys.key(n)) {
            self.map.put(key, value(key));
        }
        Ok(())
    }

    fn lookup(&mut self, seed: u64, count: u64) -> Result<u64, IndexBenchError> {
        let mut state = seed << 32;
        let right = (0..count).filter(|_| {
            let key = self.keys.any(&mut state);
            self.map.value(key) == Some(value(key))
        });
        Ok(right.count() as u64)
    }

    fn bytes(&self) -> Option<u64> {
        None
    }

    fn ranges(&mut self, seed: u64, count: u64, length: usize) -> Option<u64> {
        let mut state = seed << 32;
        let ranges = (0..count).map(|_| self.map.range(self.keys.any(&mut state), length));
        ranges.sum()
    }
}
