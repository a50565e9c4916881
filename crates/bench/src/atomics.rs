//! `eris bench atomics`: one counter and one latch that all threads want, by way. After Figures 8 to 10 of
//! *Hardware-Accelerated Memory Operations on Large-Scale NUMA Systems*.
//!
//! ```text
//! private        every thread adds to a word of its own: the limit
//! mutex          one number under a lock of the standard library: the baseline
//! cpu            one word, an atomic addition each                        the paper's LOCK ADD
//! delegated      a slot for each thread; one more thread serves at home   the paper's GRU_GAMIR
//! hierarchical   a slot for each thread at its node
//! mix            the first thread of each node: cpu; all others: delegated (Figure 9)
//! ```
//!
//! Contention is high if a thread draws again at once, medium or low if it does something else in between. A latch is
//! entered by attempts, of which some fail (Figure 10), or by waiting in the way's own manner.
//!
//! The paper's GRU is a unit of its own. Here the thread that serves at home takes a core from the others where there
//! are no more cores than threads. So the figures of this machine and the paper's can be compared in their shapes only.

use crate::plot::Plot;
use crate::report::BenchReport;
use crossbeam_utils::CachePadded;
use eris_atomics::{Latch, Sequence, Way};
use eris_numa::{AeuPlace, PinError, Topology, pin_current_thread};
use eris_types::NodeId;
use serde_json::json;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Debug)]
pub struct AtomicsOptions {
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Timed runs of each case, interleaved.
    pub runs: usize,
    /// How long each run lasts.
    pub time: Duration,
}

impl AtomicsOptions {
    /// Up to twice as many threads as the machine has AEUs, at least 4.
    pub fn new(topology: &Topology) -> Self {
        let most = (2 * topology.aeus().len()).max(4);
        AtomicsOptions {
            threads: (0..)
                .map(|power| 1 << power)
                .take_while(|threads| *threads <= most)
                .collect(),
            runs: 5,
            time: Duration::from_millis(50),
        }
    }
}

/// What a thread does between two operations, in nanoseconds, and what it is called.
const DELAYS: [(&str, u64); 3] = [("high", 0), ("medium", 100), ("low", 1000)];
const COUNTERS: [&str; 6] = [
    "private",
    "mutex",
    "cpu",
    "delegated",
    "hierarchical",
    "mix",
];
const LATCHES: [&str; 4] = ["mutex", "cpu", "delegated", "hierarchical"];
/// After so many passes without a request, who serves lets others have its core.
const IDLE: usize = 1000;
/// Operations between two looks at the clock.
const OPERATIONS: usize = 32;

/// Draws per second by way, threads and contention; then entries into a latch, and how many attempts at it succeed.
///
/// # Errors
/// A thread could not be bound to its core.
///
/// # Panics
/// If the options ask for no runs.
pub fn run(topology: &Topology, options: &AtomicsOptions) -> Result<BenchReport, PinError> {
    assert!(options.runs > 0, "cannot measure so: {options:?}");
    let mut report = BenchReport::new("atomics", topology);
    let delay = Delay::measured();
    for &threads in &options.threads {
        for (contention, nanoseconds) in DELAYS {
            let race = Race {
                places: interleaved(topology, threads),
                time: options.time,
                pauses: delay.pauses(nanoseconds),
            };
            let params = [
                ("threads", json!(threads)),
                ("contention", json!(contention)),
                ("delay_ns", json!(nanoseconds)),
            ];
            let mut runs = COUNTERS.map(|_| Vec::new());
            for _ in 0..options.runs {
                for (case, runs) in COUNTERS.into_iter().zip(&mut runs) {
                    runs.push(race.count(case)? / 1e6);
                }
            }
            let limit = median(&runs[0]);
            for (case, runs) in COUNTERS.into_iter().zip(runs) {
                let case = format!("counter, {case}");
                report.row(&case, params.clone(), "million draws/s", runs, Some(limit));
            }
            latches(&race, options.runs, &params, &mut report)?;
        }
    }
    Ok(report)
}

