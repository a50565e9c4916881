//! `eris bench join`: tables of hash joins, made by all cores and probed by one, beside the standard library's map.
//!
//! ```text
//! close      keys 0, 1, 2, …, each once: they lead to their rows directly
//! apart      the same keys with gaps: they are hashed
//! repeated   four rows a key
//! skewed     a tenth of all rows has one key; the others are apart
//! ```
//!
//! Rows come in random order on both sides, so each key of the probe side is a miss of all caches that are smaller than
//! the table. The limit is what independent loads of an array of as many numbers allow.

use crate::report::BenchReport;
use eris_join::{Cursor, JoinTable, Scattered, Spread, TablePart};
use eris_numa::Topology;
use serde_json::json;
use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

/// What to measure.
#[derive(Clone, Debug)]
pub struct JoinOptions {
    /// Rows of the largest build side, and of each probe side.
    pub rows: usize,
    /// Rows that are looked for at once.
    pub batches: Vec<usize>,
    /// Timed runs of each case, interleaved.
    pub runs: usize,
}

const KEYS: [&str; 4] = ["close", "apart", "repeated", "skewed"];

/// Rows a second of builds and probes, and bytes of a row.
///
/// # Panics
/// If the options ask for no runs.
pub fn run(topology: &Topology, options: &JoinOptions) -> BenchReport {
    assert!(options.runs > 0, "cannot measure so: {options:?}");
    let workers = topology.aeus().len();
    let mut report = BenchReport::new("join", topology);
    let sizes = [options.rows / 100, options.rows / 10, options.rows];
    for rows in sizes.into_iter().filter(|rows| *rows > 0) {
        for keys in KEYS {
            measure(&mut report, keys, rows, workers, options);
        }
    }
    report
}

fn measure(
    report: &mut BenchReport,
    keys: &'static str,
    rows: usize,
    workers: usize,
    options: &JoinOptions,
) {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let build = codes(keys, rows, &mut random);
    // As many as the largest build side, so that small tables are probed as long.
    let probe: Vec<u64> = (0..options.rows)
        .map(|_| build[random.below(rows)])
        .collect();
    // What a key that has a tenth of all rows is paired with is nothing but pairs.
    let probe: Vec<u64> = match keys {
        "skewed" => probe.into_iter().filter(|code| *code != MOST).collect(),
        _ => probe,
    };
    let numbers: Vec<u32> = (0..rows as u32).collect();
    let places: Vec<u32> = (probe.iter()).map(|_| random.below(rows) as u32).collect();
    let mut seconds = Seconds::default();
    let mut probes = vec![Vec::new(); options.batches.len()];
    let mut bytes = 0;
    for _ in 0..options.runs {
        let (table, took) = timed(|| table(&build, workers));
        seconds.build.push(took);
        bytes = table.size();
        let (map, took) = timed(|| map(&build));
        seconds.map_build.push(took);
        for (batch, runs) in options.batches.iter().zip(&mut probes) {
            runs.push(timed(|| pairs(&table, &probe, *batch)).1);
        }
        let found = || probe.iter().filter_map(|code| map.get(code));
        seconds
            .map_probe
            .push(timed(|| found().map(|row| u64::from(*row)).sum::<u64>()).1);
        let loads = || places.iter().map(|at| u64::from(numbers[*at as usize]));
        seconds.loads.push(timed(|| loads().sum::<u64>()).1);
    }
    let params = || [("keys", json!(keys)), ("rows", json!(rows))];
    let millions = |rows: usize, seconds: Vec<f64>| -> Vec<f64> {
        seconds
            .into_iter()
            .map(|took| rows as f64 / took / 1e6)
            .collect()
    };
    let unit = "million rows/s";
    report.row("build", params(), unit, millions(rows, seconds.build), None);
    let built = millions(rows, seconds.map_build);
    report.row("build, HashMap on one thread", params(), unit, built, None);
    let limit = crate::report::median(&millions(probe.len(), seconds.loads));
    for (batch, runs) in options.batches.iter().zip(probes) {
        let mut params = params().to_vec();
        params.push(("batch", json!(batch)));
        report.row(
            "probe",
            params,
            unit,
            millions(probe.len(), runs),
            Some(limit),
        );
    }
    let probed = millions(probe.len(), seconds.map_probe);
    report.row("probe, HashMap", params(), unit, probed, Some(limit));
    report.row(
        "size",
        params(),
        "bytes/row",
        vec![bytes as f64 / rows as f64],
        None,
    );
}

/// Seconds of each run.
#[derive(Default)]
struct Seconds {
    build: Vec<f64>,
    map_build: Vec<f64>,
    map_probe: Vec<f64>,
    loads: Vec<f64>,
}

/// The key that a tenth of all rows has.
const MOST: u64 = 7 << 40;

/// Key codes in random order.
fn codes(keys: &str, rows: usize, random: &mut Random) -> Vec<u64> {
    let code = |row: u64| match keys {
        "close" => row,
        "repeated" => row / 4,
        "skewed" if row.is_multiple_of(10) => MOST,
        _ => row << 20,
    };
    let mut codes: Vec<u64> = (0..rows as u64).map(code).collect();
    for last in (1..rows).rev() {
        codes.swap(last, random.below(last + 1));
    }
    codes
}

/// The table, by so many threads.
fn table(codes: &[u64], workers: usize) -> JoinTable {
    let range = codes.iter().fold((u64::MAX, 0), |(least, greatest), code| {
        (least.min(*code), greatest.max(*code))
    });
    let spread = Spread::new(codes.len(), range.0, range.1, workers);
    let each = codes.len().div_ceil(workers);
    let scattered: Vec<Scattered> = thread::scope(|scope| {
        let scatter = |(worker, codes): (usize, &[u64])| {
            let mut scattered = Scattered::default();
            spread.scatter(codes, (worker * each) as u32, workers, &mut scattered);
            scattered
        };
        let parts = codes.chunks(each).enumerate().collect::<Vec<_>>();
        let threads = parts
            .into_iter()
            .map(|part| scope.spawn(move || scatter(part)));
        let threads: Vec<_> = threads.collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|scattered| scattered.expect("no thread panics"))
            .collect()
    });
    let next = AtomicUsize::new(0);
    let gathered: Mutex<Vec<(usize, TablePart)>> = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let part = next.fetch_add(1, Relaxed);
                    if part >= spread.parts() {
                        return;
                    }
                    let made = spread.gather(part, &scattered);
                    gathered
                        .lock()
                        .expect("no thread panics")
                        .push((part, made));
                }
            });
        }
    });
    let mut parts = gathered.into_inner().expect("no thread panics");
    parts.sort_unstable_by_key(|(part, _)| *part);
    JoinTable::new(spread, parts.into_iter().map(|(_, part)| part).collect())
}

/// The map of a single thread: the last row of each key.
fn map(codes: &[u64]) -> HashMap<u64, u32> {
    let mut map = HashMap::with_capacity(codes.len());
    map.extend(codes.iter().copied().zip(0..));
    map
}

/// Pairs all rows of the probe side, some at a time.
fn pairs(table: &JoinTable, probe: &[u64], batch: usize) -> usize {
    let mut all = 0;
    let mut located = Vec::new();
    for codes in probe.chunks(batch) {
        located.clear();
        table.locate(codes, &mut located);
        let mut cursor = Cursor::default();
        while cursor.row < codes.len() {
            let pairs = table.pairs(codes, &located, &mut cursor, batch, false);
            all += black_box(pairs).probe.len();
        }
    }
    all
}

fn timed<T>(run: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = black_box(run());
    (result, start.elapsed().as_secs_f64())
}

/// A generator that is the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}
