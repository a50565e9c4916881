//! How fast clients go on while an index is reorganised: in millions per second before and meanwhile, by the same
//! clients.
//!
//! Each client asks for a batch by Zipf's law and puts one of ten of them in again. Before, nothing is reorganised;
//! then it is asked for again and again, and only what was done while owners were at work counts.

use super::error::IndexBenchError;
use super::keys::{BATCH, KeySequence, value};
use super::progress::Spinner;
use super::skew::draw;
use super::zipf::Zipf;
use crate::report::BenchReport;
use eris_engine::{Engine, KeyIndex, ReorganizationState, Settings};
use futures::executor::block_on;
use serde_json::json;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// One batch in so many is put in again.
const UPSERTS: usize = 10;
/// Keys that a client draws beforehand.
const DRAWN: usize = 1 << 19;
/// How long each window of undisturbed work is.
const WINDOW: Duration = Duration::from_millis(200);

pub fn run(
    settings: &Settings,
    keys: KeySequence,
    exponent: f64,
    threads: usize,
    runs: usize,
    report: &mut BenchReport,
    progress: &Spinner,
) -> Result<(), IndexBenchError> {
    progress.begin(format!("{} keys, used while reorganised", keys.count));
    let engine = Engine::start(settings.clone())?;
    let index = engine.create_key_index("bench", 0..=keys.last());
    fill(&index, keys)?;
    let stop = AtomicBool::new(false);
    let done = AtomicU64::new(0);
    let zipf = Zipf::new(keys.count, exponent);
    let (before, meanwhile) = thread::scope(|scope| {
        let clients: Vec<_> = (0..threads)
            .map(|thread| {
                let (index, stop, done, zipf) = (&index, &stop, &done, &zipf);
                scope.spawn(move || work(index, keys, zipf, thread as u64, stop, done))
            })
            .collect();
        let rates = measure(&index, runs, &done, &stop);
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            match client.join() {
                Ok(result) => result?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        rates
    })?;
    let params = || {
        [
            ("keys", json!(keys.count)),
            ("order", json!(keys.order())),
            ("zipf", json!(exponent)),
            ("threads", json!(threads)),
        ]
    };
    let ratios = before.iter().zip(&meanwhile);
    let ratios = ratios.map(|(before, after)| 100.0 * after / before);
    report.row(
        "rate while reorganised",
        params(),
        "%",
        ratios.collect(),
        None,
    );
    report.row("rate before", params(), "million/s", before, None);
    report.row("rate meanwhile", params(), "million/s", meanwhile, None);
    Ok(())
}

/// Per run the rate of a window in which nothing is reorganised, and of the reorganisation after it.
fn measure(
    index: &KeyIndex,
    runs: usize,
    done: &AtomicU64,
    stop: &AtomicBool,
) -> Result<(Vec<f64>, Vec<f64>), IndexBenchError> {
    let count = || done.load(Ordering::Relaxed);
    let is_over = || stop.load(Ordering::Relaxed);
    let (mut before, mut meanwhile) = (Vec::new(), Vec::new());
    // The first window only warms up, and samples come in.
    thread::sleep(2 * WINDOW);
    while before.len() < runs && !is_over() {
        let (begun, from) = (Instant::now(), count());
        thread::sleep(WINDOW);
        before.push((count() - from) as f64 / begun.elapsed().as_secs_f64() / 1e6);
        block_on(index.reorganize())?;
        let (begun, from) = (Instant::now(), count());
        loop {
            thread::sleep(Duration::from_millis(10));
            let all = block_on(index.reorganization())?;
            let is_at_rest = |state| {
                matches!(
                    state,
                    ReorganizationState::Idle | ReorganizationState::Sampling
                )
            };
            if all.iter().all(|index| is_at_rest(index.state)) || is_over() {
                break;
            }
        }
        meanwhile.push((count() - from) as f64 / begun.elapsed().as_secs_f64() / 1e6);
    }
    Ok((before, meanwhile))
}

fn fill(index: &KeyIndex, keys: KeySequence) -> Result<(), IndexBenchError> {
    let mut client = index.client()?;
    let mut before = [None; BATCH];
    let mut numbers = (0..keys.count).peekable();
    while numbers.peek().is_some() {
        let some = numbers.by_ref().take(BATCH).map(|n| keys.key(n));
        let entries: Vec<(u64, u64)> = some.map(|key| (key, value(key))).collect();
        client.put(&entries, &mut before[..entries.len()])?;
    }
    Ok(())
}

/// One client's work, until it is told to stop; it also stops everybody when it fails.
fn work(
    index: &KeyIndex,
    keys: KeySequence,
    zipf: &Zipf,
    seed: u64,
    stop: &AtomicBool,
    done: &AtomicU64,
) -> Result<(), IndexBenchError> {
    let asked = draw(keys, zipf, seed + 1, DRAWN);
    let mut client = index.client()?;
    let mut values = [None; BATCH];
    for (number, keys) in asked.chunks_exact(BATCH).cycle().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let result = match number % UPSERTS {
            0 => {
                let entries: Vec<(u64, u64)> = keys.iter().map(|key| (*key, value(*key))).collect();
                client.put(&entries, &mut values)
            }
            _ => client.get(keys, &mut values),
        };
        let right = keys.iter().zip(&values);
        let found = right.filter(|(key, found)| **found == Some(value(**key)));
        let found = found.count() as u64;
        if result.is_err() || found != BATCH as u64 {
            stop.store(true, Ordering::Relaxed);
            result?;
            return Err(IndexBenchError::WrongAnswer {
                structure: "the index under reorganisation".to_owned(),
                found,
                asked: BATCH as u64,
            });
        }
        done.fetch_add(BATCH as u64, Ordering::Relaxed);
    }
    Ok(())
}
