//! `eris bench scan`: how near the scan of a bit-packed column comes to what the memory can deliver.
//!
//! ```text
//! kernel   every AEU's thread runs `between` over packed words of its own node   bytes from memory, no engine
//! sql      SELECT count(*) FROM scan WHERE c12 BETWEEN … AND …                   all that a user pays for
//! chunk    the same bytes in blocks scattered over memory                        what a chunk must be large enough for
//! ```
//!
//! Values are uniformly random over all that the width can hold, so that no zone map and no other encoding helps. The
//! limit of a row is the read bandwidth of the same cores, measured between its runs (on a shared machine it changes
//! from second to second), divided by the bytes of a value.

mod bandwidth;
mod chunk;
mod error;
mod kernel;
mod sql;
mod values;

pub use error::ScanError;

use crate::report::{BenchReport, median};
use bandwidth::read_bandwidth;
use eris_engine::Settings;
use eris_kernels::Isa;
use eris_numa::Memory;
use eris_numa::measure::LocalReads;
use serde_json::json;

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct ScanOptions {
    /// Rows of the table that SQL scans. The kernels scan as many bytes as it takes to leave the caches.
    pub rows: u64,
    /// Every instruction set of this machine instead of the best.
    pub every_isa: bool,
    /// Timed runs of each case.
    pub runs: usize,
}

/// Scans by bit width, predicate and level.
///
/// # Errors
/// [`ScanError`], also if a scan counts wrongly.
pub async fn run(settings: Settings, options: ScanOptions) -> Result<BenchReport, ScanError> {
    let mut report = BenchReport::new("scan", &settings.topology);
    let memory = Memory::new(
        &settings.topology,
        settings.huge_pages,
        settings.memory_limit,
    )?;
    let reads = LocalReads::new(&settings.topology, &memory)?;
    let measured = read_bandwidth(&reads, options.runs)?;
    let threads = json!(settings.topology.aeus().len());
    report.row(
        "read bandwidth",
        [("threads", threads)],
        "GB/s",
        measured.iter().map(|rate| rate / 1e9).collect(),
        None,
    );
    let isas: Vec<Isa> = if options.every_isa {
        Isa::supported().collect()
    } else {
        vec![Isa::best()]
    };
    for isa in isas {
        kernel::run(
            &settings.topology,
            &memory,
            isa,
            options.runs,
            &reads,
            &mut report,
        )?;
    }
    sql::run(settings, options, &reads, &mut report).await?;
    Ok(report)
}

/// Scan time against the number of consecutive values (RAMCloud paper, Figure 3), on one core.
///
/// # Errors
/// [`ScanError`], if there is too little memory.
pub fn chunks(settings: &Settings, runs: usize) -> Result<BenchReport, ScanError> {
    let one = settings
        .topology
        .clone()
        .with_aeus(1)
        .expect("one AEU is always possible");
    let mut report = BenchReport::new("chunk", &one);
    let memory = Memory::new(&one, settings.huge_pages, settings.memory_limit)?;
    let measured = read_bandwidth(&LocalReads::new(&one, &memory)?, runs)?;
    report.row(
        "read bandwidth",
        [("threads", json!(1))],
        "GB/s",
        measured.iter().map(|rate| rate / 1e9).collect(),
        None,
    );
    chunk::run(&one, &memory, runs, median(&measured), &mut report)?;
    Ok(report)
}
