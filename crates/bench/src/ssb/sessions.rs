//! The queries asked by several sessions at a time, beside one session that asks as many.
//!
//! ```text
//! alone      s0: 1.1 1.2 1.3 …  then once more, as often as there are sessions
//! together   s0: 1.1 1.2 1.3 …   s1: 1.2 1.3 2.1 …   s2: 1.3 2.1 2.2 …      each begins with another query
//! ```

use super::SsbError;
use super::summary::bytes;
use crate::report::{digits, median};
use eris_sql::{Database, Session};
use eris_ssb::Query;
use futures::future::try_join_all;
use indicatif::ProgressBar;
use serde::Serialize;
use std::io::{self, Write};
use std::pin::pin;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(2);

/// Throughput of several sessions.
#[derive(Debug, Serialize)]
pub struct SessionsRun {
    /// How many there were.
    pub sessions: usize,
    /// Queries per second of one session, per round.
    pub alone: Vec<f64>,
    /// Queries per second of all together, per round.
    pub together: Vec<f64>,
    /// The most memory in bytes that tables and queries used, alone and together.
    pub peak_bytes: [u64; 2],
}

/// Interleaved rounds of either. `rows` are those of the queries' answers, which have to come again.
pub(super) async fn run(
    database: &Database,
    queries: &[Query],
    rows: &[u64],
    (sessions, rounds): (usize, usize),
    bar: &ProgressBar,
) -> Result<SessionsRun, SsbError> {
    let mut run = SessionsRun {
        sessions,
        alone: Vec::new(),
        together: Vec::new(),
        peak_bytes: [0; 2],
    };
    let all: Vec<Session> = (0..sessions).map(|_| database.session()).collect();
    let asked = (sessions * queries.len()) as f64;
    for _ in 0..rounds {
        let begun = Instant::now();
        let work = async {
            for first in 0..sessions {
                mix(&all[0], queries, rows, first, bar).await?;
            }
            Ok(())
        };
        watched(database, &mut run.peak_bytes[0], work).await?;
        run.alone.push(asked / begun.elapsed().as_secs_f64());
        let begun = Instant::now();
        let each = all.iter().enumerate();
        let each = each.map(|(first, session)| mix(session, queries, rows, first, bar));
        let work = async { try_join_all(each).await.map(drop) };
        watched(database, &mut run.peak_bytes[1], work).await?;
        run.together.push(asked / begun.elapsed().as_secs_f64());
    }
    Ok(run)
}

/// All queries once, from one of them on.
async fn mix(
    session: &Session,
    queries: &[Query],
    rows: &[u64],
    first: usize,
    bar: &ProgressBar,
) -> Result<(), SsbError> {
    for at in (0..queries.len()).map(|at| (first + at) % queries.len()) {
        let query = &queries[at];
        let answer = super::answer(session, query.sql).await;
        let answer = answer.map_err(|source| SsbError::Statement {
            what: format!("query {}", query.id),
            source,
        })?;
        let got = answer.rows();
        if got != rows[at] {
            return Err(SsbError::OtherAnswer {
                query: query.id,
                got,
                expected: rows[at],
            });
        }
        bar.inc(1);
    }
    Ok(())
}

/// Does the work, and notes the most memory that was in use meanwhile.
async fn watched(
    database: &Database,
    peak: &mut u64,
    work: impl Future<Output = Result<(), SsbError>>,
) -> Result<(), SsbError> {
    let mut work = pin!(work);
    loop {
        match timeout(LOOK, &mut work).await {
            Ok(done) => return done,
            Err(_) => *peak = database.engine().memory().budget().used().max(*peak),
        }
    }
}

impl SessionsRun {
    /// Writes what a person wants to read of it.
    pub(super) fn write_summary(&self, out: &mut impl Write) -> io::Result<()> {
        let [alone, together] = [&self.alone, &self.together].map(|runs| median(runs));
        let [before, most] = self.peak_bytes.map(bytes);
        writeln!(
            out,
            "\nQueries per second: {} in one session, {} in {} at a time ({:.2} times); at most {before} and {most} of memory",
            digits(alone),
            digits(together),
            self.sessions,
            together / alone
        )
    }
}
