//! The form of every benchmark's result.
//!
//! ```text
//! {"bench": "route",
//!  "machine": {"cpu": …, "cores": …, "threads": …, "caches": […], "memory_bytes": …, "kernel": …,
//!              "topology": …, "page_sizes": {…}},
//!  "rows": [{"case": "unicast", "params": {"buffer": 128}, "value": 41.5, "unit": "million commands/s",
//!            "runs": [40.1, 41.5, 42.0], "limit": 60.2}]}
//! ```
//! `value` is the median of `runs`. `limit` is what the machine can do at most, in the same unit and measured in the
//! same run; `null` where no such limit is known.

use eris_numa::{Cache, PageSizes, Topology};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The result of one benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct BenchReport {
    /// The benchmark's name, as in `eris bench NAME`.
    pub bench: String,
    /// Where it ran.
    pub machine: Machine,
    /// What it measured.
    pub rows: Vec<ReportRow>,
}

/// One measured case.
#[derive(Clone, Debug, Serialize)]
pub struct ReportRow {
    /// What was measured.
    pub case: String,
    /// Under which settings, by name.
    pub params: BTreeMap<String, Value>,
    /// The median of the runs.
    pub value: f64,
    /// The unit of value, runs and limit.
    pub unit: String,
    /// All runs, in the order in which they were made.
    pub runs: Vec<f64>,
    /// What the machine can do at most.
    pub limit: Option<f64>,
}

/// The machine as far as numbers depend on it.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// Physical cores that this process may use; on a fake topology the logical ones.
    pub cores: u32,
    /// Hardware threads that this process may use.
    pub threads: u32,
    /// CPU caches, the innermost first.
    pub caches: Vec<Cache>,
    /// Installed memory in bytes.
    pub memory_bytes: u64,
    /// The operating system's kernel.
    pub kernel: String,
    /// Nodes and AEUs as `NODESxAEUS` where every node has as many, else AEUs per node as in `8+8+4`; with `fake `
    /// before it if it is made up.
    pub topology: String,
    /// Page sizes.
    pub page_sizes: PageSizes,
}

impl BenchReport {
    /// A report without rows about this machine.
    pub fn new(bench: &str, topology: &Topology) -> Self {
        BenchReport {
            bench: bench.to_string(),
            machine: Machine::of(topology),
            rows: Vec::new(),
        }
    }

    /// Adds a case; its value is the median of `runs`.
    ///
    /// # Panics
    /// If there are no runs.
    pub fn row(
        &mut self,
        case: &str,
        params: impl IntoIterator<Item = (&'static str, Value)>,
        unit: &str,
        runs: Vec<f64>,
        limit: Option<f64>,
    ) {
        self.rows.push(ReportRow {
            case: case.to_string(),
            params: params
                .into_iter()
                .map(|(name, value)| (name.to_string(), value))
                .collect(),
            value: median(&runs),
            unit: unit.to_string(),
            runs,
            limit,
        });
    }

    /// Writes the report: one line of JSON, or else the machine and a table.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, json: bool, out: &mut impl Write) -> io::Result<()> {
        if json {
            serde_json::to_writer(&mut *out, self)?;
            return writeln!(out);
        }
        writeln!(out, "{}", self.bench)?;
        write!(out, "{}", self.machine)?;
        writeln!(out)?;
        out.write_all(self.table().as_bytes())
    }

    /// [`BenchReport::write`] to standard output.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn print(&self, json: bool) -> io::Result<()> {
        self.write(json, &mut io::stdout().lock())
    }

    fn table(&self) -> String {
        let mut lines = vec![
            ["case", "value", "unit", "min", "max", "limit", "of limit"]
                .map(String::from)
                .to_vec(),
        ];
        for row in &self.rows {
            let mut case = row.case.clone();
            for (name, value) in &row.params {
                // A text without the quotes of JSON.
                let value = value
                    .as_str()
                    .map_or_else(|| value.to_string(), String::from);
                case += &format!(" {name}={value}");
            }
            let (min, max) = bounds(&row.runs);
            lines.push(vec![
                case,
                digits(row.value),
                row.unit.clone(),
                digits(min),
                digits(max),
                row.limit.map_or_else(String::new, digits),
                row.limit.map_or_else(String::new, |limit| {
                    format!("{:.0} %", 100.0 * row.value / limit)
                }),
            ]);
        }
        align(&lines)
    }
}

