//! Operations that go to the data, and data that comes to the operation: `eris bench pushpull`.
//!
//! ```text
//!   asking place                      owning place
//!   ┌────────────┐  ── condition ──▶  ┌────────┐      push: the owner works, what matches comes back
//!   │ one thread │                    │ column │
//!   └────────────┘  ◀── all of it ──  └────────┘      pull: the column comes, and the asking place works
//! ```
//!
//! The link between the places is paced. It is as fast beside a scan as in the RAMCloud paper, Section 5.3. Beside each
//! time stands the one that the cost model predicts. It knows the link, and how fast the operation is on local memory
//! where little comes back. Its other numbers are those of the operation.

use crate::report::BenchReport;
use eris_cost::{Cost, Operation, Places, Strategy, choose, local, pull, push};
use eris_numa::{Link, PacedLink, Topology};
use serde_json::json;
use std::thread;
use std::time::Instant;

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct PushPullOptions {
    /// Records of the column, 8 bytes each.
    pub records: usize,
    /// Timed runs of each case, at least 1.
    pub runs: usize,
}

/// Network and memory bandwidth in the paper: 2.2 GB/s, and what "almost twice as long" makes of it.
const LINK_BESIDE_SCAN: f64 = 2.2 / 2.1;
const LATENCY: f64 = 2000.0;
/// Bytes that are asked for at once.
const BLOCK: usize = 256 << 10;
const BYTES: usize = size_of::<u64>();
/// A scan's condition: two comparisons and their values.
const CONDITION_BYTES: f64 = 24.0;

/// The shares of records that match (Figure 4a), or whose positions are given (Figure 4c).
const SELECTIVITIES: [f64; 6] = [0.0, 0.1, 0.25, 0.5, 0.75, 1.0];
const LISTED: [f64; 6] = [0.01, 0.1, 0.25, 0.4, 0.6, 0.8];

/// What is done with the column.
enum Task {
    /// The values below this one.
    Below(u64),
    /// The values at these positions.
    At(Vec<u64>),
}

impl Task {
    fn run(&self, column: &[u64], values: &mut Vec<u64>) {
        values.clear();
        match self {
            Task::Below(bound) => {
                // Each value is written; the next one overwrites it unless it matches.
                values.resize(column.len(), 0);
                let mut count = 0;
                for &value in column {
                    values[count] = value;
                    count += usize::from(value < *bound);
                }
                values.truncate(count);
            }
            Task::At(positions) => {
                values.extend(positions.iter().map(|&at| column[at as usize]));
            }
        }
    }
}

/// Copies values block by block. Each block is asked for, copied while it is on its way, and waited for.
fn carry(link: &PacedLink, values: &[u64], to: &mut Vec<u64>) {
    to.clear();
    for block in values.chunks(BLOCK / BYTES) {
        let arrival = link.request(size_of_val(block) as u64);
        to.extend_from_slice(block);
        arrival.wait();
    }
}

/// Measures both ways, and the local one beside them.
///
/// # Panics
/// If the options ask for no runs, or for fewer than 1,000 records.
pub fn run(topology: &Topology, options: PushPullOptions) -> BenchReport {
    let PushPullOptions { records, runs } = options;
    assert!(
        runs > 0 && records >= 1000,
        "cannot measure so: {options:?}"
    );
    let column: Vec<u64> = (0..records as u64).map(scattered).collect();
    let bytes = (records * BYTES) as f64;
    // What the model is told of memory: each operation where little comes back.
    let scan = bytes / best_local(&column, Task::Below(0), runs);
    let gather = 2.0 * LISTED[0] * bytes / best_local(&column, task_at(&column, LISTED[0]), runs);
    let link = PacedLink::new(&Link {
        name: "paced".into(),
        gigabytes_per_second: scan * LINK_BESIDE_SCAN / 1e9,
        nanoseconds: LATENCY,
    });
    let places = |memory| Places {
        count: 1.0,
        link: scan * LINK_BESIDE_SCAN,
        memory,
    };
    let whole = Operation {
        records: records as f64,
        record_bytes: BYTES as f64,
        positions: None,
        position_bytes: BYTES as f64,
        condition_bytes: CONDITION_BYTES,
        selectivity: 1.0,
    };
    let mut report = BenchReport::new("pushpull", topology);
    for share in SELECTIVITIES {
        let operation = Operation {
            selectivity: share,
            ..whole
        };
        let task = Task::Below((share * u64::MAX as f64) as u64);
        let case = Case {
            name: "scan",
            share: ("selectivity", share),
            operation,
            places: places(scan),
        };
        case.measure(Both::new(&column, &link, task), runs, &mut report);
    }
    for share in LISTED {
        let operation = Operation {
            positions: Some(share * records as f64),
            condition_bytes: 0.0,
            ..whole
        };
        let case = Case {
            name: "materialise",
            share: ("listed", share),
            operation,
            places: places(gather),
        };
        let both = Both::new(&column, &link, task_at(&column, share));
        case.measure(both, runs, &mut report);
    }
    report
}

