//! `eris bench sharing`: statements of several sessions that scan one table at the same time.
//!
//! ```text
//! session 1   SELECT count(*) … WHERE c BETWEEN a AND b   again and again    rows that are looked at per second,
//! session 2   SELECT count(*) … WHERE c BETWEEN d AND e   again and again    by all of them together
//! …
//! ```
//!
//! With sharing and without take turns, and their answers are compared. The limit of counts over one column: its bytes
//! come from memory once, as fast as all AEUs together read, and each statement compares them, as fast as that is in a
//! cache. Of counts over columns of several widths it is the sum of the times of these passes, one for each width.
//!
//! Behind these come the queries of the Star Schema Benchmark: eight sessions that ask all of them at the same time,
//! each from another one on, beside one session that asks as many.

use crate::figure::FigureShape;
use crate::report::BenchReport;
use crate::ssb::{self, SsbError, SsbSource};
use eris_engine::{Engine, Settings};
use eris_kernels::{Isa, MASK_WORDS, VECTOR, pack};
use eris_numa::Memory;
use eris_numa::measure::ReadBandwidth;
use eris_sql::{Database, Outcome, Session, SqlError};
use futures::executor::block_on;
use serde_json::json;
use std::hint::black_box;
use std::io;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

/// What to measure.
#[derive(Clone, Debug)]
pub struct SharingOptions {
    /// Rows of the table.
    pub rows: u64,
    /// Timed runs of each case, interleaved.
    pub runs: usize,
    /// The tables of the Star Schema Benchmark.
    pub ssb: SsbSource,
}

/// Why sharing could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum SharingBenchError {
    /// A statement failed.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// The Star Schema Benchmark could not be loaded, or a query of it failed.
    #[error(transparent)]
    Ssb(#[from] SsbError),
    /// There is no timer, by which memory is looked at.
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    /// Two ways have two answers.
    #[error("{statement} yields {shared} with sharing and {alone} without")]
    WrongAnswer {
        /// Which statement.
        statement: String,
        /// The answer with sharing.
        shared: String,
        /// The answer without.
        alone: String,
    },
}

/// Throughput by sessions, a figure for each case.
pub(crate) const FIGURES: [FigureShape; 1] = [FigureShape {
    name: "sharing",
    title: "Statements that scan one table:",
    x: "sessions",
    x_name: "sessions",
    is_log: true,
    figure: &["case"],
    line: &["sharing"],
    ..FigureShape::EMPTY
}];

/// Sessions at a time.
const SESSIONS: [usize; 5] = [1, 2, 4, 8, 16];

/// Sessions that ask the queries of the Star Schema Benchmark.
const SSB_SESSIONS: usize = 8;

/// Statements of a session in a run.
const STATEMENTS: usize = 4;

/// What is asked.
struct Case {
    name: &'static str,
    /// By session: the statement.
    statement: fn(usize) -> String,
    /// Bits of the column that is counted by, of sessions in turn; none if more is done.
    widths: &'static [u8],
}

const CASES: [Case; 5] = [
    Case {
        name: "counts, 4 bits",
        statement: narrow,
        widths: &[4],
    },
    Case {
        name: "counts, 63 bits",
        statement: wide,
        widths: &[63],
    },
    Case {
        name: "counts, 4 or 63 bits",
        statement: |session| match session % 2 {
            0 => narrow(session),
            _ => wide(session),
        },
        widths: &[4, 63],
    },
    Case {
        name: "sums of 63 bits, filters of 4",
        statement: |session| {
            format!(
                "SELECT sum(wide % 1000) FROM shared WHERE narrow > {}",
                4 + session % 8
            )
        },
        widths: &[],
    },
    Case {
        name: "groups",
        statement: |session| {
            format!(
                "SELECT kind, count(*), sum(narrow) FROM shared WHERE wide > {} GROUP BY kind ORDER BY kind",
                bound(session)
            )
        },
        widths: &[],
    },
];

fn narrow(session: usize) -> String {
    let low = session % 8;
    format!(
        "SELECT count(*) FROM shared WHERE narrow BETWEEN {low} AND {}",
        low + 5
    )
}

