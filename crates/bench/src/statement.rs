//! `eris bench statement`: what a short statement costs, from its text to its answer.
//!
//! ```text
//! planned    a text that the plan cache does not take, for there is a comment in it
//! text       a text with constants never seen before
//! prepared   the same, prepared once and executed with values
//! rows       the same by the engine's own interface, without SQL
//! ```
//!
//! In a closed loop a client asks again as soon as it has its answer; paced, it asks so rarely that every thread of the
//! engine sleeps when it comes. Beside a star query that reads the whole table all the time it waits for slices of
//! that. Readers beside a writer must not feel it: one that statistics of the chunks answer for the most part, and one
//! that reads every row. What is read is compared with what was written.

mod client;

use crate::report::BenchReport;
use client::{Kind, StatementClient, Way};
use eris_engine::{Engine, Settings};
use eris_sql::{Database, Outcome, Session, SqlError};
use futures::executor::block_on;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct StatementOptions {
    /// Rows of the table that is scanned.
    pub rows: u64,
    /// Rows of the table with a key.
    pub keys: u64,
    /// Timed runs of each case, interleaved.
    pub runs: usize,
    /// Statements of a run in a closed loop.
    pub statements: usize,
}

/// Why statements could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum StatementBenchError {
    /// A statement failed.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// The answer was wrong.
    #[error("{statement} yields {got:?} instead of {expected}; its time would mean nothing")]
    WrongAnswer {
        /// Which statement.
        statement: String,
        /// What it answered.
        got: Option<i64>,
        /// The right answer.
        expected: i64,
    },
}

/// Queries of a reader's run.
const READS: usize = 20;
/// Statements of a paced run, one per millisecond on average.
const PACED: usize = 200;
const PACE: Duration = Duration::from_millis(1);
/// The golden ratio: its multiples spread evenly over what lies behind the point.
const SPREAD: f64 = 0.618_033_988_749_895;

/// Times of short statements, by how they are asked and how often.
///
/// # Errors
/// [`StatementBenchError`].
pub fn run(
    settings: Settings,
    options: StatementOptions,
) -> Result<BenchReport, StatementBenchError> {
    let mut report = BenchReport::new("statement", &settings.topology);
    let database = Database::open(Engine::home(settings).map_err(SqlError::from)?)?;
    let session = database.session();
    for sql in [
        format!(
            "CREATE TABLE scanned AS SELECT i AS k, i * 3 AS v FROM generate_series(0, {}) AS s(i)",
            options.rows - 1
        ),
        "CREATE TABLE keyed (k BIGINT PRIMARY KEY, v BIGINT, a INTEGER, b DOUBLE)".to_owned(),
        format!(
            "INSERT INTO keyed SELECT i, i * 3, i % 1000, i / 8.0 FROM generate_series(0, {}) AS s(i)",
            options.keys - 1
        ),
        "CREATE TABLE kinds AS SELECT i AS a, 'kind ' || i % 7 AS kind FROM generate_series(0, 999) AS s(i)"
            .to_owned(),
    ] {
        // Not from a thread of the database's, as a user's program.
        block_on(session.execute(sql.as_str()))?;
    }
    let mut client = StatementClient::new(&session, options.rows, options.keys)?;
    let closed = Loop {
        case: "closed loop",
        count: options.statements,
        pause: Duration::ZERO,
    };
    let paced = |case| Loop {
        case,
        count: PACED,
        pause: PACE,
    };
    let runs = options.runs;
    measure(&closed, |_| true, &mut client, &mut report, runs)?;
    let is_known = |way| way != Way::Planned;
    measure(&paced("paced"), is_known, &mut client, &mut report, runs)?;
    let reader = database.session();
    let query = "SELECT kind, sum(v), avg(b) FROM keyed JOIN kinds USING (a) WHERE kind > 'kind 1' GROUP BY kind";
    let paced = paced("beside a star query");
    beside(
        |stop| repeat(&reader, query, stop),
        || measure(&paced, is_known, &mut client, &mut report, runs),
    )?;
    reader_beside_writer(&database, &mut client, &mut report, options)?;
    Ok(report)
}

/// How often statements are asked.
struct Loop {
    case: &'static str,
    /// In a run.
    count: usize,
    /// Before each, on average.
    pause: Duration,
}

impl Loop {
    /// The pause before a statement: between half of the average and half as much again. A query beside is done in
    /// steps that take as long each, and a pause of one length would meet all of them at the same place.
    fn pause(&self, statement: usize) -> Duration {
        self.pause
            .mul_f64(0.5 + (statement as f64 * SPREAD).fract())
    }
}

/// Planning takes so much longer that fewer statements tell as much.
const PLANNED_SHARE: usize = 10;

