//! What can go wrong.

use eris_numa::measure::MeasureError;
use eris_numa::{MemoryError, OutOfMemory, PinError};
use eris_sql::SqlError;

/// Why the scan could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// The memory managers could not start.
    #[error(transparent)]
    Manager(#[from] MemoryError),
    /// Too little memory for the data.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// The machine could not be measured.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// A thread could not be bound to its core.
    #[error(transparent)]
    Pin(#[from] PinError),
    /// The database rejected a statement.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// A number that was measured for a wrong answer is worthless.
    #[error("{statement}: counted {counted} rows, but {expected} match")]
    WrongAnswer {
        /// The statement.
        statement: String,
        /// What it answered.
        counted: i64,
        /// What is right.
        expected: u64,
    },
}
