//! Files: read as tables, copied into tables, written from queries.
//!
//! ```text
//! FROM 'x.csv', read_csv('*.csv', …) ─┐                                   ┌─ rows of a query
//! COPY t FROM 'x.csv' (…) ────────────┼─ glob: files ── format ── detect ─┤
//! IMPORT DATABASE 'dir' ──────────────┘      │ options                     └─ writer of a table
//!                                            ▼
//!            CSV, JSON   blocks: cut at record ends ── parse side by side ── batches
//!            Arrow       batches of the file
//!            Parquet     DataFusion's reader: row groups side by side, filters and statistics pushed down
//!
//! COPY … TO 'x.csv' (…) ── batches ── encode pieces side by side ── a file of another name ── renamed at the end
//! EXPORT DATABASE 'dir' ── a directory of another name: schema.sql, load.sql, a Parquet file per table ── renamed
//! ```

mod blocks;
mod column;
mod compression;
mod copy_from;
mod copy_to;
mod csv;
mod export;
mod format;
mod function;
mod glob;
mod import;
mod ipc;
mod json;
mod kind;
mod options;
mod parquet;
mod read;
mod scan;
mod sink;
mod statement;
mod values;
mod write;

pub(crate) use function::{Files, open_functions};
pub(crate) use parquet::{context_of_load, tell_progress};
pub(crate) use statement::{FileStatement, parse};

use crate::context::StatementContext;
use crate::error::{SqlError, SqlErrorKind};
use crate::running::outcome::Begun;
use crate::text::statement::Statement;
use datafusion::catalog::TableProvider;
use datafusion::execution::context::SessionState;
use std::collections::HashSet;
use std::sync::Arc;

/// Names of the functions that read files.
pub(crate) fn functions() -> impl Iterator<Item = &'static str> {
    format::Format::functions()
}

/// Whether a name that is no table's means a file.
pub(crate) fn is_file_name(name: &str) -> bool {
    format::Format::of_name(name).is_some() || name.contains(['/', '*'])
}

/// The rows of the files that a name in FROM means, as a table.
///
/// # Errors
/// [`SqlErrorKind::File`] if there are none, or they are not what the name says.
pub(crate) async fn open(
    name: &str,
    state: &SessionState,
) -> datafusion::error::Result<Arc<dyn TableProvider>> {
    let reading = read::ReadOptions::default();
    let opened = read::open(vec![name.to_owned()], reading, None, state).await;
    opened.map_err(SqlError::into_datafusion)
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

/// Runs what may wait for a disk, on a thread that may wait.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SqlError> + Send + 'static,
) -> Result<T, SqlError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(eris_fragment::FragmentError::Cancelled.into()),
        },
    }
}

/// As many names, each once: those that are missing or empty get a number, repeated ones a number behind them.
fn unique_names(mut names: Vec<String>, width: usize) -> Vec<String> {
    names.resize(width, String::new());
    let mut seen = HashSet::new();
    for (at, name) in names.iter_mut().enumerate() {
        if name.is_empty() {
            *name = format!("column{at}");
        }
        let plain = name.clone();
        let mut number = 0;
        while !seen.insert(name.to_lowercase()) {
            number += 1;
            *name = format!("{plain}_{number}");
        }
    }
    names
}
