//! One tree that threads share: a B-link tree.

use super::error::IndexBenchError;
use super::keys::{BATCH, KeySequence, count_entries, value};
use super::structure::{Structure, count_right, memory, mixed_operation, no_memory};
use super::threads::{on_threads, share};
use eris_blink::Tree;
use eris_engine::Settings;
use eris_numa::Memory;
use eris_types::{NodeId, ObjectId};
use std::ops::Range;

/// A B-link tree, and how many keys a thread asks for at a time.
pub struct Shared {
    keys: KeySequence,
    threads: usize,
    batch: usize,
    memory: Memory,
    tree: Tree,
}

impl Shared {
    pub fn new(
        settings: &Settings,
        keys: KeySequence,
        threads: usize,
        batch: usize,
    ) -> Result<Self, IndexBenchError> {
        let memory = memory(settings)?;
        let tree = Tree::new(memory.node(NodeId(0)), ObjectId(1)).map_err(no_memory)?;
        Ok(Shared {
            keys,
            threads,
            batch,
            memory,
            tree,
        })
    }
}

impl Structure for Shared {
    fn name(&self) -> &str {
        "blink"
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn insert(&mut self, numbers: Range<u64>) -> Result<(), IndexBenchError> {
        on_threads::<IndexBenchError, _>(self.threads, |thread| {
            let own = share(&numbers, thread, self.threads);
            let mut entries = own.map(|n| self.keys.key(n)).map(|key| (key, value(key)));
            if self.batch == 1 {
                for (key, value) in entries {
                    self.tree.put(key, value).map_err(no_memory)?;
                }
                return Ok(0);
            }
            loop {
                let some: Vec<(u64, u64)> = entries.by_ref().take(BATCH).collect();
                if some.is_empty() {
                    return Ok(0);
                }
                self.tree.put_many(&some, |_, _| ()).map_err(no_memory)?;
            }
        })?;
        Ok(())
    }

    fn lookup(&mut self, seed: u64, count: u64) -> Result<u64, IndexBenchError> {
        on_threads(self.threads, |thread| {
            let mut state = (seed << 32) + thread as u64;
            let own = share(&(0..count), thread, self.threads);
            let mut left = (own.end - own.start) as usize;
            let (mut keys, mut values) = (vec![0; self.batch], vec![None; self.batch]);
            let mut found = 0;
            while left > 0 {
                let batch = left.min(self.batch);
                keys[..batch].fill_with(|| self.keys.any(&mut state));
                match self.batch {
                    1 => values[0] = self.tree.get(keys[0]),
                    _ => self.tree.get_many(&keys[..batch], &mut values[..batch]),
                }
                found += count_right(&keys[..batch], &values[..batch]);
                left -= batch;
            }
            Ok(found)
        })
    }

    fn mixed(&mut self, keys: &[u64]) -> Result<Option<u64>, IndexBenchError> {
        if self.batch > 1 {
            return Ok(None);
        }
        let right = on_threads(self.threads, |thread| {
            let own = share(&(0..keys.len() as u64), thread, self.threads);
            let operations = own.map(|at| (at as usize, keys[at as usize]));
            let (put, get) = (
                |key| self.tree.put(key, value(key)),
                |key| self.tree.get(key),
            );
            operations
                .map(|operation| mixed_operation(operation, put, get))
                .sum()
        });
        right.map(Some)
    }

    fn bytes(&mut self) -> Result<Option<u64>, IndexBenchError> {
        Ok(Some(self.memory.budget().used()))
    }

    fn ranges(
        &mut self,
        seed: u64,
        count: u64,
        length: usize,
    ) -> Result<Option<u64>, IndexBenchError> {
        if self.batch > 1 {
            return Ok(None);
        }
        let entries = on_threads::<IndexBenchError, _>(self.threads, |thread| {
            let mut state = (seed << 32) + thread as u64;
            let own = share(&(0..count), thread, self.threads);
            let ranges = own.map(|_| {
                let first = self.keys.any(&mut state);
                count_entries(self.tree.range(first..), length)
            });
            Ok(ranges.sum())
        })?;
        Ok(Some(entries))
    }
}
