//! The machine that numbers were measured on, and what its memory can deliver: `eris machine`.

mod copies;
mod given;
mod kept;
mod speeds;

pub use given::GivenMachine;
pub use kept::KeptMachine;

use crate::report::{BenchReport, Machine, align, digits};
use copies::CopyTables;
use eris_machine::{Measuring, processor};
use eris_numa::measure::{MeasureError, Measurements, Options, Pair, measure};
use eris_numa::{
    Cache, CacheKind, HugePages, Memory, MemoryError, Profile, Topology, TransparentHuge,
};
use eris_types::NodeId;
use serde_json::json;
use speeds::SpeedTables;
use std::fmt;
use std::io::{self, Write};

/// The machine's description and its limits, by pair of nodes.
#[derive(Clone, Debug)]
pub struct MachineReport {
    /// Nodes and AEUs.
    pub topology: Topology,
    /// Bandwidth and latency.
    pub measurements: Measurements,
    /// The same, with what cores do, as a profile to keep.
    pub profile: Profile,
    /// The page mode they were measured with.
    pub huge: HugePages,
    /// The same as rows of a report.
    pub report: BenchReport,
}

/// The machine cannot be described.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// Memory management cannot start.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Measuring failed.
    #[error(transparent)]
    Measure(#[from] MeasureError),
}

/// Describes and measures the machine; takes about `options.time` and all cores.
///
/// # Errors
/// [`MachineError`]: no memory to measure with, or threads cannot be bound to cores.
pub fn run(
    topology: &Topology,
    huge: HugePages,
    options: &Options,
) -> Result<MachineReport, MachineError> {
    let memory = Memory::new(topology, huge, None)?;
    let measurements = measure(topology, &memory, options)?;
    let mut report = BenchReport::new("machine", topology);
    for pair in &measurements.pairs {
        let params = || {
            [
                ("source", json!(pair.source.0)),
                ("home", json!(pair.home.0)),
                ("distance", json!(pair.distance)),
                ("threads", json!(pair.threads)),
                ("pages", json!(huge)),
            ]
        };
        let gigabytes = pair
            .bandwidth
            .runs
            .iter()
            .map(|bytes| bytes / 1e9)
            .collect();
        report.row("sequential read", params(), "GB/s", gigabytes, None);
        report.row(
            "dependent load",
            params(),
            "ns",
            pair.latency.runs.clone(),
            None,
        );
    }
    let how = Measuring {
        time: options.time,
        buffer_bytes: measurements
            .buffer_bytes
            .min(Measuring::default().buffer_bytes),
    };
    let profile = eris_machine::profile(topology, &memory, how, &measurements)?;
    profile
        .speeds()
        .into_iter()
        .for_each(|speeds| speeds::add(speeds, &mut report));
    copies::add(&profile, &mut report);
    Ok(MachineReport {
        topology: topology.clone(),
        measurements,
        profile,
        huge,
        report,
    })
}

impl MachineReport {
    /// Writes the report: as JSON in the form of every benchmark, or else drawn for people.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(&self, json: bool, out: &mut impl Write) -> io::Result<()> {
        if json {
            self.report.write(true, out)
        } else {
            write!(out, "{self}")
        }
    }

    /// [`MachineReport::write`] to standard output.
    ///
    /// # Errors
    /// Those of standard output.
    pub fn print(&self, json: bool) -> io::Result<()> {
        self.write(json, &mut io::stdout().lock())
    }

    /// Lines by source, columns by home. What was not measured stays empty.
    fn matrix(&self, title: &str, number: impl Fn(&Pair) -> String) -> String {
        let nodes = |of: fn(&Pair) -> NodeId| {
            let mut nodes: Vec<NodeId> = self.measurements.pairs.iter().map(of).collect();
            nodes.sort_unstable();
            nodes.dedup();
            nodes
        };
        let homes = nodes(|pair| pair.home);
        let mut lines = vec![vec![title.to_string()]];
        lines[0].extend(homes.iter().map(NodeId::to_string));
        for source in nodes(|pair| pair.source) {
            let find = |home| {
                self.measurements
                    .pairs
                    .iter()
                    .find(|pair| (pair.source, pair.home) == (source, home))
            };
            let mut line = vec![format!("  from {source}")];
            line.extend(
                homes
                    .iter()
                    .map(|&home| find(home).map_or_else(String::new, &number)),
            );
            lines.push(line);
        }
        align(&lines)
    }
}

