//! The same over several owning places: Figures 4b and 4d of the RAMCloud paper.
//!
//! There are not as many machines here as the paper has. So owners work one after the other. They have equal parts of
//! random values, so what differs between them is what else this machine does. The median of them counts, as if they
//! had worked side by side. All results cross the one link of the place that asks.
//!
//! ```text
//!  condition × n ─▶ link      owner 1 ▓▓▓▓▓
//!                             owner 2 ▓▓▓▓▓▓     one of them counts
//!                             …
//!  values of all ◀─ link                         a bit per record and owner is merged, then values are put together
//! ```

use super::task::{
    BYTES, Task, leave_caches, mask_words, median, on_line, probe, seconds, table, task_among,
    task_below,
};
use super::{Setting, carry, whole};
use crate::report::BenchReport;
use eris_cost::{Cost, Operation, Strategy, choose, pull, push};
use eris_numa::PacedLink;
use serde_json::json;

/// Owners of Figure 4b, and the share of records that match there.
const OWNERS: [usize; 6] = [1, 2, 5, 10, 15, 20];
const SELECTIVITY: f64 = 0.5;

/// Values that are probed with in Figure 4d, per million records, and its owners.
const PROBED: [usize; 5] = [1_000, 10_000, 50_000, 100_000, 200_000];
const PROBE_OWNERS: usize = 20;

/// Shares for which a scan is measured where the column lies.
const BESIDE: [f64; 2] = [0.3, 0.7];
/// Owners with which merging is measured.
const MERGED_OWNERS: usize = 3;

/// An operation over several owners.
pub(super) struct Case<'a> {
    pub column: &'a [i64],
    pub link: &'a PacedLink,
    pub task: Task,
    pub owners: usize,
}

/// What a case came to.
pub(super) struct Outcome {
    /// What the model chooses.
    pub chosen: Strategy,
    /// Of push and of pull: what the model predicts, and the milliseconds that were measured.
    pub predicted: [Cost; 2],
    pub times: [Vec<f64>; 2],
}

/// Both figures.
pub(super) fn measure(setting: &Setting<'_>, runs: usize, report: &mut BenchReport) {
    let Setting { column, link, .. } = *setting;
    let records = column.len();
    // Not 0: pages that were never written are not there yet.
    let (mut values, mut masks) = (vec![1; records], vec![1; mask_words(records)]);
    let elsewhere = vec![1; records];
    for owners in OWNERS {
        let operation = Operation {
            selectivity: SELECTIVITY,
            ..whole(column)
        };
        let case = Case {
            column,
            link,
            task: task_below(SELECTIVITY),
            owners,
        };
        let tasks = BESIDE.map(task_below);
        let mut times = [const { Vec::new() }; 2];
        let samples = case.sample(runs, &elsewhere, || {
            for (task, times) in tasks.iter().zip(&mut times) {
                leave_caches(&elsewhere);
                times.push(seconds(|| task.run(column, &mut values, &mut masks)));
            }
        });
        let known = on_line(BESIDE, times.map(median), SELECTIVITY);
        let case = ("scan over nodes", ("owners", json!(owners)));
        samples.report(case, setting, owners, &operation, known, report);
    }
    for per_million in PROBED {
        let count = records * per_million / 1_000_000;
        let case = Case {
            column,
            link,
            task: task_among(count),
            owners: PROBE_OWNERS,
        };
        let Task::Among(probed) = &case.task else {
            unreachable!("it is among these");
        };
        // The table is made once at each place, and probed with its part of the column.
        let mut times = [const { Vec::new() }; 2];
        let samples = case.sample(runs, &elsewhere, || {
            let part = &column[..records / 4];
            leave_caches(&elsewhere);
            let mut made = None;
            times[0].push(seconds(|| made = Some(table(probed))));
            let made = made.expect("it was just made");
            values.clear();
            times[1].push(seconds(|| probe(&made, part, &mut values, &mut masks)));
        });
        let [setup, quarter] = times.map(median);
        let operation = Operation {
            selectivity: 0.0,
            condition_bytes: (count * BYTES) as f64,
            setup,
            ..whole(column)
        };
        let case = ("probe over nodes", ("probed", json!(count)));
        samples.report(
            case,
            setting,
            PROBE_OWNERS,
            &operation,
            4.0 * quarter,
            report,
        );
    }
}

/// What was measured of a case.
#[derive(Default)]
pub(super) struct Samples {
    /// Milliseconds of push and of pull.
    push: Vec<f64>,
    pull: Vec<f64>,
    /// Bytes per second of merging what a few owners found.
    merging: Vec<f64>,
}

