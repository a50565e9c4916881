//! Damage of every kind to a database that has everything: what was there, or an error that names the file.
//!
//! ```text
//! files of a database ─▶ a bit flips · a file is cut · is gone · is an older one · is another database's
//!                        └─▶ opened: all rows as they were ─ or an error with the file's path
//! ```
//!
//! What must not be: a panic, other rows, or fewer. Of an open log alone the last group cannot be told from one that a
//! crash has torn; then there is what was there before it.
//!
//! A check of the files agrees: it finds something if, and only if, they are not opened.
//!
//! `ERIS_SEEDS=20` tries as many databases, each with other bits.

mod database;
mod files;
mod newest;
mod rows;
mod salvage;

use crate::EngineError;
use crate::recovery::{DatabaseCheck, DatabaseFinding, check};
use crate::simulations::simulated::for_seeds;
pub(super) use database::rows_of;
use database::{Contents, Database, open, read};
use eris_aeu::Random;
use eris_disk::Disk;
use eris_numa::Topology;
use files::{Files, disk_of, files_of, records_of_snapshot, with_snapshot};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

const MANIFEST: &str = "eris.db";
/// A bit flips in each block of so many bytes.
const BLOCK: usize = 128;

/// Files that somebody has damaged.
struct Case {
    /// What was done to which file.
    what: String,
    path: PathBuf,
    files: Files,
    /// Whether an earlier state may be found.
    may_be_earlier: bool,
}

/// How cases came out.
#[derive(Debug, Default)]
struct Outcomes {
    found: AtomicUsize,
    harmless: AtomicUsize,
    earlier: AtomicUsize,
}

impl Outcomes {
    fn count(counted: &AtomicUsize) {
        counted.fetch_add(1, Ordering::Relaxed);
    }

    fn found(&self) -> usize {
        self.found.load(Ordering::Relaxed)
    }
}

/// Opens a database with these files, and reads all of it.
fn contents(database: &Database, files: &Files) -> Result<Contents, String> {
    let opened = open(&disk_of(files), Topology::fake(1, 2));
    let mut simulated = opened.map_err(|error| error.to_string())?;
    let engine = simulated.engine.clone();
    let contents = simulated.result_of(read(engine, database.tables.clone()));
    simulated.end();
    Ok(contents)
}

fn on_all_cores(work: impl Fn() + Sync) {
    thread::scope(|scope| {
        for _ in 1..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(&work);
        }
        work();
    });
}

/// Tries all cases, on all cores.
fn try_all(database: &Database, cases: impl Iterator<Item = Case> + Send) -> Outcomes {
    let (outcomes, cases) = (Outcomes::default(), Mutex::new(cases));
    let next = || cases.lock().expect("nothing panics in it").next();
    let work = || {
        while let Some(case) = next() {
            try_one(database, &case, &outcomes);
        }
    };
    on_all_cores(work);
    println!("{outcomes:?}");
    outcomes
}

fn try_one(database: &Database, case: &Case, outcomes: &Outcomes) {
    let name = format!("{}: {}", case.path.display(), case.what);
    let opened = catch_unwind(AssertUnwindSafe(|| contents(database, &case.files)));
    let opened = opened.unwrap_or_else(|_| panic!("{name}: it panicked"));
    let checked = catch_unwind(AssertUnwindSafe(|| checked(&case.files)));
    let checked = checked.unwrap_or_else(|_| panic!("{name}: a check panicked"));
    let findings = checked.map(|checked| checked.findings);
    let is_whole = findings.as_ref().is_ok_and(Vec::is_empty);
    let differs = || format!("{name}: {findings:?} but {:?}", opened.as_ref().err());
    assert_eq!(is_whole, opened.is_ok(), "{}", differs());
    if let Ok(findings) = &findings {
        let names = |found: &DatabaseFinding| found.path.starts_with("/simulated");
        assert!(findings.iter().all(names), "{}", differs());
    }
    match opened {
        Ok(contents) if contents == database.contents => Outcomes::count(&outcomes.harmless),
        Ok(contents) => {
            let mut before = database.before.iter().map(|(_, contents)| contents);
            let is_earlier = case.may_be_earlier && before.any(|before| *before == contents);
            assert!(is_earlier, "{name}: something else is there");
            Outcomes::count(&outcomes.earlier);
        }
        Err(error) => {
            // A chunk that is missing may have been in any of the files.
            let path = match case.path.starts_with("chunks") {
                true => Path::new("chunks"),
                false => &case.path,
            };
            assert!(error.contains(path.to_str().unwrap()), "{name}: {error}");
            Outcomes::count(&outcomes.found);
        }
    }
}