/// An operation as the cost model knows it.
struct Case {
    name: &'static str,
    /// What is varied.
    share: (&'static str, f64),
    operation: Operation,
    places: Places,
}

impl Case {
    fn measure(&self, mut both: Both<'_>, runs: usize, report: &mut BenchReport) {
        let Case {
            operation, places, ..
        } = self;
        type Way = fn(&mut Both<'_>);
        let ways: [(&str, Cost, Way); 3] = [
            ("local", local(operation, places), |both| both.local()),
            ("push", push(operation, places), |both| both.push()),
            ("pull", pull(operation, places), |both| both.pull()),
        ];
        // The ways take turns, so that the machine's moods fall on all alike.
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..runs {
            for ((_, _, way), times) in ways.iter().zip(&mut times) {
                times.push(1e3 * seconds(|| way(&mut both)));
            }
        }
        let share = (self.share.0, json!(self.share.1));
        for ((way, predicted, _), times) in ways.iter().zip(&times) {
            let predicted = (1e5 * predicted.seconds()).round() / 100.0;
            let params = [
                share.clone(),
                ("way", json!(way)),
                ("predicted_ms", json!(predicted)),
            ];
            report.row(self.name, params, "ms", times.clone(), None);
        }
        let chosen = match choose(operation, places) {
            Strategy::Push => 1,
            Strategy::Pull => 2,
        };
        let pairs = times[1].iter().zip(&times[2]);
        let beside_best = (times[chosen].iter().zip(pairs))
            .map(|(chosen, (push, pull))| chosen / push.min(*pull));
        let params = [share, ("way", json!(ways[chosen].0))];
        let name = format!("{}, chosen way", self.name);
        report.row(
            &name,
            params,
            "times the best",
            beside_best.collect(),
            Some(1.0),
        );
    }
}

/// The seconds of the fastest of some runs beside the column.
fn best_local(column: &[u64], task: Task, runs: usize) -> f64 {
    let mut values = vec![0; column.len()];
    let times = (0..runs).map(|_| seconds(|| task.run(column, &mut values)));
    times.fold(f64::MAX, f64::min)
}

/// A task, and what its ways need.
struct Both<'a> {
    column: &'a [u64],
    link: &'a PacedLink,
    task: Task,
    copy: Vec<u64>,
    values: Vec<u64>,
}

impl<'a> Both<'a> {
    fn new(column: &'a [u64], link: &'a PacedLink, task: Task) -> Self {
        Both {
            column,
            link,
            task,
            copy: vec![0; column.len()],
            values: vec![0; column.len()],
        }
    }

    fn local(&mut self) {
        self.task.run(self.column, &mut self.values);
    }

    fn pull(&mut self) {
        carry(self.link, self.column, &mut self.copy);
        self.task.run(&self.copy, &mut self.values);
    }

    fn push(&mut self) {
        let Both {
            column,
            link,
            task,
            copy,
            values,
        } = self;
        if let Task::At(positions) = task {
            carry(link, positions, copy);
        } else {
            link.request(CONDITION_BYTES as u64).wait();
        }
        // The owner is a thread of its own, as the other place is.
        thread::scope(|scope| {
            scope.spawn(|| task.run(column, values));
        });
        carry(link, values, copy);
    }
}

/// Positions in ascending order, about this share of all.
fn task_at(column: &[u64], share: f64) -> Task {
    let step = 1.0 / share;
    let count = (column.len() as f64 * share) as usize;
    Task::At(
        (0..count)
            .map(|number| (number as f64 * step) as u64)
            .collect(),
    )
}

fn seconds(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}

/// A number that looks random (the finaliser of SplitMix64).
fn scattered(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_find_the_same_values() {
        let column: Vec<u64> = (0..10_000).map(scattered).collect();
        let link = PacedLink::new(&Link {
            name: "fast".into(),
            gigabytes_per_second: 100.0,
            nanoseconds: 1.0,
        });
        for task in [Task::Below(u64::MAX / 3), task_at(&column, 0.25)] {
            let mut expected = Vec::new();
            task.run(&column, &mut expected);
            assert!((2400..3500).contains(&expected.len()));
            let mut both = Both::new(&column, &link, task);
            both.pull();
            assert_eq!(both.values, expected);
            both.push();
            assert_eq!(both.copy, expected);
        }
    }

    #[test]
    fn a_report_has_each_way_and_the_choice() {
        let options = PushPullOptions {
            records: 2000,
            runs: 1,
        };
        let report = run(&Topology::fake(2, 1), options);
        assert_eq!(report.rows.len(), 4 * (SELECTIVITIES.len() + LISTED.len()));
    }
}
