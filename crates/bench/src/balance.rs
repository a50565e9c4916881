//! `eris bench balance`: lookups of an index whose workload moves, under each balancing algorithm (the ERIS paper's Section 4.3,
//! Figure 13).
//!
//! ```text
//! phase   all keys │ the middle half │ the same, a 64th of all keys further left │ … four times
//! ```
//!
//! A machine with fewer cores than AEUs hides imbalance, for AEUs that have nothing to do leave theirs to the others. So every AEU gets the same
//! *share* of a core and no more, by its thread's own clock: they are as many slow cores. What they use together is well below what
//! the machine has, so that clients are never what is waited for.
//!
//! The imbalance of a phase is the load of the busiest AEU as so many times the mean, without a balancer; that is by how much a balancer can
//! raise the throughput at most.

mod figures;

pub use figures::{curves, figure};

use crate::report::Report;
use eris_engine::{
    Algorithm, Balanced, Balancer, Balancing, Engine, EngineError, KeyIndex, Settings,
};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct BalanceOptions {
    /// Keys of the index: the numbers below this one.
    pub keys: u64,
    /// How long the first phase lasts, with all keys; the others last twice as long.
    pub time: Duration,
    /// How often loads are looked at.
    pub period: Duration,
    /// From which standard deviation of their loads on keys move, as a share of the mean.
    pub threshold: f64,
    /// The part of the machine that all AEUs together may use.
    pub share: f64,
    /// Threads that look keys up, a batch at a time.
    pub clients: usize,
    /// Keys of a batch.
    pub batch: usize,
}

/// Why balancing could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum BalanceBenchError {
    /// The engine did not do what it was asked for.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Too few AEUs for anything to be balanced.
    #[error("{0} AEUs are too few: name a topology such as ERIS_TOPOLOGY=8x4")]
    FewAeus(usize),
}

/// The algorithms, and none.
const ALGORITHMS: [(&str, Option<Algorithm>); 4] = [
    ("none", None),
    ("One-Shot", Some(Algorithm::OneShot)),
    ("MA1", Some(Algorithm::MovingAverage(1))),
    ("MA8", Some(Algorithm::MovingAverage(8))),
];
/// How often the workload moves further to the left.
const MOVES: u64 = 4;
/// By which part of all keys: 8 million of 512.
const STEP: u64 = 64;
/// Lookups are counted so many times in the first phase.
const TICKS: u32 = 40;
/// Of its balanced level a phase has recovered.
const RECOVERED: f64 = 0.95;
/// Ticks over which throughput is averaged: for its least,
const SMOOTH: usize = 4;
/// and for when it has recovered.
const LASTING: usize = 8;
/// Transfers that end within this time are one cycle's.
const TOGETHER: Duration = Duration::from_millis(5);
/// Entries that are put in together.
const LOADED: u64 = 100_000;

/// What clients ask for, and until when.
struct Phase {
    keys: Range<u64>,
    time: Duration,
}

fn phases(options: &BalanceOptions) -> Vec<Phase> {
    let all = options.keys;
    let first = Phase {
        keys: 0..all,
        time: options.time,
    };
    let others = (0..=MOVES).map(|step| {
        let left = all / 4 - step * all / STEP;
        Phase {
            keys: left..left + all / 2,
            time: 2 * options.time,
        }
    });
    std::iter::once(first).chain(others).collect()
}

/// What a run with one algorithm has shown.
struct Course {
    /// Millions of lookups per second, tick by tick, and when each was over.
    ticks: Vec<f64>,
    ends: Vec<SystemTime>,
    /// The first tick of each phase, and where the last one ends.
    phases: Vec<usize>,
    /// By phase.
    imbalances: Vec<f64>,
    keys_moved: u64,
    seconds_moving: f64,
    /// From when to when keys moved, cycle by cycle.
    cycles: Vec<Range<SystemTime>>,
}

impl Course {
    fn phase(&self, phase: usize) -> Range<usize> {
        self.phases[phase]..self.phases[phase + 1]
    }

    /// As good as it gets: the mean of the last third of a phase. Answers come by the batch, so that only means over some ticks tell anything.
    fn level(&self, phase: usize) -> f64 {
        let ticks = &self.ticks[self.phase(phase)];
        mean(&ticks[ticks.len() * 2 / 3..])
    }

    fn least(&self, phase: usize) -> f64 {
        let ticks = &self.ticks[self.phase(phase)];
        least(ticks.windows(SMOOTH.min(ticks.len())).map(mean))
    }

    /// In ticks, since the phase began: from when on throughput lasted. By medians, for a tick in which the machine did something else says nothing.
    fn recovered(&self, phase: usize) -> usize {
        let ticks = &self.ticks[self.phase(phase)];
        let level = median(&ticks[ticks.len() * 2 / 3..]);
        let lasting = ticks.windows(LASTING.min(ticks.len())).map(median);
        let lasting: Vec<f64> = lasting.collect();
        let below = |value: &f64| *value < RECOVERED * level;
        lasting.iter().rposition(below).map_or(0, |last| last + 1)
    }

