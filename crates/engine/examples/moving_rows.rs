//! How long it takes until a million rows of a table with a key have another owner, and what a client loses that uses
//! nothing but these rows, one at a time. Within a node they are linked. To another node they are copied, statement by
//! statement and without pauses, as they were within a node before: those figures stand beside, of the same run.
//!
//! `make bench-moves` runs it; it takes about two minutes. An AEU has a core, and the client shares these.

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use eris_engine::{Engine, Moved, Partitioning, RowClient, Settings};
use eris_numa::{HugePages, Topology};
use eris_types::{AeuId, ColumnId, ObjectId};
use futures::executor::block_on;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// The first AEU has the first half of the keys.
const KEYS: i64 = 1 << 23;
const FIRST: i64 = 1_234_567;
const MOVED: i64 = 1_000_000;
const BATCH: i64 = 1 << 16;
const ROUNDS: usize = 5;
const BEFORE: Duration = Duration::from_millis(1_000);
/// From the beginning of a move on: what is done behind it is done by then.
const THEN: Duration = Duration::from_millis(2_000);
/// The client's rate is looked at in parts of this length.
const PART: Duration = Duration::from_millis(100);
/// What is left to do behind the moves that prepare for it is done by then.
const IN_PEACE: Duration = Duration::from_millis(1_500);
const MEMORY: u64 = 4 << 30;

#[derive(Clone, Copy)]
struct Work {
    /// Nodes, and AEUs of each.
    topology: (u16, u16),
    is_ascending: bool,
    is_change: bool,
}

struct Seen {
    /// Operations per second before, from the beginning of the move on, and in the worst part of that.
    before: f64,
    then: f64,
    worst: f64,
    longest: Duration,
    took: Duration,
    moved: Moved,
}

#[derive(Default)]
struct Done {
    is_over: AtomicBool,
    operations: AtomicU64,
    longest: AtomicU64,
}

fn schema() -> SchemaRef {
    let field = |name| Field::new(name, DataType::Int64, false);
    Arc::new(Schema::new(vec![field("k"), field("a"), field("b")]))
}

