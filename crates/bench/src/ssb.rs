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

mod load;
mod sessions;
mod summary;

use arrow_array::{Array, RecordBatch, StringViewArray};
use arrow_row::{OwnedRow, RowConverter, SortField};
use arrow_schema::{ArrowError, SchemaRef};
use eris_sql::{Database, Outcome, Session, SqlError};
use eris_ssb::{Query, Scale, SsbTable, WriteError};
use eris_telemetry::AeuSnapshot;
use indicatif::{ProgressBar, ProgressStyle};
use parquet::errors::ParquetError;
use serde::Serialize;
pub use sessions::SessionsRun;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

/// What to load and what to run.
#[derive(Clone, Debug)]
pub struct SsbOptions {
    /// Scale to generate; with `data` only repeated in the result.
    pub scale: Scale,
    /// Where the tables' files are; `None`: generate them.
    pub data: Option<PathBuf>,
    /// Where generated files are kept for the next run.
    pub cache: PathBuf,
    /// The queries, in this order.
    pub queries: Vec<Query>,
    /// Timed runs of each.
    pub runs: usize,
    /// So many sessions ask all queries at a time, too, if there are more than one.
    pub sessions: usize,
    /// Explain each query once more: where its time, rows and bytes went.
    pub breakdown: bool,
}

/// Why the benchmark did not run through.
#[derive(Debug, thiserror::Error)]
pub enum SsbError {
    /// A query or definition failed.
    #[error("{what}: {source}")]
    Statement {
        /// The query or table.
        what: String,
        /// Why.
        source: SqlError,
    },
    /// A query had other rows than before.
    #[error(
        "query {query} has {got} rows among other sessions, {different} of which are not among its {expected} rows alone"
    )]
    OtherAnswer {
        /// Which query.
        query: &'static str,
        /// How many rows it has.
        got: usize,
        /// How many of these it did not have before.
        different: usize,
        /// How many rows it had.
        expected: usize,
    },
    /// The data could not be generated.
    #[error(transparent)]
    Generate(#[from] WriteError),
    /// The directory has no file of a table.
    #[error("{}: no {table}.parquet and no {table}.tbl in it", directory.display())]
    NoFile {
        /// Where it was looked for.
        directory: PathBuf,
        /// The table.
        table: SsbTable,
    },
    /// A file or directory cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A `.tbl` file holds something else than its table.
    #[error("{}: {source}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// What and where.
        source: ArrowError,
    },
    /// A `.tbl` file cannot be converted.
    #[error("cannot write {}: {source}", path.display())]
    Convert {
        /// The temporary file.
        path: PathBuf,
        /// Why.
        source: ParquetError,
    },
}

/// The result. Its JSON form has `scale`, `load_s`, `bytes` and `queries`, and `sessions` if that was asked for, and
/// nothing else.
#[derive(Debug, Serialize)]
pub struct SsbRun {
    /// The scale factor.
    pub scale: f64,
    /// Seconds from the files to tables: reading, converting and writing, but not generating.
    pub load_s: f64,
    /// Memory of the five tables in bytes.
    pub bytes: u64,
    /// Per query, in the order of running.
    pub queries: Vec<QueryRun>,
    /// Several sessions at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionsRun>,
    /// Rows of the five tables.
    #[serde(skip)]
    pub rows: u64,
    /// The same bytes by node.
    #[serde(skip)]
    pub bytes_by_node: Vec<u64>,
    /// The answer of one query, to look at.
    #[serde(skip)]
    pub sample: Option<Sample>,
    /// What each AEU did, by its number: the sum over all queries, one run each.
    #[serde(skip)]
    pub work: Vec<Work>,
}

/// One query's runs.
#[derive(Debug, Serialize)]
pub struct QueryRun {
    /// `"1.1"` to `"4.3"`.
    pub id: &'static str,
    /// Rows of its result.
    pub rows: u64,
    /// Milliseconds of each timed run.
    pub ms: Vec<f64>,
    /// The plan with what it did in each AEU, if that was asked for: a line each, as `EXPLAIN ANALYZE` gives them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breakdown: Vec<String>,
}

/// What one AEU did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// The node it runs on.
    pub node: u16,
    /// What it counted.
    pub counted: AeuSnapshot,
}

/// A query's answer.
#[derive(Debug)]
pub struct Sample {
    /// Which query.
    pub id: &'static str,
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows.
    pub batches: Vec<RecordBatch>,
}

impl Sample {
    fn rows(&self) -> u64 {
        let batches = self.batches.iter();
        batches.map(|batch| batch.num_rows() as u64).sum()
    }

    /// All rows, sorted: rows that a query's order does not tell apart may come either way.
    fn sorted_rows(&self) -> Result<Vec<OwnedRow>, ArrowError> {
        let fields = self.schema.fields().iter();
        let fields = fields.map(|field| SortField::new(field.data_type().clone()));
        let converter = RowConverter::new(fields.collect())?;
        let mut all = Vec::new();
        for batch in &self.batches {
            let rows = converter.convert_columns(batch.columns())?;
            all.extend(rows.iter().map(|row| row.owned()));
        }
        all.sort_unstable();
        Ok(all)
    }
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
    let loaded = load::load(&session, options).await?;
    let topology = database.engine().topology();
    let mut bytes_by_node = vec![0; topology.nodes().len()];
    for usage in database.engine().memory().usage() {
        bytes_by_node[usage.node.index()] += usage.bytes;
    }
    let mut result = SsbRun {
        scale: options.scale.factor(),
        load_s: loaded.time.as_secs_f64(),
        bytes: bytes_by_node.iter().sum(),
        queries: Vec::new(),
        sessions: None,
        rows: loaded.rows,
        bytes_by_node,
        sample: None,
        work: topology
            .aeus()
            .iter()
            .map(|place| Work {
                node: place.node.0,
                ..Work::default()
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
    database.settled().await;
    for query in &options.queries {
        bar.set_message(format!("query {}", query.id));
        query_runs(database, &session, query, options, &bar, &mut result).await?;
    }
    if options.sessions > 1 {
        bar.set_length((options.queries.len() * 2 * options.runs * options.sessions) as u64);
        bar.reset();
        bar.set_message(format!("{} sessions", options.sessions));
        let of = (options.sessions, options.runs);
        let run = sessions::run(database, &options.queries, &answers, of, &bar).await?;
        result.sessions = Some(run);
    }
    bar.finish_and_clear();
    Ok(result)
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
    let before = database.engine().counters();
    let answer = answer(session, query.sql).await.map_err(failed)?;
    let counted = database.engine().counters().since(&before);
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

fn failed(query: &Query, source: SqlError) -> SsbError {
    SsbError::Statement {
        what: format!("query {}", query.id),
        source,
    }
}

/// A query's answer, all of it.
async fn answer(session: &Session, sql: &str) -> Result<Sample, SqlError> {
    let Outcome::Rows(stream) = session.execute(sql).await? else {
        unreachable!("the benchmark's queries are SELECTs");
    };
    let schema = stream.schema().clone();
    Ok(Sample {
        id: "",
        schema,
        batches: stream.collect().await?,
    })
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