/// The median; the mean of the middle two of an even number.
///
/// # Panics
/// If there are no values.
pub fn median(values: &[f64]) -> f64 {
    assert!(!values.is_empty(), "a median of nothing");
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[middle]
    } else {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    }
}

/// The least and the greatest.
fn bounds(values: &[f64]) -> (f64, f64) {
    values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), &v| {
            (min.min(v), max.max(v))
        })
}

/// Three or more significant digits, never an exponent.
pub(crate) fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// Lines of cells with columns of equal width: the first and texts to the left, numbers to the right.
pub(crate) fn align(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |column: usize| lines.iter().filter_map(move |line| line.get(column));
    let width = |column| {
        cells(column)
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let is_number = |cell: &String| cell.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    let is_text = |column| column == 0 || !cells(column).skip(1).any(is_number);
    let layout: Vec<(usize, bool)> = (0..columns)
        .map(|column| (width(column), is_text(column)))
        .collect();
    let mut text = String::new();
    for line in lines {
        let padded = line.iter().zip(&layout).map(|(cell, &(width, left))| {
            if left {
                format!("{cell:<width$}")
            } else {
                format!("{cell:>width$}")
            }
        });
        let joined = padded.collect::<Vec<_>>().join("  ");
        text += joined.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn report() -> BenchReport {
        let mut report = BenchReport::new("example", &Topology::fake(2, 3));
        report.row(
            "scan",
            [("width", json!(8)), ("pages", json!("huge"))],
            "GB/s",
            vec![3.0, 1.0, 2.0],
            Some(4.0),
        );
        report.row("lookup", [], "ns", vec![150.0, 250.0], None);
        report
    }

    #[test]
    fn json_has_exactly_the_documented_fields() {
        let mut out = Vec::new();
        report().write(true, &mut out).unwrap();
        let read: Value = serde_json::from_slice(&out).unwrap();
        let keys = |value: &Value| {
            value
                .as_object()
                .unwrap()
                .keys()
                .cloned()
                .collect::<BTreeSet<_>>()
        };
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| name.to_string())
                .collect::<BTreeSet<_>>()
        };
        assert_eq!(keys(&read), names(&["bench", "machine", "rows"]));
        assert_eq!(
            keys(&read["machine"]),
            names(&[
                "cpu",
                "cores",
                "threads",
                "caches",
                "memory_bytes",
                "kernel",
                "topology",
                "page_sizes"
            ])
        );
        assert_eq!(
            read["rows"][0],
            json!({"case": "scan", "params": {"width": 8, "pages": "huge"}, "value": 2.0, "unit": "GB/s",
                   "runs": [3.0, 1.0, 2.0], "limit": 4.0})
        );
        assert_eq!(read["rows"][1]["limit"], Value::Null);
        assert_eq!(read["rows"][1]["value"], 200.0);
    }

    #[test]
    fn the_table_lines_up() {
        let table = report().table();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(
            lines[0],
            "case                     value  unit   min   max  limit  of limit"
        );
        assert_eq!(
            lines[1],
            "scan pages=huge width=8   2.00  GB/s  1.00  3.00   4.00      50 %"
        );
        assert_eq!(lines[2], "lookup                     200  ns     150   250");
    }

    #[test]
    fn the_machine_is_named() {
        let machine = report().machine;
        assert_eq!(machine.topology, "fake 2x3");
        assert_eq!(machine.cores, 6);
        assert!(!machine.kernel.is_empty() && !machine.cpu.is_empty());
    }
}
