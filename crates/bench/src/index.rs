//! `eris bench index`: what indexes can do, by size and by skew.
//!
//! ```text
//! size       operations per second against the number of keys (the ERIS paper's Figures 1 and 8), uniform
//!   owned     a tree per thread, each of blocks of the keys, and each thread asks its own: what partitions could do
//!   routed    Eris: clients ask for keys of all ranges, the keys find their owners
//!   blink     one tree that all threads share ([`shared`])
//!   others    of another program, each in its process, if there is one ([`rival`])
//! secondary  of a table: an index for each owner beside one tree for all of them ([`secondary`])
//! shared     a B-link tree by latches of nodes, by optimistic readers, by tasks, in batches; and trees of one thread
//! skew       lookups by Zipf's law on small and huge pages, as inserted and reorganised ([`skew`]); the model's misses
//! moves      what it takes to reorganise, by number of keys; and how fast clients go on meanwhile ([`meanwhile`])
//! sockets    misses of the last cache of a shared and of a partitioned index, by the model (ERIS, Figure 10)
//! ```
//!
//! All structures grow in turn to the same keys and are then asked in turn for random ones, so that the machine's moods
//! fall on all alike. The limit is how many independent random words the same threads read from memory of the same
//! size.
//!
//! Two cores on one socket show no more of Figure 1 than one thread beside two. Counters of cache misses, which Figure
//! 10 and the TLB paper read, are not asked for: few virtual machines have them. What [`eris_index::model`] says
//! instead is named so.

mod contenders;
mod error;
mod figures;
mod keys;
mod latched;
mod loads;
mod meanwhile;
mod progress;
mod rival;
mod secondary;
mod shared;
mod skew;
mod structure;
mod tasked;
mod threads;
mod zipf;

pub use error::IndexBenchError;
pub(crate) use figures::{FIGURES, SHARED_FIGURES};

use crate::report::BenchReport;
use contenders::{shared_trees, structures};
use eris_engine::Settings;
use eris_numa::HugePages;
use keys::KeySequence;
use loads::random_loads;
use progress::Spinner;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;
use structure::Structure;
use zipf::Zipf;

/// Lookups of one run, of all threads together; fewer of few keys.
const LOOKUPS: u64 = 1 << 20;
const LOOKUPS_PER_KEY: u64 = 16;

/// Entries of a range, and ranges of a run.
const RANGE: usize = 100;
const RANGES: u64 = 20_000;
/// Sockets of the machine whose caches are modelled.
const SOCKETS: u64 = 8;
/// The exponent at which clients go on while their index is reorganised.
const MEANWHILE: f64 = 1.2;

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPart {
    /// By number of keys, uniform.
    Size,
    /// Trees that threads share, by how they do so.
    Shared,
    /// Secondary indexes of tables, by kind.
    Secondary,
    /// By Zipf's law.
    Skew,
    /// What reorganisations take, and what goes on meanwhile.
    Moves,
    /// Caches of several sockets, by the model.
    Sockets,
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// Which parts, in any order.
    pub parts: Vec<IndexPart>,
    /// Numbers of keys.
    pub keys: Vec<u64>,
    /// Client threads, for structures that take more than one.
    pub threads: Vec<usize>,
    /// Numbers of keys under skew.
    pub skew_keys: Vec<u64>,
    /// Exponents of Zipf's law.
    pub exponents: Vec<f64>,
    /// Timed runs of each case, interleaved.
    pub runs: usize,
    /// The program with what is compared with Eris's own, of `bench/rivals`.
    pub rivals: Option<PathBuf>,
}

