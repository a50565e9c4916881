//! Statements about files: COPY, EXPORT DATABASE, IMPORT DATABASE, CHECKPOINT and BACKUP DATABASE.
//!
//! ```text
//! COPY t FROM 'x.csv' (…) ── read options ── open ── writer of a table
//! COPY … TO 'x.csv' (…) ── write options ── write ── finish: the file has its name
//! EXPORT DATABASE 'dir' ── a directory of another name: schema.sql, load.sql, a Parquet file per table ── renamed
//! IMPORT DATABASE 'dir' ── the statements of its schema.sql and load.sql
//! CHECKPOINT ── a snapshot of all that is durable takes the place of the log before it
//! BACKUP DATABASE TO 'dir' ── a directory of another name: a database with a snapshot of this one ── renamed
//! ```

mod backup;
mod copy_from;
mod copy_to;
mod export;
mod import;
mod parse;
mod write_options;

pub(crate) use parse::parse;

use crate::context::StatementContext;
use crate::error::{SqlError, SqlErrorKind, SqlState};
use crate::maintenance::checkpoints;
use crate::running::outcome::Begun;
use crate::text::statement::Statement;
use eris_home::HomeError;
pub(crate) use parse::FileStatement;

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
        FileStatement::Import(directory) => {
            // Said before its files are read: they may be right.
            if context.catalog.log().is_some_and(|log| log.is_read_only()) {
                let what = "a database that is imported".to_owned();
                return Err(SqlError::from(HomeError::ReadOnly { what }));
            }
            import::run(context, &directory).await
        }
        FileStatement::Backup(directory) => backup::run(context, directory).await,
        FileStatement::Checkpoint => {
            // Where all ends with the process there is nothing to be done, as in DuckDB.
            if context.home.durability().is_some() {
                checkpoints::make(&context.home).await?;
            }
            Ok(Begun::Done { tag: "CHECKPOINT" })
        }
    }
}

/// The error of a file that cannot be read or written.
fn failed(path: &str, reason: impl std::fmt::Display) -> SqlError {
    SqlError::new(SqlErrorKind::File {
        path: path.to_owned(),
        reason: reason.to_string(),
        sqlstate: SqlState::IO_ERROR,
    })
}
