//! What is left of a damaged database is salvaged, whatever the damage is.
//!
//! ```text
//! damaged files ─▶ salvaged ─▶ read            every row was there once, as it is
//!                  │                           what is not there any more is told
//!                  └─▶ written ─▶ opened       the same
//! ```
//!
//! The oracle has all rows that ever were, by their tables and numbers, and those that there were in the end.

use super::database::{Contents, Database, open, read};
use super::files::{Files, disk_of, files_of, records_of_snapshot, with_snapshot};
use super::{BLOCK, MANIFEST, on_all_cores, parts};
use crate::recovery::{DatabaseFinding, DatabaseSalvage};
use crate::simulations::simulated::{Simulated, for_seeds};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{RecordBatch, UInt64Array};
use eris_aeu::Random;
use eris_disk::{Disk, SimulatedDisk};
use eris_numa::Topology;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A bit flips in each block of so many bytes.
const FLIPS: usize = 4 * BLOCK;

/// All rows that a table has ever had, in the order of their numbers.
struct Ever {
    rows: RecordBatch,
    places: BTreeMap<i64, u64>,
}

struct Oracle<'a> {
    database: &'a Database,
    ever: BTreeMap<&'static str, Ever>,
}

fn numbers(rows: &RecordBatch) -> &[i64] {
    rows.column(0).as_primitive::<Int64Type>().values()
}

impl<'a> Oracle<'a> {
    fn new(database: &'a Database) -> Self {
        let mut ever: BTreeMap<&'static str, Ever> = BTreeMap::new();
        let all = database.before.iter().map(|(_, contents)| contents);
        for (name, rows) in all.flat_map(|contents| &contents.rows) {
            let none = || Ever {
                rows: rows.slice(0, 0),
                places: BTreeMap::new(),
            };
            let known = ever.entry(name).or_insert_with(none);
            let new: Vec<u64> = (0..)
                .zip(numbers(rows))
                .filter(|(_, number)| !known.places.contains_key(number))
                .map(|(row, _)| row)
                .collect();
            let new = arrow_select::take::take_record_batch(rows, &UInt64Array::from(new)).unwrap();
            let first = known.rows.num_rows() as u64;
            known
                .places
                .extend(numbers(&new).iter().copied().zip(first..));
            let both = [&known.rows, &new];
            known.rows = arrow_select::concat::concat_batches(&rows.schema(), both).unwrap();
        }
        Oracle { database, ever }
    }

    /// Every row is one that was there; what is lost is told.
    fn check(&self, contents: &Contents, salvaged: &DatabaseSalvage) -> Result<(), String> {
        for (name, rows) in &contents.rows {
            let ever = &self.ever[name];
            let places = numbers(rows)
                .iter()
                .map(|number| ever.places.get(number).copied());
            let places: Option<Vec<u64>> = places.collect();
            let places = places.ok_or_else(|| format!("{name} has a row that was never there"))?;
            if !places
                .iter()
                .collect::<BTreeSet<_>>()
                .len()
                .eq(&places.len())
            {
                return Err(format!("{name} has a row twice"));
            }
            let places = UInt64Array::from(places);
            let expected = arrow_select::take::take_record_batch(&ever.rows, &places).unwrap();
            if expected != *rows {
                return Err(format!("{name} has a row that was another one"));
            }
        }
        let is_exact = salvaged.check.findings.iter().all(|found| {
            found
                .path
                .components()
                .any(|part| part.as_os_str() == "chunks")
        }) && !salvaged.is_guessed;
        for (name, rows) in &self.database.contents.rows {
            let none = BTreeSet::new();
            let left = contents.rows.get(name);
            let left = left.map_or(none, |rows| numbers(rows).iter().copied().collect());
            let before: BTreeSet<i64> = numbers(rows).iter().copied().collect();
            let (lost, came_back) = (
                before.difference(&left).count(),
                left.difference(&before).count(),
            );
            let told = salvaged.lost_rows.iter();
            let told = told.filter(|lost| lost.table.as_deref() == Some(*name));
            let told: u64 = told.map(|lost| lost.rows).sum();
            let is_told = match is_exact {
                true => told == lost as u64 && came_back == 0,
                false => lost + came_back == 0 || !salvaged.is_whole(),
            };
            if !is_told {
                return Err(format!(
                    "{name} has lost {lost} rows, not {told}, and got {came_back}"
                ));
            }
        }
        let ever = self.database.before.iter();
        let ever: Vec<_> = ever
            .flat_map(|(_, contents)| &contents.definitions)
            .collect();
        if let Some(new) = contents.definitions.iter().find(|one| !ever.contains(one)) {
            return Err(format!("{} was never there", new.name));
        }
        match salvaged.is_whole() && *contents != self.database.contents {
            true => Err("something is lost, and nothing is told".to_owned()),
            false => Ok(()),
        }
    }

