//! The report as pictures: throughput over time, a line for each algorithm, as in the ERIS paper's Figure 13, and the
//! balanced level.

use super::{ALGORITHMS, IDEAL};
use crate::plot::Plot;
use crate::report::BenchReport;

/// Columns of a curve in the terminal, and the heights that one character can show.
const COLUMNS: usize = 72;
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Seconds and throughput of one algorithm.
fn line(report: &BenchReport, algorithm: &str) -> Vec<(f64, f64)> {
    let rows = report.rows.iter().filter(|row| row.case == "throughput");
    let rows = rows.filter(|row| row.params["algorithm"] == algorithm);
    rows.map(|row| (row.params["second"].as_f64().unwrap_or(0.0), row.value))
        .collect()
}

/// The balanced level of each phase, while it lasts.
fn levels(report: &BenchReport) -> Vec<(f64, f64)> {
    let rows = || report.rows.iter();
    let mut ideal = rows().filter(|row| row.case == "level" && row.params["algorithm"] == IDEAL);
    let levels = ideal.next().map_or(&[][..], |row| &row.runs);
    let of_phase = |(phase, level): (usize, &f64)| {
        let ticks =
            rows().filter(move |row| row.case == "throughput" && row.params["phase"] == phase);
        let seconds = ticks.filter_map(|row| row.params["second"].as_f64());
        let (first, last) = seconds.fold((f64::INFINITY, 0.0_f64), |(first, last), second| {
            (first.min(second), last.max(second))
        });
        [(first, *level), (last, *level)]
    };
    levels.iter().enumerate().flat_map(of_phase).collect()
}

/// The chart.
pub fn figure(report: &BenchReport) -> Plot {
    let lines = ALGORITHMS.iter().map(|(name, _)| {
        let label = match *name {
            "none" => "no balancer",
            other => other,
        };
        (label.to_owned(), line(report, name))
    });
    let balanced = ("balanced level".to_owned(), levels(report));
    Plot {
        title: "Lookups while the workload moves".to_owned(),
        x: "seconds".to_owned(),
        y: "million lookups/s".to_owned(),
        is_log: false,
        lines: lines.chain([balanced]).collect(),
    }
}

/// A curve for each algorithm, one line of text each; all of one scale.
pub fn curves(report: &BenchReport) -> String {
    let lines = ALGORITHMS.map(|(name, _)| (name, line(report, name)));
    let all = lines.iter().flat_map(|(_, points)| points);
    let most = all.map(|(_, value)| *value).fold(0.0, f64::max).max(1e-9);
    let mut text = format!("million lookups/s over time, 0 to {most:.1}\n");
    for (name, points) in &lines {
        let columns = COLUMNS.min(points.len().max(1));
        let curve = (0..columns).map(|column| {
            let within = column * points.len() / columns..(column + 1) * points.len() / columns;
            let some = &points[within];
            let mean = some.iter().map(|(_, value)| value).sum::<f64>() / some.len().max(1) as f64;
            let height = (mean / most * HEIGHTS.len() as f64) as usize;
            HEIGHTS[height.min(HEIGHTS.len() - 1)]
        });
        text += &format!("{name:>9} {}\n", curve.collect::<String>());
    }
    text
}
