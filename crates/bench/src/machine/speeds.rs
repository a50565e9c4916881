//! What a core does, as rows of a report and as tables for people.

use crate::report::{BenchReport, align, digits};
use eris_numa::{ScanKernel, Speeds};
use serde_json::json;
use std::fmt;

/// Adds a row for each number.
pub(super) fn add(speeds: &Speeds, report: &mut BenchReport) {
    for scan in &speeds.scans {
        let params = [("kernel", json!(scan.kernel)), ("bits", json!(scan.bits))];
        report.row(
            "scan",
            params,
            "GB/s",
            vec![scan.gigabytes_per_second],
            None,
        );
    }
    report.row("copy", [], "GB/s", vec![speeds.copy], None);
    report.row("message", [], "ns", vec![speeds.message], None);
    for draw in &speeds.draws {
        let params = [("way", json!(draw.way)), ("threads", json!(draw.threads))];
        report.row("draw", params, "ns", vec![draw.nanoseconds], None);
    }
}

/// Speeds as tables.
pub(super) struct SpeedTables<'a>(pub &'a Speeds);

impl fmt::Display for SpeedTables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let speeds = self.0;
        let of = |kernel: ScanKernel| {
            speeds
                .scans
                .iter()
                .filter(move |scan| scan.kernel == kernel)
        };
        let mut lines = vec![vec!["packed values from memory, one core, GB/s".to_owned()]];
        lines[0].extend(of(ScanKernel::Compare).map(|scan| match scan.bits {
            1 => "1 bit".to_owned(),
            bits => format!("{bits} bits"),
        }));
        for (title, kernel) in [
            ("  compare", ScanKernel::Compare),
            ("  unpack", ScanKernel::Unpack),
        ] {
            let mut line = vec![title.to_owned()];
            line.extend(of(kernel).map(|scan| digits(scan.gigabytes_per_second)));
            lines.push(line);
        }
        writeln!(f, "{}", align(&lines))?;
        let (copy, message) = (digits(speeds.copy), digits(speeds.message));
        writeln!(
            f,
            "copy within a node, one core: {copy} GB/s; a command among many: {message} ns"
        )?;
        if speeds.draws.is_empty() {
            return Ok(());
        }
        let mut counts: Vec<usize> = speeds.draws.iter().map(|draw| draw.threads).collect();
        counts.dedup();
        let mut lines = vec![vec![
            "a number of a shared sequence, by threads, ns".to_owned(),
        ]];
        lines[0].extend(counts.iter().map(usize::to_string));
        let mut ways: Vec<&str> = Vec::new();
        for draw in &speeds.draws {
            if !ways.contains(&&*draw.way) {
                ways.push(&draw.way);
            }
        }
        for way in ways {
            let mut line = vec![format!("  {way}")];
            line.extend(counts.iter().map(|&threads| {
                let is_it =
                    |draw: &&eris_numa::DrawCost| draw.way == way && draw.threads == threads;
                let found = speeds.draws.iter().find(is_it);
                found.map_or_else(String::new, |draw| digits(draw.nanoseconds))
            }));
            lines.push(line);
        }
        write!(f, "\n{}", align(&lines))
    }
}
