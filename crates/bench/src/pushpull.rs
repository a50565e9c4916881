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
//! time stands the one that the cost model predicts. It knows the link, and how fast the operation is where the column
//! lies. That was measured for other shares of the records, and is taken to be on a line between two of them. With
//! `--over nodes` the column lies in several places.

mod nodes;
mod task;

use crate::report::BenchReport;
use eris_cost::{Cost, Operation, Places, Strategy, choose, local, pull, push};
use eris_numa::{Link, PacedLink, Topology};
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};
use task::{BYTES, Curve, Task, mask_words, scattered, task_at, task_below};

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct PushPullOptions {
    /// Records of the column, 8 bytes each.
    pub records: usize,
    /// Timed runs of each case, at least 1.
    pub runs: usize,
    /// Whether the column lies in several places.
    pub over_nodes: bool,
}

/// Network and memory bandwidth in the paper: 2.2 GB/s, and what "almost twice as long" makes of it.
const LINK_BESIDE_SCAN: f64 = 2.2 / 2.1;
const LATENCY: f64 = 2000.0;
/// Bytes that are asked for at once.
const BLOCK: usize = 256 << 10;
/// A scan's condition: two comparisons and their values.
const CONDITION_BYTES: f64 = 24.0;

/// The shares of records that match (Figure 4a), or whose positions are given (Figure 4c).
const SELECTIVITIES: [f64; 6] = [0.0, 0.1, 0.25, 0.5, 0.75, 1.0];
const LISTED: [f64; 6] = [0.01, 0.1, 0.25, 0.4, 0.6, 0.8];

/// The column is read for so long before anything is measured.
const WARMING: Duration = Duration::from_secs(2);

/// The shares at which the operations are measured beside the column.
const FITTED_SELECTIVITIES: [f64; 4] = [0.0, 0.3, 0.7, 1.0];
const FITTED_LISTED: [f64; 7] = [0.005, 0.015, 0.05, 0.15, 0.3, 0.7, 1.0];

/// Copies values block by block. Each block is asked for, copied while it is on its way, and waited for.
fn carry(link: &PacedLink, values: &[i64], to: &mut Vec<i64>) {
    to.clear();
    for block in values.chunks(BLOCK / BYTES) {
        let arrival = link.request(size_of_val(block) as u64);
        to.extend_from_slice(block);
        arrival.wait();
    }
}

/// A column, a link, and what is known of operations where the column lies.
struct Fitted<'a> {
    column: &'a [i64],
    link: &'a PacedLink,
    /// Bytes per second of the link.
    link_speed: f64,
    scan: Curve,
    gather: Curve,
}

impl Fitted<'_> {
    /// What the model is told, of an operation that takes `seconds` where the column lies in one place.
    fn places(&self, count: usize, operation: &Operation, seconds: f64) -> Places {
        let one = Places {
            count: 1.0,
            link: self.link_speed,
            memory: 1.0,
            // As fast as it is read.
            merging: self.link_speed / LINK_BESIDE_SCAN,
        };
        let without_setup = Operation {
            setup: 0.0,
            ..*operation
        };
        Places {
            count: count as f64,
            memory: local(&without_setup, &one).work / seconds,
            ..one
        }
    }
}

/// A scan of all records.
fn whole(column: &[i64]) -> Operation {
    Operation {
        records: column.len() as f64,
        record_bytes: BYTES as f64,
        positions: None,
        position_bytes: BYTES as f64,
        condition_bytes: CONDITION_BYTES,
        setup: 0.0,
        selectivity: 1.0,
    }
}

/// Measures both ways, and the local one beside them.
///
/// # Panics
/// If the options ask for no runs, or for fewer than 1,000 records.
pub fn run(topology: &Topology, options: PushPullOptions) -> BenchReport {
    let PushPullOptions { records, runs, .. } = options;
    assert!(
        runs > 0 && records >= 1000,
        "cannot measure so: {options:?}"
    );
    let column: Vec<i64> = (0..records as u64).map(scattered).collect();
    // Memory that was just written is slower for a while on some machines.
    let began = Instant::now();
    while runs > 1 && began.elapsed() < WARMING {
        let _ = Curve::measure(&column, &[0.0, 1.0], 1, task_below);
    }
    let scan = Curve::measure(&column, &FITTED_SELECTIVITIES, runs, task_below);
    let gather = Curve::measure(&column, &FITTED_LISTED, runs, |share| {
        task_at(&column, share)
    });
    let link_speed = (records * BYTES) as f64 / scan.seconds(0.0) * LINK_BESIDE_SCAN;
    let link = PacedLink::new(&Link {
        name: "paced".into(),
        gigabytes_per_second: link_speed / 1e9,
        nanoseconds: LATENCY,
    });
    let fitted = Fitted {
        column: &column,
        link: &link,
        link_speed,
        scan,
        gather,
    };
    let mut report = BenchReport::new("pushpull", topology);
    match options.over_nodes {
        true => nodes::measure(&fitted, runs, &mut report),
        false => one_owner(&fitted, runs, &mut report),
    }
    report
}