fn wide(session: usize) -> String {
    let low = bound(session);
    format!(
        "SELECT count(*) FROM shared WHERE wide BETWEEN {low} AND {}",
        low + (1 << 62)
    )
}

fn bound(session: usize) -> u64 {
    (session as u64 + 1) << 57
}

/// Rows per second of 1 to 16 sessions.
///
/// # Errors
/// [`SharingBenchError`].
pub fn run(settings: Settings, options: SharingOptions) -> Result<BenchReport, SharingBenchError> {
    let mut report = BenchReport::new("sharing", &settings.topology);
    let aeus = settings.topology.aeus().len();
    let limits = Limits::measure(&settings);
    let database = Database::open(Engine::home(settings).map_err(SqlError::from)?)?;
    let create = format!(
        "CREATE TABLE shared AS SELECT floor(random() * 16)::BIGINT AS narrow, \
         (random() * 9000000000000000000)::BIGINT AS wide, (i % 97)::INTEGER AS kind \
         FROM generate_series(1, {}) AS s(i)",
        options.rows
    );
    block_on(database.session().execute(create.as_str()))?;
    for case in CASES {
        for sessions in SESSIONS {
            let bench = CaseBench {
                case: &case,
                sessions,
                options: &options,
            };
            let limit = limits.rows(case.widths, sessions, aeus);
            bench.measure(&database, limit.map(|rows| rows / 1e6), &mut report)?;
        }
    }
    block_on(database.session().execute("DROP TABLE shared"))?;
    ssb_queries(&database, &options, &mut report)?;
    Ok(report)
}

/// The queries of the Star Schema Benchmark.
fn ssb_queries(
    database: &Database,
    options: &SharingOptions,
    report: &mut BenchReport,
) -> Result<(), SharingBenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(SharingBenchError::Runtime)?;
    let how = (SSB_SESSIONS, options.runs);
    let runs = runtime.block_on(ssb::beside_one(database, &options.ssb, how))?;
    for (sharing, runs) in ["on", "off"].into_iter().zip(runs) {
        for (sessions, each) in [(1, runs.alone), (runs.sessions, runs.together)] {
            let params = [("sessions", json!(sessions)), ("sharing", json!(sharing))];
            report.row("SSB queries", params, "queries/s", each, None);
        }
    }
    Ok(())
}

struct CaseBench<'a> {
    case: &'a Case,
    sessions: usize,
    options: &'a SharingOptions,
}

impl CaseBench<'_> {
    fn measure(
        &self,
        database: &Database,
        limit: Option<f64>,
        report: &mut BenchReport,
    ) -> Result<(), SharingBenchError> {
        let mut runs = [Vec::new(), Vec::new()];
        for _ in 0..self.options.runs {
            let mut answers = Vec::new();
            for (sharing, runs) in [true, false].into_iter().zip(&mut runs) {
                let (seconds, found) = self.run(database, sharing)?;
                let rows = self.options.rows as f64 * (self.sessions * STATEMENTS) as f64;
                runs.push(rows / seconds / 1e6);
                answers.push(found);
            }
            let pairs = answers[0].iter().zip(&answers[1]).enumerate();
            for (session, (shared, alone)) in pairs {
                if shared != alone {
                    return Err(SharingBenchError::WrongAnswer {
                        statement: (self.case.statement)(session),
                        shared: shared.clone(),
                        alone: alone.clone(),
                    });
                }
            }
        }
        for (sharing, runs) in ["on", "off"].into_iter().zip(runs) {
            let params = [
                ("sessions", json!(self.sessions)),
                ("sharing", json!(sharing)),
            ];
            report.row(self.case.name, params, "million rows/s", runs, limit);
        }
        Ok(())
    }

    /// All sessions at a time; their seconds and answers.
    fn run(&self, database: &Database, sharing: bool) -> Result<(f64, Vec<String>), SqlError> {
        let set = format!("SET scan_sharing = {sharing}");
        let sessions: Vec<Session> = (0..self.sessions).map(|_| database.session()).collect();
        for session in &sessions {
            block_on(session.execute(set.as_str()))?;
        }
        let start = Barrier::new(self.sessions + 1);
        thread::scope(|scope| {
            let threads: Vec<_> = (sessions.iter().enumerate())
                .map(|(number, session)| {
                    let statement = (self.case.statement)(number);
                    let start = &start;
                    scope.spawn(move || {
                        start.wait();
                        let mut answer = String::new();
                        for _ in 0..STATEMENTS {
                            answer = ask(session, &statement)?;
                        }
                        Ok(answer)
                    })
                })
                .collect();
            start.wait();
            let began = Instant::now();
            let answers = threads
                .into_iter()
                .map(|thread| thread.join().expect("it does not panic"));
            let answers = answers.collect::<Result<Vec<String>, SqlError>>()?;
            Ok((began.elapsed().as_secs_f64(), answers))
        })
    }
}