impl fmt::Display for MachineReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}\n", self.report.machine, Drawing(&self.topology))?;
        let pages = match self.huge {
            HugePages::Never => "small pages",
            HugePages::Auto | HugePages::Always => "huge pages where the system grants them",
        };
        let mib = self.measurements.buffer_bytes >> 20;
        let runs = self
            .measurements
            .pairs
            .first()
            .map_or(0, |pair| pair.bandwidth.runs.len());
        writeln!(
            f,
            "Reading {mib} MiB, {pages}; median of {runs} runs (least to greatest).\n"
        )?;
        let spread = |median: f64, min: f64, max: f64| {
            format!("{} ({}-{})", digits(median), digits(min), digits(max))
        };
        let bandwidth = |pair: &Pair| {
            let spread_of = &pair.bandwidth;
            spread(
                spread_of.median / 1e9,
                spread_of.min / 1e9,
                spread_of.max / 1e9,
            )
        };
        let latency = |pair: &Pair| spread(pair.latency.median, pair.latency.min, pair.latency.max);
        writeln!(
            f,
            "{}",
            self.matrix("sequential read, all cores, GB/s", bandwidth)
        )?;
        write!(
            f,
            "{}",
            self.matrix("dependent load, one core, ns", latency)
        )?;
        if let Some(speeds) = self.profile.speeds() {
            write!(f, "\n{}", SpeedTables(speeds))?;
        }
        write!(f, "{}", CopyTables(&self.profile))?;
        if self.topology.is_fake() {
            writeln!(
                f,
                "\nThe nodes are made up: all of them read the same memory."
            )?;
        }
        Ok(())
    }
}

/// Nodes as boxes of a list, then their distances.
struct Drawing<'a>(&'a Topology);

impl fmt::Display for Drawing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let topology = self.0;
        for node in topology.nodes() {
            let aeus: Vec<_> = topology
                .aeus()
                .iter()
                .filter(|aeu| aeu.node == node.id)
                .collect();
            let os_node = node.os_node.filter(|&os| os != u32::from(node.id.0));
            let os_node = os_node.map_or_else(String::new, |os| format!(" (system's node {os})"));
            writeln!(
                f,
                "┌ {}{os_node}: memory {}",
                node.id,
                size(node.memory_bytes)
            )?;
            match (aeus.first(), aeus.last()) {
                (Some(first), Some(last)) => {
                    let cpus: Option<Vec<u32>> = aeus.iter().map(|aeu| aeu.cpu).collect();
                    let bound = cpus.map_or_else(
                        || "not bound".to_string(),
                        |cpus| format!("on CPU {}", ranges(cpus)),
                    );
                    let range = if first == last {
                        first.aeu.to_string()
                    } else {
                        format!("{} to {}", first.aeu, last.aeu.0)
                    };
                    writeln!(f, "└ {range}, {bound}")?;
                }
                _ => writeln!(f, "└ no AEU")?,
            }
        }
        if topology.nodes().len() > 1 {
            let mut lines = vec![vec!["distance".to_string()]];
            lines[0].extend(topology.nodes().iter().map(|node| node.id.0.to_string()));
            for node in topology.nodes() {
                let mut line = vec![format!("  {}", node.id)];
                line.extend(node.distances.iter().map(u32::to_string));
                lines.push(line);
            }
            write!(f, "\n{}", align(&lines))?;
        }
        Ok(())
    }
}