/// Figures 4a and 4c.
fn one_owner(fitted: &Fitted<'_>, runs: usize, report: &mut BenchReport) {
    let column = fitted.column;
    for share in SELECTIVITIES {
        let operation = Operation {
            selectivity: share,
            ..whole(column)
        };
        let case = Case {
            name: "scan",
            share: ("selectivity", json!(share)),
            operation,
            places: fitted.places(1, &operation, fitted.scan.seconds(share)),
        };
        case.measure(Both::new(fitted, task_below(share)), runs, report);
    }
    for share in LISTED {
        let operation = Operation {
            positions: Some(share * column.len() as f64),
            condition_bytes: 0.0,
            ..whole(column)
        };
        let case = Case {
            name: "materialise",
            share: ("listed", json!(share)),
            operation,
            places: fitted.places(1, &operation, fitted.gather.seconds(share)),
        };
        case.measure(Both::new(fitted, task_at(column, share)), runs, report);
    }
}

/// An operation as the cost model knows it.
struct Case {
    name: &'static str,
    /// What is varied.
    share: (&'static str, Value),
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
        // Once without a clock: all memory has been used then.
        ways.iter().for_each(|(_, _, way)| way(&mut both));
        // The ways take turns, so that the machine's moods fall on all alike.
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..runs {
            for ((_, _, way), times) in ways.iter().zip(&mut times) {
                times.push(1e3 * task::seconds(|| way(&mut both)));
            }
        }
        for ((way, predicted, _), times) in ways.iter().zip(&times) {
            row(
                self.name,
                self.share.clone(),
                way,
                *predicted,
                times.clone(),
                report,
            );
        }
        let chosen = choose(operation, places);
        let of_chosen = match chosen {
            Strategy::Push => &times[1],
            Strategy::Pull => &times[2],
        };
        let pairs = times[1].iter().zip(&times[2]);
        let beside_best =
            (of_chosen.iter().zip(pairs)).map(|(chosen, (push, pull))| chosen / push.min(*pull));
        choice(
            self.name,
            self.share.clone(),
            chosen,
            beside_best.collect(),
            report,
        );
    }
}

/// A row of one way: its milliseconds, beside those that were predicted.
fn row(
    name: &str,
    varied: (&'static str, Value),
    way: &str,
    predicted: Cost,
    times: Vec<f64>,
    report: &mut BenchReport,
) {
    let predicted = (1e5 * predicted.seconds()).round() / 100.0;
    let params = [
        varied,
        ("way", json!(way)),
        ("predicted_ms", json!(predicted)),
    ];
    report.row(name, params, "ms", times, None);
}

/// A row of the way that the model chooses, beside the one that was faster.
fn choice(
    name: &str,
    varied: (&'static str, Value),
    chosen: Strategy,
    beside_best: Vec<f64>,
    report: &mut BenchReport,
) {
    let way = match chosen {
        Strategy::Push => "push",
        Strategy::Pull => "pull",
    };
    let params = [varied, ("way", json!(way))];
    let name = format!("{name}, chosen way");
    report.row(&name, params, "times the best", beside_best, Some(1.0));
}

/// A task, and what its ways need.
struct Both<'a> {
    column: &'a [i64],
    link: &'a PacedLink,
    task: Task,
    copy: Vec<i64>,
    values: Vec<i64>,
    masks: Vec<u64>,
}

impl<'a> Both<'a> {
    fn new(fitted: &Fitted<'a>, task: Task) -> Self {
        let records = fitted.column.len();
        Both {
            column: fitted.column,
            link: fitted.link,
            task,
            // Not 0: pages that were never written are not there yet.
            copy: vec![1; records],
            values: vec![1; records],
            masks: vec![0; mask_words(records)],
        }
    }

    fn local(&mut self) {
        self.task
            .run(self.column, &mut self.values, &mut self.masks);
    }

    fn pull(&mut self) {
        carry(self.link, self.column, &mut self.copy);
        self.task.run(&self.copy, &mut self.values, &mut self.masks);
    }

    fn push(&mut self) {
        let Both {
            column,
            link,
            task,
            copy,
            values,
            masks,
        } = self;
        if let Task::At(positions) = task {
            carry(link, positions, copy);
        } else {
            link.request(CONDITION_BYTES as u64).wait();
        }
        // The owner is a thread of its own, as the other place is.
        thread::scope(|scope| {
            scope.spawn(|| task.run(column, values, masks));
        });
        carry(link, values, copy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_find_the_same_values() {
        let column: Vec<i64> = (0..10_000).map(scattered).collect();
        let link = PacedLink::new(&Link {
            name: "fast".into(),
            gigabytes_per_second: 100.0,
            nanoseconds: 1.0,
        });
        let curve = || Curve::measure(&column, &[0.0, 1.0], 1, task_below);
        let fitted = Fitted {
            column: &column,
            link: &link,
            link_speed: 1e11,
            scan: curve(),
            gather: curve(),
        };
        for task in [task_below(1.0 / 3.0), task_at(&column, 0.25)] {
            let mut both = Both::new(&fitted, task);
            both.local();
            let expected = both.values.clone();
            assert!((2400..3500).contains(&expected.len()));
            both.pull();
            assert_eq!(both.values, expected);
            both.push();
            assert_eq!(both.copy, expected);
        }
    }

    #[test]
    fn a_report_has_each_way_and_the_choice() {
        let options = PushPullOptions {
            records: 5000,
            runs: 1,
            over_nodes: false,
        };
        let report = run(&Topology::fake(2, 1), options);
        assert_eq!(report.rows.len(), 4 * (SELECTIVITIES.len() + LISTED.len()));
        let over_nodes = PushPullOptions {
            over_nodes: true,
            ..options
        };
        let report = run(&Topology::fake(2, 1), over_nodes);
        assert_eq!(report.rows.len(), 3 * (6 + 5));
        assert!(report.rows.iter().all(|row| row.value > 0.0), "{report:?}");
    }
}
