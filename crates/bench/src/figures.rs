//! The figures of each benchmark.

use crate::figure::{FigureShape, drawn};
use crate::plot::Plot;
use crate::report::BenchReport;
use crate::{atomics, copy, index, placement, pushpull, route, sharing, tasks};

/// The figures that a report has rows for, with the names of their files, without ending. None of benchmarks that have
/// no figures.
pub fn figures(report: &BenchReport) -> Vec<(String, Plot)> {
    let shapes: &[FigureShape] = match &*report.bench {
        "atomics" => return atomics::figures(report),
        "blink" => &index::SHARED_FIGURES,
        "copy" => &copy::FIGURES,
        "index" => &index::FIGURES,
        "placement" => &placement::FIGURES,
        "pushpull" => &pushpull::FIGURES,
        "route" => &route::FIGURES,
        "sharing" => &sharing::FIGURES,
        "tasks" => &tasks::FIGURES,
        _ => &[],
    };
    drawn(report, shapes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_numa::Topology;
    use serde_json::json;

    #[test]
    fn each_bench_has_the_figures_of_its_rows() {
        let mut report = BenchReport::new("pushpull", &Topology::fake(1, 1));
        for (selectivity, time) in [(0.5, 20.0), (0.0, 10.0)] {
            for way in ["push", "pull"] {
                let params = [
                    ("selectivity", json!(selectivity)),
                    ("way", json!(way)),
                    ("predicted_ms", json!(time + 1.0)),
                ];
                report.row("scan", params, "ms", vec![time], None);
            }
        }
        // The same for each share, and one without a place on the axis.
        report.row(
            "scan",
            [("selectivity", json!(null)), ("way", json!("least"))],
            "ms",
            vec![5.0],
            None,
        );
        report.row(
            "scan",
            [("selectivity", json!("all"))],
            "ms",
            vec![1.0],
            None,
        );
        report.row(
            "other",
            [("selectivity", json!(1.0))],
            "ms",
            vec![1.0],
            None,
        );
        let drawn = figures(&report);
        assert_eq!(drawn.len(), 1);
        let (name, plot) = &drawn[0];
        assert_eq!((&**name, &*plot.y), ("scan", "ms"));
        let lines: Vec<_> = plot.lines.iter().map(|(name, _)| &**name).collect();
        assert_eq!(
            lines,
            [
                "least",
                "pull",
                "pull, predicted",
                "push",
                "push, predicted"
            ]
        );
        assert_eq!(plot.lines[4].1, [(0.0, 11.0), (0.5, 21.0)]);
        assert_eq!(plot.lines[0].1, [(0.0, 5.0), (0.5, 5.0)]);
        report.bench = "statement".to_owned();
        assert!(figures(&report).is_empty());
    }
}
