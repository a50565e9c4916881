//! What becomes a figure: which rows of a report are the lines of which chart.

use crate::plot::Plot;
use crate::report::{BenchReport, ReportRow};
use serde_json::Value;
use std::collections::BTreeMap;

/// What becomes a figure: rows of some cases, a line for each combination of some parameters, a figure for each of
/// others. The case itself counts as a parameter, too.
pub(crate) struct FigureShape {
    /// Without any, rows of each case.
    pub cases: &'static [&'static str],
    /// Of its file.
    pub name: &'static str,
    pub title: &'static str,
    /// The parameter on the horizontal axis. A row without a value is a line from end to end.
    pub x: &'static str,
    pub x_name: &'static str,
    /// Whether equal ratios of it have equal distances.
    pub is_log: bool,
    /// Parameters whose values name the figure, and the line.
    pub figure: &'static [&'static str],
    pub line: &'static [&'static str],
    /// Rows that are left out: those whose parameter has another value.
    pub only: &'static [(&'static str, &'static str)],
    /// A parameter that says what was predicted: a line of its own.
    pub beside: Option<&'static str>,
}

impl FigureShape {
    /// What most figures have in common.
    pub const EMPTY: FigureShape = FigureShape {
        cases: &[],
        name: "",
        title: "",
        x: "",
        x_name: "",
        is_log: false,
        figure: &[],
        line: &[],
        only: &[],
        beside: None,
    };
}

/// The charts of these shapes for which a report has rows, with the names of their files, without ending.
pub(crate) fn drawn(report: &BenchReport, shapes: &[FigureShape]) -> Vec<(String, Plot)> {
    let mut all = Vec::new();
    for shape in shapes {
        let rows = report.rows.iter().filter(|row| shape.has(row));
        let mut figures: BTreeMap<String, Vec<&ReportRow>> = BTreeMap::new();
        for row in rows {
            figures
                .entry(joined(row, shape.figure))
                .or_default()
                .push(row);
        }
        for (which, rows) in figures {
            let name = format!("{} {which}", shape.name);
            all.push((file_name(&name), plot(shape, &which, &rows)));
        }
    }
    all
}

impl FigureShape {
    fn has(&self, row: &ReportRow) -> bool {
        let is = |(name, value): &(&str, &str)| text(row, name) == *value;
        let is_case = self.cases.is_empty() || self.cases.contains(&&*row.case);
        let has_place = |x: &Value| x.is_number() || x.is_null();
        is_case && row.params.get(self.x).is_some_and(has_place) && self.only.iter().all(is)
    }
}

fn plot(shape: &FigureShape, which: &str, rows: &[&ReportRow]) -> Plot {
    let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    let number = |row: &ReportRow, name: &str| row.params.get(name).and_then(Value::as_f64);
    let places: Vec<f64> = rows.iter().filter_map(|row| number(row, shape.x)).collect();
    let ends = [
        places.iter().copied().fold(f64::INFINITY, f64::min),
        places.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    ];
    for row in rows {
        let name = joined(row, shape.line);
        let Some(x) = number(row, shape.x) else {
            // It is the same for each x.
            let everywhere = ends.map(|x| (x, row.value)).to_vec();
            lines.insert(name, everywhere);
            continue;
        };
        if let Some(predicted) = shape.beside.and_then(|beside| number(row, beside)) {
            let line = lines.entry(format!("{name}, predicted")).or_default();
            line.push((x, predicted));
        }
        lines.entry(name).or_default().push((x, row.value));
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
        is_log: shape.is_log,
        lines: lines.into_iter().collect(),
    }
}

fn joined(row: &ReportRow, params: &[&str]) -> String {
    let values = params.iter().map(|name| text(row, name));
    let values: Vec<String> = values.filter(|value| !value.is_empty()).collect();
    values.join(" ")
}

fn text(row: &ReportRow, name: &str) -> String {
    if name == "case" {
        return row.case.clone();
    }
    let value = row.params.get(name);
    value.map_or_else(String::new, |value| match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    })
}

/// Letters, digits and dashes.
fn file_name(name: &str) -> String {
    let letters = name.trim().to_lowercase();
    let letters = letters.chars().filter(|letter| *letter != ',');
    letters
        .map(|letter| match letter.is_alphanumeric() || letter == '.' {
            true => letter,
            false => '-',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_have_no_spaces() {
        assert_eq!(file_name("Counts, 4 bits 1/2 "), "counts-4-bits-1-2");
    }
}