/// What a check says of files. It changes none.
fn checked(files: &Files) -> Result<DatabaseCheck, EngineError> {
    let disk = disk_of(files);
    let checked = check(&(Arc::new(disk.clone()) as Arc<dyn Disk>), &mut |_, _| {});
    assert_eq!(files_of(&disk), *files);
    checked
}

impl Database {
    /// The files, and what becomes of one of them.
    fn with(&self, path: &Path, bytes: Option<Vec<u8>>) -> Files {
        let mut files = self.files.clone();
        match bytes {
            Some(bytes) => drop(files.insert(path.to_owned(), bytes.into())),
            None => drop(files.remove(path)),
        }
        files
    }

    fn case(&self, path: &Path, what: String, bytes: Option<Vec<u8>>) -> Case {
        Case {
            what,
            path: path.to_owned(),
            files: self.with(path, bytes),
            may_be_earlier: false,
        }
    }

    fn last_of_log(&self) -> &Path {
        let mut logs = self.files.keys().filter(|path| path.starts_with("log"));
        logs.next_back().expect("there is a log")
    }
}

/// Where groups, records and entries begin.
fn parts(bytes: &[u8]) -> Vec<usize> {
    let mut parts = Vec::new();
    for (at, rest) in (0..bytes.len()).step_by(8).map(|at| (at, &bytes[at..])) {
        if rest.starts_with(b"EGRP") {
            parts.push(at);
            let length = u64::from_le_bytes(rest[24..32].try_into().unwrap()) as usize;
            let (mut record, end) = (at + 40, at + 40 + length);
            while record < end {
                parts.push(record);
                let mut length = 0;
                for shift in (0..).step_by(7) {
                    let byte = bytes[record];
                    record += 1;
                    length |= usize::from(byte & 127) << shift;
                    if byte < 128 {
                        break;
                    }
                }
                record += length;
            }
        }
        if rest.starts_with(b"ECHK") || rest.starts_with(b"EEND") {
            parts.push(at);
        }
    }
    parts
}

#[test]
fn a_bit_that_flips_is_found_or_is_no_harm() {
    for_seeds(1, |seed| {
        let database = Database::make(seed);
        assert_eq!(
            contents(&database, &database.files).unwrap(),
            database.contents
        );
        let mut random = Random::new(seed);
        let flips = database.files.iter().flat_map(|(path, bytes)| {
            let blocks = (0..bytes.len()).step_by(BLOCK);
            let at =
                blocks.map(|first| (path, first + random.below(BLOCK.min(bytes.len() - first))));
            at.collect::<Vec<_>>()
        });
        let flips: Vec<(&PathBuf, usize)> = flips.collect();
        println!("{} bits", flips.len());
        let cases = flips.into_iter().map(|(path, at)| {
            let mut bytes = database.files[path].to_vec();
            bytes[at] ^= 1 << (at % 8);
            database.case(path, format!("a bit of byte {at} flips"), Some(bytes))
        });
        assert!(try_all(&database, cases).found() > 500);
    });
}

#[test]
fn a_file_that_is_cut_off_or_gone_is_found_or_is_no_harm() {
    for_seeds(1, |seed| {
        let database = Database::make(seed);
        let mut random = Random::new(seed);
        let cuts = database.files.iter().flat_map(|(path, bytes)| {
            let between = (0..20).map(|_| random.below(bytes.len()));
            let places = parts(bytes)
                .into_iter()
                .chain([0, bytes.len() - 1])
                .chain(between);
            let places: BTreeSet<usize> = places.collect();
            places
                .into_iter()
                .map(move |at| (path, Some(at)))
                .chain([(path, None)])
        });
        let cuts: Vec<(&PathBuf, Option<usize>)> = cuts.collect();
        println!("{} cuts", cuts.len());
        let cases = cuts.into_iter().map(|(path, at)| match at {
            Some(at) => {
                let bytes = database.files[path][..at].to_vec();
                database.case(path, format!("it is cut at {at}"), Some(bytes))
            }
            None => database.case(path, "it is gone".to_owned(), None),
        });
        assert!(try_all(&database, cases).found() > 50);
    });
}

