//! One query in two parts over several owning places: Figure 5 of the RAMCloud paper, Section 5.4.
//!
//! ```text
//!  positions ─▶ probe ─▶ positions of those that match ─▶ materialise ─▶ values
//!               S_D: 200,000 bytes for 6 million records; all match
//! ```
//!
//! As there, ten places own the column, each record is asked for by its position, and each matches. So the list of
//! positions is as long as the column, and it travels with what is pushed. Beside both parts stands the whole query:
//! all pushed, all pulled, and each part as the model chooses. Owners work one after the other, as in
//! [`super::nodes`].

use super::nodes::{Case, Outcome};
use super::task::{
    BYTES, Task, leave_caches, listed, mask_words, median, scattered, seconds, table,
};
use super::{Setting, whole};
use crate::report::BenchReport;
use eris_cost::{Cost, Operation, Strategy};
use serde_json::json;

/// Owners.
const OWNERS: usize = 10;

/// Values that are probed with, and the records that are probed with these.
const PROBED: usize = 25_000;
const OF_RECORDS: usize = 6_000_000;

/// Both parts, and the query.
pub(super) fn measure(setting: &Setting<'_>, runs: usize, report: &mut BenchReport) {
    let records = setting.column.len();
    let count = (records * PROBED / OF_RECORDS).max(1);
    let probed: Vec<i64> = (0..count as u64).map(scattered).collect();
    let any = |number| probed[(scattered(number) as u64 % count as u64) as usize];
    let column: Vec<i64> = (0..records as u64).map(any).collect();
    let setting = Setting {
        column: &column,
        ..*setting
    };
    let parts = [
        part(&setting, "query, probe", Some(probed), runs, report),
        part(&setting, "query, materialise", None, runs, report),
    ];
    let chosen = parts.each_ref().map(|part| match part.chosen {
        Strategy::Push => 0,
        Strategy::Pull => 1,
    });
    for (way, of_parts) in [("push", [0, 0]), ("pull", [1, 1]), ("chosen", chosen)] {
        let ways = || parts.iter().zip(of_parts);
        let predicted = Cost {
            work: ways()
                .map(|(part, way)| part.predicted[way].seconds())
                .sum(),
            ..Cost::default()
        };
        let times = (0..runs).map(|run| ways().map(|(part, way)| part.times[way][run]).sum());
        let owners = ("owners", json!(OWNERS));
        super::row("query", owners, way, predicted, times.collect(), report);
    }
}

/// One part, with values that are probed with or without.
fn part(
    setting: &Setting<'_>,
    name: &str,
    probed: Option<Vec<i64>>,
    runs: usize,
    report: &mut BenchReport,
) -> Outcome {
    let Setting { column, link, .. } = *setting;
    let records = column.len();
    // Not 0: pages that were never written are not there yet.
    let (mut values, mut masks) = (vec![1; records], vec![1; mask_words(records)]);
    let elsewhere = vec![1; records];
    let positions: Vec<i64> = (0..records as i64).collect();
    let sent = probed.as_ref().map_or(0, Vec::len);
    let case = Case {
        column,
        link,
        task: Task::Listed { positions, probed },
        owners: OWNERS,
    };
    let Task::Listed { positions, probed } = &case.task else {
        unreachable!("it has a list");
    };
    // The table is made once at each place, and probed with its part of the column.
    let mut times = [const { Vec::new() }; 2];
    let samples = case.sample(runs, &elsewhere, || {
        let part = &column[..records / 4];
        leave_caches(&elsewhere);
        let mut made = None;
        times[0].push(seconds(|| made = probed.as_deref().map(table)));
        values.clear();
        times[1].push(seconds(|| {
            listed(made.as_ref(), positions, part, &mut values, &mut masks)
        }));
    });
    let [setup, quarter] = times.map(median);
    let operation = Operation {
        selectivity: 1.0,
        positions: Some(records as f64),
        condition_bytes: (sent * BYTES) as f64,
        setup,
        ..whole(column)
    };
    let case = (name, ("owners", json!(OWNERS)));
    samples.report(case, setting, OWNERS, &operation, 4.0 * quarter, report)
}
