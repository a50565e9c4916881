//! `eris bench commit`: what a commit costs on a disk, beside the disk.
//!
//! ```text
//! one round                     beside
//! flush                         4 KiB over bytes that are there, then flushed: nothing durable takes less
//! upsert, update                the flush; several sessions, which share flushes: beside one session
//! lookup of a key               beside upserts of that key: beside the same lookups alone
//! upsert, nobody waits          upserts in memory
//! load                          a load into memory; the same bytes written to a plain file
//! recover                       upserts in memory; an empty database, in flushes
//! checkpoint                    one after 1 % of the rows has changed; upserts meanwhile: beside upserts alone
//! ```
//!
//! Rounds follow each other, and each has all cases. So a slow minute of the disk meets all of them, and ratios are
//! made within a round. Each case has a database of its own, whose table has 100,000 rows. What was acknowledged is
//! looked for in the end. A database is opened again while the system still has its files in memory.
//!
//! A thread that a flush wakes up needs a core. Where other programs use all of them, it may wait for the kernel's next
//! tick, and the flush seems to take that long.

mod disk;
mod figures;
mod scratch;
mod sessions;

use crate::report::BenchReport;
use crate::ssb::{self, SsbError, SsbSource};
use disk::{Directory, FLUSHED};
use eris_engine::{Settings, Synchronous};
use eris_sql::{Database, SqlError};
use figures::Figures;
use futures::executor::block_on;
use scratch::{Scratch, UpdateWay, check, close, lookups, updates, upserts, upserts_of_one};
use serde_json::json;
use sessions::{Act, Ran, at_once};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Debug)]
pub struct CommitOptions {
    /// The databases' directories are made in this one, and removed.
    pub directory: PathBuf,
    /// Rounds: each has all cases.
    pub rounds: usize,
    /// How long a case of a round lasts, if it is one of acts that are repeated.
    pub time: Duration,
    /// The tables that are loaded.
    pub source: SsbSource,
}

/// Why commits could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum CommitBenchError {
    /// A statement failed.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// The tables could not be loaded.
    #[error(transparent)]
    Load(#[from] SsbError),
    /// The disk failed.
    #[error("{directory}: {source}", directory = directory.display())]
    Disk {
        /// In which directory.
        directory: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something acknowledged is not there.
    #[error("{what} is {got} instead of {expected}; its time would mean nothing")]
    WrongAnswer {
        /// Of what.
        what: &'static str,
        /// What there is.
        got: i64,
        /// What was acknowledged.
        expected: i64,
    },
}

impl CommitBenchError {
    fn disk(directory: &Path, source: io::Error) -> Self {
        CommitBenchError::Disk {
            directory: directory.to_owned(),
            source,
        }
    }

    /// Fails unless two numbers are equal.
    fn unless_equal(what: &'static str, got: i64, expected: i64) -> Result<(), Self> {
        let wrong = CommitBenchError::WrongAnswer {
            what,
            got,
            expected,
        };
        if got == expected { Ok(()) } else { Err(wrong) }
    }
}

/// Sessions that upsert at the same time, beside one.
const UPSERTING: usize = 16;
/// Sessions that update at the same time, beside one.
const UPDATING: usize = 8;
/// The key that is looked up while it is changed.
const KEY: i64 = 4_711;

/// What commits, loads and recoveries take, beside the disk.
///
/// # Errors
/// [`CommitBenchError`].
pub fn run(settings: &Settings, options: &CommitOptions) -> Result<BenchReport, CommitBenchError> {
    let mut report = BenchReport::new("commit", &settings.topology);
    let mut figures = Figures::default();
    for _ in 0..options.rounds {
        let mut round = Round {
            settings,
            options,
            figures: &mut figures,
        };
        let flush = round.flush()?;
        round.upserts(&flush)?;
        round.updates(&flush)?;
        round.lookups()?;
        round.upserts_off()?;
        round.loads()?;
        round.checkpoints()?;
        round.open_empty(&flush)?;
    }
    figures.report(&mut report);
    Ok(report)
}

/// One round: a method has the cases that are compared with each other.
struct Round<'a> {
    settings: &'a Settings,
    options: &'a CommitOptions,
    figures: &'a mut Figures,
}