#[test]
fn older_files_are_found_or_are_an_earlier_database() {
    for_seeds(1, |seed| {
        let database = Database::make(seed);
        let mut cases = Vec::new();
        for (nth, (before, _)) in database.before.iter().enumerate() {
            for (path, bytes) in before {
                let is_other = database.files.get(path).is_some_and(|now| now != bytes);
                if is_other {
                    let mut case =
                        database.case(path, format!("as after step {nth}"), Some(bytes.to_vec()));
                    // Nothing but the last file of a log says how far the log goes.
                    case.may_be_earlier = path == database.last_of_log();
                    // It refers to files that are gone.
                    if path == Path::new(MANIFEST) {
                        case.path = PathBuf::new();
                    }
                    cases.push(case);
                }
            }
            // Some kinds of files are older ones, and the others are not.
            for kinds in 1..15u32 {
                let is_older = |path: &Path| {
                    let kind = [MANIFEST, "log", "snapshots", "chunks"]
                        .iter()
                        .position(|kind| path.starts_with(kind));
                    kinds >> kind.expect("a known kind") & 1 == 1
                };
                let new = database.files.iter().filter(|(path, _)| !is_older(path));
                let files = new.chain(before.iter().filter(|(path, _)| is_older(path)));
                cases.push(Case {
                    what: format!("of kinds {kinds:04b} those after step {nth}"),
                    path: PathBuf::new(),
                    files: files
                        .map(|(path, bytes)| (path.clone(), bytes.clone()))
                        .collect(),
                    may_be_earlier: true,
                });
            }
        }
        println!("{} mixtures", cases.len());
        assert!(try_all(&database, cases.into_iter()).found() > 10);
    });
}

#[test]
fn files_of_another_database_are_found() {
    for_seeds(1, |seed| {
        let (database, other) = (Database::make(seed), Database::make(seed + 1));
        let mut random = Random::new(seed);
        let both = database
            .files
            .keys()
            .filter(|path| other.files.contains_key(*path));
        let both: Vec<&PathBuf> = both.collect();
        assert!(both.len() > 3);
        let one = both.iter().map(|path| {
            let bytes = other.files[*path].to_vec();
            let mut case = database.case(path, "that of another database".to_owned(), Some(bytes));
            // With the manifest of another one, all others are wrong.
            if **path == Path::new(MANIFEST) {
                case.path = PathBuf::new();
            }
            case
        });
        let some = (0..50).map(|_| {
            let mut case = database.case(Path::new(""), String::new(), None);
            for path in &both {
                if random.one_in(2) {
                    case.files
                        .insert((*path).clone(), other.files[*path].clone());
                    case.what.push_str(&format!("{} ", path.display()));
                }
            }
            case
        });
        let cases: Vec<Case> = one.chain(some).collect();
        let is_whole = |case: &&Case| case.files == database.files || case.files == other.files;
        let mixed = cases.len() - cases.iter().filter(is_whole).count();
        let mut cases = cases;
        cases.retain(|case| case.files != database.files && case.files != other.files);
        let outcomes = try_all(&database, cases.into_iter());
        assert_eq!(outcomes.found(), mixed);
    });
}

#[test]
fn damage_of_a_log_that_is_open_takes_its_last_group_at_most() {
    for_seeds(1, |seed| {
        let mut database = Database::make(seed);
        // As it was before it was closed.
        let (files, contents) = database.before.last().expect("there were steps").clone();
        (database.files, database.contents) = (files, contents);
        let path = database.last_of_log().to_owned();
        let bytes = database.files[&path].clone();
        let last = parts(&bytes)
            .into_iter()
            .filter(|at| bytes[*at..].starts_with(b"EGRP"))
            .max();
        let last = last.expect("it has groups");
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        let within = (last..end + 64).chain((64..last).step_by(512));
        let cases = within.map(|at| {
            let mut bytes = bytes.to_vec();
            bytes[at] ^= 1 << (at % 8);
            let mut case = database.case(&path, format!("a bit of byte {at} flips"), Some(bytes));
            case.may_be_earlier = at >= last;
            case
        });
        let cases: Vec<Case> = cases.collect();
        let outcomes = try_all(&database, cases.into_iter());
        assert!(outcomes.found() > 10 && outcomes.earlier.load(Ordering::Relaxed) > 30);
    });
}

