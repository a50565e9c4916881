//! The queries asked by several sessions at a time, beside one session that asks as many.
//!
//! ```text
//! alone      s0: 1.1 1.2 1.3 …  then once more, as often as there are sessions
//! together   s0: 1.1 1.2 1.3 …   s1: 1.2 1.3 2.1 …   s2: 1.3 2.1 2.2 …      each begins with another query
//! ```

use super::answer::{Sample, answer, failed};
use super::error::SsbError;
use super::summary::bytes;
use crate::report::{digits, median};
use arrow_row::OwnedRow;
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

/// How sessions ask.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// How many at a time.
    pub sessions: usize,
    /// How often.
    pub rounds: usize,
    /// Whether their scans are shared.
    pub sharing: bool,
}

/// Interleaved rounds of either. `expected` are the queries' answers, which have to come again.
pub(super) async fn run(
    database: &Database,
    queries: &[Query],
    expected: &[Sample],
    Rounds {
        sessions,
        rounds,
        sharing,
    }: Rounds,
    bar: &ProgressBar,
) -> Result<SessionsRun, SsbError> {
    let mut run = SessionsRun::new(sessions);
    let rows = expected.iter().map(rows_of);
    let rows: Vec<Vec<OwnedRow>> = rows.collect();
    let all: Vec<Session> = (0..sessions).map(|_| database.session()).collect();
    // Otherwise they are as those of any user.
    for session in all.iter().filter(|_| !sharing) {
        let off = "SET scan_sharing = off";
        let set = session.execute(off).await;
        set.map_err(|source| SsbError::Statement {
            what: off.to_owned(),
            source,
        })?;
    }
    let asked = (sessions * queries.len()) as f64;
    for _ in 0..rounds {
        let begun = Instant::now();
        let work = async {
            let mut answers = Vec::with_capacity(sessions);
            for first in 0..sessions {
                answers.push(mix(&all[0], queries, first, bar).await?);
            }
            Ok(answers)
        };
        let answers = watched(database, &mut run.peak_bytes[0], work).await?;
        run.alone.push(asked / begun.elapsed().as_secs_f64());
        compare(queries, &rows, answers)?;
        let begun = Instant::now();
        let each = all.iter().enumerate();
        let each = each.map(|(first, session)| mix(session, queries, first, bar));
        let answers = watched(database, &mut run.peak_bytes[1], try_join_all(each)).await?;
        run.together.push(asked / begun.elapsed().as_secs_f64());
        compare(queries, &rows, answers)?;
    }
    Ok(run)
}

/// What a session was answered: queries by their numbers.
type Answers = Vec<(usize, Sample)>;

/// All queries once, from one of them on.
async fn mix(
    session: &Session,
    queries: &[Query],
    first: usize,
    bar: &ProgressBar,
) -> Result<Answers, SsbError> {
    let mut answers = Vec::with_capacity(queries.len());
    for at in (0..queries.len()).map(|at| (first + at) % queries.len()) {
        let query = &queries[at];
        let answer = answer(session, query.sql).await;
        answers.push((at, answer.map_err(|source| failed(query, source))?));
        bar.inc(1);
    }
    Ok(answers)
}

/// Holds all rows of all answers against those that there have to be; behind the clock.
fn compare(
    queries: &[Query],
    expected: &[Vec<OwnedRow>],
    answers: Vec<Answers>,
) -> Result<(), SsbError> {
    for (at, answer) in answers.into_iter().flatten() {
        let (got, expected) = (rows_of(&answer), &expected[at]);
        if got != *expected {
            return Err(SsbError::OtherAnswer {
                query: queries[at].id,
                got: got.len(),
                different: different(&got, expected),
                expected: expected.len(),
            });
        }
    }
    Ok(())
}

fn rows_of(answer: &Sample) -> Vec<OwnedRow> {
    let rows = answer.sorted_rows();
    rows.expect("numbers and text can be sorted")
}

/// How many of some sorted rows are not among others; each counts as often as it comes.
fn different(got: &[OwnedRow], expected: &[OwnedRow]) -> usize {
    let mut expected = expected.iter().peekable();
    let is_other = |row: &&OwnedRow| {
        while expected.next_if(|other| other < row).is_some() {}
        expected.next_if(|other| other == row).is_none()
    };
    got.iter().filter(is_other).count()
}

/// Does the work, and notes the most memory that was in use meanwhile.
async fn watched(
    database: &Database,
    peak: &mut u64,
    work: impl Future<Output = Result<Vec<Answers>, SsbError>>,
) -> Result<Vec<Answers>, SsbError> {
    let mut work = pin!(work);
    loop {
        match timeout(LOOK, &mut work).await {
            Ok(done) => return done,
            Err(_) => *peak = database.home().budget().used().max(*peak),
        }
    }
}

impl SessionsRun {
    /// Of which nothing is known.
    pub(super) fn new(sessions: usize) -> Self {
        SessionsRun {
            sessions,
            alone: Vec::new(),
            together: Vec::new(),
            peak_bytes: [0; 2],
        }
    }

    /// Takes the rounds of another one.
    pub(super) fn add(&mut self, other: SessionsRun) {
        self.alone.extend(other.alone);
        self.together.extend(other.together);
        let peaks = self.peak_bytes.iter_mut().zip(other.peak_bytes);
        peaks.for_each(|(most, bytes)| *most = bytes.max(*most));
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
    use std::sync::Arc;

    fn answer(rows: &[(i64, &str)]) -> Sample {
        let numbers = Int64Array::from_iter_values(rows.iter().map(|(number, _)| *number));
        let texts = StringViewArray::from_iter_values(rows.iter().map(|(_, text)| *text));
        let columns: [(&str, ArrayRef); 2] = [("n", Arc::new(numbers)), ("t", Arc::new(texts))];
        let batch = RecordBatch::try_from_iter(columns).expect("as long as each other");
        Sample {
            id: "",
            schema: batch.schema(),
            // Batches are no part of an answer.
            batches: vec![batch.slice(0, 1), batch.slice(1, rows.len() - 1)],
        }
    }

    #[test]
    fn answers_are_the_same_in_any_order_and_not_by_their_number_of_rows() {
        let query = &eris_ssb::queries()[..1];
        let expected = [rows_of(&answer(&[(1, "a"), (1, "b"), (2, "a")]))];
        let same = answer(&[(2, "a"), (1, "b"), (1, "a")]);
        compare(query, &expected, vec![vec![(0, same)]]).expect("the same rows");
        let other = answer(&[(1, "a"), (1, "a"), (2, "b")]);
        let error = compare(query, &expected, vec![vec![(0, other)]]).expect_err("other rows");
        let error = error.to_string();
        assert!(
            error.contains("3 rows") && error.contains(", 2 of which"),
            "{error}"
        );
    }
}
