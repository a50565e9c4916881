//! The papers' figures of `eris bench index` and `eris bench blink`.

use crate::figure::FigureShape;

/// Those of indexes.
pub(crate) const FIGURES: [FigureShape; 8] = [
    FigureShape {
        cases: &["lookup"],
        name: "lookup",
        title: "Lookups by size (ERIS, Figure 8)",
        x: "keys",
        x_name: "keys",
        is_log: true,
        figure: &["order", "threads"],
        line: &["structure", "batch"],
        ..FigureShape::EMPTY
    },
    FigureShape {
        cases: &["insert"],
        name: "insert",
        title: "Inserts by size (ERIS, Figure 8)",
        x: "keys",
        x_name: "keys",
        is_log: true,
        figure: &["order", "threads"],
        line: &["structure", "batch"],
        ..FigureShape::EMPTY
    },
    FigureShape {
        cases: &["stalls at most"],
        name: "stalls",
        title: "Time that huge pages save (TLB, Figure 2, from above)",
        x: "zipf",
        x_name: "exponent of Zipf's law",
        line: &["order", "keys"],
        ..FigureShape::EMPTY
    },
    FigureShape {
        cases: &["gain"],
        name: "gain",
        title: "Gains, single lookups (TLB, Figures 3 and 4)",
        x: "zipf",
        x_name: "exponent of Zipf's law",
        figure: &["order"],
        line: &["of", "keys"],
        only: &[("batch", "1")],
        ..FigureShape::EMPTY
    },
    FigureShape {
        cases: &["model"],
        name: "tlb-misses",
        title: "TLB misses by the model",
        x: "zipf",
        x_name: "exponent of Zipf's law",
        figure: &["order", "processor"],
        line: &["pages", "layout", "keys"],
        only: &[("event", "TLB miss")],
        ..FigureShape::EMPTY
    },
    FigureShape {
        cases: &["reorganize all"],
        name: "reorganize",
        title: "Reorganisation of everything (TLB, Figure 5)",
        x: "keys",
        x_name: "keys",
        is_log: true,
        line: &["order"],
        ..FigureShape::EMPTY
    },
    FigureShape {
        cases: &["size"],
        name: "memory",
        title: "Memory (TLB, Table 4)",
        x: "keys",
        x_name: "keys",
        is_log: true,
        line: &["order"],
        ..FigureShape::EMPTY
    },
    FigureShape {
        cases: &["L3 miss ratio, model"],
        name: "l3-misses",
        title: "L3 misses by the model (ERIS, Figure 10)",
        x: "keys",
        x_name: "keys",
        is_log: true,
        line: &["structure"],
        ..FigureShape::EMPTY
    },
];

/// Those of trees that threads share.
pub(crate) const SHARED_FIGURES: [FigureShape; 1] = [FigureShape {
    name: "blink",
    title: "Trees that threads share (B-link trees and MxTasks, Figure 3)",
    x: "threads",
    x_name: "threads",
    figure: &["case", "keys"],
    line: &["structure", "batch"],
    ..FigureShape::EMPTY
}];
