//! Statements about files, and files in FROM: what SQL says of them becomes values that `eris-files` reads and writes with.
//!
//! ```text
//! FROM 'x.csv', read_csv('*.csv', …) ─┐                   ┌─ rows of a query
//! COPY t FROM 'x.csv' (…) ────────────┼─ options ── open ─┤
//! IMPORT DATABASE 'dir' ──────────────┘                   └─ writer of a table
//!
//! COPY … TO 'x.csv' (…) ── options ── write
//! EXPORT DATABASE 'dir' ── a directory of another name: schema.sql, load.sql, a Parquet file per table ── renamed
//! ```

mod copy_from;
mod copy_to;
mod export;
mod function;
mod import;
mod options;
mod read_options;
mod statement;

pub(crate) use function::{FUNCTIONS, Files, open_functions};
pub(crate) use statement::{FileStatement, parse};

use crate::context::StatementContext;
use crate::error::{SqlError, SqlErrorKind};
use crate::progress::Progress;
use crate::running::outcome::Begun;
use crate::text::statement::Statement;
use datafusion::catalog::TableProvider;
use datafusion::execution::context::SessionState;
use datafusion::physical_plan::ExecutionPlan;
use eris_files::{FileError, ReadOptions, parquet_scans};
use std::sync::Arc;

/// The rows of the files that a name in FROM means, as a table.
///
/// # Errors
/// [`SqlErrorKind::File`] if there are none, or they are not what the name says.
pub(crate) async fn open(
    name: &str,
    state: &SessionState,
    progress: &Progress,
) -> Result<Arc<dyn TableProvider>, FileError> {
    eris_files::open(
        vec![name.to_owned()],
        ReadOptions::default(),
        None,
        state,
        progress.files(),
    )
    .await
}

/// Tells the statement's progress of the Parquet files that a plan reads, before it runs.
///
/// Their reader does not count rows of row groups that it skips: a statement may end before all rows are counted.
pub(crate) fn tell_progress(
    plan: &Arc<dyn ExecutionPlan>,
    progress: &Progress,
) -> datafusion::error::Result<()> {
    for scan in parquet_scans(plan)? {
        let scanning = progress.expect_scan(scan.rows);
        scanning.counts(Arc::new(move || scan.rows_read()));
    }
    Ok(())
}

/// Runs a statement about files.
pub(crate) async fn run(
    context: &StatementContext,
    file_statement: FileStatement,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    match file_statement {
        FileStatement::CopyFrom(copy) => copy_from::run(context, copy, statement).await,
        FileStatement::CopyTo(copy) => copy_to::run(context, copy, statement).await,
        FileStatement::Export(export) => export::run(context, export).await,
        FileStatement::Import(directory) => import::run(context, &directory).await,
    }
}

/// The error of a file.
fn failed(path: &str, reason: impl std::fmt::Display) -> SqlError {
    SqlError::new(SqlErrorKind::File {
        path: path.to_owned(),
        reason: reason.to_string(),
    })
}
