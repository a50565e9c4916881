//! Speed of the indexes beside others, on one thread.
//!
//! ```text
//! cargo run --release --manifest-path bench/rivals/Cargo.toml --example index_speed -- random 16 [structure …]
//! ```
//! The first argument is `random` or `dense`, the second millions of keys, the rest which structures take part (all by
//! default). They grow side by side, a million keys in turn, and are then asked side by side; each number is the median
//! over these rounds, because the machine's speed varies and only what is measured in turn can be compared. Time is
//! processor time of the thread. All have huge pages, but those whose names end in `-4k`.

mod huge;

use congee::U64Congee;
use eris_index::{Art, HashIndex};
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{NodeId, ObjectId};
use std::collections::BTreeMap;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: huge::Huge = huge::Huge::new();

const ROUND: u64 = 1 << 20;
const BATCH: usize = 1024;
const ROUNDS: usize = 7;

/// A bijection that scatters numbers over all 64 bits.
fn scatter(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

/// What takes part.
trait Structure {
    fn name(&self) -> &'static str;
    fn insert(&mut self, keys: &[u64]);
    /// The sum of what is found.
    fn lookup(&mut self, keys: &[u64]) -> u64;
    /// The sum of the first hundred values from each key on; `None`: no order.
    fn scan(&mut self, _: &[u64]) -> Option<u64> {
        None
    }
    /// Bytes used and held, if it tells.
    fn bytes(&self) -> Option<(usize, usize)> {
        None
    }
}

struct Batched(Art<u64>, &'static str);
struct Single(Art<u64>, &'static str);
struct Hashed(HashIndex<u64>);
struct HashedSingle(HashIndex<u64>);
struct Congee(U64Congee<usize>);
struct Std(BTreeMap<u64, u64>);
struct Brown(hashbrown::HashMap<u64, u64>);

impl Structure for Batched {
    fn name(&self) -> &'static str {
        self.1
    }
    fn insert(&mut self, keys: &[u64]) {
        let mut present = [None; BATCH];
        for keys in keys.chunks(BATCH) {
            let entries: Vec<(u64, u64)> = keys.iter().map(|key| (*key, *key)).collect();
            let inserted = self.0.insert_many(&entries, &mut present[..keys.len()]);
            inserted.expect("memory");
        }
    }
    fn lookup(&mut self, keys: &[u64]) -> u64 {
        let mut sum = 0u64;
        let mut values = [None; BATCH];
        for keys in keys.chunks(BATCH) {
            self.0.get_many(keys, &mut values[..keys.len()]);
            let found = values[..keys.len()].iter().map(|value| value.unwrap_or(0));
            sum = found.fold(sum, u64::wrapping_add);
        }
        sum
    }
    fn scan(&mut self, keys: &[u64]) -> Option<u64> {
        let mut sum = 0u64;
        for keys in keys.chunks(BATCH) {
            let bounds: Vec<_> = keys.iter().map(|key| *key..).collect();
            let mut left = 100;
            let mut current = 0;
            self.0.range_many(&bounds, |number, _, value| {
                if number != current {
                    (current, left) = (number, 100);
                }
                sum = sum.wrapping_add(value);
                left -= 1;
                left > 0
            });
        }
        Some(sum)
    }
    fn bytes(&self) -> Option<(usize, usize)> {
        Some((self.0.footprint().used, self.0.footprint().held))
    }
}

impl Structure for Single {
    fn name(&self) -> &'static str {
        self.1
    }
    fn insert(&mut self, keys: &[u64]) {
        for key in keys {
            self.0.insert(*key, *key).expect("memory");
        }
    }
    fn lookup(&mut self, keys: &[u64]) -> u64 {
        let found = keys.iter().map(|key| self.0.get(*key).unwrap_or(0));
        found.fold(0, u64::wrapping_add)
    }
    fn scan(&mut self, keys: &[u64]) -> Option<u64> {
        let values = keys.iter().flat_map(|key| self.0.range(*key..).take(100));
        Some(values.fold(0, |sum, (_, value)| sum.wrapping_add(value)))
    }
}

impl Structure for Hashed {
    fn name(&self) -> &'static str {
        "hash-batched"
    }
    fn insert(&mut self, keys: &[u64]) {
        let mut present = [None; BATCH];
        for keys in keys.chunks(BATCH) {
            let entries: Vec<(u64, u64)> = keys.iter().map(|key| (*key, *key)).collect();
            let inserted = self.0.insert_many(&entries, &mut present[..keys.len()]);
            inserted.expect("memory");
        }
    }
    fn lookup(&mut self, keys: &[u64]) -> u64 {
        let mut sum = 0u64;
        let mut values = [None; BATCH];
        for keys in keys.chunks(BATCH) {
            self.0.get_many(keys, &mut values[..keys.len()]);
            let found = values[..keys.len()].iter().map(|value| value.unwrap_or(0));
            sum = found.fold(sum, u64::wrapping_add);
        }
        sum
    }
    fn bytes(&self) -> Option<(usize, usize)> {
        Some((self.0.footprint().used, self.0.footprint().held))
    }
}

