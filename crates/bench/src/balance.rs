//! `eris bench balance`: lookups of an index whose workload moves, under each balancing algorithm (the ERIS paper's
//! Section 4.3, Figure 13).
//!
//! ```text
//! phase   all keys │ the middle half │ the same, a 64th of all keys further left │ … four times
//! ```
//!
//! A machine with fewer cores than AEUs hides imbalance, for AEUs that have nothing to do leave theirs to the others.
//! So every AEU gets the same *share* of a core and no more, by its thread's own clock: they are as many slow cores.
//! What they use together is well below what the machine has, so that clients are never what is waited for.
//!
//! The imbalance of a phase is the load of the busiest AEU as so many times the mean, without a balancer; that is by
//! how much a balancer can raise the throughput at most. The *balanced level* is measured as well: an index whose
//! ranges were cut for just these keys, which is ideal.
//!
//! ```text
//! phase 0:  ideal │ none │ One-Shot │ MA1 │ MA8      phase 1:  ideal │ none │ One-Shot │ MA1 │ MA8      …
//! ```
//!
//! Each of them has an engine of its own, and they take turns phase by phase, so that the machine's moods fall on all
//! alike. Each turn begins with a moment of the phase before, so that the change meets AEUs at work. What keys take
//! that were moved is removed while others have their turn, too.

mod contender;
mod figures;
mod seen;

pub use figures::{curves, figure};

use crate::report::BenchReport;
use contender::Contender;
use eris_engine::{Algorithm, EngineError, Settings};
use indicatif::{ProgressBar, ProgressStyle};
use seen::Observation;
use serde_json::json;
use std::ops::Range;
use std::time::Duration;

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
    #[error(
        "{0} AEUs are too few, four at least are needed: take --aeus 8, or a topology such as ERIS_TOPOLOGY=8x4"
    )]
    FewAeus(usize),
}

/// The algorithms, and none.
const ALGORITHMS: [(&str, Option<Algorithm>); 4] = [
    ("none", None),
    ("One-Shot", Some(Algorithm::OneShot)),
    ("MA1", Some(Algorithm::MovingAverage(1))),
    ("MA8", Some(Algorithm::MovingAverage(8))),
];
/// What has ranges cut for each phase.
const IDEAL: &str = "ideal";
/// How often the workload moves further to the left.
const MOVES: u64 = 4;
/// By which part of all keys: 8 million of 512.
const STEP: u64 = 64;
/// Lookups are counted so many times in the first phase.
const TICKS: u32 = 40;

/// What clients ask for, and until when.
struct LoadPhase {
    keys: Range<u64>,
    time: Duration,
}

fn phases(options: &BalanceOptions) -> Vec<LoadPhase> {
    let all = options.keys;
    let first = LoadPhase {
        keys: 0..all,
        time: options.time,
    };
    let others = (0..=MOVES).map(|step| {
        let left = all / 4 - step * all / STEP;
        LoadPhase {
            keys: left..left + all / 2,
            time: 2 * options.time,
        }
    });
    std::iter::once(first).chain(others).collect()
}

/// Runs all algorithms in turns.
///
/// # Errors
/// [`BalanceBenchError`].
pub fn run(
    settings: &Settings,
    options: &BalanceOptions,
) -> Result<BenchReport, BalanceBenchError> {
    let aeus = settings.topology.aeus().len();
    if aeus < 4 {
        return Err(BalanceBenchError::FewAeus(aeus));
    }
    let phases = phases(options);
    let turns = ALGORITHMS.len() as u32;
    let times = phases.iter().map(|phase| options.time + turns * phase.time);
    let all: Duration = times.sum();
    let bar = ProgressBar::new(all.as_millis() as u64);
    let style = ProgressStyle::with_template("{msg:18} {wide_bar} {eta} left");
    bar.set_style(style.expect("a template"));
    let start = |keys, algorithm| Contender::start(settings, options, keys, algorithm);
    let contenders = ALGORITHMS.map(|(_, algorithm)| start(0..options.keys, algorithm));
    let contenders: Vec<Contender> = contenders.into_iter().collect::<Result<_, _>>()?;
    let mut courses: Vec<Vec<Observation>> = ALGORITHMS.iter().map(|_| Vec::new()).collect();
    let (mut ideal, mut imbalances) = (Vec::new(), Vec::new());
    for (number, phase) in phases.iter().enumerate() {
        let before = &phases[number.saturating_sub(1)];
        bar.set_message(format!("phase {number}: {IDEAL}"));
        let of_phase = start(phase.keys.clone(), None)?;
        ideal.push(of_phase.run(options, [&phase.keys; 2], options.time, &bar)?);
        of_phase.end()?;
        // Each of them is the first one in turn.
        for turn in 0..contenders.len() {
            let at = (number + turn) % contenders.len();
            bar.set_message(format!("phase {number}: {}", ALGORITHMS[at].0));
            let keys = [&before.keys, &phase.keys];
            courses[at].push(contenders[at].run(options, keys, phase.time, &bar)?);
        }
        // That of the one without an algorithm.
        imbalances.push(contenders[0].imbalance()?);
    }
    contenders.into_iter().try_for_each(Contender::end)?;
    bar.finish_and_clear();
    Ok(report(settings, &ideal, &imbalances, &courses))
}

