//! Why entries were not put in.

use crate::bytes::KEY_BYTES;
use eris_numa::OutOfMemory;

/// A byte string was not put in. Nothing is changed.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum PutError {
    /// There is no memory.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The key has more than [`KEY_BYTES`].
    #[error("a key of {0} bytes is too long for an index: {KEY_BYTES} are the most")]
    TooLong(usize),
}

/// A tree was not built. It is as it was.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum BuildError<E> {
    /// An entry cannot be put in.
    #[error(transparent)]
    Entry(E),
    /// The tree has entries, or it has had more than one leaf takes.
    #[error("the tree is not empty")]
    NotEmpty,
    /// The key of the entry at this position is not greater than the one before it.
    #[error("the key of entry {0} is not greater than the one before it")]
    NotAscending(usize),
}