    /// Salvages these files, and reads what that has.
    fn salvage(
        &self,
        files: &Files,
        is_written: bool,
    ) -> Result<(Contents, DatabaseSalvage), String> {
        let disk = disk_of(files);
        let salvaged = self.salvage_disk(&disk, is_written)?;
        assert!(files_of(&disk) == *files, "something was changed");
        Ok(salvaged)
    }

    fn salvage_disk(
        &self,
        disk: &SimulatedDisk,
        is_written: bool,
    ) -> Result<(Contents, DatabaseSalvage), String> {
        let from: Arc<dyn Disk> = Arc::new(disk.clone());
        let opened = Simulated::open_remains(7, Topology::fake(1, 2), from, &|_| None);
        let (mut simulated, salvaged) = opened.map_err(|error| error.to_string())?;
        let (engine, tables) = (simulated.engine.clone(), self.database.tables.clone());
        let contents = simulated.result_of(read(engine, tables.clone()));
        if is_written {
            let target = SimulatedDisk::new(2);
            let (engine, to) = (simulated.engine.clone(), target.clone());
            simulated.result_of(async move { engine.backup(Arc::new(to)).await.unwrap() });
            let mut copy = open(&target, Topology::fake(2, 1)).unwrap();
            let engine = copy.engine.clone();
            let copied = copy.result_of(read(engine, tables));
            copy.end();
            assert!(copied == contents, "something else was written");
        }
        simulated.end();
        Ok((contents, salvaged))
    }

    /// Salvages files with damage of every kind.
    fn try_all(&self, cases: impl Iterator<Item = (String, Files)> + Send) -> Outcomes {
        self.try_with(cases, |_| false)
    }

    /// The same, where those of these names may be as the database was before.
    fn try_with(
        &self,
        cases: impl Iterator<Item = (String, Files)> + Send,
        may_be_earlier: impl Fn(&str) -> bool + Sync,
    ) -> Outcomes {
        let (outcomes, cases) = (Outcomes::default(), Mutex::new(cases.enumerate()));
        let wrong = Mutex::new(Vec::new());
        let next = || cases.lock().expect("nothing panics in it").next();
        on_all_cores(|| {
            while let Some((nth, (name, files))) = next() {
                let salvage = || self.salvage(&files, nth % 8 == 0);
                let told = match catch_unwind(AssertUnwindSafe(salvage)) {
                    Err(_) => Err("it panicked".to_owned()),
                    Ok(Err(error)) => Err(error),
                    Ok(Ok((contents, salvaged))) => {
                        outcomes.count(&contents, &salvaged, self.database);
                        let mut before = self.database.before.iter();
                        match may_be_earlier(&name) && before.any(|(_, one)| *one == contents) {
                            true => Ok(()),
                            false => self.check(&contents, &salvaged),
                        }
                    }
                };
                if let Err(error) = told {
                    let mut wrong = wrong.lock().expect("nothing panics in it");
                    wrong.push(format!("{name}: {error}"));
                }
            }
        });
        println!("{outcomes:?}");
        let wrong = wrong.into_inner().expect("nothing panics in it");
        let first = &wrong[..wrong.len().min(20)];
        assert!(wrong.is_empty(), "{} are wrong: {first:#?}", wrong.len());
        outcomes
    }
}

/// How cases came out.
#[derive(Debug, Default)]
struct Outcomes {
    whole: AtomicUsize,
    with_losses: AtomicUsize,
    guessed: AtomicUsize,
    most_rows_there: AtomicUsize,
}

