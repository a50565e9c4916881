//! Temporary.

use eris_engine::{Algorithm, Balancer, Balancing, Engine, EngineError, KeyIndex, Settings};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

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

type BalanceBenchError = EngineError;

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
/// Ticks over which throughput is averaged, for its least and for when it has recovered.
const SMOOTH: usize = 4;
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
    /// Millions of lookups per second, tick by tick.
    ticks: Vec<f64>,
    /// The first tick of each phase, and where the last one ends.
    phases: Vec<usize>,
    /// By phase.
    imbalances: Vec<f64>,
    keys_moved: u64,
    seconds_moving: f64,
}

fn main() -> Result<(), EngineError> {
    let arg = |name: &str, other: f64| {
        let all: Vec<String> = std::env::args().collect();
        all.iter()
            .position(|a| a == name)
            .map_or(other, |at| all[at + 1].parse().unwrap())
    };
    let settings = Settings {
        topology: eris_numa::Topology::fake(8, 4),
        huge_pages: eris_numa::HugePages::Auto,
        memory_limit: None,
    };
    let options = BalanceOptions {
        keys: arg("keys", 2e6) as u64,
        time: Duration::from_secs_f64(arg("seconds", 5.0)),
        period: Duration::from_secs_f64(arg("period", 0.5)),
        threshold: arg("threshold", 0.05),
        share: arg("share", 0.4),
        clients: arg("clients", 16.0) as usize,
        batch: arg("batch", 32768.0) as usize,
    };
    let mut phases = phases(&options);
    if std::env::var("STILL").is_ok() {
        phases.truncate(1);
    }
    let mut courses = Vec::new();
    let only = std::env::var("ONLY").ok();
    for (name, algorithm) in ALGORITHMS {
        if only
            .as_ref()
            .is_some_and(|o| !o.split(',').any(|o| o == name))
        {
            continue;
        }
        courses.push((name, course(&settings, &options, &phases, algorithm)?));
    }
    report(&options, &courses);
    Ok(())
}

fn course(
    settings: &Settings,
    options: &BalanceOptions,
    phases: &[Phase],
    algorithm: Option<Algorithm>,
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
        phases: Vec::new(),
        imbalances: Vec::new(),
        keys_moved: 0,
        seconds_moving: 0.0,
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
            let known = balancer.history().len();
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
                counted = now;
            }
            let moved = balancer.history();
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
                Some(_) => moved.get(known).map_or(1.0, |first| first.imbalance),
            });
        }
        is_over.store(true, Ordering::Relaxed);
        for client in clients {
            result = result.and(client.join().expect("clients do not panic"));
        }
        result
    })?;
    course.phases.push(course.ticks.len());
    if std::env::var("STILL").is_ok() {
        for task in std::fs::read_dir("/proc/self/task").unwrap() {
            let path = task.unwrap().path();
            let name = std::fs::read_to_string(path.join("comm")).unwrap();
            if name.starts_with("eris-balancer") {
                let ns: f64 = std::fs::read_to_string(path.join("schedstat"))
                    .unwrap()
                    .split(' ')
                    .next()
                    .unwrap()
                    .parse()
                    .unwrap();
                println!(
                    "balancer {:.3} s of CPU in {:.0} s, {} shifts",
                    ns / 1e9,
                    course.ticks.len() as f64 * tick_of(options),
                    balancer.history().len()
                );
            }
        }
    }
    for one in balancer.history() {
        course.keys_moved += one.result.as_ref().map_or(0, |moved| moved.keys);
        course.seconds_moving += one.time.as_secs_f64();
    }
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

fn tick_of(o: &BalanceOptions) -> f64 {
    (o.time / TICKS).as_secs_f64()
}

fn mean(ticks: &[f64]) -> f64 {
    ticks.iter().sum::<f64>() / ticks.len().max(1) as f64
}

fn report(options: &BalanceOptions, courses: &[(&str, Course)]) {
    let tick = (options.time / TICKS).as_secs_f64();
    let sum = |course: &Course, phase: usize| -> f64 {
        course.ticks[course.phases[phase]..course.phases[phase + 1]]
            .iter()
            .sum::<f64>()
            * tick
    };
    for (name, course) in courses {
        if std::env::var("STILL").is_ok() {
            let mut t: Vec<f64> = course.ticks[4..].to_vec();
            t.sort_by(f64::total_cmp);
            let n = t.len();
            println!(
                "{name} mean {:.2} min {:.2} p10 {:.2} p50 {:.2} p90 {:.2} max {:.2} tick {tick}",
                mean(&t),
                t[0],
                t[n / 10],
                t[n / 2],
                t[n * 9 / 10],
                t[n - 1]
            );
            continue;
        }
        let (mut levels, mut leasts, mut recs, mut sums) = (vec![], vec![], vec![], vec![]);
        for phase in 0..course.imbalances.len() {
            let ticks = &course.ticks[course.phases[phase]..course.phases[phase + 1]];
            let level = mean(&ticks[ticks.len() * 2 / 3..]);
            let smooth: Vec<f64> = ticks.windows(SMOOTH.min(ticks.len())).map(mean).collect();
            levels.push(format!("{level:.1}"));
            leasts.push(format!(
                "{:.1}",
                smooth.iter().fold(f64::INFINITY, |a, b| a.min(*b))
            ));
            let early = &smooth[..smooth.len() * 2 / 3];
            let late = early.iter().rposition(|value| *value < RECOVERED * level);
            recs.push(format!(
                "{:.1}",
                late.map_or(0.0, |late| (late + 1) as f64 * tick)
            ));
            sums.push(format!("{:.0}", sum(course, phase)));
        }
        let all: f64 = (0..course.imbalances.len()).map(|p| sum(course, p)).sum();
        println!(
            "{name:9} all {all:.0} moved {:.2} M in {:.1} s\n  imb  {:.2?}\n  level {levels:?}\n  least {leasts:?}\n  recov {recs:?}\n  sums  {sums:?}",
            course.keys_moved as f64 / 1e6,
            course.seconds_moving,
            course.imbalances
        );
        if *name == "none" {
            let allowed: f64 = (0..course.imbalances.len())
                .map(|p| sum(course, p) * course.imbalances[p])
                .sum();
            println!("  allowed {allowed:.0}");
        }
    }
}
