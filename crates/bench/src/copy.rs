//! Copies between nodes, and scans of another node's memory: `eris bench copy`.
//!
//! ```text
//!   copy        ▕ remote ▏──▶▕ block ▏                             Figure 3: GB/s by block size
//!   in place    ▕ remote ▏──▶ scan                                 Figure 5: ns per row by rows
//!   buffered    ▕ remote ▏──▶▕ block n+1 ▏  ▕ block n ▏──▶ scan    Figure 6: ms by block size
//!   engine      a node that helps another one with a scan             ns per row that it came to read
//! ```
//!
//! The figures are those of "Hardware-Accelerated Memory Operations on Large-Scale NUMA Systems" (Dreseler et al.),
//! with its column of 10-bit values. On a machine of several nodes the pairs are real. With a given machine, or on one
//! node, links are paced, and the report says as which machine's.

mod helped;
mod pipeline;

use crate::figure::FigureShape;
use crate::report::BenchReport;
use eris_engine::EngineError;
use eris_fragment::FragmentError;
use eris_kernels::VECTOR;
use eris_numa::{HugePages, Links, Memory, MemoryError, OutOfMemory, Profile, Topology};
use eris_types::NodeId;
use pipeline::{Engine, RemoteColumn, Way};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct CopyOptions {
    /// Rows of the largest column.
    pub rows: usize,
    /// Timed runs of each case, at least 1.
    pub runs: usize,
}

/// There is no memory to copy.
#[derive(Debug, thiserror::Error)]
pub enum CopyBenchError {
    /// The budget.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A buffer.
    #[error("no memory to copy: {0}")]
    OutOfMemory(#[from] OutOfMemory),
    /// The engine did not start, or did not take the rows.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A scan failed.
    #[error(transparent)]
    Scan(#[from] FragmentError),
}

/// Bits of a value, as in the paper.
const WIDTH: u8 = 10;

/// Without nodes, the machine whose links are imitated.
const MACHINE: &str = "eris-sgi";

/// Blocks of Figures 3 and 6, in bytes.
const BLOCKS: [usize; 7] = [
    4 << 10,
    16 << 10,
    64 << 10,
    256 << 10,
    1 << 20,
    4 << 20,
    16 << 20,
];

/// A scan of the engine has so many times the rows: it takes a while to begin.
const ENGINE_ROWS: usize = 4;

/// The block of Figure 5.
const BLOCK: usize = 256 << 10;

/// The paper's figures.
pub(crate) const FIGURES: [FigureShape; 3] = [
    FigureShape {
        cases: &["copy"],
        name: "copy",
        title: "Copies by block (memory operations, Figure 3)",
        x: "block bytes",
        x_name: "bytes of a block",
        is_log: true,
        figure: &["link", "pair"],
        line: &["engine"],
        ..FigureShape::EMPTY
    },
    FigureShape {
        cases: &["scan"],
        name: "scan",
        title: "Scans by rows (memory operations, Figure 5)",
        x: "rows",
        x_name: "rows",
        is_log: true,
        figure: &["link", "pair"],
        line: &["way"],
        ..FigureShape::EMPTY
    },
    FigureShape {
        cases: &["scan by block"],
        name: "blocks",
        title: "Scans by block (memory operations, Figure 6)",
        x: "block bytes",
        x_name: "bytes of a block",
        is_log: true,
        figure: &["link", "pair"],
        line: &["way"],
        ..FigureShape::EMPTY
    },
];

/// Measures every kind of link that node 0 has.
///
/// # Errors
/// There is no memory for the columns.
///
/// # Panics
/// If the options ask for no runs, or for less than a vector of rows.
pub fn run(topology: &Topology, options: CopyOptions) -> Result<BenchReport, CopyBenchError> {
    assert!(
        options.runs > 0 && options.rows >= VECTOR,
        "cannot measure so: {options:?}"
    );
    let topology = match topology.nodes().len() {
        1 => paced(topology.machine().cloned()),
        _ => topology.clone(),
    };
    let memory = Memory::new(&topology, HugePages::Auto, None)?;
    let links = Links::of(&topology);
    let mut report = BenchReport::new("copy", &topology);
    for home in homes(&topology) {
        let bench = PairBench {
            memory: &memory,
            links: &links,
            home,
            options,
            told: told(&topology, home),
        };
        bench.copies(&mut report)?;
        bench.scans(&mut report)?;
        bench.blocks(&mut report)?;
    }
    let imitated = topology.machine().filter(|_| topology.is_paced());
    if let Some(machine) = imitated.filter(|machine| machine.nodes() > 1) {
        let rows = options.rows * ENGINE_ROWS;
        helped::measure(Arc::clone(machine), rows, options.runs, &mut report)?;
    }
    Ok(report)
}

/// Two nodes of a machine that is not here.
fn paced(machine: Option<Arc<Profile>>) -> Topology {
    let machine = machine.unwrap_or_else(|| {
        let known = Profile::known(MACHINE);
        Arc::new(known.expect("it comes along"))
    });
    // One of each kind of link: the first node of the machine reads.
    let nodes = u16::try_from(machine.nodes()).unwrap_or(u16::MAX);
    let made = Topology::fake(nodes, 1).paced_as(machine);
    made.expect("there are as many nodes")
}

/// A node behind each kind of link of node 0, the nearest first; the node itself is not among them.
fn homes(topology: &Topology) -> Vec<NodeId> {
    let distances = &topology.nodes()[0].distances;
    let mut homes: Vec<NodeId> = topology.nodes()[1..].iter().map(|node| node.id).collect();
    homes.sort_by_key(|home| distances[home.index()]);
    homes.dedup_by_key(|home| distances[home.index()]);
    homes
}

/// What every row says of the pair.
fn told(topology: &Topology, home: NodeId) -> Vec<(&'static str, Value)> {
    match topology.machine() {
        Some(machine) => vec![("link", json!(machine.link(NodeId(0), home).name))],
        None => vec![("pair", json!(format!("node 0 reads {home}")))],
    }
}

/// The benchmarks of one pair: node 0 reads memory of `home`.
struct PairBench<'a> {
    memory: &'a Memory,
    links: &'a Links,
    home: NodeId,
    options: CopyOptions,
    told: Vec<(&'static str, Value)>,
}

impl PairBench<'_> {
    fn column(&self, rows: usize) -> Result<RemoteColumn<'_>, CopyBenchError> {
        let column = RemoteColumn::new(self.memory, self.links, self.home, WIDTH, rows)?;
        Ok(column)
    }