impl Outcomes {
    fn count(&self, contents: &Contents, salvaged: &DatabaseSalvage, database: &Database) {
        let rows = |contents: &Contents| -> usize {
            contents.rows.values().map(RecordBatch::num_rows).sum()
        };
        let counted = match contents == &database.contents {
            true => &self.whole,
            false => &self.with_losses,
        };
        counted.fetch_add(1, Ordering::Relaxed);
        if salvaged.is_guessed {
            self.guessed.fetch_add(1, Ordering::Relaxed);
        }
        if 2 * rows(contents) > rows(&database.contents) {
            self.most_rows_there.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A snapshot has definitions and objects twice.
#[test]
fn no_group_of_a_snapshot_takes_definitions() {
    let database = Database::make(1);
    let oracle = Oracle::new(&database);
    let mut snapshots = database.files.iter();
    let (path, bytes) = snapshots
        .find(|(path, _)| path.starts_with("snapshots"))
        .unwrap();
    let groups = parts(bytes)
        .into_iter()
        .filter(|at| bytes[*at..].starts_with(b"EGRP"));
    let mut definitions = 0;
    for group in groups {
        let mut bytes = bytes.to_vec();
        bytes[group + 16] ^= 1;
        let files = changed(&database, path, Some(bytes));
        let (contents, salvaged) = oracle.salvage(&files, false).unwrap();
        assert!(!salvaged.may_have_lost_definitions && !salvaged.is_whole());
        assert_eq!(contents.definitions, database.contents.definitions);
        definitions += contents.definitions.len();
    }
    assert!(definitions > 0);
}

/// Sectors that cannot be read, as most damage is on a real disk.
#[test]
fn what_is_left_around_sectors_that_cannot_be_read_is_salvaged() {
    for_seeds(1, |seed| {
        let database = Database::make(seed);
        let oracle = Oracle::new(&database);
        let mut random = Random::new(seed);
        let (mut lost, mut sectors) = (0, 0);
        for (path, bytes) in &database.files {
            let many = bytes.len().div_ceil(512).min(24);
            let some = (0..many).map(|_| random.below(bytes.len()) as u64);
            for offset in some.chain([0]) {
                let disk = disk_of(&database.files);
                disk.wear_out(path, offset);
                let name = format!("{}: byte {offset} cannot be read", path.display());
                let (contents, salvaged) = oracle.salvage_disk(&disk, false).expect(&name);
                if let Err(error) = oracle.check(&contents, &salvaged) {
                    panic!("{name}: {error}");
                }
                lost += usize::from(contents != database.contents);
                sectors += 1;
            }
        }
        println!("{lost} of {sectors} sectors had something");
        assert!(lost > 10);
    });
}

fn changed(database: &Database, path: &Path, bytes: Option<Vec<u8>>) -> Files {
    database.with(path, bytes)
}

#[test]
fn of_a_whole_database_all_is_salvaged() {
    for_seeds(2, |seed| {
        let database = Database::make(seed);
        let oracle = Oracle::new(&database);
        let (contents, salvaged) = oracle.salvage(&database.files, true).unwrap();
        assert!(contents == database.contents);
        assert!(
            salvaged.is_whole() && !salvaged.may_have_lost_definitions,
            "{salvaged:?}"
        );
        // And without its manifest.
        let files = changed(&database, Path::new(MANIFEST), None);
        let (contents, salvaged) = oracle.salvage(&files, true).unwrap();
        assert!(contents == database.contents);
        assert!(salvaged.is_guessed && salvaged.lost_rows.is_empty());
    });
}

#[test]
fn what_a_flipped_bit_leaves_is_salvaged() {
    for_seeds(1, |seed| {
        let database = Database::make(seed);
        let mut random = Random::new(seed);
        let flips = database.files.iter().flat_map(|(path, bytes)| {
            let blocks = (0..bytes.len()).step_by(FLIPS);
            let at = blocks.map(|first| first + random.below(FLIPS.min(bytes.len() - first)));
            // And in all headers, where a bit says most.
            let at: Vec<usize> = at.chain(0..bytes.len().min(128)).collect();
            at.into_iter().map(move |at| (path, at))
        });
        let flips: Vec<(&PathBuf, usize)> = flips.collect();
        println!("{} bits", flips.len());
        let cases = flips.into_iter().map(|(path, at)| {
            let mut bytes = database.files[path].to_vec();
            bytes[at] ^= 1 << (at % 8);
            let name = format!("{}: a bit of byte {at} flips", path.display());
            (name, changed(&database, path, Some(bytes)))
        });
        Oracle::new(&database).try_all(cases);
    });
}

#[test]
fn what_is_left_of_files_that_are_cut_or_gone_is_salvaged() {
    for_seeds(1, |seed| {
        let database = Database::make(seed);
        let mut random = Random::new(seed);
        let mut cases: Vec<(String, Files)> = Vec::new();
        for (path, bytes) in &database.files {
            let name = |what: &str| format!("{}: {what}", path.display());
            cases.push((name("it is gone"), changed(&database, path, None)));
            let between = (0..6).map(|_| random.below(bytes.len()));
            let places = parts(bytes).into_iter().step_by(5);
            let places: BTreeSet<usize> =
                places.chain([0, bytes.len() - 1]).chain(between).collect();
            for at in places {
                let cut = changed(&database, path, Some(bytes[..at].to_vec()));
                cases.push((name(&format!("it is cut at {at}")), cut));
                // Zeros, as of a sector that a disk has given up.
                let mut zeroed = bytes.to_vec();
                let end = (at + 512).min(bytes.len());
                zeroed[at..end].fill(0);
                let zeroed = changed(&database, path, Some(zeroed));
                cases.push((name(&format!("zeros from {at} on")), zeroed));
            }
        }
        for kinds in 1..15u32 {
            let is_gone = |path: &Path| {
                let kinds_of = [MANIFEST, "log", "snapshots", "chunks"];
                let kind = kinds_of.iter().position(|kind| path.starts_with(kind));
                kinds >> kind.expect("a known kind") & 1 == 1
            };
            let mut files = database.files.clone();
            files.retain(|path, _| !is_gone(path));
            cases.push((format!("kinds {kinds:04b} are gone"), files));
        }
        println!("{} cases", cases.len());
        Oracle::new(&database).try_all(cases.into_iter());
    });
}

#[test]
fn older_files_and_those_of_another_database_are_salvaged_from() {
    for_seeds(1, |seed| {
        let (database, other) = (Database::make(seed), Database::make(seed + 1));
        let mut cases: Vec<(String, Files)> = Vec::new();
        for (nth, (before, _)) in database.before.iter().enumerate() {
            for (path, bytes) in before {
                let is_other = database.files.get(path).is_none_or(|now| now != bytes);
                if is_other && path != Path::new(MANIFEST) {
                    let name = format!("{} as after step {nth}", path.display());
                    cases.push((name, changed(&database, path, Some(bytes.to_vec()))));
                }
            }
        }
        let both = database
            .files
            .keys()
            .filter(|path| other.files.contains_key(*path));
        for path in both.filter(|path| *path != Path::new(MANIFEST)) {
            let bytes = other.files[path].to_vec();
            let name = format!("{}: that of another database", path.display());
            cases.push((name, changed(&database, path, Some(bytes))));
        }
        println!("{} cases", cases.len());
        // Nothing but the last file of a log says how far the log goes.
        let last = database.last_of_log().display().to_string();
        let may_be_earlier = |name: &str| name.starts_with(&format!("{last} as after"));
        Oracle::new(&database).try_with(cases.into_iter(), may_be_earlier);
    });
}

/// What a snapshot has is lost record by record, which no damage on a disk does: strings, ranges, objects.
#[test]
fn what_is_left_of_a_snapshot_without_some_records_is_salvaged() {
    for_seeds(1, |seed| {
        let database = Database::make(seed);
        let records = records_of_snapshot(&database.files);
        let oracle = Oracle::new(&database);
        let (mut lost_rows, wrong) = (0, Mutex::new(Vec::new()));
        for nth in 0..records.len() {
            let mut left = records.clone();
            // Definitions and objects are there twice.
            left.retain(|body| *body != records[nth]);
            let files = with_snapshot(&database.files, &left);
            let salvaged = oracle.salvage(&files, true);
            let (contents, salvaged) = salvaged.unwrap();
            lost_rows += salvaged.lost_rows.iter().map(|lost| lost.rows).sum::<u64>();
            // Nobody knows that a record is missing. So what is told is not compared, only what is there.
            let mut told = salvaged;
            told.is_guessed = true;
            told.check.findings.push(DatabaseFinding {
                path: PathBuf::new(),
                offset: 0,
                what: String::new(),
                table: None,
                commits: None,
            });
            if let Err(error) = oracle.check(&contents, &told) {
                wrong.lock().unwrap().push(format!("record {nth}: {error}"));
            }
        }
        let wrong = wrong.into_inner().unwrap();
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(lost_rows > 1_000, "{lost_rows}");
    });
}
