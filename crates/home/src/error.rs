//! What can go wrong in a home, in the user's terms.

use eris_fragment::{FragmentError, UnsupportedType};
use eris_types::ObjectId;

/// A failed operation. It left no trace.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HomeError {
    /// The machine could not be used as asked.
    #[error("the engine cannot start: {0}")]
    Start(String),
    /// More statements run than there are places for.
    #[error("too many sessions: all {limit} are open")]
    TooBusy {
        /// The greatest number of them.
        limit: usize,
    },
    /// A column type that cannot be stored.
    #[error("column {column}: {source}")]
    Type {
        /// The column.
        column: String,
        /// Which type.
        #[source]
        source: UnsupportedType,
    },
    /// A column that cannot be in a key or an index.
    #[error(
        "table {table}: column \"{column}\" is an INTERVAL, which can be neither a key nor in an index"
    )]
    KeyColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// The data object was dropped meanwhile.
    #[error("{0} does not exist; it may have been dropped by another session")]
    NoSuchObject(ObjectId),
    /// Rows that do not have the columns of their table.
    #[error("table {table}: rows have the columns ({got}), expected ({expected})")]
    Shape {
        /// The table.
        table: String,
        /// Their columns.
        got: String,
        /// Its columns.
        expected: String,
    },
    /// A NULL where the table allows none.
    #[error(
        "table {table}, column {column}: NULL in row {row} of the statement, but the column is NOT NULL"
    )]
    Null {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The row, from 1.
        row: u64,
    },
    /// A range-partitioning column of a type without a 64-bit order.
    #[error(
        "table {table}: cannot be partitioned by {column}; choose an integer, date, timestamp or short decimal column"
    )]
    PartitionColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// The rows could not be stored.
    #[error("table {table}: {reason}")]
    Store {
        /// The table.
        table: String,
        /// Why.
        reason: String,
    },
    /// The rows do not fit into memory.
    #[error("table {table}: {reason}")]
    OutOfMemory {
        /// The table.
        table: String,
        /// What was asked for, and what there is.
        reason: String,
    },
    /// The rows that were to be written could not be found.
    #[error(transparent)]
    Fragment(#[from] FragmentError),
    /// Rows that a statement wanted to delete are not there.
    #[error("table {table}: rows that were to be deleted are gone")]
    NoSuchRows {
        /// The table.
        table: String,
    },
    /// A statement wanted to delete a row twice.
    #[error("table {table}: a row was to be deleted twice by one statement")]
    DeletedTwice {
        /// The table.
        table: String,
    },
    /// Two rows would have one key.
    #[error("table {table}: there is a row with the key ({key}) already")]
    DuplicateKey {
        /// The data object whose key it is.
        object: ObjectId,
        /// The table.
        table: String,
        /// The key's values.
        key: String,
    },
    /// Keys that cannot get another owner as asked.
    #[error("index {index}: {reason}")]
    Shift {
        /// The index.
        index: String,
        /// Why.
        reason: String,
    },
    /// Keys that begin alike have one owner, and are too many to get another one at once.
    #[error("table {table}: too many rows have keys that begin alike to get another owner at once")]
    Alike {
        /// The table.
        table: String,
    },
    /// Keys were to get another owner while rows are being written.
    #[error("table {table}: rows are being written, so that keys cannot change their owner now")]
    InUse {
        /// The table.
        table: String,
    },
    /// A worker panicked.
    #[error(
        "{worker} failed while it worked on table {table}: {message}; this is a bug in Eris, only this statement is affected"
    )]
    Panicked {
        /// Who.
        worker: String,
        /// On what.
        table: String,
        /// The panic's message.
        message: String,
    },
    /// There is no room on the disk for what a statement does.
    #[error("{table}: the disk has no room for {bytes} more bytes in {directory}")]
    DiskFull {
        /// The table, or what is defined.
        table: String,
        /// How many are missing.
        bytes: u64,
        /// Where the log is.
        directory: String,
    },
    /// The disk failed before: nothing can be written any more.
    #[error("nothing can be written any more, for the log has failed: {reason}")]
    LogFailed {
        /// What has failed.
        reason: String,
    },
    /// The disk failed while a commit was being made durable.
    #[error("whether the commit outlives this process is open, for the log has failed: {reason}")]
    FateOpen {
        /// What has failed.
        reason: String,
    },
    /// A checkpoint was not made. All that was committed is in the log, as before.
    #[error("there is no checkpoint: {reason}")]
    Checkpoint {
        /// Why.
        reason: String,
    },
    /// The database was opened for reading only.
    #[error("{what} cannot be written: the database is open for reading only")]
    ReadOnly {
        /// What was to be written.
        what: String,
    },
    /// The files of the database cannot be listed.
    #[error("the files of the database cannot be listed: {reason}")]
    Files {
        /// Why.
        reason: String,
    },
    /// The database cannot be opened.
    #[error("{0}")]
    Open(String),
}