#[test]
fn a_check_counts_what_is_whole() {
    let database = Database::make(1);
    let mut passed = Vec::new();
    let disk: Arc<dyn Disk> = Arc::new(disk_of(&database.files));
    let checked = check(&disk, &mut |done, total| passed.push((done, total))).unwrap();
    assert_eq!((checked.findings, checked.remarks), (vec![], vec![]));
    let rows = database.contents.rows.values();
    assert_eq!(
        checked.rows,
        rows.map(|rows| rows.num_rows() as u64).sum::<u64>()
    );
    assert_eq!(checked.tables, database.tables.len() as u64);
    let bytes = |kind: &str| -> u64 {
        let files = database
            .files
            .iter()
            .filter(|(path, _)| path.starts_with(kind));
        files.map(|(_, bytes)| bytes.len() as u64).sum()
    };
    let counted = [
        ("log", checked.log),
        ("snapshots", checked.snapshot),
        ("chunks", checked.chunks),
    ];
    for (kind, counted) in counted {
        assert_eq!(counted.bytes, bytes(kind), "{kind}");
    }
    let total = counted.iter().map(|(kind, _)| bytes(kind)).sum::<u64>();
    assert!(passed.is_sorted() && passed.last() == Some(&(total, total)));
}

#[test]
fn a_check_says_which_tables_and_commits_are_hit() {
    let database = Database::make(1);
    let (mut tables, mut commits) = (BTreeSet::new(), BTreeSet::new());
    for (path, bytes) in &database.files {
        for part in parts(bytes) {
            let is_chunk = bytes[part..].starts_with(b"ECHK");
            let mut damaged = bytes.to_vec();
            damaged[part + if is_chunk { 80 } else { 0 }] ^= 1;
            let files = database.with(path, Some(damaged));
            for found in checked(&files).unwrap().findings {
                assert!(found.path.ends_with(path), "{found:?}");
                tables.extend(found.table);
                if let Some((first, Some(last))) = found.commits {
                    assert!(first <= last, "{path:?}");
                    commits.extend(first.0..=last.0);
                }
            }
        }
    }
    assert_eq!(tables, BTreeSet::from(["large".to_owned()]));
    // All that the log has, but the last group, behind which nothing says what was in it.
    let (first, last) = (*commits.first().unwrap(), *commits.last().unwrap());
    assert!(commits.len() > 10 && commits.into_iter().eq(first..=last));
}

/// Records of which one says something else, in a snapshot that is whole: there is no such damage on a disk, but what
/// reads records must not rely on that.
#[test]
fn records_that_say_something_else_do_no_harm() {
    for_seeds(1, |seed| {
        let database = Database::make(seed);
        let records = records_of_snapshot(&database.files);
        let mut random = Random::new(seed);
        let places = records.iter().enumerate().flat_map(|(record, body)| {
            let any: Vec<usize> = (0..12).map(|_| random.below(body.len())).collect();
            let places: BTreeSet<usize> = (0..body.len().min(20)).chain(any).collect();
            places.into_iter().map(move |at| (record, at))
        });
        let places: Vec<(usize, usize)> = places.collect();
        println!("{} places of {} records", places.len(), records.len());
        let cases = places.into_iter().map(|(record, at)| {
            let mut records = records.clone();
            let byte = &mut records[record][at];
            *byte = match random.below(4) {
                0 => *byte ^ 0x80,
                1 => byte.wrapping_add(1),
                2 => u8::MAX,
                _ => random.bits() as u8,
            };
            (
                format!("byte {at} of record {record}"),
                with_snapshot(&database.files, &records),
            )
        });
        let (cases, opened) = (Mutex::new(cases), AtomicUsize::new(0));
        let wrong = Mutex::new(Vec::new());
        let next = || cases.lock().expect("nothing panics in it").next();
        let work = || {
            while let Some((name, files)) = next() {
                let both = || (contents(&database, &files), checked(&files));
                let what = match catch_unwind(AssertUnwindSafe(both)) {
                    Err(_) => "it panicked".to_owned(),
                    Ok((_, Err(error))) => error.to_string(),
                    Ok((Ok(_), _)) => {
                        opened.fetch_add(1, Ordering::Relaxed);
                        continue;
                    }
                    // A check does not compare keys.
                    Ok((Err(error), _)) if error.contains("two rows with the key") => continue,
                    Ok((Err(_), Ok(checked))) if !checked.findings.is_empty() => continue,
                    Ok((Err(error), Ok(_))) => format!("a check does not find: {error}"),
                };
                wrong
                    .lock()
                    .expect("nothing panics in it")
                    .push(format!("{name}: {what}"));
            }
        };
        on_all_cores(work);
        println!("{opened:?} are another database");
        let wrong = wrong.into_inner().expect("nothing panics in it");
        assert!(wrong.is_empty(), "{wrong:#?}");
    });
}