fn column(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn rows(keys: &[i64], value: i64) -> RecordBatch {
    let columns = vec![
        column(keys.iter().copied()),
        column(keys.iter().map(|key| key % 1_000)),
        column(keys.iter().map(|key| key + value)),
    ];
    RecordBatch::try_new(schema(), columns).expect("three columns")
}

async fn load(engine: &Engine, is_ascending: bool) -> ObjectId {
    let key = [ColumnId(0)];
    let object = engine.create_with_key("t", schema(), Partitioning::Size, &key);
    let object = object.expect("a key");
    let mut writer = engine.writer(object).expect("few writers");
    let key = |row: i64| match is_ascending {
        true => row,
        // Each number once, in no order.
        false => row.wrapping_mul(0x9e37_79b1) & (KEYS - 1),
    };
    for first in (0..KEYS).step_by(BATCH as usize) {
        let keys: Vec<i64> = (first..first + BATCH).map(key).collect();
        writer.append(rows(&keys, 0)).await.expect("memory");
    }
    writer.commit().await.expect("each key once");
    // What comes in order is spread range by range.
    for (low, high, to) in [(i64::MIN, KEYS / 2 - 1, 0), (KEYS / 2, i64::MAX, 1)] {
        let moved = engine.move_keys(object, low, high, AeuId(to)).await;
        moved.expect("memory");
        thread::sleep(IN_PEACE);
    }
    object
}

fn use_rows(client: &mut RowClient, is_change: bool, done: &Done) {
    let mut random: u64 = 88_172_645_463_325_252;
    while !done.is_over.load(Relaxed) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let key = FIRST + (random % MOVED as u64) as i64;
        let began = Instant::now();
        match is_change {
            true => {
                let replaced = block_on(client.put(rows(&[key], random as i64 >> 32)));
                assert_eq!(replaced.expect("memory"), 1, "it was there");
            }
            false => {
                let found = block_on(client.get(&[column([key])], &[ColumnId(2)]));
                assert_eq!(
                    found.expect("it exists").of.len(),
                    1,
                    "no row is ever removed"
                );
            }
        }
        (done.longest).fetch_max(began.elapsed().as_nanos() as u64, Relaxed);
        done.operations.fetch_add(1, Relaxed);
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
    let object = block_on(load(&engine, work.is_ascending));
    let mut client = engine.rows(object).expect("few clients");
    let done = Done::default();
    thread::scope(|scope| {
        scope.spawn(|| use_rows(&mut client, work.is_change, &done));
        thread::sleep(BEFORE / 2);
        done.operations.store(0, Relaxed);
        done.longest.store(0, Relaxed);
        thread::sleep(BEFORE);
        let before = done.operations.swap(0, Relaxed) as f64 / BEFORE.as_secs_f64();
        done.longest.store(0, Relaxed);
        let began = Instant::now();
        let engine = &engine;
        let move_rows = move || {
            let moved = block_on(engine.move_keys(object, FIRST, FIRST + MOVED - 1, AeuId(1)));
            (moved.expect("memory"), began.elapsed())
        };
        let moving = scope.spawn(move_rows);
        let (mut parts, mut last, mut all) = (Vec::new(), began, 0);
        while began.elapsed() < THEN || !moving.is_finished() {
            thread::sleep(PART);
            let (now, operations) = (Instant::now(), done.operations.swap(0, Relaxed));
            parts.push(operations as f64 / (now - last).as_secs_f64());
            all += operations;
            last = now;
        }
        let then = all as f64 / (last - began).as_secs_f64();
        let longest = Duration::from_nanos(done.longest.load(Relaxed));
        done.is_over.store(true, Relaxed);
        let (moved, took) = moving.join().expect("it does not panic");
        assert_eq!(moved.keys, MOVED as u64);
        Seen {
            before,
            then,
            worst: parts
                .into_iter()
                .min_by(f64::total_cmp)
                .expect("there is one"),
            longest,
            took,
            moved,
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
    let rounds = std::env::args()
        .nth(1)
        .map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    let mut works = Vec::new();
    for is_change in [false, true] {
        for is_ascending in [true, false] {
            for topology in [(1, 2), (2, 1)] {
                works.push(Work {
                    topology,
                    is_ascending,
                    is_change,
                });
            }
        }
    }
    println!(
        "{MOVED} of {KEYS} rows with a key change their owner; {} cores; medians of {rounds} rounds (least to most)\n",
        thread::available_parallelism().map_or(0, usize::from),
    );
    println!(
        "client    rows came    they go      in ms                  MB linked  copied   operations/s before   kept, percent: in {} s or longer, in the worst {} ms   longest, ms",
        THEN.as_secs(),
        PART.as_millis(),
    );
    let mut seen: Vec<Vec<Seen>> = works.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds {
        for (work, seen) in works.iter().zip(&mut seen) {
            seen.push(run(*work));
        }
    }
    for (work, seen) in works.iter().zip(&seen) {
        let client = if work.is_change { "changes" } else { "lookups" };
        let came = if work.is_ascending {
            "in order"
        } else {
            "shuffled"
        };
        let go = if work.topology.0 == 1 {
            "in a node"
        } else {
            "to another"
        };
        let of = |of: &dyn Fn(&Seen) -> f64| spread(seen.iter().map(of));
        let [took, least, most] = of(&|one| one.took.as_secs_f64() * 1e3);
        let [linked, ..] = of(&|one| one.moved.linked as f64 / 1e6);
        let [copied, ..] = of(&|one| one.moved.copied as f64 / 1e6);
        let [before, ..] = of(&|one| one.before);
        let [kept, kept_least, kept_most] = of(&|one| 100.0 * one.then / one.before);
        let [worst, worst_least, worst_most] = of(&|one| 100.0 * one.worst / one.before);
        let [longest, ..] = of(&|one| one.longest.as_secs_f64() * 1e3);
        println!(
            "{client:9} {came:12} {go:12} {took:7.2} ({least:.2} to {most:.2}) {linked:6.1} {copied:6.1}  {before:12.0}  {kept:12.0} ({kept_least:.0} to {kept_most:.0})  {worst:5.0} ({worst_least:.0} to {worst_most:.0})  {longest:5.1}"
        );
    }
}