fn ask(session: &Session, statement: &str) -> Result<String, SqlError> {
    match block_on(session.execute(statement))? {
        Outcome::Rows(rows) => Ok(format!("{:?}", block_on(rows.collect())?)),
        Outcome::Count { .. } | Outcome::Done { .. } => Ok(String::new()),
    }
}

/// What limits counts.
struct Limits {
    /// Bytes that all AEUs read per second.
    read: f64,
}

impl Limits {
    fn measure(settings: &Settings) -> Self {
        let topology = &settings.topology;
        let memory = Memory::new(topology, settings.huge_pages, None).ok();
        let measured = memory.and_then(|memory| ReadBandwidth::measure(topology, &memory).ok());
        let of_node = |node: &eris_numa::Node| {
            measured
                .as_ref()
                .map_or(f64::INFINITY, |measured| measured.of_node(node.id))
        };
        Limits {
            read: topology.nodes().iter().map(of_node).sum(),
        }
    }

    /// Rows that so many statements look at per second, which count by columns of these widths in turn. `None` if there
    /// are no widths.
    fn rows(&self, widths: &[u8], statements: usize, aeus: usize) -> Option<f64> {
        let cores = thread::available_parallelism()
            .map_or(1, usize::from)
            .min(aeus);
        // Seconds of a row: each column comes once, and its statements compare it.
        let pass = |(first, width): (usize, &u8)| {
            let sharers = statements.saturating_sub(first).div_ceil(widths.len());
            if sharers == 0 {
                return 0.0;
            }
            let compares = compare_seconds(*width) * sharers as f64 / cores as f64;
            f64::from(*width) / 8.0 / self.read + compares
        };
        let seconds: f64 = widths.iter().enumerate().map(pass).sum();
        (!widths.is_empty()).then(|| statements as f64 / seconds)
    }
}

/// Seconds to compare a row in the first-level cache.
fn compare_seconds(width: u8) -> f64 {
    const VECTORS: usize = 2;
    const TIMES: usize = 20_000;
    let isa = Isa::best();
    let mut words = vec![0; VECTORS * MASK_WORDS * usize::from(width)];
    let mut values = [0; VECTOR];
    for (row, value) in values.iter_mut().enumerate() {
        *value = (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - width);
    }
    for out in words.chunks_exact_mut(MASK_WORDS * usize::from(width)) {
        pack(&values, width, out);
    }
    let high = 1 << (width - 1);
    let best = (0..5).map(|_| {
        let began = Instant::now();
        for low in 0..TIMES as u64 {
            black_box(isa.count_between(width, black_box(&words), low % high, high));
        }
        began.elapsed().as_secs_f64()
    });
    best.fold(f64::MAX, f64::min) / (TIMES * VECTORS * VECTOR) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_of_several_widths_come_one_after_the_other() {
        // So little is read that comparing takes no time beside it.
        let limits = Limits { read: 1e4 };
        let seconds = |widths: &[u8], statements: usize| {
            let rows = limits.rows(widths, statements, 2).unwrap();
            statements as f64 / rows * limits.read
        };
        let is = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.01);
        is(seconds(&[63], 8), 63.0 / 8.0);
        is(seconds(&[4, 63], 8), 67.0 / 8.0);
        // One statement has one width.
        is(seconds(&[4, 63], 1), 0.5);
        assert_eq!(limits.rows(&[], 8, 2), None);
    }
}
