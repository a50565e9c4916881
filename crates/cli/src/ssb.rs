//! `eris ssb`: arguments to the generator and the benchmark, their results to text.

use crate::args::{FileFormat, SsbGenerate, SsbRun};
use crate::format::{Format, FormatError};
use crate::places;
use eris_bench::ssb::{self as bench, SsbOptions, SsbSource};
use eris_engine::{Engine, Settings};
use eris_sql::{Database, SqlError};
use eris_ssb::{
    Compression, Generator, Progress, Query, Scale, ScaleError, WriteError, queries, write_parquet,
    write_tbl,
};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, Write};
use tokio::runtime::Runtime;

/// Why a command of `eris ssb` failed.
#[derive(Debug, thiserror::Error)]
pub enum SsbError {
    /// The scale cannot be generated.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// No such query.
    #[error("there is no query {0}; the queries are {all}", all = names())]
    UnknownQuery(String),
    /// The files could not be written.
    #[error(transparent)]
    Generate(#[from] WriteError),
    /// The database did not start.
    #[error("cannot open the database: {0}")]
    Open(SqlError),
    /// The benchmark failed.
    #[error(transparent)]
    Run(#[from] bench::SsbError),
    /// The result could not be printed.
    #[error(transparent)]
    Output(#[from] FormatError),
}

impl From<io::Error> for SsbError {
    fn from(error: io::Error) -> Self {
        SsbError::Output(error.into())
    }
}

impl SsbError {
    /// As [`FormatError::is_closed_pipe`].
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, SsbError::Output(error) if error.is_closed_pipe())
    }
}

fn names() -> String {
    queries()
        .iter()
        .map(|query| query.id)
        .collect::<Vec<_>>()
        .join(", ")
}

/// `eris ssb generate`.
pub fn generate(arguments: &SsbGenerate) -> Result<(), SsbError> {
    let generator = Generator::new(Scale::new(arguments.scale)?);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let style =
        ProgressStyle::with_template("{msg:<10} {bar:30} {human_pos}/{human_len} rows, {eta} left");
    let bar = ProgressBar::new(0).with_style(style.expect("the template is constant"));
    let mut report = |progress: Progress| {
        bar.set_length(progress.rows_total);
        bar.set_position(progress.rows_done);
        bar.set_message(progress.table.name());
    };
    let written = match arguments.format {
        FileFormat::Parquet => write_parquet(
            &generator,
            &arguments.out,
            Compression::default(),
            threads,
            &mut report,
        ),
        FileFormat::Tbl => write_tbl(&generator, &arguments.out, threads, &mut report),
    };
    bar.finish_and_clear();
    let mut out = io::stdout().lock();
    for file in written? {
        writeln!(
            out,
            "{}: {} rows, {} bytes",
            file.path.display(),
            file.rows,
            file.bytes
        )?;
    }
    Ok(())
}

/// `eris ssb run`.
pub fn run(settings: Settings, arguments: &SsbRun, runtime: &Runtime) -> Result<(), SsbError> {
    let chosen = arguments
        .queries
        .iter()
        .map(|id| Query::by_id(id).ok_or_else(|| SsbError::UnknownQuery(id.clone())));
    let chosen = chosen.collect::<Result<Vec<Query>, _>>()?;
    let options = SsbOptions {
        source: SsbSource {
            scale: Scale::new(arguments.scale)?,
            data: arguments.data.clone(),
            cache: places::cache().unwrap_or_else(std::env::temp_dir),
        },
        queries: if chosen.is_empty() {
            queries().to_vec()
        } else {
            chosen
        },
        runs: arguments.runs as usize,
        sessions: arguments.sessions as usize,
        breakdown: arguments.breakdown,
    };
    let home = Engine::home(settings).map_err(|error| SsbError::Open(error.into()))?;
    let database = Database::open(home).map_err(SsbError::Open)?;
    let result = runtime.block_on(bench::run(&database, &options))?;
    let mut out = io::stdout().lock();
    if arguments.json {
        serde_json::to_writer(&mut out, &result).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(());
    }
    if let Some(sample) = &result.sample {
        writeln!(out, "Result of query {}:", sample.id)?;
        let mut writer = Format::Table.writer(&mut out);
        writer.begin(&sample.schema)?;
        sample
            .batches
            .iter()
            .try_for_each(|batch| writer.batch(batch))?;
        writer.end()?;
        drop(writer);
        writeln!(out)?;
    }
    Ok(result.write_summary(&mut out)?)
}