/// Interleaved runs of every statement, in the ways that are wanted.
fn measure(
    of: &Loop,
    is_wanted: impl Fn(Way) -> bool,
    client: &mut StatementClient,
    report: &mut BenchReport,
    runs: usize,
) -> Result<(), StatementBenchError> {
    let asked: Vec<(Kind, Way)> = Kind::ALL
        .into_iter()
        .flat_map(|kind| kind.ways().iter().map(move |way| (kind, *way)))
        .filter(|(_, way)| is_wanted(*way))
        .collect();
    let mut medians = vec![Vec::new(); asked.len()];
    let mut tails = medians.clone();
    for _ in 0..runs {
        for (number, (kind, way)) in asked.iter().enumerate() {
            let count = match way {
                Way::Planned => of.count.div_ceil(PLANNED_SHARE),
                _ => of.count,
            };
            let mut times = Vec::with_capacity(count);
            for statement in 0..count {
                thread::sleep(of.pause(statement));
                times.push(client.ask(*kind, *way)?);
            }
            times.sort_unstable();
            medians[number].push(microseconds(times[count / 2]));
            tails[number].push(microseconds(times[count * 99 / 100]));
        }
    }
    for (((kind, way), medians), tails) in asked.iter().zip(medians).zip(tails) {
        for (percentile, times) in [(50, medians), (99, tails)] {
            let params = [
                ("statement", json!(kind.name())),
                ("way", json!(way.name())),
                ("rows", json!(client.rows(*kind))),
                ("p", json!(percentile)),
            ];
            report.row(of.case, params, "µs", times, None);
        }
    }
    Ok(())
}

/// Does `main` while another thread does `other`, which is told when to stop.
fn beside<T>(
    other: impl FnOnce(&AtomicBool) -> Result<(), StatementBenchError> + Send,
    main: impl FnOnce() -> Result<T, StatementBenchError>,
) -> Result<T, StatementBenchError> {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let other = scope.spawn(|| other(&stop));
        let done = main();
        stop.store(true, Ordering::Relaxed);
        match other.join() {
            Ok(ended) => ended.and(done),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn repeat(session: &Session, sql: &str, stop: &AtomicBool) -> Result<(), StatementBenchError> {
    while !stop.load(Ordering::Relaxed) {
        if let Outcome::Rows(rows) = block_on(session.execute(sql))? {
            block_on(rows.collect())?;
        }
    }
    Ok(())
}

/// What readers ask for, and its name.
const READERS: [(&str, &str); 2] = [
    (
        "count by statistics",
        "SELECT count(*) FROM keyed WHERE v BETWEEN 1000 AND 900000",
    ),
    ("sum of all rows", "SELECT sum(b) FROM keyed"),
];

/// Times of queries over the whole table, alone and while rows of it are changed without a pause.
fn reader_beside_writer(
    database: &Database,
    client: &mut StatementClient,
    report: &mut BenchReport,
    options: StatementOptions,
) -> Result<(), StatementBenchError> {
    let reader = database.session();
    for (name, query) in READERS {
        let (mut alone, mut accompanied) = (Vec::new(), Vec::new());
        for _ in 0..options.runs {
            alone.push(read(&reader, query)?);
            beside(
                |stop| {
                    while !stop.load(Ordering::Relaxed) {
                        client.ask(Kind::Upsert, Way::Prepared)?;
                    }
                    Ok(())
                },
                || read(&reader, query).map(|time| accompanied.push(time)),
            )?;
        }
        for (case, times) in [
            ("reader alone", alone),
            ("reader beside a writer", accompanied),
        ] {
            let params = [
                ("statement", json!(name)),
                ("way", json!("text")),
                ("rows", json!(options.keys)),
                ("p", json!(50)),
            ];
            report.row(case, params, "µs", times, None);
        }
    }
    Ok(())
}

/// Microseconds that a query takes, as the median of some.
fn read(reader: &Session, query: &str) -> Result<f64, StatementBenchError> {
    let mut times = Vec::with_capacity(READS);
    for _ in 0..READS {
        let begun = Instant::now();
        if let Outcome::Rows(rows) = block_on(reader.execute(query))? {
            block_on(rows.collect())?;
        }
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    Ok(microseconds(times[times.len() / 2]))
}

fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_numa::{HugePages, Topology};

    #[test]
    fn every_way_is_right() {
        let settings = Settings {
            topology: Topology::fake(1, 2),
            huge_pages: HugePages::Never,
            memory_limit: Some(256 << 20),
            database: None,
        };
        let options = StatementOptions {
            rows: 5000,
            keys: 20_000,
            runs: 1,
            statements: 50,
        };
        let report = run(settings, options).unwrap();
        let ways: usize = Kind::ALL.iter().map(|kind| kind.ways().len()).sum();
        // Planned in the closed loop only.
        let rows = 2 * (3 * ways - 2 * Kind::ALL.len()) + 2 * READERS.len();
        assert_eq!(report.rows.len(), rows);
        assert!(report.rows.iter().all(|row| row.value > 0.0), "{report:?}");
    }
}
