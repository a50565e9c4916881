//! What can go wrong.

use arrow_schema::ArrowError;
use eris_sql::SqlError;
use eris_ssb::{SsbTable, WriteError};
use parquet::errors::ParquetError;
use std::io;
use std::path::PathBuf;

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
