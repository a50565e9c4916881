//! What a fragment did, in `EXPLAIN ANALYZE`: its phases in the order in which most of the rows met them, then its
//! workers.
//!
//! ```text
//! read 137.1 MiB of 480.2 MiB in 20.1 ms, 7.15 GB/s, 21 % of 33.6 GB/s; 915 chunks, 1 skipped by zone maps; …
//! ├─ lo_partkey in 39844 keys → (p_brand1): 59920516 → 2397812 rows (4.00 %), 128.6 MiB
//! ├─ lo_suppkey in 4012 keys: 2397812 → 481033 rows (20.1 %), 85.7 MiB
//! └─ output: 481033 rows → 560 sent, 257.2 MiB
//!    AEU 0 on node 0: rows_scanned=… read=… 3.58 GB/s, 21 % of 16.9 GB/s …
//! ```
//!
//! On several nodes the first line ends with what came from other nodes.
//!
//! The share is that of what the AEUs can read from memory at the same time, as it was measured. What lies in a cache
//! may come faster.
//!
//! Each chunk takes its tests in the order that is best for it, so that a phase may meet more rows than the one before
//! it left.

use super::Analyzed;
use crate::plan::time::Time;
use crate::plan::translate::Named;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use eris_fragment::{FragmentReport, PhaseCounts, PhaseKind, WorkerReport};
use eris_home::ReadBandwidth;
use eris_numa::Bytes;
use eris_types::AeuId;
use std::time::Duration;