impl Structure for HashedSingle {
    fn name(&self) -> &'static str {
        "hash"
    }
    fn insert(&mut self, keys: &[u64]) {
        for key in keys {
            self.0.insert(*key, *key).expect("memory");
        }
    }
    fn lookup(&mut self, keys: &[u64]) -> u64 {
        let found = keys.iter().map(|key| self.0.get(*key).unwrap_or(0));
        found.fold(0, u64::wrapping_add)
    }
}

impl Structure for Congee {
    fn name(&self) -> &'static str {
        "congee"
    }
    fn insert(&mut self, keys: &[u64]) {
        for keys in keys.chunks(BATCH) {
            let guard = congee::epoch::pin();
            for key in keys {
                let inserted = self.0.insert(*key, *key as usize, &guard);
                assert!(inserted.is_ok(), "memory");
            }
        }
    }
    fn lookup(&mut self, keys: &[u64]) -> u64 {
        let mut sum = 0u64;
        for keys in keys.chunks(BATCH) {
            let guard = congee::epoch::pin();
            let found = keys
                .iter()
                .map(|key| self.0.get(*key, &guard).unwrap_or(0) as u64);
            sum = found.fold(sum, u64::wrapping_add);
        }
        sum
    }
}

impl Structure for Std {
    fn name(&self) -> &'static str {
        "BTreeMap"
    }
    fn insert(&mut self, keys: &[u64]) {
        for key in keys {
            self.0.insert(*key, *key);
        }
    }
    fn lookup(&mut self, keys: &[u64]) -> u64 {
        let found = keys.iter().map(|key| self.0.get(key).copied().unwrap_or(0));
        found.fold(0, u64::wrapping_add)
    }
    fn scan(&mut self, keys: &[u64]) -> Option<u64> {
        let values = keys.iter().flat_map(|key| self.0.range(*key..).take(100));
        Some(values.fold(0, |sum, (_, value)| sum.wrapping_add(*value)))
    }
}

impl Structure for Brown {
    fn name(&self) -> &'static str {
        "hashbrown"
    }
    fn insert(&mut self, keys: &[u64]) {
        for key in keys {
            self.0.insert(*key, *key);
        }
    }
    fn lookup(&mut self, keys: &[u64]) -> u64 {
        let found = keys.iter().map(|key| self.0.get(key).copied().unwrap_or(0));
        found.fold(0, u64::wrapping_add)
    }
}

/// Processor time of this thread: the turns of other processes do not count.
fn seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes the time and nothing else.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(status, 0, "a thread has a clock");
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Million independent random loads of eight bytes per second, in `bytes` of huge pages.
fn loads(memory: &Memory, bytes: usize) -> f64 {
    let mut buffer = memory
        .node(NodeId(0))
        .allocate(ObjectId(9), bytes)
        .expect("memory");
    let words = buffer.as_mut_slice::<u64>();
    words
        .iter_mut()
        .enumerate()
        .for_each(|(i, word)| *word = i as u64);
    let rounds = (0..5).map(|round| {
        let start = seconds();
        let count = 8 * ROUND;
        let mut sum = 0u64;
        for i in 0..count {
            let at = (u128::from(scatter(i + round * count)) * words.len() as u128) >> 64;
            sum = sum.wrapping_add(words[at as usize]);
        }
        black_box(sum);
        count as f64 / (seconds() - start) / 1e6
    });
    median(rounds.collect())
}

