//! What a home does that outlives its process, beside keeping definitions.

use crate::HomeError;
use eris_types::Timestamp;
use futures::future::BoxFuture;
use std::path::PathBuf;

/// What a checkpoint has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// It has all up to this commit. What came later is in the log.
    pub at: Timestamp,
    /// Rows that it has.
    pub rows: u64,
    /// Bytes of the snapshot itself: which chunks there are, the rows of small ones, strings, definitions.
    pub bytes: u64,
    /// Bytes of chunks that no file had before.
    pub chunk_bytes: u64,
}

/// A home that outlives its process.
pub trait Durability: Send + Sync {
    /// Writes a snapshot of all that is durable in the place of the log before it. It blocks while files are written;
    /// no statement waits for it.
    ///
    /// # Errors
    /// The disk has no room, or has failed: all is in the log, as before.
    fn checkpoint(&self) -> BoxFuture<'_, Result<Checkpoint, HomeError>>;

    /// Writes all that is visible into an empty directory, as a database of its own, which can be opened like this one.
    /// It blocks while files are written; no statement waits for it.
    ///
    /// # Errors
    /// The disk has no room, or has failed: what is in the directory is no whole database.
    fn backup(&self, directory: PathBuf) -> BoxFuture<'_, Result<Checkpoint, HomeError>>;

    /// Waits until the log is so long that a checkpoint is worth it.
    fn checkpoint_due(&self) -> BoxFuture<'_, ()>;

    /// Makes all durable that was committed, and closes the log: nothing can be written any more. It blocks as long as
    /// that takes.
    ///
    /// # Errors
    /// The disk has failed.
    fn close(&self) -> Result<(), HomeError>;
}
