//! The same over several owning places: Figures 4b and 4d of the RAMCloud paper.
//!
//! There are not as many machines here as the paper has. So owners work one after the other, and the slowest of them
//! counts, as if they had worked side by side. All results cross the one link of the place that asks.
//!
//! ```text
//!  condition × n ─▶ link      owner 1 ▓▓▓▓▓
//!                             owner 2 ▓▓▓▓▓▓     the longest counts
//!                             …
//!  values of all ◀─ link                         a bit per record and owner is merged, then values are put together
//! ```

use super::task::{BYTES, Curve, Task, mask_words, seconds, task_among, task_below};
use super::{Fitted, carry, whole};
use crate::report::BenchReport;
use eris_cost::{Operation, Strategy, choose, pull, push};
use eris_numa::PacedLink;
use serde_json::json;

/// Owners of Figure 4b, and the share of records that match there.
const OWNERS: [usize; 6] = [1, 2, 5, 10, 15, 20];
const SELECTIVITY: f64 = 0.5;

/// Values that are probed with in Figure 4d, per million records, and its owners.
const PROBED: [usize; 5] = [1_000, 10_000, 50_000, 100_000, 200_000];
const PROBE_OWNERS: usize = 20;

/// An operation over several owners.
struct Case<'a> {
    column: &'a [i64],
    link: &'a PacedLink,
    task: Task,
    owners: usize,
}

/// Both figures.
pub(super) fn measure(fitted: &Fitted<'_>, runs: usize, report: &mut BenchReport) {
    let Fitted { column, link, .. } = *fitted;
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
        let seconds = fitted.scan.seconds(SELECTIVITY);
        let param = ("owners", json!(owners));
        case.report(
            "scan over nodes",
            param,
            fitted,
            seconds,
            operation,
            runs,
            report,
        );
    }
    for per_million in PROBED {
        let count = column.len() * per_million / 1_000_000;
        let task = task_among(count);
        // The table is made once at each place, and probed with its part of the column.
        let build = median(runs, || task.run(&[], &mut Vec::new(), &mut []));
        let curve = Curve::measure(&column[..column.len() / 4], &[0.0, 1.0], runs, |_| {
            task_among(count)
        });
        let probe = 4.0 * (curve.seconds(1.0) - build).max(1e-6);
        let operation = Operation {
            selectivity: 0.0,
            condition_bytes: (count * BYTES) as f64,
            setup: build,
            ..whole(column)
        };
        let case = Case {
            column,
            link,
            task,
            owners: PROBE_OWNERS,
        };
        let param = ("probed", json!(count));
        case.report(
            "probe over nodes",
            param,
            fitted,
            probe,
            operation,
            runs,
            report,
        );
    }
}

fn median(runs: usize, mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..runs).map(|_| seconds(&mut work)).collect();
    times.sort_by(f64::total_cmp);
    times[runs / 2]
}

impl Case<'_> {
    #[expect(
        clippy::too_many_arguments,
        reason = "a case, and where its numbers go"
    )]
    fn report(
        &self,
        name: &str,
        param: (&'static str, serde_json::Value),
        fitted: &Fitted<'_>,
        local: f64,
        operation: Operation,
        runs: usize,
        report: &mut BenchReport,
    ) {
        let places = fitted.places(self.owners, &operation, local);
        let mut times = [const { Vec::new() }; 2];
        for _ in 0..runs {
            times[0].push(1e3 * self.push());
            times[1].push(1e3 * self.pull());
        }
        let predicted = [push(&operation, &places), pull(&operation, &places)];
        for ((way, predicted), times) in ["push", "pull"].into_iter().zip(predicted).zip(&times) {
            super::row(name, param.clone(), way, predicted, times.clone(), report);
        }
        let chosen = choose(&operation, &places);
        let best = times[0].iter().zip(&times[1]);
        let beside_best = best.map(|(push, pull)| {
            let chosen = if chosen == Strategy::Push { push } else { pull };
            chosen / push.min(*pull)
        });
        super::choice(name, param, chosen, beside_best.collect(), report);
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
        let mut total = seconds(|| match task {
            // Each owner gets all of them.
            Task::Among(probed) => (0..*owners).for_each(|_| carry(link, probed, &mut received)),
            _ => link
                .request(super::CONDITION_BYTES as u64 * *owners as u64)
                .wait(),
        });
        let words = mask_words(column.len());
        let mut masks: Vec<Vec<u64>> = (0..*owners).map(|_| vec![1; words]).collect();
        let mut found = vec![Vec::new(); *owners];
        let each = column.len().div_ceil(*owners).next_multiple_of(64);
        let mut slowest = 0.0f64;
        for (owner, part) in column.chunks(each).enumerate() {
            // Pages that were never written are not there yet.
            found[owner].resize(part.len(), 0);
            masks[owner].fill(0);
            let first = owner * each / 64;
            let last = (first + mask_words(part.len())).min(words);
            let took =
                seconds(|| task.run(part, &mut found[owner], &mut masks[owner][first..last]));
            slowest = slowest.max(took);
        }
        total += slowest;
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
            all.fill(0);
            total += seconds(|| {
                for masks in &masks {
                    all.iter_mut().zip(masks).for_each(|(all, one)| *all |= one);
                }
                values.clear();
                parts.iter().for_each(|part| values.extend_from_slice(part));
            });
            std::hint::black_box((&all, &values));
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
