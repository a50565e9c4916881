//! Indexes of keys whose nodes are moved together as they are used, where a home has such indexes.

use crate::HomeError;
use eris_types::{AeuId, NodeId, ObjectId};
use futures::future::BoxFuture;
use std::fmt;

/// Reorganises indexes of keys by what is asked for most.
pub trait KeyIndexes: Send + Sync {
    /// Begins to move together what lookups of an object's keys go through most, and returns how things are then: it is
    /// done while the object is used.
    ///
    /// # Errors
    /// There is no such object.
    fn reorganize(
        &self,
        object: ObjectId,
    ) -> BoxFuture<'_, Result<Vec<IndexReorganization>, HomeError>>;

    /// How the order of an object's key indexes is: one entry per tree, of which a partition may have several,
    /// ascending by owner.
    ///
    /// # Errors
    /// There is no such object.
    fn reorganization(
        &self,
        object: ObjectId,
    ) -> BoxFuture<'_, Result<Vec<IndexReorganization>, HomeError>>;
}

/// The index of one partition, and what reorganisation does to it.
#[derive(Clone, Debug)]
pub struct IndexReorganization {
    /// The partition's owner.
    pub aeu: AeuId,
    /// The owner's node.
    pub node: NodeId,
    /// Keys in the index.
    pub keys: u64,
    /// Bytes of nodes and records.
    pub bytes: u64,
    /// What is going on.
    pub state: ReorganizationState,
    /// Keys sampled since the samples were looked at.
    pub samples: u64,
    /// Analyses that have ended, whether or not they led to a reorganisation.
    pub ended: u64,
    /// What the one under way has done so far, or else the newest that ended.
    pub effect: Option<ReorganizationEffect>,
}

/// What an index is doing about its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReorganizationState {
    /// No lookup was sampled.
    Idle,
    /// Lookups are sampled.
    Sampling,
    /// Samples are counted.
    Counting,
    /// It is found out where hot nodes lie.
    Measuring,
    /// Hot nodes are being moved.
    Moving,
}

impl fmt::Display for ReorganizationState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReorganizationState::Idle => "idle",
            ReorganizationState::Sampling => "sampling",
            ReorganizationState::Counting => "counting",
            ReorganizationState::Measuring => "measuring",
            ReorganizationState::Moving => "moving",
        })
    }
}

/// Who wanted a reorganisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReorganizationCause {
    /// The samples: few keys, on many pages.
    Policy,
    /// Somebody asked for it.
    Call,
}

/// What a reorganisation has done.
#[derive(Clone, Debug, PartialEq)]
pub struct ReorganizationEffect {
    /// Who wanted it.
    pub cause: ReorganizationCause,
    /// Samples that it went by.
    pub samples: u64,
    /// Distinct keys among them, and those whose nodes are moved.
    pub keys_all: u64,
    /// See there.
    pub keys_done: u64,
    /// Nodes and records moved.
    pub nodes_moved: u64,
    /// Their bytes.
    pub bytes_moved: u64,
    /// Bytes of the nodes and records on the way to the hot keys: those that were sampled more than once, or all if
    /// none was.
    pub hot_bytes: u64,
    /// Pages on which lookups of the hot keys read, before.
    pub pages_before: Option<u64>,
    /// And after.
    pub pages_after: Option<u64>,
    /// Page walks per lookup before, by the model: misses in every level of the translation buffer.
    pub modelled_walks_before: Option<f64>,
    /// And after.
    pub modelled_walks_after: Option<f64>,
    /// Why it ended early.
    pub failure: Option<String>,
}

impl ReorganizationEffect {
    /// Nothing is done yet.
    pub fn new(cause: ReorganizationCause, samples: u64) -> Self {
        ReorganizationEffect {
            cause,
            samples,
            keys_all: 0,
            keys_done: 0,
            nodes_moved: 0,
            bytes_moved: 0,
            hot_bytes: 0,
            pages_before: None,
            pages_after: None,
            modelled_walks_before: None,
            modelled_walks_after: None,
            failure: None,
        }
    }

    /// The same, and it ended early.
    pub fn with_failure(self, why: &str) -> Self {
        ReorganizationEffect {
            failure: Some(why.to_owned()),
            ..self
        }
    }
}