/// The lines of a report.
pub(super) fn draw(
    report: &FragmentReport,
    Analyzed { bandwidth, nodes }: Analyzed<'_>,
    indent: &str,
    lines: &mut Vec<String>,
) {
    let names = report.phases.columns.iter();
    let fields = names.map(|name| Field::new(name, DataType::Null, true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    let phases = in_order(report);
    let sum = |count: fn(&WorkerReport) -> u64| report.workers.iter().map(count).sum::<u64>();
    if let Some(((_, output), before)) = phases.split_last() {
        let read = phases.iter().map(|(_, counts)| counts.bytes).sum();
        let busy = report.workers.iter().map(|worker| worker.busy).max();
        let moved = match sum(|worker| worker.bytes_moved) {
            0 if nodes < 2 => String::new(),
            0 => "; nothing from other nodes".to_owned(),
            bytes => format!("; {} from other nodes", Bytes(bytes)),
        };
        lines.push(format!(
            "{indent}    read {} of {} in {}{}; {} chunks, {} skipped by zone maps{moved}",
            Bytes(read),
            Bytes(sum(|worker| worker.column_bytes)),
            Time(busy.unwrap_or_default()),
            rate(
                read,
                busy.unwrap_or_default(),
                limit(bandwidth, &report.workers)
            ),
            sum(|worker| worker.chunks),
            sum(|worker| worker.chunks_skipped),
        ));
        for (kind, counts) in before {
            let what = describe(kind, &schema);
            lines.push(format!("{indent}    ├─ {what}: {}", passed(counts)));
        }
        let joined = match output.rows_out > output.rows_in {
            true => format!(", {} joined", output.rows_out),
            false => String::new(),
        };
        lines.push(format!(
            "{indent}    └─ output: {} rows{joined} → {} sent, {}",
            output.rows_in,
            sum(|worker| worker.rows_sent),
            Bytes(output.bytes)
        ));
    }
    for worker in &report.workers {
        lines.push(format!("{indent}       {}", share(worker, bandwidth)));
    }
}

/// All workers' counts of each phase that did anything: first those that most rows met, last the output.
fn in_order(report: &FragmentReport) -> Vec<(&PhaseKind, PhaseCounts)> {
    let kinds = report.phases.kinds.iter().enumerate();
    let mut phases: Vec<(&PhaseKind, PhaseCounts)> = kinds
        .map(|(phase, kind)| {
            let mut all = PhaseCounts::default();
            let counts = report
                .workers
                .iter()
                .filter_map(|worker| worker.phases.get(phase));
            counts.for_each(|counts| all.add(counts));
            (kind, all)
        })
        .filter(|(kind, counts)| **kind == PhaseKind::Output || *counts != PhaseCounts::default())
        .collect();
    phases.sort_by_key(|(kind, counts)| {
        let rank = match kind {
            PhaseKind::Visible => 0,
            PhaseKind::First { .. } => 2,
            PhaseKind::Output => 3,
            _ => 1,
        };
        (rank, std::cmp::Reverse(counts.rows_in))
    });
    phases
}

fn describe(kind: &PhaseKind, schema: &Schema) -> String {
    match kind {
        PhaseKind::Visible => "visible".to_owned(),
        PhaseKind::Output => "output".to_owned(),
        PhaseKind::First { column, rows } => {
            format!("the first {rows} by {}", schema.field(*column).name())
        }
        PhaseKind::Conditions(conjuncts) => {
            let conjuncts = conjuncts
                .iter()
                .map(|expr| Named { expr, schema }.to_string());
            conjuncts.collect::<Vec<_>>().join(" AND ")
        }
        PhaseKind::Keys {
            column,
            keys,
            joined,
        } => {
            let column = schema.field(*column).name();
            match joined.is_empty() {
                true => format!("{column} in {keys} keys"),
                false => format!("{column} in {keys} keys → ({})", joined.join(", ")),
            }
        }
    }
}

/// Rows in and out of a phase, what it read, and what zone maps saved.
fn passed(counts: &PhaseCounts) -> String {
    let mut parts = Vec::new();
    if counts.chunks > 0 {
        let share = counts.rows_out as f64 / counts.rows_in.max(1) as f64 * 100.0;
        parts.push(format!(
            "{} → {} rows ({share:.2} %), {}",
            counts.rows_in,
            counts.rows_out,
            Bytes(counts.bytes)
        ));
    }
    if counts.chunks_held > 0 {
        parts.push(format!("held for all of {} chunks", counts.chunks_held));
    }
    if counts.chunks_excluded > 0 {
        parts.push(format!("excluded {} chunks", counts.chunks_excluded));
    }
    parts.join(", ")
}

/// Bytes per second that some workers can read together.
fn limit(bandwidth: Option<&ReadBandwidth>, workers: &[WorkerReport]) -> Option<f64> {
    let each = workers.iter().map(|worker| AeuId(worker.worker as u16));
    bandwidth.map(|bandwidth| each.map(|aeu| bandwidth.of_aeu(aeu)).sum())
}

/// Bytes in a time, and how much that is of what there could have been.
fn rate(bytes: u64, time: Duration, limit: Option<f64>) -> String {
    if time.is_zero() {
        return String::new();
    }
    let rate = bytes as f64 / time.as_secs_f64();
    let share = limit.filter(|limit| *limit > 0.0).map(|limit| {
        let percent = rate / limit * 100.0;
        format!(", {percent:.0} % of {:.1} GB/s", limit / 1e9)
    });
    format!(", {:.2} GB/s{}", rate / 1e9, share.unwrap_or_default())
}

/// What one AEU did.
fn share(report: &WorkerReport, bandwidth: Option<&ReadBandwidth>) -> String {
    let WorkerReport {
        worker,
        node,
        chunks,
        chunks_skipped,
        chunks_helped,
        chunks_copied,
        bytes_moved,
        bytes_shared,
        rows_scanned,
        rows_passed,
        rows_sent,
        groups_repartitioned,
        groups_merged,
        busy,
        phases,
        ..
    } = report;
    let routed = match groups_repartitioned + groups_merged {
        0 => String::new(),
        _ => {
            format!(", groups_repartitioned={groups_repartitioned}, groups_merged={groups_merged}")
        }
    };
    let moved = match bytes_moved {
        0 => String::new(),
        _ => format!(", copied={chunks_copied}, moved={}", Bytes(*bytes_moved)),
    };
    let shared = match bytes_shared {
        0 => String::new(),
        _ => format!(", shared={}", Bytes(*bytes_shared)),
    };
    let read = phases.iter().map(|phase| phase.bytes).sum();
    format!(
        "AEU {worker} on node {node}: rows_scanned={rows_scanned}, rows_passed={rows_passed}, rows_sent={rows_sent}{routed}, \
         read={}{}, busy={}, chunks={chunks}, skipped={chunks_skipped}, helped={chunks_helped}{moved}{shared}",
        Bytes(read),
        rate(read, *busy, limit(bandwidth, std::slice::from_ref(report))),
        Time(*busy)
    )
}
