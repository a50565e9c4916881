//! `eris bench statement`: what a short statement costs, from its text to its answer.
//!
//! ```text
//! planned    a text that the plan cache does not take, for there is a comment in it
//! text       a text with constants never seen before
//! prepared   the same, prepared once and executed with values
//! ```
//!
//! In a closed loop a client asks again as soon as it has its answer; paced, it asks so rarely that every thread of the engine
//! sleeps when it comes. The answers are compared with what is known to be in the table.

use crate::report::Report;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use eris_engine::Settings;
use eris_sql::{Database, Outcome, PreparedStatement, Session, SqlError};
use futures::executor::block_on;
use serde_json::json;
use std::thread;
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct StatementOptions {
    /// Rows of the table.
    pub rows: u64,
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

/// Statements of a paced run, one per millisecond.
const PACED: usize = 100;
const PACE: Duration = Duration::from_millis(1);

/// Times of one statement, by how it is asked and how often.
///
/// # Errors
/// [`StatementBenchError`].
pub fn run(settings: Settings, options: StatementOptions) -> Result<Report, StatementBenchError> {
    let mut report = Report::new("statement", &settings.topology);
    let database = Database::open(settings)?;
    let session = database.session();
    let create = format!(
        "CREATE TABLE t AS SELECT i AS k, i * 3 AS v FROM generate_series(0, {}) AS s(i)",
        options.rows - 1
    );
    // Not from a thread of the database's, as a user's program.
    block_on(session.execute(&create))?;
    let prepared = block_on(session.prepare("SELECT sum(v) FROM t WHERE k = $1"))?;
    let client = Client {
        session,
        prepared,
        rows: options.rows,
    };
    let ways = [Way::Planned, Way::Text, Way::Prepared];
    let mut next = 0;
    for (case, count, pause) in [
        ("closed loop", options.statements, Duration::ZERO),
        ("paced", PACED, PACE),
    ] {
        let mut medians = vec![Vec::new(); ways.len()];
        let mut tails = medians.clone();
        for _ in 0..options.runs {
            for (number, way) in ways.iter().enumerate() {
                let mut times = Vec::with_capacity(count);
                for _ in 0..count {
                    thread::sleep(pause);
                    next += 1;
                    times.push(client.ask(*way, next)?);
                }
                times.sort_unstable();
                medians[number].push(microseconds(times[count / 2]));
                tails[number].push(microseconds(times[count * 99 / 100]));
            }
        }
        for ((way, medians), tails) in ways.iter().zip(medians).zip(tails) {
            for (percentile, times) in [(50, medians), (99, tails)] {
                let params = [
                    ("statement", json!(way.name())),
                    ("rows", json!(options.rows)),
                    ("p", json!(percentile)),
                ];
                report.row(case, params, "µs", times, None);
            }
        }
    }
    Ok(report)
}

/// How a statement is asked.
#[derive(Clone, Copy)]
enum Way {
    Planned,
    Text,
    Prepared,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Planned => "planned",
            Way::Text => "text",
            Way::Prepared => "prepared",
        }
    }
}

struct Client {
    session: Session,
    prepared: PreparedStatement,
    rows: u64,
}

impl Client {
    /// Asks for the n-th row of some order; how long it took.
    fn ask(&self, way: Way, n: u64) -> Result<Duration, StatementBenchError> {
        let key = (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) % self.rows) as i64;
        let text = match way {
            Way::Planned => format!("SELECT sum(v) FROM t WHERE k = {key} -- planned"),
            Way::Text | Way::Prepared => format!("SELECT sum(v) FROM t WHERE k = {key}"),
        };
        let begun = Instant::now();
        let got = block_on(async {
            let outcome = match way {
                Way::Planned | Way::Text => self.session.execute(text.as_str()).await?,
                Way::Prepared => self.prepared.execute(&[key.into()]).await?,
            };
            let Outcome::Rows(rows) = outcome else {
                unreachable!("a SELECT yields rows");
            };
            rows.collect().await
        })?;
        let took = begun.elapsed();
        let got = got
            .first()
            .map(|batch| batch.column(0).as_primitive::<Int64Type>().value(0));
        match got {
            Some(value) if value == key * 3 => Ok(took),
            got => Err(StatementBenchError::WrongAnswer {
                statement: text,
                got,
                expected: key * 3,
            }),
        }
    }
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
        };
        let options = StatementOptions {
            rows: 5000,
            runs: 1,
            statements: 50,
        };
        let report = run(settings, options).unwrap();
        assert_eq!(report.rows.len(), 12);
        assert!(report.rows.iter().all(|row| row.value > 0.0), "{report:?}");
    }
}
