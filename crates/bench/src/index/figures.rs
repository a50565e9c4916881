//! The papers' figures of a report.

use crate::plot::Plot;
use crate::report::{BenchReport, ReportRow};
use std::collections::BTreeMap;

/// What becomes a figure: rows of a case, a line for each combination of some parameters, a figure for each of others.
struct FigureShape {
    case: &'static str,
    name: &'static str,
    title: &'static str,
    /// The parameter on the horizontal axis.
    x: &'static str,
    x_name: &'static str,
    /// Parameters whose values name the figure, and the line.
    figure: &'static [&'static str],
    line: &'static [&'static str],
    /// Rows that are left out: those whose parameter has another value.
    only: &'static [(&'static str, &'static str)],
}

const SHAPES: [FigureShape; 8] = [
    FigureShape {
        case: "lookup",
        name: "lookup",
        title: "Lookups by size (ERIS, Figure 8)",
        x: "keys",
        x_name: "keys",
        figure: &["order", "threads"],
        line: &["structure", "batch"],
        only: &[],
    },
    FigureShape {
        case: "insert",
        name: "insert",
        title: "Inserts by size (ERIS, Figure 8)",
        x: "keys",
        x_name: "keys",
        figure: &["order", "threads"],
        line: &["structure", "batch"],
        only: &[],
    },
    FigureShape {
        case: "stalls at most",
        name: "stalls",
        title: "Time that huge pages save (TLB, Figure 2, from above)",
        x: "zipf",
        x_name: "exponent of Zipf's law",
        figure: &[],
        line: &["order", "keys"],
        only: &[],
    },
    FigureShape {
        case: "gain",
        name: "gain",
        title: "Gains, single lookups (TLB, Figures 3 and 4)",
        x: "zipf",
        x_name: "exponent of Zipf's law",
        figure: &["order"],
        line: &["of", "keys"],
        only: &[("batch", "1")],
    },
    FigureShape {
        case: "model",
        name: "tlb-misses",
        title: "TLB misses by the model",
        x: "zipf",
        x_name: "exponent of Zipf's law",
        figure: &["order", "processor"],
        line: &["pages", "layout", "keys"],
        only: &[("event", "TLB miss")],
    },
    FigureShape {
        case: "reorganize all",
        name: "reorganize",
        title: "Reorganisation of everything (TLB, Figure 5)",
        x: "keys",
        x_name: "keys",
        figure: &[],
        line: &["order"],
        only: &[],
    },
    FigureShape {
        case: "size",
        name: "memory",
        title: "Memory (TLB, Table 4)",
        x: "keys",
        x_name: "keys",
        figure: &[],
        line: &["order"],
        only: &[],
    },
    FigureShape {
        case: "L3 miss ratio, model",
        name: "l3-misses",
        title: "L3 misses by the model (ERIS, Figure 10)",
        x: "keys",
        x_name: "keys",
        figure: &[],
        line: &["structure"],
        only: &[],
    },
];

/// The figures that a report has rows for, with the names of their files, without ending.
pub fn figures(report: &BenchReport) -> Vec<(String, Plot)> {
    let mut all = Vec::new();
    for shape in SHAPES {
        let rows = report.rows.iter().filter(|row| {
            let is = |(name, value): &(&str, &str)| text(row, name) == *value;
            row.case == shape.case && shape.only.iter().all(is)
        });
        let mut figures: BTreeMap<String, Vec<&ReportRow>> = BTreeMap::new();
        for row in rows {
            figures
                .entry(joined(row, shape.figure))
                .or_default()
                .push(row);
        }
        for (which, rows) in figures {
            let name = format!("{} {which}", shape.name);
            let name = name.trim_end().to_lowercase().replace(' ', "-");
            all.push((name, plot(&shape, &which, &rows)));
        }
    }
    all
}

fn plot(shape: &FigureShape, which: &str, rows: &[&ReportRow]) -> Plot {
    let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for row in rows {
        let x = row.params.get(shape.x).and_then(|x| x.as_f64());
        if let Some(x) = x {
            let line = lines.entry(joined(row, shape.line)).or_default();
            line.push((x, row.value));
        }
    }
    for points in lines.values_mut() {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    Plot {
        title: format!("{} {which}", shape.title).trim_end().to_owned(),
        x: shape.x_name.to_owned(),
        y: rows
            .first()
            .map_or_else(String::new, |row| row.unit.clone()),
        is_log: shape.x == "keys",
        lines: lines.into_iter().collect(),
    }
}

fn joined(row: &ReportRow, params: &[&str]) -> String {
    let values: Vec<String> = params.iter().map(|name| text(row, name)).collect();
    values.join(" ")
}

fn text(row: &ReportRow, name: &str) -> String {
    let value = row.params.get(name);
    value.map_or_else(String::new, |value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    })
}