impl Round<'_> {
    fn flush(&mut self) -> Result<Ran, CommitBenchError> {
        let directory = Directory(&self.options.directory);
        let flushes = directory.flushes(self.options.time)?;
        let params = [("bytes", json!(FLUSHED)), ("disk", json!(directory.disk()))];
        self.figures.waits("flush", &params, &flushes, None);
        Ok(flushes)
    }

    /// A case by one session, and by several that share flushes. At most all of them share each.
    fn shared(
        &mut self,
        case: &'static str,
        most: usize,
        flush: &Ran,
        mut run: impl FnMut(&mut Self, usize) -> Result<Ran, CommitBenchError>,
    ) -> Result<(), CommitBenchError> {
        let mut alone = 0.0;
        for sessions in [1, most] {
            let ran = run(self, sessions)?;
            let (rate, limit) = (ran.rate(), sessions as f64 / flush.percentile(50));
            let params = [("sessions", json!(sessions))];
            self.figures.waits(case, &params, &ran, Some(flush));
            (self.figures).note(case, &params, "per second", rate, Some(limit));
            match sessions {
                1 => alone = rate,
                _ => (self.figures).note(case, &params, "× one session", rate / alone, None),
            }
        }
        Ok(())
    }

    fn upserts(&mut self, flush: &Ran) -> Result<(), CommitBenchError> {
        self.shared("upsert", UPSERTING, flush, |round, sessions| {
            let scratch = round.durable(Synchronous::On)?;
            Ok(round.upserted("upsert", scratch, sessions)?.0)
        })
    }

    /// Nobody waits for the disk: beside upserts in memory. What the log has then is made again.
    fn upserts_off(&mut self) -> Result<(), CommitBenchError> {
        const CASES: [&str; 2] = ["upsert in memory", "upsert off"];
        let (in_memory, _) = self.upserted(CASES[0], Scratch::in_memory(self.settings), 1)?;
        let (off, scratch) = self.upserted(CASES[1], self.durable(Synchronous::Off)?, 1)?;
        let (limit, params) = (in_memory.rate(), [("sessions", json!(1))]);
        for (case, ran, beside) in [
            (CASES[0], &in_memory, None),
            (CASES[1], &off, Some(&in_memory)),
        ] {
            self.figures.waits(case, &params, ran, beside);
            let (rate, limit) = (ran.rate(), beside.map(Ran::rate));
            (self.figures).note(case, &params, "per second", rate, limit);
        }
        let (database, seconds) = opened(&scratch)?;
        check_upserts(&database, off.count())?;
        close(database)?;
        let rate = off.count() as f64 / seconds;
        let params = [("of", json!("upserts"))];
        (self.figures).note("recover", &params, "rows per second", rate, Some(limit));
        Ok(())
    }

    /// Upserts of several sessions into a new database, which is closed then; with the bytes of log that they took.
    fn upserted(
        &mut self,
        case: &'static str,
        scratch: Scratch,
        sessions: usize,
    ) -> Result<(Ran, Scratch), CommitBenchError> {
        let (database, log_before) = scratch.with_table()?;
        let acts = (0..sessions).map(|session| upserts(&database, session, sessions));
        let rans = at_once(acts.collect::<Result<_, _>>()?, self.options.time)?;
        // The last one of the session that has done most.
        let most = rans.iter().map(Ran::count).max().unwrap_or(0);
        check_upserts(&database, most)?;
        close(database)?;
        let ran = Ran::together(rans);
        let bytes = scratch.log_bytes()?;
        if bytes > 0 {
            let params = [("sessions", json!(sessions))];
            let bytes = (bytes as f64 - log_before as f64) / ran.count() as f64;
            (self.figures).note(case, &params, "bytes of log", bytes, None);
        }
        Ok((ran, scratch))
    }

    fn updates(&mut self, flush: &Ran) -> Result<(), CommitBenchError> {
        let scratch = self.durable(Synchronous::On)?;
        let (database, _) = scratch.with_table()?;
        let mut acknowledged = 0;
        for (way, case) in [
            (UpdateWay::ByKey, "update by key"),
            (UpdateWay::ByQuery, "update by query"),
        ] {
            self.shared(case, UPDATING, flush, |round, sessions| {
                let acts = (0..sessions).map(|session| updates(&database, way, session, sessions));
                let rans = at_once(acts.collect::<Result<_, _>>()?, round.options.time)?;
                let ran = Ran::together(rans);
                acknowledged += ran.count();
                let sum = "SELECT sum(v)::BIGINT FROM t";
                check(&database, "the sum of updates", sum, acknowledged)?;
                Ok(ran)
            })?;
        }
        close(database)
    }

    /// A reader of a key waits for nobody who changes it.
    fn lookups(&mut self) -> Result<(), CommitBenchError> {
        let scratch = self.durable(Synchronous::On)?;
        let (database, _) = scratch.with_table()?;
        let mut of_readers = |with: Vec<Act>, beside: &'static str| {
            let acts = [lookups(&database, KEY)?].into_iter().chain(with);
            let rans = at_once(acts.collect(), self.options.time)?;
            let params = [("beside", json!(beside))];
            self.figures.waits("lookup", &params, &rans[0], None);
            Ok::<_, CommitBenchError>(rans[0].percentile(50))
        };
        let alone = of_readers(Vec::new(), "nothing")?;
        let upserts = vec![upserts_of_one(&database, KEY)?];
        let beside = of_readers(upserts, "upserts of its key")?;
        let params = [("beside", json!("upserts of its key")), ("p", json!(50))];
        (self.figures).note("lookup", &params, "× alone", beside / alone, None);
        close(database)
    }

    /// The tables of the Star Schema Benchmark, loaded and opened again. Megabytes are those of the directory: also
    /// those of the load into memory, so that the two can be compared.
    fn loads(&mut self) -> Result<(), CommitBenchError> {
        let mut seconds_in_memory = 0.0;
        // Only the second one counts: whoever uses memory first waits for it.
        for _ in 0..2 {
            let (database, _, seconds) = self.loaded(&Scratch::in_memory(self.settings))?;
            close(database)?;
            seconds_in_memory = seconds;
        }
        let scratch = self.durable(Synchronous::On)?;
        let (database, rows, seconds) = self.loaded(&scratch)?;
        close(database)?;
        let bytes = scratch.bytes()?;
        let megabytes = bytes as f64 / 1e6;
        let plain = Directory(&self.options.directory).write(bytes)?;
        let figures = &mut *self.figures;
        let scale = json!(self.options.source.scale.factor());
        let limit = Some(megabytes / plain);
        for (into, seconds, limit) in [
            ("memory", seconds_in_memory, None),
            ("a directory", seconds, limit),
        ] {
            let params = [("into", json!(into)), ("scale", scale.clone())];
            figures.note("load", &params, "s", seconds, None);
            figures.note("load", &params, "MB/s", megabytes / seconds, limit);
        }
        let params = [("into", json!("a directory")), ("scale", scale.clone())];
        let ratio = seconds / seconds_in_memory;
        figures.note("load", &params, "× in memory", ratio, None);
        figures.note("load", &params, "MB", megabytes, None);

        let (database, seconds) = opened(&scratch)?;
        check_tables(&database, rows)?;
        close(database)?;
        let params = [("of", json!("loaded tables")), ("scale", scale)];
        figures.note("recover", &params, "s", seconds, None);
        figures.note("recover", &params, "MB/s", megabytes / seconds, None);
        let ratio = seconds / seconds_in_memory;
        figures.note("recover", &params, "× load in memory", ratio, None);
        Ok(())
    }

    /// Checkpoints of the tables of the Star Schema Benchmark, and upserts of another table meanwhile.
    fn checkpoints(&mut self) -> Result<(), CommitBenchError> {
        let scratch = self.durable(Synchronous::On)?;
        let (database, _) = scratch.with_table()?;
        block_on(ssb::load(&database.session(), &self.options.source))?;
        let change = "UPDATE lineorder SET lo_tax = lo_tax + 1 WHERE lo_orderkey % 100 = 7";
        for (of, sql) in [
            ("loaded tables", "SELECT 1"),
            ("1 % of the orders changed", change),
        ] {
            block_on(database.session().execute(sql))?;
            let begun = Instant::now();
            let written = checkpoint(&database)?;
            let (seconds, params) = (begun.elapsed().as_secs_f64(), [("of", json!(of))]);
            (self.figures).note("checkpoint", &params, "s", seconds, None);
            (self.figures).note("checkpoint", &params, "MB", written as f64 / 1e6, None);
        }
        let mut of_writers = |with: Option<Act>, session: usize, beside: &'static str| {
            let acts = [upserts(&database, session, 2)?].into_iter().chain(with);
            let rans = at_once(acts.collect(), self.options.time)?;
            let params = [("beside", json!(beside)), ("sessions", json!(1))];
            self.figures.waits("upsert", &params, &rans[0], None);
            Ok::<_, CommitBenchError>(rans[0].percentile(50))
        };
        let alone = of_writers(None, 0, "nothing")?;
        let makes_them = database.clone();
        let act: Act = Box::new(move || checkpoint(&makes_them).map(|_| ()));
        let beside = of_writers(Some(act), 1, "checkpoints")?;
        let params = [("beside", json!("checkpoints")), ("p", json!(50))];
        (self.figures).note("upsert", &params, "× alone", beside / alone, None);
        close(database)
    }

    /// A database with the tables, the number of its rows, and the seconds that loading took.
    fn loaded(&self, scratch: &Scratch) -> Result<(Database, u64, f64), CommitBenchError> {
        let database = scratch.open()?;
        let loaded = block_on(ssb::load(&database.session(), &self.options.source))?;
        check_tables(&database, loaded.rows)?;
        Ok((database, loaded.rows, loaded.time.as_secs_f64()))
    }

    fn open_empty(&mut self, flush: &Ran) -> Result<(), CommitBenchError> {
        let scratch = self.durable(Synchronous::On)?;
        close(scratch.open()?)?;
        let (database, seconds) = opened(&scratch)?;
        close(database)?;
        let params = [("of", json!("nothing"))];
        self.figures.note("recover", &params, "s", seconds, None);
        let flushes = seconds / flush.percentile(50);
        (self.figures).note("recover", &params, "flushes", flushes, None);
        Ok(())
    }

    fn durable(&self, synchronous: Synchronous) -> Result<Scratch, CommitBenchError> {
        Scratch::below(&self.options.directory, self.settings, synchronous)
    }
}