fn report(
    settings: &Settings,
    ideal: &[Observation],
    imbalances: &[f64],
    courses: &[Vec<Observation>],
) -> BenchReport {
    let mut report = BenchReport::new("balance", &settings.topology);
    for (phase, imbalance) in imbalances.iter().enumerate() {
        let params = [("phase", json!(phase))];
        report.row(
            "imbalance",
            params,
            "times the mean",
            vec![*imbalance],
            None,
        );
    }
    let levels: Vec<f64> = ideal.iter().map(Observation::mean).collect();
    let params = [("algorithm", json!(IDEAL))];
    report.row("level", params, "million lookups/s", levels.clone(), None);
    // All but the first phase, in which nothing has changed.
    let allowed = courses[0].iter().zip(imbalances).skip(1);
    let allowed = allowed.map(|(none, imbalance)| none.lookups() * imbalance);
    let allowed: f64 = allowed.sum();
    for ((name, algorithm), course) in ALGORITHMS.iter().zip(courses) {
        let params = [("algorithm", json!(name))];
        let (changed, levels) = (&course[1..], &levels[1..]);
        let mut of_changes = |case, unit, values: Vec<f64>, limit| {
            if !values.is_empty() {
                report.row(case, params.clone(), unit, values, limit);
            }
        };
        let each =
            |value: &dyn Fn(&Observation) -> f64| changed.iter().map(value).collect::<Vec<f64>>();
        let parts = |value: &dyn Fn(&Observation) -> f64| {
            let parts = changed.iter().zip(levels);
            parts
                .map(|(seen, level)| value(seen) / level)
                .collect::<Vec<f64>>()
        };
        of_changes(
            "part of level",
            "of the ideal one",
            parts(&Observation::level),
            None,
        );
        of_changes(
            "least",
            "of the ideal level",
            parts(&Observation::least),
            None,
        );
        let moving = changed
            .iter()
            .filter_map(Observation::while_moving)
            .collect();
        of_changes("while moving", "of what was before", moving, None);
        let recovered = changed
            .iter()
            .zip(levels)
            .map(|(seen, level)| seen.recovered(*level));
        let recovered: Vec<Option<f64>> = recovered.collect();
        let times = recovered.iter().flatten().copied().collect();
        of_changes("recovered after", "s", times, None);
        let count = recovered.iter().flatten().count() as f64;
        of_changes(
            "recovered",
            "phases",
            vec![count],
            Some(changed.len() as f64),
        );
        let all = changed.iter().map(Observation::lookups).sum();
        of_changes("all lookups", "million", vec![all], Some(allowed));
        if algorithm.is_some() {
            of_changes(
                "keys moved",
                "million",
                each(&|seen| seen.keys_moved as f64 / 1e6),
                None,
            );
            of_changes("moving", "s", each(&Observation::moving), None);
        }
    }
    for ((name, _), course) in ALGORITHMS.iter().zip(courses) {
        let mut second = 0.0;
        for (phase, seen) in course.iter().enumerate() {
            for (at, value) in seen.ticks.iter().enumerate() {
                let at = second + at as f64 * seen.tick.as_secs_f64();
                let params = [
                    ("algorithm", json!(name)),
                    ("phase", json!(phase)),
                    ("second", json!((at * 1e3).round() / 1e3)),
                ];
                report.row(
                    "throughput",
                    params,
                    "million lookups/s",
                    vec![*value],
                    None,
                );
            }
            second += seen.ticks.len() as f64 * seen.tick.as_secs_f64();
        }
    }
    report
}
