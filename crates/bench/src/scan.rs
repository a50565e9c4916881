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

mod chunk;
mod kernel;
mod sql;

use crate::report::{Report, median};
use eris_engine::Settings;
use eris_kernels::Isa;
use eris_numa::measure::{LocalReads, MeasureError};
use eris_numa::{Memory, MemoryError, OutOfMemory, PinError};
use eris_sql::SqlError;
use eris_types::ObjectId;
use serde_json::json;
use std::time::Duration;

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

/// Why the scan could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The memory managers could not start.
    #[error(transparent)]
    Manager(#[from] MemoryError),
    /// Too little memory for the data.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// The machine could not be measured.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// A thread could not be bound to its core.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The database refused a statement.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// A number that was measured for a wrong answer is worthless.
    #[error("{statement}: counted {counted} rows, but {expected} match")]
    WrongAnswer {
        /// The statement.
        statement: String,
        /// What it answered.
        counted: i64,
        /// What is right.
        expected: u64,
    },
}

/// Accounts of the benchmark's memory: a number that no catalogue gives out.
const SCANNED: ObjectId = ObjectId(u32::MAX - 1);

/// A range of values and how many of all values of a width lie in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Predicate {
    name: &'static str,
    lo: u64,
    hi: u64,
}

impl Predicate {
    /// Equality with one value, and ranges around the middle that 1 % and 50 % of the values of `width` bits lie in, as
    /// near as the width allows.
    fn of_width(width: u8) -> [Predicate; 3] {
        let largest = u64::MAX >> (64 - width);
        let middle = largest / 2;
        let around = |percent: u64| {
            let half = (largest / 200).saturating_mul(percent) + (largest % 200) * percent / 200;
            (
                middle - half.min(middle),
                middle + half.min(largest - middle),
            )
        };
        let (lo1, hi1) = around(1);
        let (lo50, hi50) = around(50);
        [
            Predicate {
                name: "=",
                lo: middle,
                hi: middle,
            },
            Predicate {
                name: "between 1 %",
                lo: lo1,
                hi: hi1,
            },
            Predicate {
                name: "between 50 %",
                lo: lo50,
                hi: hi50,
            },
        ]
    }

    fn holds(self, value: u64) -> bool {
        (self.lo..=self.hi).contains(&value)
    }
}

/// Uniformly random words (SplitMix64): the bench needs speed and repeatability, not quality.
#[derive(Clone, Copy, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn of_width(&mut self, width: u8) -> u64 {
        self.next() >> (64 - width)
    }
}

/// How long the memory is read between two measurements: long enough for 256 MiB and more.
const READING: Duration = Duration::from_millis(20);

/// Bytes per second that all AEUs read together, each from its own node.
fn read_bandwidth(reads: &LocalReads, runs: usize) -> Result<Vec<f64>, MeasureError> {
    (0..runs).map(|_| reads.measure(READING)).collect()
}

/// Scans by bit width, predicate and level.
///
/// # Errors
/// [`ScanError`], also if a scan counts wrongly.
pub async fn run(settings: Settings, options: ScanOptions) -> Result<Report, ScanError> {
    let mut report = Report::new("scan", &settings.topology);
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
pub fn chunks(settings: &Settings, runs: usize) -> Result<Report, ScanError> {
    let one = settings
        .topology
        .clone()
        .with_aeus(1)
        .expect("one AEU is always possible");
    let mut report = Report::new("chunk", &one);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicates_select_what_their_names_say() {
        for width in 8..=64 {
            let [equal, one, fifty] = Predicate::of_width(width);
            assert_eq!(equal.lo, equal.hi);
            let share = |p: Predicate| (p.hi - p.lo) as f64 / (u64::MAX >> (64 - width)) as f64;
            assert!((share(one) - 0.01).abs() < 0.01, "{width}: {one:?}");
            assert!((share(fifty) - 0.5).abs() < 0.01, "{width}: {fifty:?}");
        }
        let [.., fifty] = Predicate::of_width(1);
        assert!(
            (0..=1).any(|value| fifty.holds(value)),
            "even one bit has a middle"
        );
    }

    #[test]
    fn random_values_fill_their_width() {
        let mut random = Random(1);
        let seen = (0..10_000).fold(0, |bits, _| bits | random.of_width(12));
        assert_eq!(seen, 0xfff);
        assert_eq!(Random(7).next(), Random(7).next());
    }
}
