//! Loads of workers that are made equal, where a home can move rows between them.

use crate::HomeError;
use eris_types::{AeuId, ObjectId};
use futures::future::BoxFuture;
use std::time::{Duration, SystemTime};

/// Moves rows in the background so that workers have equal loads. Ends when it is dropped.
pub trait Balancer: Send + Sync {
    /// How it balances from now on.
    fn set(&self, balancing: Balancing);

    /// How it balances one table now.
    fn get_for(&self, table: ObjectId) -> Balancing;

    /// How it balances one table from now on; `None`: like all others. How often it looks at loads is the same for all.
    fn set_for(&self, table: ObjectId, balancing: Option<Balancing>);

    /// Makes the loads of a table's owners equal at once, whether or not that pays; how many rows have moved.
    ///
    /// # Errors
    /// There is no such table, or there are too many statements. What becomes of each move is in the
    /// [history](Self::history).
    fn balance(&self, table: ObjectId) -> BoxFuture<'_, Result<u64, HomeError>>;

    /// What was moved, the oldest first.
    fn history(&self) -> Vec<Balanced>;
}

/// When and how far owners' loads are made equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balancing {
    /// How far a cycle goes; `None`: nothing moves.
    pub algorithm: Option<Algorithm>,
    /// The standard deviation of the owners' loads from which on something moves, as a share of their mean; or what
    /// exceeds the mean by twice as much, if it is a single owner's.
    pub threshold: f64,
    /// How often loads are looked at.
    pub period: Duration,
}

impl Default for Balancing {
    fn default() -> Self {
        Balancing {
            algorithm: Some(Algorithm::MovingAverage(8)),
            threshold: 0.2,
            period: Duration::from_secs(1),
        }
    }
}

/// How far a cycle goes towards equal loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// All the way.
    OneShot,
    /// The *moving average* over so many neighbours to either side (MA-k): gentle with few of them, and One-Shot with
    /// as many as there are. Over twice as many, and again, where that moves nothing, or does not pay.
    MovingAverage(usize),
}

/// Keys or rows that have changed their owner.
#[derive(Clone, Debug)]
pub struct Balanced {
    /// When.
    pub at: SystemTime,
    /// The index or table.
    pub object: ObjectId,
    /// Its name.
    pub name: String,
    /// Which keys, as a string, of what is cut by ranges.
    pub range: Option<String>,
    /// Their owner before.
    pub from: AeuId,
    /// Their owner now.
    pub to: AeuId,
    /// What was moved, or why not.
    pub result: Result<Moved, String>,
    /// From the command to the end.
    pub time: Duration,
    /// The busiest owner's load as so many times the mean, before the cycle.
    pub imbalance: f64,
    /// The same in the period after it, once that is over.
    pub after: Option<f64>,
}

/// What a move was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Keys, or rows, that changed their owner.
    pub keys: u64,
    /// Bytes that were linked.
    pub linked: u64,
    /// Bytes that were copied, within a node to part a segment, or to another one.
    pub copied: u64,
}