/// All parts that are asked for, one after the other.
///
/// # Errors
/// [`IndexBenchError`].
pub fn run(settings: &Settings, options: &IndexOptions) -> Result<BenchReport, IndexBenchError> {
    let mut report = BenchReport::new("index", &settings.topology);
    let progress = Spinner::new();
    let (report_of, has) = (&mut report, |part| options.parts.contains(&part));
    if has(IndexPart::Size) {
        for &count in &options.keys {
            for keys in [KeySequence::dense(count), KeySequence::random(count)] {
                for &threads in &options.threads {
                    progress.begin(format!("{count} {} keys, {threads} threads", keys.order()));
                    let structures = structures(settings, keys, threads)?;
                    measure(settings, options, keys, threads, structures, report_of)?;
                }
            }
        }
    }
    if has(IndexPart::Shared) {
        for &count in &options.keys {
            let keys = KeySequence::random(count);
            for &threads in &options.threads {
                progress.begin(format!("{count} keys of shared trees, {threads} threads"));
                let structures = shared_trees(settings, keys, threads)?;
                measure(settings, options, keys, threads, structures, report_of)?;
            }
        }
    }
    if has(IndexPart::Secondary) {
        for &count in &options.keys {
            secondary::run(settings, count, options.runs, report_of, &progress)?;
        }
    }
    if has(IndexPart::Skew) {
        for &count in &options.skew_keys {
            for keys in [KeySequence::dense(count), KeySequence::random(count)] {
                let (exponents, runs) = (&options.exponents, options.runs);
                skew::run(settings, keys, exponents, runs, report_of, &progress)?;
            }
        }
    }
    if has(IndexPart::Moves) {
        skew::sizes(settings, &options.skew_keys, report_of, &progress)?;
        if let Some(&count) = options.skew_keys.iter().max() {
            for &threads in &options.threads {
                let (keys, runs) = (KeySequence::random(count), options.runs);
                let at = MEANWHILE;
                meanwhile::run(settings, keys, at, threads, runs, report_of, &progress)?;
            }
        }
    }
    if has(IndexPart::Sockets) {
        skew::sockets(settings, &options.skew_keys, SOCKETS, report_of, &progress)?;
    }
    Ok(report)
}

fn measure(
    settings: &Settings,
    options: &IndexOptions,
    keys: KeySequence,
    threads: usize,
    mut structures: Vec<Box<dyn Structure>>,
    report: &mut BenchReport,
) -> Result<(), IndexBenchError> {
    if let Some(program) = &options.rivals {
        let huge_pages = settings.huge_pages != HugePages::Never;
        structures.extend(rival::rivals(program, keys, threads, huge_pages)?);
    }
    let mut inserts = vec![Vec::new(); structures.len()];
    let mut lookups = inserts.clone();
    let mut loads = Vec::new();
    let count = LOOKUPS.min(keys.count * LOOKUPS_PER_KEY);
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
        loads.push(random_loads(threads, keys.count * 16, count) / 1e6);
        for (structure, rates) in structures.iter_mut().zip(&mut lookups) {
            let begun = Instant::now();
            let found = structure.lookup(run as u64, count)?;
            let seconds = begun.elapsed().as_secs_f64();
            if found != count {
                return Err(IndexBenchError::WrongAnswer {
                    structure: structure.name().to_owned(),
                    found,
                    asked: count,
                });
            }
            rates.push(count as f64 / seconds / 1e6);
        }
    }
    mixed(options.runs, keys, threads, &mut structures, report)?;
    let mut ranges = vec![Vec::new(); structures.len()];
    let range_count = RANGES.min(keys.count);
    for run in 0..options.runs as u64 {
        for (structure, rates) in structures.iter_mut().zip(&mut ranges) {
            let begun = Instant::now();
            if let Some(entries) = structure.ranges(run, range_count, RANGE)? {
                // Those near the last key are shorter.
                assert!(entries > range_count, "ranges of {}", structure.name());
                rates.push(range_count as f64 / begun.elapsed().as_secs_f64() / 1e3);
            }
        }
    }
    let limit = crate::report::median(&loads);
    let all = structures.iter_mut().zip(inserts).zip(lookups).zip(ranges);
    for (((structure, inserts), lookups), ranges) in all {
        let bytes = structure.bytes()?;
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
        if !ranges.is_empty() {
            report.row("range of 100", params(), "thousand/s", ranges, None);
        }
        if let Some(bytes) = bytes {
            let each = bytes as f64 / keys.count as f64;
            report.row("memory", params(), "bytes/key", vec![each], Some(16.0));
        }
    }
    Ok(())
}

/// Exponents of Zipf's law of mixed operations.
const MIXED: [f64; 3] = [0.0, 0.8, 1.2];