/// Resident bytes, and how many of them are in transparent huge pages.
fn resident() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let of = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    Some((of("Rss:")? << 10, of("AnonHugePages:")? << 10))
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, millions, chosen @ ..] = &arguments[..] else {
        eprintln!("index_speed random|dense <millions of keys> [structure …]");
        std::process::exit(2);
    };
    let keys = millions.parse::<u64>().expect("millions of keys, a number") * ROUND;
    let dense = kind == "dense";
    let key = |i: u64| if dense { i } else { scatter(i) };
    let memory = |pages| Memory::new(&Topology::fake(1, 1), pages, None).expect("memory");
    let (memory, small) = (memory(HugePages::Auto), memory(HugePages::Never));
    let art = |memory: &Memory| Art::new(memory.node(NodeId(0)), ObjectId(1));
    let hash = || HashIndex::new(memory.node(NodeId(0)), ObjectId(2));
    let mut structures: Vec<Box<dyn Structure>> = vec![
        Box::new(Batched(art(&memory), "art-batched")),
        Box::new(Single(art(&memory), "art")),
        Box::new(Batched(art(&small), "art-batched-4k")),
        Box::new(Single(art(&small), "art-4k")),
        Box::new(Hashed(hash())),
        Box::new(HashedSingle(hash())),
        Box::new(Congee(U64Congee::new())),
        Box::new(Std(BTreeMap::new())),
        Box::new(Brown(hashbrown::HashMap::new())),
    ];
    structures.retain(|one| chosen.is_empty() || chosen.iter().any(|name| name == one.name()));

    // Per structure the rates of the rounds, in millions per second.
    let mut inserts = vec![Vec::new(); structures.len()];
    // Milliseconds of the longest batch: how long an owner would not answer.
    let mut longest = vec![0f64; structures.len()];
    for round in 0..keys / ROUND {
        let batch: Vec<u64> = (round * ROUND..(round + 1) * ROUND).map(key).collect();
        for (i, one) in structures.iter_mut().enumerate() {
            let start = seconds();
            for keys in batch.chunks(BATCH) {
                let start = seconds();
                one.insert(keys);
                longest[i] = longest[i].max((seconds() - start) * 1e3);
            }
            inserts[i].push(ROUND as f64 / (seconds() - start) / 1e6);
        }
    }
    // The second half: when the structures are large.
    inserts
        .iter_mut()
        .for_each(|rates| drop(rates.drain(..rates.len() / 2)));
    let (mut lookups, mut scans) = (inserts.clone(), inserts.clone());
    lookups.iter_mut().chain(&mut scans).for_each(Vec::clear);
    for round in 0..ROUNDS as u64 {
        let random = |i: u64| key(((u128::from(scatter(!i)) * u128::from(keys)) >> 64) as u64);
        let batch: Vec<u64> = (round * ROUND..(round + 1) * ROUND).map(random).collect();
        let few = &batch[..20_000];
        let mut sums = Vec::new();
        for (i, one) in structures.iter_mut().enumerate() {
            let start = seconds();
            sums.push(one.lookup(&batch));
            lookups[i].push(ROUND as f64 / (seconds() - start) / 1e6);
            let start = seconds();
            if let Some(sum) = one.scan(few) {
                black_box(sum);
                scans[i].push(few.len() as f64 / (seconds() - start) / 1e6);
            }
        }
        let expected = batch.iter().fold(0u64, |sum, key| sum.wrapping_add(*key));
        assert!(
            sums.iter().all(|sum| *sum == expected),
            "not all was found: {sums:?}, {expected}"
        );
    }
    let limit = loads(&memory, 1 << 30);
    let medians = |rates: Vec<Vec<f64>>| -> Vec<f64> { rates.into_iter().map(median).collect() };
    let (inserts, lookups, scans) = (medians(inserts), medians(lookups), medians(scans));
    let peer = structures.iter().position(|one| one.name() == "congee");
    println!("{kind} keys, {millions} Mi; independent random loads in 1 GiB: {limit:.0} M/s");
    println!(
        "{:14} {:>14} {:>10} {:>14} {:>8} {:>12} {:>20}",
        "",
        "insert M/s",
        "longest ms",
        "lookup M/s",
        "of limit",
        "scan 100 K/s",
        "bytes/key used, held"
    );
    for (i, one) in structures.iter().enumerate() {
        let ratio = |rates: &[f64]| match peer {
            Some(peer) => format!("{:.2} ×{:.2}", rates[i], rates[i] / rates[peer]),
            None => format!("{:.2}", rates[i]),
        };
        let bytes = one.bytes().map_or(String::new(), |(used, held)| {
            format!(
                "{:.1}, {:.1}",
                used as f64 / keys as f64,
                held as f64 / keys as f64
            )
        });
        println!(
            "{:14} {:>14} {:>10.1} {:>14} {:>7.0}% {:>12.0} {:>20}",
            one.name(),
            ratio(&inserts),
            longest[i],
            ratio(&lookups),
            lookups[i] / limit * 100.0,
            scans[i] * 1e3,
            bytes
        );
    }
    if let Some((rss, huge)) = resident() {
        println!(
            "resident {} MiB, in huge pages {} MiB",
            rss >> 20,
            huge >> 20
        );
    }
}