impl Machine {
    /// This machine, as far as the topology uses it.
    pub fn of(topology: &Topology) -> Self {
        let nodes = topology.nodes();
        let aeus = |node: NodeId| {
            topology
                .aeus()
                .iter()
                .filter(|aeu| aeu.node == node)
                .count()
        };
        let per_node: Vec<usize> = nodes.iter().map(|node| aeus(node.id)).collect();
        let shape = if per_node.iter().all(|&aeus| aeus == per_node[0]) {
            format!("{}x{}", nodes.len(), per_node[0])
        } else {
            per_node
                .iter()
                .map(usize::to_string)
                .collect::<Vec<_>>()
                .join("+")
        };
        let threads = nodes.iter().map(|node| node.cpus.len() as u32).sum::<u32>();
        Machine {
            cpu: processor(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
            cores: nodes.iter().map(|node| topology.cores_of(node.id)).sum(),
            threads: if threads > 0 {
                threads
            } else {
                std::thread::available_parallelism().map_or(0, |threads| threads.get() as u32)
            },
            caches: topology.caches().to_vec(),
            memory_bytes: topology.memory_bytes(),
            kernel: kernel(),
            topology: {
                let fake = if topology.is_fake() { "fake " } else { "" };
                let machine = topology.machine().filter(|_| topology.is_paced());
                let paced = machine.map(|machine| format!(", links paced as {}", machine.name));
                format!("{fake}{shape}{}", paced.unwrap_or_default())
            },
            page_sizes: topology.page_sizes().clone(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "processor  {}", self.cpu)?;
        writeln!(
            f,
            "cores      {} ({} hardware threads), topology {}",
            self.cores, self.threads, self.topology
        )?;
        if !self.caches.is_empty() {
            let caches: Vec<String> = self.caches.iter().map(describe).collect();
            writeln!(f, "caches     {}", caches.join(", "))?;
        }
        writeln!(f, "memory     {}", size(self.memory_bytes))?;
        let mode = match self.page_sizes.transparent {
            TransparentHuge::Always => "always",
            TransparentHuge::Madvise => "on advice",
            TransparentHuge::Never => "never",
            TransparentHuge::Absent => "not known",
        };
        let huge = self
            .page_sizes
            .transparent_bytes
            .map_or_else(String::new, |bytes| format!("{} ", size(bytes)));
        writeln!(
            f,
            "pages      {}, transparent huge pages {huge}{mode}",
            size(self.page_sizes.base)
        )?;
        for pool in self.page_sizes.pools.iter().filter(|pool| pool.pages > 0) {
            writeln!(
                f,
                "           {} of {} reserved pages of {} free",
                pool.free,
                pool.pages,
                size(pool.page_bytes)
            )?;
        }
        writeln!(f, "kernel     {}", self.kernel)
    }
}

/// `L3 32 MiB (1, shared by 2)`: size of one, how many, how many threads share one.
fn describe(cache: &Cache) -> String {
    let kind = match cache.kind {
        CacheKind::Data => "d",
        CacheKind::Instruction => "i",
        CacheKind::Unified => "",
    };
    let shared = if cache.shared_by > 1 {
        format!(", shared by {}", cache.shared_by)
    } else {
        String::new()
    };
    format!(
        "L{}{kind} {} ({}{shared})",
        cache.level,
        size(cache.bytes),
        cache.instances
    )
}

/// Bytes in the largest binary unit that leaves at least 1.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let unit = (bytes.max(1).ilog2() as usize / 10).min(UNITS.len() - 1);
    let number = bytes as f64 / (1u64 << (10 * unit)) as f64;
    if number.fract() == 0.0 {
        format!("{number} {}", UNITS[unit])
    } else {
        format!("{number:.1} {}", UNITS[unit])
    }
}

/// `0-3, 8`.
fn ranges(mut numbers: Vec<u32>) -> String {
    numbers.sort_unstable();
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let run = |run: &[u32]| match run {
        [only] => only.to_string(),
        [first, .., last] => format!("{first}-{last}"),
        [] => String::new(),
    };
    runs.map(run).collect::<Vec<_>>().join(", ")
}

fn kernel() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", std::env::consts::OS, release.trim())
        .trim()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_made_up_machine_is_drawn_with_both_matrices() {
        let options = Options {
            time: Duration::from_millis(50),
            runs: 2,
            buffer_bytes: Some(4 << 20),
        };
        let machine = run(&Topology::fake(2, 1), HugePages::Auto, &options).unwrap();
        let text = machine.to_string();
        for part in [
            "topology fake 2x1",
            "┌ node 1: memory ",
            "└ AEU 1, not bound",
            "  node 1  20  10",
            "sequential read, all cores, GB/s",
            "dependent load, one core, ns",
            "packed values from memory, one core, GB/s  1 bit  2 bits",
            "copy within a node",
            "copied ahead of a scan, one core, GB/s, by block  64 KiB",
            "  node 0 to memory of node 1, streaming",
            "  hierarchical",
            "The nodes are made up",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
        let links = (machine.report.rows.iter())
            .filter(|row| ["sequential read", "dependent load"].contains(&&*row.case));
        assert_eq!(links.count(), 8);
        let mut out = Vec::new();
        machine.write(true, &mut out).unwrap();
        let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(read["bench"], "machine");
        assert_eq!(read["rows"][2]["params"]["home"], 1);
        assert_eq!(read["rows"][3]["unit"], "ns");
    }

    #[test]
    fn sizes_and_ranges() {
        assert_eq!(size(0), "0 bytes");
        assert_eq!(size(512), "512 bytes");
        assert_eq!(size(32 << 10), "32 KiB");
        assert_eq!(size(3 << 29), "1.5 GiB");
        assert_eq!(ranges(vec![8, 0, 1, 2, 10, 11]), "0-2, 8, 10-11");
    }
}
