//! What can go wrong with a fragment.

use eris_types::ObjectId;
use std::sync::Arc;

/// A fragment that yields no (further) result. A stream that ended with an error was incomplete; nothing of it counts.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FragmentError {
    /// The data object does not exist (any more).
    #[error("{0} does not exist; it may have been dropped by another session")]
    NoSuchObject(ObjectId),
    /// The statement was cancelled.
    #[error("the query was cancelled")]
    Cancelled,
    /// The memory budget is used up.
    #[error("{0}")]
    OutOfMemory(String),
    /// An integer or decimal result does not fit its type.
    #[error(
        "overflow in {what}: the result does not fit its type; CAST the argument to a wider one"
    )]
    Overflow {
        /// The expression or aggregate.
        what: String,
    },
    /// An expression failed on a value, such as a division by zero or a cast of text that is no number.
    #[error("{0}")]
    Evaluation(Arc<dyn std::error::Error + Send + Sync>),
    /// A worker panicked. The statement is lost, the worker goes on.
    #[error(
        "{worker} failed while it worked on {object}: {message}; this is a bug in Eris, only this statement is affected"
    )]
    Panicked {
        /// Who.
        worker: String,
        /// On what.
        object: ObjectId,
        /// The panic's message.
        message: String,
    },
    /// The executor is being shut down.
    #[error("the engine is shutting down")]
    ShuttingDown,
    /// The fragment contradicts itself: a bug of whoever built it.
    #[error("malformed fragment: {reason}")]
    Malformed {
        /// What is wrong with it.
        reason: &'static str,
    },
}