    /// Adds a row whose parameters begin with those of the pair.
    fn row(
        &self,
        report: &mut BenchReport,
        case: &str,
        params: &[(&'static str, Value)],
        unit: &str,
        runs: Vec<f64>,
        limit: Option<f64>,
    ) {
        let params = self.told.iter().chain(params).cloned();
        report.row(case, params, unit, runs, limit);
    }

    /// Figure 3: what a block's size makes of the throughput.
    fn copies(&self, report: &mut BenchReport) -> Result<(), CopyBenchError> {
        let column = self.column(self.options.rows)?;
        let limit = column.link_gigabytes();
        for block in BLOCKS {
            let ways = Engine::ALL.map(|engine| (engine.name(), engine));
            let mut runs = [const { Vec::new() }; Engine::ALL.len()];
            for _ in 0..self.options.runs {
                for ((_, engine), runs) in ways.iter().zip(&mut runs) {
                    let seconds = seconds(|| column.copy(*engine, block));
                    runs.push(column.bytes() as f64 / seconds / 1e9);
                }
            }
            for ((name, _), runs) in ways.iter().zip(runs) {
                let params = [("engine", json!(name)), ("block bytes", json!(block))];
                self.row(report, "copy", &params, "GB/s", runs, limit);
            }
        }
        Ok(())
    }

    /// Figure 5: scans by the number of rows.
    fn scans(&self, report: &mut BenchReport) -> Result<(), CopyBenchError> {
        let mut rows = self.options.rows;
        let mut sizes = Vec::new();
        while rows >= VECTOR && sizes.len() < 4 {
            sizes.push(rows);
            rows /= 16;
        }
        for rows in sizes.into_iter().rev() {
            let column = self.column(rows)?;
            self.scan(report, "scan", &column, BLOCK)?;
        }
        Ok(())
    }

    /// Figure 6: double-buffered scans by the size of a block.
    fn blocks(&self, report: &mut BenchReport) -> Result<(), CopyBenchError> {
        let column = self.column(self.options.rows)?;
        for block in BLOCKS {
            self.scan(report, "scan by block", &column, block)?;
        }
        Ok(())
    }

    /// All ways of scanning a column take turns. What limits a buffered one is the longer of scan and copy, and a
    /// block.
    fn scan(
        &self,
        report: &mut BenchReport,
        case: &str,
        column: &RemoteColumn<'_>,
        block: usize,
    ) -> Result<(), CopyBenchError> {
        let mut runs = [const { Vec::new() }; Way::ALL.len()];
        let mut copies = [const { Vec::new() }; Engine::ALL.len()];
        let mut expected = None;
        for _ in 0..self.options.runs {
            for (way, runs) in Way::ALL.iter().zip(&mut runs) {
                let mut found = 0;
                runs.push(seconds(|| found = column.scan(*way, block)));
                assert_eq!(*expected.get_or_insert(found), found, "{}", way.name());
            }
            for (engine, copies) in Engine::ALL.iter().zip(&mut copies) {
                copies.push(seconds(|| column.copy(*engine, block)));
            }
        }
        let local = crate::report::median(&runs[0]);
        let part = (block as f64 / column.bytes() as f64).min(1.0);
        for (way, runs) in Way::ALL.iter().zip(&runs) {
            let limit = match way {
                Way::Local => None,
                Way::InPlace => Some(local + column.link_seconds()),
                Way::Buffered(engine) => {
                    let copy = crate::report::median(&copies[*engine as usize]);
                    Some(local.max(copy) + part * local.min(copy))
                }
            };
            let per_row = |seconds: &f64| 1e9 * seconds / column.rows() as f64;
            let params = [
                ("way", json!(way.name())),
                ("rows", json!(column.rows())),
                ("block bytes", json!(block)),
            ];
            let runs = runs.iter().map(per_row).collect();
            self.row(
                report,
                case,
                &params,
                "ns per row",
                runs,
                limit.as_ref().map(per_row),
            );
        }
        Ok(())
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_finds_the_same_rows_on_each_link() {
        let options = CopyOptions {
            rows: 40 * VECTOR,
            runs: 1,
        };
        let report = run(&Topology::fake(1, 1), options).unwrap();
        let links = 5;
        let scans = Way::ALL.len() * (2 + BLOCKS.len());
        let by_engine =
            |row: &&crate::report::ReportRow| row.case.starts_with("scan by the engine");
        let engine = report.rows.iter().filter(by_engine);
        // So few rows may all be done by their owner.
        assert!((3..=6).contains(&engine.clone().count()), "{report:?}");
        assert_eq!(
            report.rows.len() - engine.count(),
            links * (scans + Engine::ALL.len() * BLOCKS.len())
        );
        assert!(
            report
                .machine
                .topology
                .contains("links paced as SGI UV 2000")
        );
        let named = |row: &crate::report::ReportRow| row.params["link"].is_string();
        assert!(report.rows.iter().all(named));
    }
}
