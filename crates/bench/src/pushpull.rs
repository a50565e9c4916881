//! Operations that go to the data, and data that comes to the operation: `eris bench pushpull`.
//!
//! ```text
//!   asking place                      owning place
//!   ┌────────────┐  ── condition ──▶  ┌────────┐      push: the owner works, what matches comes back
//!   │ one thread │                    │ column │
//!   └────────────┘  ◀── all of it ──  └────────┘      pull: the column comes, and the asking place works
//! ```
//!
//! The link between the places is paced. It is as fast beside a scan as in the RAMCloud paper, Section 5.3, unless a
//! core copies more slowly. Beside each time stands the one that the cost model predicts. It knows the link, and how
//! fast the operation is where the column lies. That is measured for two other shares of the records, in turns with the
//! ways, and is taken to be on the line through both. So a local time says only how straight that line is; push and
//! pull say what the model does with it. With `--over nodes` the column lies in several places. There a query of two
//! parts is measured, too.

mod nodes;
mod query;
mod task;

use crate::figure::FigureShape;
use crate::report::BenchReport;
use eris_cost::{Cost, Operation, Places, Strategy, choose, local, pull, push};
use eris_numa::{Link, PacedLink, Topology};
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};
use task::{
    BYTES, Task, leave_caches, mask_words, median, on_line, scattered, seconds, task_at, task_below,
};

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
/// But what crosses the link is copied by a core, which must not be what takes long.
const LINK_BESIDE_COPY: f64 = 0.9;
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

/// Shares for which the operations are measured where the column lies, so that they are known in between.
const KNOWN_SELECTIVITIES: [f64; 4] = [0.05, 0.3, 0.7, 0.95];
const KNOWN_LISTED: [f64; 7] = [0.005, 0.015, 0.05, 0.15, 0.3, 0.7, 1.0];

/// The two of these shares between which one lies, or that are nearest to it.
fn around(known: &[f64], share: f64) -> [f64; 2] {
    let after = known.partition_point(|known| *known < share);
    let after = after.clamp(1, known.len() - 1);
    [known[after - 1], known[after]]
}

/// Copies values block by block, as if they were here.
fn copy(values: &[i64], to: &mut Vec<i64>) {
    to.clear();
    values
        .chunks(BLOCK / BYTES)
        .for_each(|block| to.extend_from_slice(block));
}

/// Copies values block by block. Each block is asked for, copied while it is on its way, and waited for.
fn carry(link: &PacedLink, values: &[i64], to: &mut Vec<i64>) {
    to.clear();
    for block in values.chunks(BLOCK / BYTES) {
        let arrival = link.request(size_of_val(block) as u64);
        to.extend_from_slice(block);
        arrival.wait();
    }
}

/// A column, and the link to it.
struct Setting<'a> {
    column: &'a [i64],
    link: &'a PacedLink,
    /// Bytes per second of the link.
    link_speed: f64,
}

