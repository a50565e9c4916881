//! What a client loses while all of its keys change their owner. It does nothing but look up or write keys, without
//! pause. Its rate then is shown beside its rate before, in the same run, and the worst single lookup of another
//! client.
//!
//! `make bench-moves` takes about two minutes. An AEU has a core; the clients share these cores, so that two or three
//! threads want each while keys move between two AEUs on two cores.

use eris_engine::{Engine, KeyIndex, Settings, Shift};
use eris_numa::{HugePages, Topology};
use eris_types::AeuId;
use futures::executor::block_on;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// All keys belong to the first AEU; these go to the second.
const KEYS: u64 = 8_000_000;
const MOVED: u64 = 2_000_000;
const ROUNDS: usize = 5;
const BEFORE: Duration = Duration::from_millis(1_000);
const MEMORY: u64 = 4 << 30;

#[derive(Clone, Copy)]
struct Work {
    /// Nodes, and AEUs of each.
    topology: (u16, u16),
    is_write: bool,
    batch: usize,
}

/// What was seen in one run.
struct Seen {
    /// Keys per second before and then.
    before: f64,
    then: f64,
    seconds: f64,
    worst_before: Duration,
    worst_then: Duration,
}

/// What the clients have done since the last look.
#[derive(Default)]
struct Done {
    is_over: AtomicBool,
    keys: AtomicU64,
    worst: AtomicU64,
}

impl Done {
    fn take(&self) -> (u64, Duration) {
        let worst = Duration::from_nanos(self.worst.swap(0, Relaxed));
        (self.keys.swap(0, Relaxed), worst)
    }
}

fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Uses batches of keys that are going to move.
fn use_keys(index: &KeyIndex, work: Work, done: &Done) {
    let mut client = index.client().expect("few clients");
    let mut random = 88_172_645_463_325_252;
    let mut values = vec![None; work.batch];
    while !done.is_over.load(Relaxed) {
        let keys = std::iter::repeat_with(|| next(&mut random) % MOVED).take(work.batch);
        match work.is_write {
            true => {
                let entries: Vec<_> = keys.map(|key| (key, key)).collect();
                client.put(&entries, &mut values)
            }
            false => {
                let keys: Vec<_> = keys.collect();
                client.get(&keys, &mut values)
            }
        }
        .expect("memory");
        done.keys.fetch_add(work.batch as u64, Relaxed);
    }
}

/// Looks up one key now and then.
fn look(index: &KeyIndex, done: &Done) {
    let mut client = index.client().expect("few clients");
    let mut random = 7;
    while !done.is_over.load(Relaxed) {
        let began = Instant::now();
        let mut value = [None];
        let found = client.get(&[next(&mut random) % MOVED], &mut value);
        found.expect("nothing panics");
        assert!(value[0].is_some(), "no key is ever removed");
        done.worst
            .fetch_max(began.elapsed().as_nanos() as u64, Relaxed);
        thread::sleep(Duration::from_micros(200));
    }
}

fn run(work: Work) -> Seen {
    let (nodes, cores) = work.topology;
    let engine = Engine::start(Settings {
        topology: Topology::fake(nodes, cores),
        huge_pages: HugePages::Auto,
        memory_limit: Some(MEMORY),
        database: None,
    });
    let engine = engine.expect("two AEUs");
    // The second AEU's keys are those that nobody has.
    let index = engine.create_key_index("keys", 0..=2 * KEYS - 1);
    let mut client = index.client().expect("few clients");
    let entries: Vec<_> = (0..KEYS).map(|key| (key, key)).collect();
    for entries in entries.chunks(100_000) {
        let put = client.put(entries, &mut vec![None; entries.len()]);
        put.expect("memory");
    }
    let done = Done::default();
    thread::scope(|scope| {
        scope.spawn(|| use_keys(&index, work, &done));
        scope.spawn(|| look(&index, &done));
        thread::sleep(BEFORE / 2);
        done.take();
        thread::sleep(BEFORE);
        let (keys_before, worst_before) = done.take();
        let began = Instant::now();
        let shift = Shift {
            low: 0,
            high: MOVED - 1,
            to: AeuId(1),
        };
        let shifted = block_on(index.shift(&[shift])).expect("it exists");
        let seconds = began.elapsed().as_secs_f64();
        let (keys_then, worst_then) = done.take();
        done.is_over.store(true, Relaxed);
        let moved = shifted[0].result.as_ref().expect("memory");
        assert_eq!(moved.keys, MOVED);
        Seen {
            before: keys_before as f64 / BEFORE.as_secs_f64(),
            then: keys_then as f64 / seconds,
            seconds,
            worst_before,
            worst_then,
        }
    })
}

/// The median, the least and the greatest.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    [
        values[values.len() / 2],
        values[0],
        values[values.len() - 1],
    ]
}

fn main() {
    let mut works = Vec::new();
    for is_write in [false, true] {
        for batch in [1_000, 50_000] {
            for topology in [(2, 1), (1, 2)] {
                works.push(Work {
                    topology,
                    is_write,
                    batch,
                });
            }
        }
    }
    println!(
        "{MOVED} of {KEYS} keys change their owner; {} cores; medians of {ROUNDS} rounds (least to most)\n",
        thread::available_parallelism().map_or(0, usize::from),
    );
    println!(
        "batches of       keys go       M keys/s before   while they go, in percent   for s      worst lookup, ms: before, then"
    );
    let mut seen: Vec<Vec<Seen>> = works.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (work, seen) in works.iter().zip(&mut seen) {
            seen.push(run(*work));
        }
    }
    for (work, seen) in works.iter().zip(&seen) {
        let what = match work.is_write {
            true => "writes",
            false => "lookups",
        };
        let how = match work.topology.0 {
            1 => "in a node",
            _ => "to another",
        };
        let [before, ..] = spread(seen.iter().map(|run| run.before / 1e6));
        let [percent, least, most] = spread(seen.iter().map(|run| 100.0 * run.then / run.before));
        let [seconds, ..] = spread(seen.iter().map(|run| run.seconds));
        let worst =
            |of: fn(&Seen) -> Duration| spread(seen.iter().map(|run| of(run).as_secs_f64() * 1e3));
        let ([worst_before, ..], [worst_then, _, most_then]) =
            (worst(|run| run.worst_before), worst(|run| run.worst_then));
        println!(
            "{:>6} {what:<8}  {how:<10}  {before:>16.1}   {percent:>10.0} ({least:.0} to {most:.0}) {seconds:>16.2}   {worst_before:>14.1}, {worst_then:.1} (at most {most_then:.1})",
            work.batch,
        );
    }
}
