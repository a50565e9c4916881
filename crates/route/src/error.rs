//! What can go wrong for the caller of this crate.

use thiserror::Error;

/// Why the router rejects something.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RouteError {
    /// Every session slot is taken.
    #[error("too many sessions: all {limit} are open")]
    TooManySessions {
        /// The greatest number of sessions.
        limit: usize,
    },
}

/// A list of ranges that is no partitioning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RangeError {
    /// A partitioning has at least one range.
    #[error("a range partition table needs at least one range")]
    Empty,
    /// The lower bounds do not ascend strictly.
    #[error("lower bound {position} of a range partition table is not above the one before it")]
    NotAscending {
        /// Which bound, counted from zero.
        position: usize,
    },
}
