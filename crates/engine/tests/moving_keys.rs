//! Real threads that look keys up, write, remove and read ranges while other threads move random ranges from owner to
//! owner without pause, by link and by copy. Every client checks its own keys against a map, and what readers see of
//! the others' never becomes older.
//!
//! `ERIS_TORTURE_SECONDS` says how long it goes on in all, `ERIS_SEED` with which random numbers.
#![allow(missing_docs)]

use eris_engine::{Engine, KeyClient, KeyIndex, Moved, Settings, Shift};
use eris_numa::{HugePages, Topology};
use eris_types::AeuId;
use futures::executor::block_on;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// Keys are below this number; a client's own are those of one remainder.
const KEYS: u64 = 100_000;

fn number(variable: &str, otherwise: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value.map_or(otherwise, |value| value.parse().expect("a number"))
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(99);
        (self.0 >> 33) % limit
    }
}

/// A client, and what its keys must have.
struct Person {
    number: u64,
    of: u64,
    client: KeyClient,
    entries: BTreeMap<u64, u64>,
    random: Random,
    next: u64,
}

impl Person {
    /// Some of its own keys: mostly one, so that owners fall asleep in between and are stepped in place; or many, side
    /// by side or scattered.
    fn keys(&mut self) -> Vec<u64> {
        let own = KEYS / self.of;
        let count = [1, 1, 1, 2, 30, 2_000][self.random.below(6) as usize];
        let (first, step) = (
            self.random.below(own),
            [1, 7_919][self.random.below(2) as usize],
        );
        let key = |at: u64| (first + at * step) % own * self.of + self.number;
        let mut keys: Vec<u64> = (0..count).map(key).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn operate(&mut self) {
        let keys = self.keys();
        let mut found = vec![None; keys.len()];
        match self.random.below(8) {
            0..3 => {
                // Values only grow, each tells its key.
                self.next += 1;
                let entries: Vec<_> = keys
                    .iter()
                    .map(|key| (*key, self.next * KEYS + key))
                    .collect();
                self.client.put(&entries, &mut found).unwrap();
                for ((key, value), before) in entries.into_iter().zip(found) {
                    assert_eq!(before, self.entries.insert(key, value), "key {key}");
                }
            }
            3 => {
                self.client.remove(&keys, &mut found).unwrap();
                for (key, before) in keys.iter().zip(found) {
                    assert_eq!(before, self.entries.remove(key), "key {key}");
                }
            }
            4 => self.range(),
            _ => self.check(&keys),
        }
    }

    fn check(&mut self, keys: &[u64]) {
        let mut found = vec![None; keys.len()];
        self.client.get(keys, &mut found).unwrap();
        for (key, value) in keys.iter().zip(found) {
            assert_eq!(value, self.entries.get(key).copied(), "key {key}");
        }
    }

    fn range(&mut self) {
        let low = self.random.below(KEYS);
        let high = low + self.random.below(3_000);
        let limit = [5, 100_000][self.random.below(2) as usize];
        let found = self.client.range(low..=high, limit).unwrap();
        assert!(found.is_sorted_by(|a, b| a.0 < b.0) && found.len() <= limit);
        let end = match found.len() == limit {
            true => found.last().map_or(high, |(key, _)| *key),
            false => high,
        };
        let own = found
            .into_iter()
            .filter(|(key, _)| key % self.of == self.number);
        let expected = self.entries.range(low..=end);
        assert!(
            own.eq(expected.map(|(key, value)| (*key, *value))),
            "{low}..={high}, {limit}"
        );
    }
}

/// Reads anybody's keys: what it has seen of a key must not become older.
fn read(index: &KeyIndex, mut random: Random, is_over: &AtomicBool) {
    let mut client = index.client().unwrap();
    let mut newest = vec![0; KEYS as usize];
    let mut note = |key: u64, value: u64| {
        assert_eq!(value % KEYS, key, "the value of another key");
        assert!(
            newest[key as usize] <= value,
            "key {key}: {value} is older than what was there before"
        );
        newest[key as usize] = value;
    };
    while !is_over.load(Ordering::Relaxed) {
        let first = random.below(KEYS);
        if random.below(3) == 0 {
            let found = client
                .range(first..=first + random.below(500), 1_000)
                .unwrap();
            found.into_iter().for_each(|(key, value)| note(key, value));
            continue;
        }
        let keys: Vec<u64> = (0..random.below(100))
            .map(|at| (first + at * 997) % KEYS)
            .collect();
        let mut values = vec![None; keys.len()];
        client.get(&keys, &mut values).unwrap();
        for (key, value) in keys.into_iter().zip(values) {
            value.into_iter().for_each(|value| note(key, value));
        }
    }
}

/// Moves keys without pause; says what was moved.
fn shift(index: &KeyIndex, aeus: u64, mut random: Random, is_over: &AtomicBool) -> Moved {
    let mut all = Moved::default();
    while !is_over.load(Ordering::Relaxed) {
        let shifts = (0..1 + random.below(3)).map(|_| {
            let low = random.below(KEYS);
            let width = [100, 5_000, KEYS][random.below(3) as usize];
            (
                low,
                low + random.below(width),
                AeuId(random.below(aeus) as u16),
            )
        });
        let mut shifts: Vec<_> = shifts.collect();
        shifts.sort_unstable();
        shifts.dedup_by(|next, last| next.0 <= last.1);
        let shifts = shifts
            .into_iter()
            .map(|(low, high, to)| Shift { low, high, to });
        let shifts: Vec<Shift> = shifts.collect();
        match random.below(16) {
            0 => {
                // Nobody waits for what becomes of it.
                let mut left = std::pin::pin!(index.shift(&shifts));
                let _ = left.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }
            1 => drop(block_on(index.reorganize()).unwrap()),
            2 => drop(block_on(index.measure()).unwrap()),
            _ => {
                for one in block_on(index.shift(&shifts)).unwrap() {
                    let moved = one.result.expect("there is memory");
                    all.keys += moved.keys;
                    all.linked += moved.linked;
                    all.copied += moved.copied;
                }
            }
        }
    }
    all
}

fn torture(nodes: u16, cores: u16, clients: u64, seed: u64, time: Duration) -> Moved {
    let settings = Settings {
        topology: Topology::fake(nodes, cores),
        huge_pages: HugePages::Never,
        memory_limit: Some(1 << 30),
        database: None,
    };
    let engine = Engine::start(settings).unwrap();
    let index = engine.create_key_index("numbers", 0..=KEYS - 1);
    let (is_over, operations) = (AtomicBool::new(false), AtomicU64::new(0));
    let moved = thread::scope(|scope| {
        // Whoever fails ends it for all.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let (index, is_over, operations) = (&index, &is_over, &operations);
        let aeus = u64::from(nodes * cores);
        let shifting = scope.spawn(move || {
            let _over = Over(is_over);
            shift(index, aeus, Random(seed), is_over)
        });
        scope.spawn(move || {
            let _over = Over(is_over);
            read(index, Random(seed + 1), is_over)
        });
        for number in 0..clients {
            scope.spawn(move || {
                let _over = Over(is_over);
                let mut person = Person {
                    number,
                    of: clients,
                    client: index.client().unwrap(),
                    entries: BTreeMap::new(),
                    random: Random(seed + 2 + number),
                    next: 0,
                };
                while !is_over.load(Ordering::Relaxed) {
                    person.operate();
                    operations.fetch_add(1, Ordering::Relaxed);
                }
                // In the end all of them.
                let own: Vec<u64> = (number..KEYS).step_by(clients as usize).collect();
                person.check(&own);
            });
        }
        let began = Instant::now();
        while began.elapsed() < time && !is_over.load(Ordering::Relaxed) {
            thread::park_timeout(Duration::from_millis(20));
        }
        is_over.store(true, Ordering::Relaxed);
        shifting.join().unwrap()
    });
    let counters = engine.counters().aeus;
    assert_eq!(counters.iter().map(|aeu| aeu.panics).sum::<u64>(), 0);
    let parks: u64 = counters.iter().map(|aeu| aeu.parks).sum();
    println!("{nodes}x{cores}: {operations:?} operations, {moved:?}, AEUs slept {parks} times");
    block_on(index.shift(&[])).unwrap();
    let segments = block_on(index.measure()).unwrap();
    for pair in segments.windows(2) {
        assert_eq!(pair[0].high + 1, pair[1].low, "segments lie side by side");
    }
    assert!(
        segments
            .iter()
            .all(|segment| index.owner(segment.low) == segment.aeu)
    );
    block_on(index.drop()).unwrap();
    let left = engine
        .memory()
        .usage()
        .into_iter()
        .filter(|usage| usage.object == index.id());
    assert_eq!(left.count(), 0, "memory is left over");
    moved
}

#[test]
fn no_operation_goes_wrong_while_keys_change_owners_without_pause() {
    let seed = number("ERIS_SEED", 1);
    println!("seed {seed}");
    let time = Duration::from_secs(number("ERIS_TORTURE_SECONDS", 20)) / 4;
    // Few clients leave AEUs time to sleep; many keep them awake.
    for (nodes, cores, clients) in [(1, 2, 1), (1, 2, 3), (2, 2, 2), (4, 2, 3)] {
        let moved = torture(nodes, cores, clients, seed, time);
        assert!(moved.linked > 0 && moved.copied > 0, "{moved:?}");
    }
}
