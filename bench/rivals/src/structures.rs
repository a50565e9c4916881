//! What takes part: each can be filled and asked, by one or more threads.

use crate::keys::{BATCH, KeySequence, count_entries, value};
use crate::olc::{OlcArt, Writer};
use crate::threads::{on_threads, share};
use congee::U64Congee;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Range;

/// A structure under measurement.
pub trait Structure {
    /// Puts the keys of these numbers in.
    fn insert(&mut self, numbers: Range<u64>) -> Result<(), String>;
    /// Looks up so many keys by chance; how many were there with their value.
    fn lookup(&mut self, seed: u64, count: u64) -> u64;
    /// Bytes it holds, if it tells.
    fn bytes(&self) -> Option<u64> {
        None
    }
    /// Reads so many ranges of keys by chance, each of `length` entries from a key on, unless there are fewer; entries
    /// read, or none if it does not do that.
    fn ranges(&mut self, _seed: u64, _count: u64, _length: usize) -> Option<u64> {
        None
    }
}

/// The names of all that can be used by so many threads.
pub fn names(threads: usize) -> &'static [&'static str] {
    let all = &["shared", "congee", "BTreeMap", "hashbrown"];
    if threads == 1 { all } else { &all[..2] }
}

/// The one of that name, for these keys.
pub fn structure(name: &str, keys: KeySequence, threads: usize) -> Option<Box<dyn Structure>> {
    Some(match name {
        "shared" => Box::new(Olc::new(keys, threads)),
        "congee" => Box::new(Congee::new(keys, threads)),
        "BTreeMap" => Box::new(Map::new(keys, BTreeMap::new())),
        "hashbrown" => Box::new(Map::new(keys, hashbrown::HashMap::new())),
        _ => return None,
    })
}

/// What all threads found together.
fn found_by(threads: usize, lookup: impl Fn(usize) -> u64 + Sync) -> u64 {
    let Ok(found) = on_threads::<Infallible, _>(threads, |thread| Ok(lookup(thread)));
    found
}

/// Congee's tree for all threads.
struct Congee {
    keys: KeySequence,
    threads: usize,
    tree: U64Congee<usize>,
}

impl Congee {
    fn new(keys: KeySequence, threads: usize) -> Self {
        Congee {
            keys,
            threads,
            tree: U64Congee::default(),
        }
    }
}

impl Structure for Congee {
    fn insert(&mut self, numbers: Range<u64>) -> Result<(), String> {
        on_threads::<String, _>(self.threads, |thread| {
            let mut own = share(&numbers, thread, self.threads).peekable();
            while own.peek().is_some() {
                let guard = congee::epoch::pin();
                for key in own.by_ref().take(BATCH).map(|n| self.keys.key(n)) {
                    let inserted = self.tree.insert(key, value(key) as usize, &guard);
                    inserted.map_err(|_| "no memory".to_owned())?;
                }
            }
            Ok(0)
        })?;
        Ok(())
    }

    fn lookup(&mut self, seed: u64, count: u64) -> u64 {
        found_by(self.threads, |thread| {
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
            found
        })
    }
}

/// Our own tree for all threads.
struct Olc {
    keys: KeySequence,
    tree: OlcArt,
    writers: Vec<std::sync::Mutex<Writer>>,
}

impl Olc {
    fn new(keys: KeySequence, threads: usize) -> Self {
        Olc {
            keys,
            tree: OlcArt::new(),
            writers: (0..threads).map(|_| Default::default()).collect(),
        }
    }
}

impl Structure for Olc {
    fn insert(&mut self, numbers: Range<u64>) -> Result<(), String> {
        let threads = self.writers.len();
        on_threads::<String, _>(threads, |thread| {
            let mut writer = self.writers[thread].lock().expect("nobody panicked");
            for key in share(&numbers, thread, threads).map(|n| self.keys.key(n)) {
                self.tree.upsert(&mut writer, key, value(key));
            }
            Ok(0)
        })?;
        Ok(())
    }

    fn lookup(&mut self, seed: u64, count: u64) -> u64 {
        let threads = self.writers.len();
        found_by(threads, |thread| {
            let mut state = (seed << 32) + thread as u64;
            let right = share(&(0..count), thread, threads).filter(|_| {
                let key = self.keys.any(&mut state);
                self.tree.get(key) == Some(value(key))
            });
            right.count() as u64
        })
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.tree.bytes())
    }
}

/// A map of one thread.
struct Map<M> {
    keys: KeySequence,
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
        Some(count_entries(
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
    fn new(keys: KeySequence, map: M) -> Self {
        Map { keys, map }
    }
}

impl<M: KeyMap> Structure for Map<M> {
    fn insert(&mut self, numbers: Range<u64>) -> Result<(), String> {
        for key in numbers.map(|n| self.keys.key(n)) {
            self.map.put(key, value(key));
        }
        Ok(())
    }

    fn lookup(&mut self, seed: u64, count: u64) -> u64 {
        let mut state = seed << 32;
        let right = (0..count).filter(|_| {
            let key = self.keys.any(&mut state);
            self.map.value(key) == Some(value(key))
        });
        right.count() as u64
    }

    fn ranges(&mut self, seed: u64, count: u64, length: usize) -> Option<u64> {
        let mut state = seed << 32;
        let ranges = (0..count).map(|_| self.map.range(self.keys.any(&mut state), length));
        ranges.sum()
    }
}