/// A database that is opened, and the seconds that this takes.
fn opened(scratch: &Scratch) -> Result<(Database, f64), CommitBenchError> {
    let begun = Instant::now();
    let database = scratch.open()?;
    Ok((database, begun.elapsed().as_secs_f64()))
}

/// Makes a checkpoint; the bytes that it has written.
fn checkpoint(database: &Database) -> Result<u64, CommitBenchError> {
    let durability = database.home().durability();
    let durability = durability.expect("it has a directory");
    let made = block_on(durability.checkpoint()).map_err(SqlError::from)?;
    Ok(made.bytes + made.chunk_bytes)
}

fn check_upserts(database: &Database, count: usize) -> Result<(), CommitBenchError> {
    let sql = "SELECT max(v) FROM t";
    check(database, "the number of the last upsert", sql, count)
}

fn check_tables(database: &Database, rows: u64) -> Result<(), CommitBenchError> {
    let tables = eris_ssb::SsbTable::ALL.map(|table| format!("(SELECT count(*) FROM {table})"));
    let sql = format!("SELECT {}", tables.join(" + "));
    check(database, "the number of loaded rows", &sql, rows as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_numa::{HugePages, Topology};
    use eris_ssb::Scale;

    #[test]
    fn every_case_is_there_once_a_round() {
        let settings = Settings {
            topology: Topology::fake(1, 2),
            huge_pages: HugePages::Never,
            memory_limit: Some(256 << 20),
            database: None,
        };
        let files = tempfile::tempdir().expect("a place for files");
        let options = CommitOptions {
            directory: files.path().to_owned(),
            rounds: 2,
            time: Duration::from_millis(20),
            source: SsbSource {
                scale: Scale::new(0.001).expect("in range"),
                data: None,
                cache: files.path().join("cache"),
            },
        };
        let report = run(&settings, &options).expect("it measures");
        for row in &report.rows {
            assert_eq!(row.runs.len(), 2, "{row:?}");
            assert!(row.runs.iter().all(|value| *value > 0.0), "{row:?}");
        }
        let units = |case: &str| {
            let rows = report.rows.iter().filter(|row| row.case == case);
            let mut units: Vec<&str> = rows.map(|row| row.unit.as_str()).collect();
            units.dedup();
            units.join(", ")
        };
        for (case, expected) in [
            ("flush", "µs"),
            (
                "upsert",
                "bytes of log, µs, per second, bytes of log, µs, per second, × one session, µs, × alone",
            ),
            ("upsert in memory", "µs, per second"),
            ("upsert off", "bytes of log, µs, per second"),
            (
                "update by key",
                "µs, per second, µs, per second, × one session",
            ),
            (
                "update by query",
                "µs, per second, µs, per second, × one session",
            ),
            ("lookup", "µs, × alone"),
            ("checkpoint", "s, MB, s, MB"),
            ("load", "s, MB/s, s, MB/s, × in memory, MB"),
            (
                "recover",
                "rows per second, s, MB/s, × load in memory, s, flushes",
            ),
        ] {
            assert_eq!(units(case), expected, "{case}");
        }
        let left: Vec<_> = std::fs::read_dir(files.path())
            .expect("it is there")
            .map(|entry| entry.expect("readable").file_name())
            .collect();
        assert_eq!(left, ["cache"], "databases and files are removed");
    }
}