    /// Throughput while keys moved, as a part of what it was just before: of the cycle of this phase that took most from it.
    fn while_moving(&self, phase: usize) -> Option<f64> {
        let of_phase = self.phase(phase);
        let tick = |time: SystemTime| self.ends.partition_point(|end| *end < time);
        let cycles: Vec<_> = (self.cycles.iter())
            .map(|cycle| tick(cycle.start)..tick(cycle.end) + 1)
            .collect();
        let is_still = |at: &usize| !cycles.iter().any(|cycle| cycle.contains(at));
        let parts = cycles.iter().filter_map(|cycle| {
            let before = (of_phase.start..cycle.start).rev().filter(is_still);
            let before: Vec<f64> = before.take(SMOOTH).map(|at| self.ticks[at]).collect();
            let during = cycle.start..cycle.end.min(self.ticks.len());
            let is_of_phase = of_phase.contains(&cycle.start) && !before.is_empty();
            is_of_phase.then(|| mean(&self.ticks[during]) / mean(&before))
        });
        parts.reduce(f64::min)
    }
}

fn median(ticks: &[f64]) -> f64 {
    let mut sorted = ticks.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

/// From when to when the keys of each cycle moved.
fn cycles(history: &[Balanced]) -> Vec<Range<SystemTime>> {
    let together =
        |a: &Balanced, b: &Balanced| b.at.duration_since(a.at).unwrap_or_default() < TOGETHER;
    let cycles = history.chunk_by(together).map(|cycle| {
        let end = cycle[cycle.len() - 1].at;
        let longest = cycle.iter().map(|one| one.time).max();
        end - longest.unwrap_or_default()..end
    });
    cycles.collect()
}

/// Runs all algorithms, one after the other.
///
/// # Errors
/// [`BalanceBenchError`].
pub fn run(settings: &Settings, options: &BalanceOptions) -> Result<Report, BalanceBenchError> {
    let aeus = settings.topology.aeus().len();
    if aeus < 4 {
        return Err(BalanceBenchError::FewAeus(aeus));
    }
    let phases = phases(options);
    let of_one: Duration = phases.iter().map(|phase| phase.time).sum();
    let bar = ProgressBar::new((of_one.as_millis() * ALGORITHMS.len() as u128) as u64);
    let style = ProgressStyle::with_template("{msg:10} {wide_bar} {eta} left");
    bar.set_style(style.expect("a template"));
    let mut courses = Vec::new();
    for (name, algorithm) in ALGORITHMS {
        bar.set_message(name);
        courses.push(course(settings, options, &phases, algorithm, &bar)?);
    }
    bar.finish_and_clear();
    Ok(report(settings, options, &courses))
}

fn course(
    settings: &Settings,
    options: &BalanceOptions,
    phases: &[Phase],
    algorithm: Option<Algorithm>,
    bar: &ProgressBar,
) -> Result<Course, BalanceBenchError> {
    let aeus = settings.topology.aeus().len();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let share = options.share * cores as f64 / aeus as f64;
    let engine = Engine::start_with_share(settings.clone(), Some(share))?;
    let index = engine.create_key_index("balance", 0..=options.keys - 1);
    load(&index, options)?;
    let balancing = Balancing {
        algorithm,
        period: options.period,
        threshold: options.threshold,
    };
    let balancer = Balancer::start(&engine, balancing)?;
    let (low, high) = (AtomicU64::new(0), AtomicU64::new(options.keys));
    let (found, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut course = Course {
        ticks: Vec::new(),
        ends: Vec::new(),
        phases: Vec::new(),
        imbalances: Vec::new(),
        keys_moved: 0,
        seconds_moving: 0.0,
        cycles: Vec::new(),
    };
    thread::scope(|scope| {
        let clients = (0..options.clients).map(|seed| {
            let (low, high, found, is_over) = (&low, &high, &found, &is_over);
            let (index, batch) = (&index, options.batch);
            scope.spawn(move || ask(index, seed as u64, batch, low, high, found, is_over))
        });
        let clients: Vec<_> = clients.collect();
        let tick = options.time / TICKS;
        let mut result = Ok(());
        for phase in phases {
            low.store(phase.keys.start, Ordering::Relaxed);
            high.store(phase.keys.end, Ordering::Relaxed);
            course.phases.push(course.ticks.len());
            let phase_began = SystemTime::now();
            if algorithm.is_none() {
                result = futures::executor::block_on(index.measure()).map(drop);
            }
            let began = Instant::now();
            let mut counted = (began, found.load(Ordering::Relaxed));
            while began.elapsed() < phase.time && result.is_ok() {
                thread::sleep(tick);
                let now = (Instant::now(), found.load(Ordering::Relaxed));
                let seconds = (now.0 - counted.0).as_secs_f64();
                course
                    .ticks
                    .push((now.1 - counted.1) as f64 / seconds / 1e6);
                course.ends.push(SystemTime::now());
                bar.inc((now.0 - counted.0).as_millis() as u64);
                counted = now;
            }
            let moved = balancer.history().into_iter();
            let moved: Vec<_> = moved.filter(|one| one.at >= phase_began).collect();
            for one in &moved {
                course.keys_moved += one.result.as_ref().map_or(0, |moved| moved.keys);
                course.seconds_moving += one.time.as_secs_f64();
            }
            course.cycles.extend(cycles(&moved));
            course.imbalances.push(match algorithm {
                None => match futures::executor::block_on(index.measure()) {
                    Ok(segments) => {
                        let mut loads = vec![0.0; aeus];
                        for segment in segments {
                            loads[segment.aeu.index()] += segment.asked as f64;
                        }
                        let mean = loads.iter().sum::<f64>() / aeus as f64;
                        loads.iter().fold(0.0, |a: f64, b| a.max(*b)) / mean.max(1e-9)
                    }
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                },
                Some(_) => moved.first().map_or(1.0, |first| first.imbalance),
            });
        }
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            result = result.and(client.join().expect("clients do not panic"));
        }
        result
    })?;
    course.phases.push(course.ticks.len());
    drop(balancer);
    futures::executor::block_on(index.drop())?;
    Ok(course)
}

fn load(index: &KeyIndex, options: &BalanceOptions) -> Result<(), EngineError> {
    let mut client = index.client()?;
    let mut before = vec![None; LOADED as usize];
    for first in (0..options.keys).step_by(LOADED as usize) {
        let keys = first..options.keys.min(first + LOADED);
        let entries: Vec<_> = keys.map(|key| (key, key)).collect();
        client.put(&entries, &mut before[..entries.len()])?;
    }
    Ok(())
}

/// Looks keys up until it is over.
fn ask(
    index: &KeyIndex,
    seed: u64,
    batch: usize,
    low: &AtomicU64,
    high: &AtomicU64,
    found: &AtomicU64,
    is_over: &AtomicBool,
) -> Result<(), EngineError> {
    let mut client = index.client()?;
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut keys = vec![0; batch];
    let mut values = vec![None; batch];
    while !is_over.load(Ordering::Relaxed) {
        let (low, high) = (low.load(Ordering::Relaxed), high.load(Ordering::Relaxed));
        let width = high.saturating_sub(low).max(1);
        for key in &mut keys {
            // xorshift64*, its high half scaled to the width.
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let random = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
            *key = low + ((u128::from(random) * u128::from(width)) >> 64) as u64;
        }
        client.get(&keys, &mut values)?;
        assert!(
            keys.iter()
                .zip(&values)
                .all(|(key, value)| *value == Some(*key)),
            "every key has its value"
        );
        found.fetch_add(batch as u64, Ordering::Relaxed);
    }
    Ok(())
}

fn mean(ticks: &[f64]) -> f64 {
    ticks.iter().sum::<f64>() / ticks.len().max(1) as f64
}

fn report(settings: &Settings, options: &BalanceOptions, courses: &[Course]) -> Report {
    let mut report = Report::new("balance", &settings.topology);
    let tick = (options.time / TICKS).as_secs_f64();
    let none = &courses[0];
    let sum =
        |course: &Course, phase: usize| -> f64 { course.ticks[course.phase(phase)].iter().sum() };
    for ((name, algorithm), course) in ALGORITHMS.iter().zip(courses) {
        let params = |phase: usize| [("algorithm", json!(name)), ("phase", json!(phase))];
        for (phase, imbalance) in course.imbalances.iter().enumerate() {
            report.row(
                "imbalance",
                params(phase),
                "times the mean",
                vec![*imbalance],
                None,
            );
            let mut per_phase = |case, unit, value| {
                report.row(case, params(phase), unit, vec![value], None);
            };
            per_phase("level", "million lookups/s", course.level(phase));
            per_phase("least", "million lookups/s", course.least(phase));
            let recovered = course.recovered(phase) as f64 * tick;
            per_phase("recovered after", "s", recovered);
            if let Some(part) = course.while_moving(phase) {
                per_phase("while moving", "of the level before", part);
            }
        }
        let all = [("algorithm", json!(name))];
        let phases = none.imbalances.len();
        let allowed: f64 = (0..phases)
            .map(|phase| sum(none, phase) * none.imbalances[phase])
            .sum();
        let total: f64 = (0..phases).map(|phase| sum(course, phase)).sum();
        let (total, allowed) = (total * tick, allowed * tick);
        report.row(
            "all lookups",
            all.clone(),
            "million",
            vec![total],
            Some(allowed),
        );
        if algorithm.is_some() {
            let moved = course.keys_moved as f64 / 1e6;
            report.row("keys moved", all.clone(), "million", vec![moved], None);
            report.row("moving", all, "s", vec![course.seconds_moving], None);
        }
        let phase_of =
            |tick: usize| course.phases.iter().filter(|first| **first <= tick).count() - 1;
        for (at, value) in course.ticks.iter().enumerate() {
            let params = [
                ("algorithm", json!(name)),
                ("phase", json!(phase_of(at))),
                ("second", json!((at as f64 * tick * 1e3).round() / 1e3)),
            ];
            report.row(
                "throughput",
                params,
                "million lookups/s",
                vec![*value],
                None,
            );
        }
    }
    report
}
