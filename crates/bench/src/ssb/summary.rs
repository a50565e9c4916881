//! What a person wants to read of a run.

use super::result::{AeuWork, QueryRun, SsbRun};
use crate::report::{align, digits, median};
use std::io::{self, Write};

impl SsbRun {
    /// Writes times, then rows and bytes by AEU and node; with breakdowns, each query's.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write_summary(&self, out: &mut impl Write) -> io::Result<()> {
        for query in self
            .queries
            .iter()
            .filter(|query| !query.breakdown.is_empty())
        {
            writeln!(out, "Query {}:", query.id)?;
            query
                .breakdown
                .iter()
                .try_for_each(|line| writeln!(out, "  {line}"))?;
            writeln!(out)?;
        }
        writeln!(
            out,
            "Star Schema Benchmark, scale {}: {} rows in {} loaded in {:.1} s\n",
            self.scale,
            grouped(self.rows),
            bytes(self.bytes),
            self.load_s
        )?;
        out.write_all(times(&self.queries).as_bytes())?;
        if let Some(sessions) = &self.sessions {
            sessions.write_summary(out)?;
        }
        writeln!(out, "\nAll queries once, by AEU:")?;
        out.write_all(work(&self.work).as_bytes())?;
        writeln!(out, "\nMemory of the tables, by node:")?;
        for (node, held) in self.bytes_by_node.iter().enumerate() {
            writeln!(out, "node {node}  {}", bytes(*held))?;
        }
        Ok(())
    }
}

/// One line per query, and the geometric mean of the medians.
fn times(queries: &[QueryRun]) -> String {
    let mut lines = vec![
        ["query", "rows", "median ms", "min ms", "max ms"]
            .map(String::from)
            .to_vec(),
    ];
    let mut logarithms = 0.0;
    for query in queries {
        let bound =
            |pick: fn(f64, f64) -> f64| query.ms.iter().copied().reduce(pick).unwrap_or_default();
        let middle = median(&query.ms);
        logarithms += middle.ln();
        lines.push(vec![
            query.id.to_string(),
            grouped(query.rows),
            digits(middle),
            digits(bound(f64::min)),
            digits(bound(f64::max)),
        ]);
    }
    let mean = (logarithms / queries.len() as f64).exp();
    lines.push(vec!["geometric mean".into(), String::new(), digits(mean)]);
    align(&lines)
}

/// One line per AEU, and one for all.
fn work(work: &[AeuWork]) -> String {
    let head = [
        "AEU",
        "node",
        "rows scanned",
        "bytes scanned",
        "chunks",
        "skipped",
        "helped",
        "busy ms",
    ];
    let mut lines = vec![head.map(String::from).to_vec()];
    let mut total = AeuWork::default();
    let line = |name: String, node: String, work: &AeuWork| {
        let counted = &work.counted;
        vec![
            name,
            node,
            grouped(counted.rows_scanned),
            bytes(counted.bytes_scanned),
            grouped(counted.chunks_scanned),
            grouped(counted.chunks_skipped),
            grouped(counted.chunks_helped),
            digits(counted.busy_nanoseconds as f64 / 1e6),
        ]
    };
    for (aeu, work) in work.iter().enumerate() {
        total.counted.add(&work.counted);
        lines.push(line(aeu.to_string(), work.node.to_string(), work));
    }
    lines.push(line("all".into(), String::new(), &total));
    align(&lines)
}

/// `59,986,052`
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1.44 GB`, in powers of 1,000 as bandwidths are.
pub(super) fn bytes(bytes: u64) -> String {
    match bytes as f64 {
        b if b >= 1e9 => format!("{:.2} GB", b / 1e9),
        b if b >= 1e6 => format!("{:.1} MB", b / 1e6),
        b => format!("{:.1} kB", b / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssb::SessionsRun;
    use eris_telemetry::AeuSnapshot;

    fn run(breakdown: &[&str]) -> SsbRun {
        let work = |node, rows_scanned| AeuWork {
            node,
            counted: AeuSnapshot {
                rows_scanned,
                bytes_scanned: 1_500_000,
                ..AeuSnapshot::default()
            },
        };
        let query = |id, ms: [f64; 3], breakdown: &[&str]| QueryRun {
            id,
            rows: 1,
            ms: ms.to_vec(),
            breakdown: breakdown.iter().map(|line| (*line).to_owned()).collect(),
        };
        SsbRun {
            scale: 0.1,
            load_s: 2.0,
            bytes: 3_000_000_000,
            queries: vec![
                query("1.1", [8.0, 2.0, 4.0], breakdown),
                query("1.2", [9.0, 9.0, 9.0], &[]),
            ],
            sessions: None,
            rows: 600_000,
            bytes_by_node: vec![1_000_000_000, 2_000_000_000],
            sample: None,
            work: vec![work(0, 1_000), work(1, 234)],
        }
    }

    #[test]
    fn json_has_exactly_the_documented_fields() {
        let json = serde_json::to_string(&run(&[])).unwrap();
        assert_eq!(
            json,
            r#"{"scale":0.1,"load_s":2.0,"bytes":3000000000,"queries":[{"id":"1.1","rows":1,"ms":[8.0,2.0,4.0]},{"id":"1.2","rows":1,"ms":[9.0,9.0,9.0]}]}"#
        );
        let json = serde_json::to_string(&run(&["planned"])).unwrap();
        assert!(
            json.contains(r#""ms":[8.0,2.0,4.0],"breakdown":["planned"]}"#),
            "{json}"
        );
    }

    #[test]
    fn sessions_are_told_of_if_there_were_several() {
        let mut run = run(&[]);
        run.sessions = Some(SessionsRun {
            sessions: 8,
            alone: vec![40.0, 50.0, 60.0],
            together: vec![44.0, 55.0, 66.0],
            peak_bytes: [1_000_000, 3_000_000],
        });
        let mut out = Vec::new();
        run.write_summary(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let expected = "50.0 in one session, 55.0 in 8 at a time (1.10 times); at most 1.0 MB and 3.0 MB of memory";
        assert!(text.contains(expected), "{text}");
        let json = serde_json::to_string(&run).unwrap();
        assert!(json.contains(r#""peak_bytes":[1000000,3000000]"#), "{json}");
    }

    #[test]
    fn the_summary_has_times_and_shares() {
        let mut out = Vec::new();
        run(&["planned in 1 ms", "FragmentExec"])
            .write_summary(&mut out)
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with("Query 1.1:\n  planned in 1 ms\n  FragmentExec\n\n"),
            "{text}"
        );
        assert!(
            text.contains("600,000 rows in 3.00 GB loaded in 2.0 s"),
            "{text}"
        );
        let words = |begin: &str| {
            let line = text
                .lines()
                .find(|line| line.starts_with(begin))
                .unwrap_or_default();
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words("1.1"), ["1.1", "1", "4.00", "2.00", "8.00"]);
        assert_eq!(words("geometric mean"), ["geometric", "mean", "6.00"]);
        assert_eq!(words("all")[..4], ["all", "1,234", "3.0", "MB"]);
        assert!(
            text.ends_with("node 0  1.00 GB\nnode 1  2.00 GB\n"),
            "{text}"
        );
    }
}