/// Entries into a latch by attempts and by waiting, and the share of attempts that succeed.
fn latches(
    race: &Race,
    runs: usize,
    params: &[(&'static str, serde_json::Value)],
    report: &mut BenchReport,
) -> Result<(), PinError> {
    for is_waiting in [false, true] {
        let mut entries = LATCHES.map(|_| Vec::new());
        let mut shares = LATCHES.map(|_| Vec::new());
        for _ in 0..runs {
            let all = LATCHES.into_iter().zip(entries.iter_mut().zip(&mut shares));
            for (case, (entries, shares)) in all {
                let (entered, failed) = race.enter(case, is_waiting)?;
                entries.push(entered / 1e6);
                shares.push(100.0 * entered / (entered + failed).max(1.0));
            }
        }
        let manner = if is_waiting { "waiting" } else { "attempts" };
        for (case, (entries, shares)) in LATCHES.into_iter().zip(entries.into_iter().zip(shares)) {
            let case = format!("latch by {manner}, {case}");
            report.row(&case, params.to_vec(), "million entries/s", entries, None);
            if !is_waiting {
                let case = format!("{case}, success");
                report.row(&case, params.to_vec(), "% of attempts", shares, Some(100.0));
            }
        }
    }
    Ok(())
}

/// A chart for each contention and for the latch, by file name.
pub(crate) fn figures(report: &BenchReport) -> Vec<(String, Plot)> {
    let lines = |contention: &str, prefix: &str, suffix: &str| {
        let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
        for row in &report.rows {
            let name = (row.case.strip_prefix(prefix)).and_then(|case| case.strip_suffix(suffix));
            let threads = row.params["threads"].as_f64();
            let (Some(name), Some(threads)) = (name, threads) else {
                continue;
            };
            if row.params["contention"] != contention || name.contains(',') {
                continue;
            }
            match lines.iter_mut().find(|(known, _)| known == name) {
                Some((_, points)) => points.push((threads, row.value)),
                None => lines.push((name.to_owned(), vec![(threads, row.value)])),
            }
        }
        lines
    };
    let plot = |title: String, y: &str, lines| Plot {
        title,
        x: "threads".into(),
        y: y.into(),
        is_log: true,
        lines,
    };
    let mut figures = Vec::new();
    for (contention, _) in DELAYS {
        let mut counters = lines(contention, "counter, ", "");
        // Its scale would hide all others.
        counters.retain(|(name, _)| name != "private");
        let title = format!("One counter, {contention} contention");
        figures.push((
            format!("counter-{contention}"),
            plot(title, "million draws/s", counters),
        ));
        let entries = lines(contention, "latch by attempts, ", "");
        let title = format!("One latch, {contention} contention");
        figures.push((
            format!("latch-{contention}"),
            plot(title, "million entries/s", entries),
        ));
        let shares = lines(contention, "latch by attempts, ", ", success");
        let title = format!("Attempts at a latch that succeed, {contention} contention");
        figures.push((format!("success-{contention}"), plot(title, "%", shares)));
    }
    figures
}

/// So many threads, one node after the other: the paper's interleaved order. More of them than there are AEUs share
/// these places.
fn interleaved(topology: &Topology, threads: usize) -> Vec<AeuPlace> {
    let places = topology.aeus();
    let mut by_node: Vec<(usize, AeuPlace)> = Vec::new();
    for place in places {
        let before = by_node.iter().filter(|(_, other)| other.node == place.node);
        by_node.push((before.count(), *place));
    }
    by_node.sort_by_key(|(number, place)| (*number, place.node));
    let places = by_node.into_iter().map(|(_, place)| place);
    places.cycle().take(threads).collect()
}

/// How long a pause takes.
struct Delay {
    nanoseconds: f64,
}

impl Delay {
    fn measured() -> Self {
        const PAUSES: u64 = 1 << 20;
        let run = || {
            let began = Instant::now();
            pause(PAUSES);
            began.elapsed().as_nanos() as f64 / PAUSES as f64
        };
        let runs = std::array::from_fn::<f64, 5, _>(|_| run());
        Delay {
            nanoseconds: median(&runs),
        }
    }

    fn pauses(&self, nanoseconds: u64) -> u64 {
        (nanoseconds as f64 / self.nanoseconds).round() as u64
    }
}

/// Steps of which each waits for the one before. No instruction that lets another hardware thread go first.
#[inline(never)]
fn pause(steps: u64) {
    (0..steps).fold(1u64, |state, _| black_box(state.wrapping_mul(5)));
}

fn median(runs: &[f64]) -> f64 {
    let mut sorted = runs.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Threads that do the same, all from the same moment.
struct Race {
    places: Vec<AeuPlace>,
    time: Duration,
    pauses: u64,
}

impl Race {
    /// Calls `operate` again and again in each thread until the time is over. It gets the thread's number and node, and
    /// says how many operations have failed before one succeeded. Beside them, one more thread calls `serve`, if it is
    /// given. Returns what succeeded and what failed, per second.
    fn run(
        &self,
        operate: impl Fn(usize, NodeId) -> u64 + Sync,
        serve: Option<&(dyn Fn(bool) -> bool + Sync)>,
    ) -> Result<(f64, f64), PinError> {
        let start = Barrier::new(self.places.len());
        let is_over = AtomicBool::new(false);
        let work = |number: usize, place: &AeuPlace| {
            let pinned = place.cpu.map_or(Ok(()), pin_current_thread);
            start.wait();
            let (began, mut succeeded, mut failed) = (Instant::now(), 0u64, 0u64);
            while began.elapsed() < self.time {
                for _ in 0..OPERATIONS {
                    failed += operate(number, place.node);
                    pause(self.pauses);
                }
                succeeded += OPERATIONS as u64;
            }
            let seconds = began.elapsed().as_secs_f64();
            pinned.map(|()| (succeeded as f64 / seconds, failed as f64 / seconds))
        };
        thread::scope(|scope| {
            let home = serve.map(|serve| {
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut idle = 0;
                    while !is_over.load(Relaxed) {
                        idle = if serve(true) { 0 } else { idle + 1 };
                        if idle > IDLE {
                            // Those who would ask may wait for this core.
                            thread::yield_now();
                        }
                    }
                    serve(false);
                })
            });
            let work = &work;
            let threads: Vec<_> = (self.places.iter().enumerate())
                .map(|(number, place)| scope.spawn(move || work(number, place)))
                .collect();
            let joined: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            is_over.store(true, Relaxed);
            if let Some(Err(panic)) = home.map(|home| home.join()) {
                std::panic::resume_unwind(panic);
            }
            let mut sum = (0.0, 0.0);
            for rates in joined {
                let rates = rates.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
                sum = (sum.0 + rates.0, sum.1 + rates.1);
            }
            Ok(sum)
        })
    }

    fn nodes(&self) -> usize {
        let nodes = self.places.iter().map(|place| place.node.index() + 1);
        nodes.max().unwrap_or(1)
    }

    /// Whether a thread is the first one of its node.
    fn is_first(&self, number: usize) -> bool {
        let node = self.places[number].node;
        self.places[..number].iter().all(|place| place.node != node)
    }

    /// Draws per second.
    fn count(&self, case: &str) -> Result<f64, PinError> {
        let threads = self.places.len();
        let sequence = Sequence::new(0, Way::Cpu, self.nodes(), threads);
        let serve = |is_there: bool| {
            sequence.set_home(is_there);
            sequence.serve() > 0
        };
        let by = |way: Way| {
            move |sequence: &Sequence, node: NodeId| {
                black_box(sequence.draw_by(way, 1, node));
                0
            }
        };
        let rates = match case {
            "private" => {
                let words: Vec<CachePadded<AtomicU64>> =
                    (0..threads).map(|_| CachePadded::default()).collect();
                let add = |number: usize, _| {
                    black_box(words[number].fetch_add(1, Relaxed));
                    0
                };
                self.run(add, None)?
            }
            "mutex" => {
                let number = Mutex::new(0u64);
                let add = |_, _| {
                    let mut number = number.lock().expect("nothing panics under it");
                    *number = black_box(*number + 1);
                    0
                };
                self.run(add, None)?
            }
            "cpu" => self.run(|_, node| by(Way::Cpu)(&sequence, node), None)?,
            "hierarchical" => self.run(|_, node| by(Way::Hierarchical)(&sequence, node), None)?,
            "delegated" => self.run(|_, node| by(Way::Delegated)(&sequence, node), Some(&serve))?,
            _ => {
                let mixed = |number: usize, node| {
                    let is_first = self.is_first(number);
                    let way = if is_first { Way::Cpu } else { Way::Delegated };
                    by(way)(&sequence, node)
                };
                self.run(mixed, Some(&serve))?
            }
        };
        Ok(rates.0)
    }

    /// Entries into a latch per second, and attempts that failed.
    fn enter(&self, case: &str, is_waiting: bool) -> Result<(f64, f64), PinError> {
        let way = match case {
            "mutex" => return self.enter_mutex(is_waiting),
            "cpu" => Way::Cpu,
            "delegated" => Way::Delegated,
            _ => Way::Hierarchical,
        };
        let latch = Latch::new(way, self.nodes(), self.places.len());
        let inside = Inside::default();
        let serve = |is_there: bool| {
            latch.set_home(is_there);
            latch.serve()
        };
        let enter = |_, node| {
            if is_waiting {
                let _guard = latch.lock(node);
                inside.pass();
                return 0;
            }
            let mut failed = 0;
            loop {
                if let Some(_guard) = latch.try_lock(node) {
                    inside.pass();
                    return failed;
                }
                failed += 1;
                std::hint::spin_loop();
            }
        };
        let serve = (way == Way::Delegated).then_some(&serve as &(dyn Fn(bool) -> bool + Sync));
        self.run(enter, serve)
    }

    fn enter_mutex(&self, is_waiting: bool) -> Result<(f64, f64), PinError> {
        let (mutex, inside) = (Mutex::new(()), Inside::default());
        let enter = |_, _| {
            if is_waiting {
                let _guard = mutex.lock().expect("nothing panics under it");
                inside.pass();
                return 0;
            }
            let mut failed = 0;
            loop {
                if let Ok(_guard) = mutex.try_lock() {
                    inside.pass();
                    return failed;
                }
                failed += 1;
                std::hint::spin_loop();
            }
        };
        self.run(enter, None)
    }
}

/// What is done under the latch: two numbers that are always equal.
#[derive(Debug, Default)]
struct Inside(CachePadded<[AtomicU64; 2]>);

impl Inside {
    fn pass(&self) {
        let [one, other] = self.0.each_ref().map(|number| number.load(Relaxed));
        assert_eq!(one, other, "two are in it");
        self.0
            .iter()
            .for_each(|number| number.store(one + 1, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_measured_and_drawn() {
        let topology = Topology::fake(2, 2);
        let options = AtomicsOptions {
            threads: vec![1, 3],
            runs: 1,
            time: Duration::from_millis(1),
        };
        let report = run(&topology, &options).unwrap();
        let cases = COUNTERS.len() + 3 * LATCHES.len();
        assert_eq!(report.rows.len(), 2 * DELAYS.len() * cases);
        assert!(report.rows.iter().all(|row| row.value > 0.0));
        let figures = figures(&report);
        assert_eq!(figures.len(), 3 * DELAYS.len());
        let lines = figures.iter().map(|(_, plot)| plot.lines.len());
        assert!(
            lines
                .collect::<Vec<_>>()
                .chunks(3)
                .all(|lines| lines == [5, 4, 4])
        );
        assert!(
            figures
                .iter()
                .all(|(_, plot)| plot.lines.iter().all(|(_, points)| points.len() == 2))
        );
    }

    #[test]
    fn threads_go_to_one_node_after_the_other() {
        let nodes = |threads| {
            let places = interleaved(&Topology::fake(2, 2), threads);
            places.iter().map(|place| place.node.0).collect::<Vec<_>>()
        };
        assert_eq!(nodes(3), [0, 1, 0]);
        assert_eq!(nodes(6), [0, 1, 0, 1, 0, 1]);
    }
}
