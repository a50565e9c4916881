//! `eris bench index`: operations per second against the number of keys (the ERIS paper's Figure 8), partitioned and shared.
//!
//! ```text
//! owned     a tree per thread, each of a range of the keys, and each thread asks its own: what partitions could do at most
//! routed    Eris: clients ask for keys of all ranges, the keys find their owners
//! congee    one radix tree for all threads, with optimistic lock coupling
//! BTreeMap, hashbrown   one thread, for orientation
//! ```
//!
//! All structures grow in turn to the same keys and are then asked in turn for random ones, so that the machine's moods fall
//! on all alike. The limit of lookups is how many random words of as much memory as the keys and values take the same
//! threads can read, when no read waits for another: no index of this size that is in no cache can be faster than about that.

mod random;
mod structure;

use crate::report::Report;
use eris_engine::{EngineError, Settings};
use eris_index::IndexError;
use random::{Keys, random_loads};
use serde_json::json;
use std::time::Instant;
use structure::structures;

/// Keys of a batch.
const BATCH: usize = 1000;
/// Lookups of one run, of all threads together.
const LOOKUPS: u64 = 4 << 20;

/// What to measure.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// Numbers of keys.
    pub keys: Vec<u64>,
    /// Client threads, for structures that take more than one.
    pub threads: Vec<usize>,
    /// Timed runs of each case, interleaved.
    pub runs: usize,
}

/// Why indexes could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum IndexBenchError {
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An index refused a key.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The engine's memory could not be had.
    #[error("cannot reserve memory: {0}")]
    Memory(String),
    /// A structure has lost keys.
    #[error(
        "{structure} found {found} of {asked} keys that were put in; its numbers would mean nothing"
    )]
    WrongAnswer {
        /// Which.
        structure: &'static str,
        /// Keys with their values.
        found: u64,
        /// All keys asked for.
        asked: u64,
    },
}

/// Inserts and lookups by structure, number of threads and number of keys, dense and random.
///
/// # Errors
/// [`IndexBenchError`].
pub fn run(settings: &Settings, options: &IndexOptions) -> Result<Report, IndexBenchError> {
    let mut report = Report::new("index", &settings.topology);
    for &count in &options.keys {
        for keys in [Keys::dense(count), Keys::random(count)] {
            for &threads in &options.threads {
                measure(settings, options, keys, threads, &mut report)?;
            }
        }
    }
    Ok(report)
}

fn measure(
    settings: &Settings,
    options: &IndexOptions,
    keys: Keys,
    threads: usize,
    report: &mut Report,
) -> Result<(), IndexBenchError> {
    let mut structures = structures(settings, keys, threads)?;
    let mut inserts = vec![Vec::new(); structures.len()];
    let mut lookups = inserts.clone();
    let mut loads = Vec::new();
    // They grow in as many steps as there are runs.
    for run in 0..options.runs as u64 {
        let part =
            keys.count * run / options.runs as u64..keys.count * (run + 1) / options.runs as u64;
        for (structure, rates) in structures.iter_mut().zip(&mut inserts) {
            let begun = Instant::now();
            structure.insert(part.clone())?;
            rates.push((part.end - part.start) as f64 / begun.elapsed().as_secs_f64() / 1e6);
        }
    }
    for run in 0..options.runs {
        loads.push(random_loads(threads, keys.count * 16, LOOKUPS) / 1e6);
        for (structure, rates) in structures.iter_mut().zip(&mut lookups) {
            let begun = Instant::now();
            let found = structure.lookup(run as u64, LOOKUPS)?;
            let seconds = begun.elapsed().as_secs_f64();
            if found != LOOKUPS {
                return Err(IndexBenchError::WrongAnswer {
                    structure: structure.name(),
                    found,
                    asked: LOOKUPS,
                });
            }
            rates.push(LOOKUPS as f64 / seconds / 1e6);
        }
    }
    let limit = crate::report::median(&loads);
    for ((structure, inserts), lookups) in structures.iter().zip(inserts).zip(lookups) {
        let params = || {
            [
                ("structure", json!(structure.name())),
                ("keys", json!(keys.count)),
                ("order", json!(keys.order())),
                ("threads", json!(threads)),
                ("batch", json!(structure.batch())),
            ]
        };
        report.row("insert", params(), "million/s", inserts, None);
        report.row("lookup", params(), "million/s", lookups, Some(limit));
        if let Some(bytes) = structure.bytes() {
            let each = bytes as f64 / keys.count as f64;
            report.row("memory", params(), "bytes/key", vec![each], Some(16.0));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_numa::{HugePages, Topology};

    #[test]
    fn every_structure_finds_what_was_put_in() {
        let settings = Settings {
            topology: Topology::fake(2, 1),
            huge_pages: HugePages::Never,
            memory_limit: Some(1 << 30),
        };
        let options = IndexOptions {
            keys: vec![20_000],
            threads: vec![1, 2],
            runs: 2,
        };
        let report = run(&settings, &options).unwrap();
        assert!(report.rows.iter().all(|row| row.value > 0.0), "{report:?}");
        let structures = report
            .rows
            .iter()
            .filter(|row| row.case == "lookup")
            .count();
        // Dense and random: six structures on one thread, four on two.
        assert_eq!(structures, 2 * (6 + 4));
    }
}