impl Samples {
    /// Adds rows of both ways, and of the one that the model chooses.
    pub(super) fn report(
        self,
        (name, varied): (&str, (&'static str, serde_json::Value)),
        setting: &Setting<'_>,
        owners: usize,
        operation: &Operation,
        known: f64,
        report: &mut BenchReport,
    ) -> Outcome {
        let places = setting.places(owners, operation, known, median(self.merging));
        let predicted = [push(operation, &places), pull(operation, &places)];
        let times = [self.push, self.pull];
        for ((way, predicted), times) in ["push", "pull"].iter().zip(predicted).zip(&times) {
            super::row(name, varied.clone(), way, predicted, times.clone(), report);
        }
        let chosen = choose(operation, &places);
        let [push, pull] = &times;
        super::choice(name, varied, chosen, push, pull, report);
        Outcome {
            chosen,
            predicted,
            times,
        }
    }
}

/// Merges what owners have found: a bit per record and owner, and the values one after the other.
fn merge(masks: &[Vec<u64>], parts: &[Vec<i64>], all: &mut [u64], values: &mut Vec<i64>) {
    all.fill(0);
    for masks in masks {
        all.iter_mut().zip(masks).for_each(|(all, one)| *all |= one);
    }
    values.clear();
    parts.iter().for_each(|part| values.extend_from_slice(part));
    std::hint::black_box((all, values));
}

/// Bytes per second of merging what a few owners have found.
fn merging(records: usize) -> f64 {
    let words = mask_words(records);
    let masks = vec![vec![1; words]; MERGED_OWNERS];
    let found = (records as f64 * SELECTIVITY) as usize / MERGED_OWNERS;
    let parts = vec![vec![1; found]; MERGED_OWNERS];
    let (mut all, mut values) = (vec![1; words], vec![1; found * MERGED_OWNERS]);
    let took = seconds(|| merge(&masks, &parts, &mut all, &mut values));
    let bytes = records * MERGED_OWNERS / 8 + found * MERGED_OWNERS * BYTES;
    bytes as f64 / took
}

impl Case<'_> {
    /// Measures both ways in turns with what the model is told.
    pub(super) fn sample(
        &self,
        runs: usize,
        elsewhere: &[i64],
        mut beside: impl FnMut(),
    ) -> Samples {
        let mut samples = Samples::default();
        for _ in 0..runs {
            beside();
            samples.merging.push(merging(self.column.len()));
            leave_caches(elsewhere);
            samples.push.push(1e3 * self.push());
            leave_caches(elsewhere);
            samples.pull.push(1e3 * self.pull());
        }
        samples
    }

    /// Seconds if the owners do it.
    fn push(&self) -> f64 {
        let Case {
            column,
            link,
            task,
            owners,
        } = self;
        let mut received = Vec::new();
        if let Task::Listed { positions, .. } = task {
            // Pages that were never written are not there yet.
            received.resize(positions.len(), 1);
        }
        let mut total = seconds(|| match task {
            // Each owner gets all of them.
            Task::Among(probed) => (0..*owners).for_each(|_| carry(link, probed, &mut received)),
            // Of the positions, each gets its part.
            Task::Listed { positions, probed } => {
                carry(link, positions, &mut received);
                for _ in 0..*owners {
                    carry(link, probed.as_deref().unwrap_or_default(), &mut received);
                }
            }
            _ => link
                .request(super::CONDITION_BYTES as u64 * *owners as u64)
                .wait(),
        });
        let words = mask_words(column.len());
        let mut masks: Vec<Vec<u64>> = (0..*owners).map(|_| vec![1; words]).collect();
        let mut found = vec![Vec::new(); *owners];
        let each = column.len().div_ceil(*owners).next_multiple_of(64);
        let mut times = Vec::with_capacity(*owners);
        for (owner, part) in column.chunks(each).enumerate() {
            // Pages that were never written are not there yet.
            found[owner].resize(part.len(), 0);
            masks[owner].fill(0);
            let first = owner * each / 64;
            let last = (first + mask_words(part.len())).min(words);
            let masks = &mut masks[owner][first..last];
            times.push(seconds(|| task.run(part, &mut found[owner], masks)));
        }
        total += median(times);
        // The same of what is received.
        let mut parts: Vec<Vec<i64>> = found.iter().map(|found| vec![1; found.len()]).collect();
        total += seconds(|| {
            for (found, part) in found.iter().zip(&mut parts) {
                carry(link, found, part);
            }
        });
        if *owners > 1 {
            let mut all = vec![1; words];
            let mut values = vec![1; parts.iter().map(Vec::len).sum()];
            total += seconds(|| merge(&masks, &parts, &mut all, &mut values));
        }
        total
    }

    /// Seconds if the column comes. It does not matter where it comes from.
    fn pull(&self) -> f64 {
        let mut copy = vec![1; self.column.len()];
        let mut values = vec![1; self.column.len()];
        let mut masks = vec![0; mask_words(self.column.len())];
        seconds(|| {
            carry(self.link, self.column, &mut copy);
            self.task.run(&copy, &mut values, &mut masks);
        })
    }
}