impl Setting<'_> {
    /// What the model is told, of an operation that takes `seconds` where the column lies in one place, but for its
    /// setup. `merging`: bytes per second.
    fn places(&self, count: usize, operation: &Operation, seconds: f64, merging: f64) -> Places {
        let one = Places {
            count: 1.0,
            link: self.link_speed,
            memory: 1.0,
            merging,
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

/// The paper's figures.
pub(crate) const FIGURES: [FigureShape; 4] = [
    FigureShape {
        cases: &["scan"],
        name: "scan",
        title: "A scan, one owner (RAMCloud, Figure 4a)",
        x: "selectivity",
        x_name: "share of records that match",
        line: &["way"],
        beside: Some("predicted_ms"),
        ..FigureShape::EMPTY
    },
    FigureShape {
        cases: &["materialise"],
        name: "materialise",
        title: "Positions, one owner (RAMCloud, Figure 4c)",
        x: "listed",
        x_name: "share of records that are listed",
        line: &["way"],
        beside: Some("predicted_ms"),
        ..FigureShape::EMPTY
    },
    FigureShape {
        cases: &["scan over nodes"],
        name: "scan-over-nodes",
        title: "A scan by owners (RAMCloud, Figure 4b)",
        x: "owners",
        x_name: "owners",
        line: &["way"],
        beside: Some("predicted_ms"),
        ..FigureShape::EMPTY
    },
    FigureShape {
        cases: &["probe over nodes"],
        name: "probe-over-nodes",
        title: "A probe, 20 owners (RAMCloud, Figure 4d)",
        x: "probed",
        x_name: "values that are probed with",
        line: &["way"],
        beside: Some("predicted_ms"),
        ..FigureShape::EMPTY
    },
];

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
    let (mut values, mut masks) = (vec![1; records], vec![0; mask_words(records)]);
    let mut scan = || seconds(|| task_below(0.0).run(&column, &mut values, &mut masks));
    // Memory that was just written is slower for a while on some machines.
    let began = Instant::now();
    while runs > 1 && began.elapsed() < WARMING {
        let _ = scan();
    }
    let scanned = median((0..runs).map(|_| scan()).collect());
    let copied = median(
        (0..runs)
            .map(|_| seconds(|| copy(&column, &mut values)))
            .collect(),
    );
    drop((values, masks));
    let speed = |seconds: f64| (records * BYTES) as f64 / seconds;
    let link_speed = (LINK_BESIDE_SCAN * speed(scanned)).min(LINK_BESIDE_COPY * speed(copied));
    let link = PacedLink::new(&Link {
        name: "paced".into(),
        gigabytes_per_second: link_speed / 1e9,
        nanoseconds: LATENCY,
        copies: Vec::new(),
    });
    let setting = Setting {
        column: &column,
        link: &link,
        link_speed,
    };
    let mut report = BenchReport::new("pushpull", topology);
    match options.over_nodes {
        true => {
            nodes::measure(&setting, runs, &mut report);
            query::measure(&setting, runs, &mut report);
        }
        false => one_owner(&setting, runs, &mut report),
    }
    report
}

/// Figures 4a and 4c.
fn one_owner(setting: &Setting<'_>, runs: usize, report: &mut BenchReport) {
    let column = setting.column;
    for share in SELECTIVITIES {
        let shares = around(&KNOWN_SELECTIVITIES, share);
        let case = Case {
            name: "scan",
            share: ("selectivity", share),
            operation: Operation {
                selectivity: share,
                ..whole(column)
            },
            shares,
            beside: shares.map(task_below),
        };
        case.measure(setting, task_below(share), runs, report);
    }
    for share in LISTED {
        let shares = around(&KNOWN_LISTED, share);
        let case = Case {
            name: "materialise",
            share: ("listed", share),
            operation: Operation {
                positions: Some(share * column.len() as f64),
                condition_bytes: 0.0,
                ..whole(column)
            },
            shares,
            beside: shares.map(|share| task_at(column, share)),
        };
        case.measure(setting, task_at(column, share), runs, report);
    }
}

/// An operation as the cost model knows it.
struct Case {
    name: &'static str,
    /// What is varied.
    share: (&'static str, f64),
    operation: Operation,
    /// The shares for which it is measured beside the ways, and these tasks.
    shares: [f64; 2],
    beside: [Task; 2],
}

impl Case {
    fn measure(&self, setting: &Setting<'_>, task: Task, runs: usize, report: &mut BenchReport) {
        let mut both = Both::new(setting, task);
        type Way = fn(&mut Both<'_>);
        let ways: [Way; 3] = [|both| both.local(), |both| both.push(), |both| both.pull()];
        // Once without a clock: all memory has been used then.
        ways.iter().for_each(|way| way(&mut both));
        // All take turns, so that the machine's moods fall on all alike.
        let mut known = [const { Vec::new() }; 2];
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..runs {
            for (task, times) in self.beside.iter().zip(&mut known) {
                times.push(both.beside(task));
            }
            for (way, times) in ways.iter().zip(&mut times) {
                leave_caches(&both.elsewhere);
                times.push(1e3 * seconds(|| way(&mut both)));
            }
        }
        let (varied, share) = self.share;
        let varied = || (varied, json!(share));
        let seconds = on_line(self.shares, known.map(median), share);
        // One place merges nothing.
        let places = setting.places(1, &self.operation, seconds, 1.0);
        let predicted = [local, push, pull].map(|cost| cost(&self.operation, &places));
        for ((way, predicted), times) in ["local", "push", "pull"].iter().zip(predicted).zip(&times)
        {
            row(self.name, varied(), way, predicted, times.clone(), report);
        }
        let chosen = choose(&self.operation, &places);
        let [_, push, pull] = &times;
        choice(self.name, varied(), chosen, push, pull, report);
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
    push: &[f64],
    pull: &[f64],
    report: &mut BenchReport,
) {
    let (way, of_chosen) = match chosen {
        Strategy::Push => ("push", push),
        Strategy::Pull => ("pull", pull),
    };
    let pairs = of_chosen.iter().zip(push.iter().zip(pull));
    let beside_best = pairs.map(|(chosen, (push, pull))| chosen / push.min(*pull));
    let params = [varied, ("way", json!(way))];
    let name = format!("{name}, chosen way");
    report.row(
        &name,
        params,
        "times the best",
        beside_best.collect(),
        Some(1.0),
    );
}

/// A task, and what its ways need.
struct Both<'a> {
    column: &'a [i64],
    link: &'a PacedLink,
    task: Task,
    copy: Vec<i64>,
    values: Vec<i64>,
    masks: Vec<u64>,
    /// What is read so that the rest leaves the caches.
    elsewhere: Vec<i64>,
}

impl<'a> Both<'a> {
    fn new(setting: &Setting<'a>, task: Task) -> Self {
        let records = setting.column.len();
        Both {
            column: setting.column,
            link: setting.link,
            task,
            // Not 0: pages that were never written are not there yet.
            copy: vec![1; records],
            values: vec![1; records],
            masks: vec![0; mask_words(records)],
            elsewhere: vec![1; records],
        }
    }

    /// Seconds of another task where the column lies.
    fn beside(&mut self, task: &Task) -> f64 {
        leave_caches(&self.elsewhere);
        seconds(|| task.run(self.column, &mut self.values, &mut self.masks))
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
            ..
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
            copies: Vec::new(),
        });
        let setting = Setting {
            column: &column,
            link: &link,
            link_speed: 1e11,
        };
        for task in [task_below(1.0 / 3.0), task_at(&column, 0.25)] {
            let mut both = Both::new(&setting, task);
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
        let is_known = |share: &f64| {
            KNOWN_SELECTIVITIES.contains(share) && SELECTIVITIES.contains(share)
                || KNOWN_LISTED.contains(share) && LISTED.contains(share)
        };
        let all = [&KNOWN_SELECTIVITIES[..], &KNOWN_LISTED].concat();
        assert!(!all.iter().any(is_known), "nothing is predicted by itself");
        let report = run(&Topology::fake(2, 1), options);
        assert_eq!(report.rows.len(), 4 * (SELECTIVITIES.len() + LISTED.len()));
        let over_nodes = PushPullOptions {
            over_nodes: true,
            ..options
        };
        let report = run(&Topology::fake(2, 1), over_nodes);
        assert_eq!(report.rows.len(), 3 * (6 + 5) + 3 * 2 + 3);
        assert!(report.rows.iter().all(|row| row.value > 0.0), "{report:?}");
    }
}