/// Half upserts of keys that are there, half lookups, by trees that threads share.
fn mixed(
    runs: usize,
    keys: KeySequence,
    threads: usize,
    structures: &mut [Box<dyn Structure>],
    report: &mut BenchReport,
) -> Result<(), IndexBenchError> {
    for exponent in MIXED {
        let zipf = Zipf::new(keys.count, exponent);
        let count = LOOKUPS.min(keys.count * LOOKUPS_PER_KEY) as usize;
        let mut rates = vec![Vec::new(); structures.len()];
        for run in 0..runs as u64 {
            let asked = skew::draw(keys, &zipf, run + 1, count);
            for (structure, rates) in structures.iter_mut().zip(&mut rates) {
                let begun = Instant::now();
                let Some(found) = structure.mixed(&asked)? else {
                    continue;
                };
                let seconds = begun.elapsed().as_secs_f64();
                if found != count as u64 {
                    return Err(IndexBenchError::WrongAnswer {
                        structure: structure.name().to_owned(),
                        found,
                        asked: count as u64,
                    });
                }
                rates.push(count as f64 / seconds / 1e6);
            }
        }
        for (structure, rates) in structures.iter().zip(rates) {
            let params = [
                ("structure", json!(structure.name())),
                ("keys", json!(keys.count)),
                ("order", json!(keys.order())),
                ("threads", json!(threads)),
                ("zipf", json!(exponent)),
            ];
            if !rates.is_empty() {
                report.row("half upserts", params, "million/s", rates, None);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_numa::{HugePages, Topology};

    /// A program with two rivals that have whatever they are asked for, one of them in order.
    fn rivals(folder: &std::path::Path) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let program = folder.join("rivals");
        let script = "#!/bin/sh\n\
            if [ $1 = list ]; then echo sorted; echo hashed; exit; fi\n\
            while read request a b c; do case $request in\n\
              insert) echo 0 ;;\n\
              lookup) echo $b ;;\n\
              ranges) [ $1 = sorted ] && echo $((b * c)) || echo none ;;\n\
              bytes) [ $1 = hashed ] && echo 4096 || echo none ;;\n\
            esac; done\n";
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        program
    }

    #[test]
    fn every_structure_finds_what_was_put_in() {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            topology: Topology::fake(2, 1),
            huge_pages: HugePages::Never,
            memory_limit: Some(1 << 30),
            database: None,
        };
        let options = IndexOptions {
            parts: vec![
                IndexPart::Size,
                IndexPart::Shared,
                IndexPart::Secondary,
                IndexPart::Skew,
                IndexPart::Moves,
                IndexPart::Sockets,
            ],
            keys: vec![20_000],
            threads: vec![1, 2],
            skew_keys: vec![5_000],
            exponents: vec![0.0, 1.4],
            runs: 2,
            rivals: Some(rivals(folder.path())),
        };
        let report = run(&settings, &options).unwrap();
        let named = |case: &'static str| report.rows.iter().filter(move |row| row.case == case);
        assert!(named("lookup").all(|row| row.value > 0.0), "{report:?}");
        // Dense and random, on one thread and on two: five structures of Eris and two rivals. Seven more
        // that are shared, with the rivals again.
        assert_eq!(named("lookup").count(), 2 * 2 * (5 + 2) + 2 * (7 + 2));
        // Three exponents: one of the former five, four of the latter seven.
        assert_eq!(named("half upserts").count(), 3 * (2 * 2 + 2 * 4));
        // On one thread a tree alone has ranges and tells its size, a shared one always; rivals tell what they like.
        assert_eq!(named("range of 100").count(), 3 * (1 + 2 + 2));
        assert_eq!(
            named("memory").count(),
            2 * ((2 + 1) + 1 + 4 + 2) + (2 + 4 + 2 + 4 + 2)
        );
        assert_eq!(named("secondary lookup").count(), 3);
        assert_eq!(named("secondary upsert").count(), 3);
        // Dense and random, two exponents, four trees, alone and in batches.
        assert_eq!(named("skewed lookup").count(), 2 * 2 * 4 * 2);
        assert_eq!(named("rate meanwhile").count(), 2);
        // So few keys lie on fewer pages than there are translations.
        assert!(named("model").all(|row| row.params["event"] != "TLB miss" || row.value < 0.01));
        let figures = crate::figures::figures(&report);
        let names: Vec<String> = figures.into_iter().map(|(name, _)| name).collect();
        assert!(
            ["lookup-random-2", "gain-random"]
                .iter()
                .all(|name| names.iter().any(|n| n == name)),
            "{names:?}"
        );
    }

    #[test]
    fn a_rival_that_does_not_run_is_told() {
        let (keys, missing) = (
            KeySequence::dense(1),
            std::path::Path::new("/nowhere/rivals"),
        );
        let error = rival::rivals(missing, keys, 1, false).err().unwrap();
        let told = error.to_string();
        assert!(told.starts_with("/nowhere/rivals: "), "{told}");
        let error = rival::rivals("/bin/false".as_ref(), keys, 1, false)
            .err()
            .unwrap();
        assert_eq!(error.to_string(), "/bin/false: exit status: 1");
    }
}
