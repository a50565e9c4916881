//! What takes part: each can be filled and asked, by one or more threads.

use super::error::IndexBenchError;
use super::keys::{BATCH, KeySequence, count_entries, value};
use super::threads::{on_threads, share};
use eris_engine::{Engine, KeyIndex, Settings};
use eris_index::Art;
use eris_numa::{Memory, OutOfMemory};
use eris_types::{NodeId, ObjectId};
use std::ops::Range;

/// A structure under measurement.
pub trait Structure {
    fn name(&self) -> &str;
    /// Keys of one call.
    fn batch(&self) -> usize;
    /// Puts the keys of these numbers in.
    fn insert(&mut self, numbers: Range<u64>) -> Result<(), IndexBenchError>;
    /// Looks up so many keys by chance; how many were there with their value.
    fn lookup(&mut self, seed: u64, count: u64) -> Result<u64, IndexBenchError>;
    /// Bytes it holds, if it tells.
    fn bytes(&mut self) -> Result<Option<u64>, IndexBenchError>;
    /// Reads so many ranges of keys by chance, each of `length` entries from a key on, unless there are fewer; entries
    /// read, or none if it does not do that.
    fn ranges(
        &mut self,
        _seed: u64,
        _count: u64,
        _length: usize,
    ) -> Result<Option<u64>, IndexBenchError> {
        Ok(None)
    }

    /// Puts every second one of these keys in again, and looks the others up; how many were there with their value, or
    /// none if it does not do that.
    fn mixed(&mut self, _keys: &[u64]) -> Result<Option<u64>, IndexBenchError> {
        Ok(None)
    }
}

/// One operation of [`Structure::mixed`]: whether what `put` or `get` found is right.
pub fn mixed_operation(
    (at, key): (usize, u64),
    put: impl FnOnce(u64) -> Result<Option<u64>, OutOfMemory>,
    get: impl FnOnce(u64) -> Option<u64>,
) -> Result<u64, IndexBenchError> {
    let found = match at % 2 {
        0 => put(key).map_err(no_memory)?,
        _ => get(key),
    };
    Ok(count_right(&[key], &[found]))
}

/// Memory of its own, as the settings have it.
pub fn memory(settings: &Settings) -> Result<Memory, IndexBenchError> {
    let (huge_pages, limit) = (settings.huge_pages, settings.memory_limit);
    let memory = Memory::new(&settings.topology, huge_pages, limit);
    memory.map_err(|error| IndexBenchError::Memory(error.to_string()))
}

pub fn no_memory(error: OutOfMemory) -> IndexBenchError {
    IndexBenchError::Memory(error.to_string())
}

/// How many values are those of their keys.
pub fn count_right(keys: &[u64], values: &[Option<u64>]) -> u64 {
    let right = keys.iter().zip(values);
    right
        .filter(|(key, found)| **found == Some(value(**key)))
        .count() as u64
}

/// Numbers that belong to one thread before those of the next, if there are many: as many dense keys as a node has, so
/// that a thread's nodes are as full as those of a range.
const BLOCK: u64 = 256;

/// A tree per thread, of keys that only this thread asks for.
pub struct Owned {
    keys: KeySequence,
    batch: usize,
    block: u64,
    trees: Vec<std::sync::Mutex<Art<u64>>>,
}

impl Owned {
    pub fn new(
        settings: &Settings,
        keys: KeySequence,
        threads: usize,
        batch: usize,
    ) -> Result<Self, IndexBenchError> {
        let memory = memory(settings)?;
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
    fn name(&self) -> &str {
        "owned"
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn insert(&mut self, numbers: Range<u64>) -> Result<(), IndexBenchError> {
        on_threads::<IndexBenchError, _>(self.trees.len(), |thread| {
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
                inserted.map_err(|rejected| rejected.error)?;
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
            let part = KeySequence::dense(owned.count(thread));
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

    fn bytes(&mut self) -> Result<Option<u64>, IndexBenchError> {
        Ok(match &self.trees[..] {
            [tree] => Some(tree.lock().expect("nobody panicked").footprint().held as u64),
            // Of random keys each has those of all ranges, which no partition has.
            _ => None,
        })
    }

    fn ranges(
        &mut self,
        seed: u64,
        count: u64,
        length: usize,
    ) -> Result<Option<u64>, IndexBenchError> {
        let ([tree], 1) = (&self.trees[..], self.batch) else {
            return Ok(None);
        };
        let tree = tree.lock().expect("nobody panicked");
        let mut state = seed << 32;
        let ranges =
            (0..count).map(|_| count_entries(tree.range(self.keys.any(&mut state)..), length));
        Ok(Some(ranges.sum()))
    }
}

/// An index of Eris, asked by clients.
pub struct Routed {
    keys: KeySequence,
    threads: usize,
    engine: Engine,
    index: KeyIndex,
}

impl Routed {
    pub fn new(
        settings: &Settings,
        keys: KeySequence,
        threads: usize,
    ) -> Result<Self, IndexBenchError> {
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
    fn name(&self) -> &str {
        "routed"
    }

    fn batch(&self) -> usize {
        BATCH
    }

    fn insert(&mut self, numbers: Range<u64>) -> Result<(), IndexBenchError> {
        on_threads::<IndexBenchError, _>(self.threads, |thread| {
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

    fn bytes(&mut self) -> Result<Option<u64>, IndexBenchError> {
        let usage = self.engine.memory().usage();
        let own = usage.iter().filter(|usage| usage.object == self.index.id());
        Ok(Some(own.map(|usage| usage.bytes).sum()))
    }
}
