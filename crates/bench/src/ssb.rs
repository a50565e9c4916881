//! `eris ssb run`: the Star Schema Benchmark, loaded and run warm through SQL, as a user would.
//!
//! ```text
//! generator or files ─▶ five tables ─▶ each query once ─▶ settled ─▶ each query: a run that is not timed, then N timed
//!                                                                   └─▶ all of them in several sessions
//! ```
//!
//! What the first joins begin in the background, columns that are stored by another order, has ended before anything is
//! timed.
//!
//! A query's time reaches from handing over its text to the last batch of its result: parsing, planning, fragments and
//! what DataFusion does above them. Results are read, not printed, within it.

mod answer;
mod error;
mod load;
mod result;
mod sessions;
mod summary;

pub use answer::Sample;
pub use error::SsbError;
pub use load::SsbSource;
pub(crate) use load::load;
pub use result::{AeuWork, QueryRun, SsbRun};
use sessions::Rounds;
pub use sessions::SessionsRun;

use answer::{answer, failed};
use arrow_array::{Array, StringViewArray};
use eris_sql::{Database, Session, SqlError};
use eris_ssb::Query;
use eris_telemetry::Snapshot;
use indicatif::{ProgressBar, ProgressStyle};
use std::time::Instant;

/// What to load and what to run.
#[derive(Clone, Debug)]
pub struct SsbOptions {
    /// The tables.
    pub source: SsbSource,
    /// The queries, in this order.
    pub queries: Vec<Query>,
    /// Timed runs of each.
    pub runs: usize,
    /// So many sessions ask all queries at a time, too, if there are more than one.
    pub sessions: usize,
    /// Explain each query once more: where its time, rows and bytes went.
    pub breakdown: bool,
}

/// Answers with more rows than this are no sample.
const SAMPLE_ROWS: u64 = 40;

/// Loads the tables into an empty database and runs the queries. Shows progress on standard error if that is a
/// terminal.
///
/// # Errors
/// [`SsbError`]: the first statement or file that fails ends the benchmark.
pub async fn run(database: &Database, options: &SsbOptions) -> Result<SsbRun, SsbError> {
    let session = database.session();
    let loaded = load(&session, &options.source).await?;
    let mut bytes_by_node = vec![0; database.home().nodes().len()];
    for usage in database.home().usage() {
        bytes_by_node[usage.node.index()] += usage.bytes;
    }
    let mut result = SsbRun {
        scale: options.source.scale.factor(),
        load_s: loaded.time.as_secs_f64(),
        bytes: bytes_by_node.iter().sum(),
        queries: Vec::new(),
        sessions: None,
        rows: loaded.rows,
        bytes_by_node,
        sample: None,
        work: (database.home().workers().iter())
            .map(|worker| AeuWork {
                node: worker.node.0,
                ..AeuWork::default()
            })
            .collect(),
    };
    let bar = ProgressBar::new((options.queries.len() * (options.runs + 2)) as u64);
    bar.set_style(style("{msg:<18} {bar:30} {pos}/{len} runs, {eta} left"));
    let mut answers = Vec::with_capacity(options.queries.len());
    for query in &options.queries {
        bar.set_message(format!("warming up {}", query.id));
        let answer = answer(&session, query.sql).await;
        answers.push(answer.map_err(|source| failed(query, source))?);
        bar.inc(1);
    }
    database.finished().await;
    for query in &options.queries {
        bar.set_message(format!("query {}", query.id));
        query_runs(database, &session, query, options, &bar, &mut result).await?;
    }
    if options.sessions > 1 {
        bar.set_length((options.queries.len() * 2 * options.runs * options.sessions) as u64);
        bar.reset();
        bar.set_message(format!("{} sessions", options.sessions));
        let of = Rounds {
            sessions: options.sessions,
            rounds: options.runs,
            sharing: true,
        };
        let run = sessions::run(database, &options.queries, &answers, of, &bar).await?;
        result.sessions = Some(run);
    }
    bar.finish_and_clear();
    Ok(result)
}

/// Loads the tables, and has all queries asked by so many sessions at a time beside one, so often: with shared scans,
/// and without. All answers are compared.
///
/// # Errors
/// As [`run`].
pub(crate) async fn beside_one(
    database: &Database,
    source: &SsbSource,
    (sessions, rounds): (usize, usize),
) -> Result<[SessionsRun; 2], SsbError> {
    let session = database.session();
    load(&session, source).await?;
    let queries = eris_ssb::queries();
    let mut answers = Vec::with_capacity(queries.len());
    for query in queries {
        let answer = answer(&session, query.sql).await;
        answers.push(answer.map_err(|source| failed(query, source))?);
    }
    database.finished().await;
    let mut shared = SessionsRun::new(sessions);
    let mut alone = SessionsRun::new(sessions);
    for _ in 0..rounds {
        for (run, sharing) in [(&mut shared, true), (&mut alone, false)] {
            let bar = ProgressBar::hidden();
            let round = Rounds {
                sessions,
                rounds: 1,
                sharing,
            };
            run.add(sessions::run(database, queries, &answers, round, &bar).await?);
        }
    }
    Ok([shared, alone])
}

/// What each worker has done so far.
fn counters(database: &Database) -> Snapshot {
    let workers = database.home().workers().into_iter();
    Snapshot {
        aeus: workers.map(|worker| worker.counters).collect(),
    }
}

/// Runs one query and adds what it did to the result.
async fn query_runs(
    database: &Database,
    session: &Session,
    query: &Query,
    options: &SsbOptions,
    bar: &ProgressBar,
    result: &mut SsbRun,
) -> Result<(), SsbError> {
    let failed = |source| failed(query, source);
    // What this run counts stands for all: the timed ones do the same work.
    let before = counters(database);
    let answer = answer(session, query.sql).await.map_err(failed)?;
    let counted = counters(database).since(&before);
    for (work, counted) in result.work.iter_mut().zip(&counted.aeus) {
        work.counted.add(counted);
    }
    bar.inc(1);
    let mut ms = Vec::with_capacity(options.runs);
    for _ in 0..options.runs {
        let begun = Instant::now();
        self::answer(session, query.sql).await.map_err(failed)?;
        ms.push(begun.elapsed().as_secs_f64() * 1e3);
        bar.inc(1);
    }
    let rows = answer.rows();
    let better = |sample: &Sample| sample.rows() < rows;
    if rows <= SAMPLE_ROWS && result.sample.as_ref().is_none_or(better) {
        result.sample = Some(Sample {
            id: query.id,
            ..answer
        });
    }
    let breakdown = if options.breakdown {
        explained(session, query.sql).await.map_err(failed)?
    } else {
        Vec::new()
    };
    result.queries.push(QueryRun {
        id: query.id,
        rows,
        ms,
        breakdown,
    });
    Ok(())
}

/// The lines of `EXPLAIN ANALYZE`.
async fn explained(session: &Session, sql: &str) -> Result<Vec<String>, SqlError> {
    let plan = answer(session, &format!("EXPLAIN ANALYZE {sql}")).await?;
    let texts = plan
        .batches
        .iter()
        .map(|batch| batch.column(0).as_any().downcast_ref::<StringViewArray>());
    let lines = texts.flat_map(|texts| {
        texts
            .expect("a plan is text")
            .iter()
            .flatten()
            .map(str::to_owned)
    });
    Ok(lines.collect())
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is constant")
}
