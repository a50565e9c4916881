//! How fast one core copies from each node, as rows of a report and as a table for people.

use super::size;
use crate::report::{BenchReport, align, digits};
use eris_numa::{CopyEngine, CopySpeed, Link, Profile};
use serde_json::json;
use std::fmt;

/// Adds a row for each number.
pub(super) fn add(profile: &Profile, report: &mut BenchReport) {
    for link in profile.links() {
        for copy in &link.copies {
            let params = [
                ("link", json!(link.name)),
                ("engine", json!(copy.engine)),
                ("block bytes", json!(copy.block)),
            ];
            let speed = vec![copy.gigabytes_per_second];
            report.row("copy ahead of a scan", params, "GB/s", speed, None);
        }
    }
}

/// Copies by link, engine and block; nothing if none were measured.
pub(super) struct CopyTables<'a>(pub &'a Profile);

impl fmt::Display for CopyTables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = |link: &&Link| !link.copies.is_empty();
        let links: Vec<&Link> = self.0.links().iter().filter(known).collect();
        let mut blocks: Vec<usize> = (links.iter())
            .flat_map(|link| link.copies.iter().map(|copy| copy.block))
            .collect();
        blocks.sort_unstable();
        blocks.dedup();
        if blocks.is_empty() {
            return Ok(());
        }
        let mut lines = vec![vec![
            "copied ahead of a scan, one core, GB/s, by block".to_owned(),
        ]];
        lines[0].extend(blocks.iter().map(|&block| size(block as u64)));
        for link in links {
            for engine in CopyEngine::ALL {
                let mut line = vec![format!("  {}, {}", link.name, engine.name())];
                line.extend(blocks.iter().map(|&block| {
                    let is_it = |copy: &&CopySpeed| copy.engine == engine && copy.block == block;
                    let copy = link.copies.iter().find(is_it);
                    copy.map_or_else(String::new, |copy| digits(copy.gigabytes_per_second))
                }));
                lines.push(line);
            }
        }
        write!(f, "\n{}", align(&lines))
    }
}
