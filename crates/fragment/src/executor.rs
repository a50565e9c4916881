//! Who executes fragments. An executor lends no memory of its own and names none of its workers' kinds, so that it can
//! be the AEUs of this machine or the nodes of a cluster.

use crate::{Access, Fragment, FragmentError, PhaseCounts, Phases};
use arrow_array::{RecordBatch, StringViewArray};
use eris_types::{ColumnId, ObjectId};
use futures::Stream;
use serde::Serialize;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// Batches of a fragment. The first error ends it. Dropping it before its end cancels the fragment's share behind it.
pub type FragmentStream = Pin<Box<dyn Stream<Item = Result<RecordBatch, FragmentError>> + Send>>;

/// Executes fragments.
pub trait Executor: Debug + Send + Sync {
    /// Starts a fragment whose batches arrive on `streams` streams; each batch arrives on one of them, and each stream
    /// must be read or dropped, or the fragment waits (back-pressure): all of them at the same time, for what goes to
    /// one may wait until there is room in another. All partial aggregates of a group arrive on one stream. Returns at
    /// once, before any row was read.
    fn execute(&self, fragment: Arc<Fragment>, streams: usize) -> Result<Execution, FragmentError>;

    /// All strings that rows of a text column have, each once; `None` if they are not known without reading rows. Some
    /// may be of no row. What is computed of this very array is [looked up](crate::Lookup) without hashing.
    fn strings(&self, _object: ObjectId, _column: ColumnId) -> Option<StringViewArray> {
        None
    }

    /// The index by which it would find the fragment's rows now; `None`: it would read all.
    fn access(&self, _fragment: &Fragment) -> Option<Access> {
        None
    }

    /// What it expects of the places in which the fragment's rows lie now, zeros if nothing is known; `None`: there is
    /// one place.
    fn estimate(&self, _fragment: &Fragment) -> Option<Estimate> {
        None
    }
}

/// What a fragment is expected to take, by where its rows are worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Seconds if all are worked on where they lie.
    pub pushed: f64,
    /// Seconds as it would be executed.
    pub expected: f64,
    /// Bytes that would then be read from other places.
    pub moved: u64,
    /// How most of them would be copied; `None`: they are read where they lie.
    pub copied: Option<Copied>,
}

/// How bytes of another place are copied, ahead of the work on them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copied {
    /// What copies them.
    pub engine: &'static str,
    /// Bytes at a time.
    pub block: u64,
}

/// A running fragment.
pub struct Execution {
    /// The streams of its batches.
    pub streams: Vec<FragmentStream>,
    /// Of a fragment that yields groups by keys, once a batch has arrived on any stream: whether each group arrives
    /// once, on all streams together, so that its partial aggregates are those of all rows. Does not change any more
    /// then.
    pub is_merged: Arc<dyn Fn() -> bool + Send + Sync>,
    /// What it did so far; final once every stream has ended.
    pub report: Arc<dyn Fn() -> FragmentReport + Send + Sync>,
}

/// What a fragment did, for `EXPLAIN ANALYZE`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FragmentReport {
    /// One entry per worker that took part.
    pub workers: Vec<WorkerReport>,
    /// What [`WorkerReport::phases`] counts.
    #[serde(skip)]
    pub phases: Arc<Phases>,
}

/// One worker's share of a fragment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WorkerReport {
    /// The worker's number.
    pub worker: u32,
    /// The node it runs on.
    pub node: u32,
    /// Chunks it read.
    pub chunks: u64,
    /// Chunks its zone maps excluded.
    pub chunks_skipped: u64,
    /// Chunks it read on behalf of another worker.
    pub chunks_helped: u64,
    /// Those of them that it copied to its own node before.
    pub chunks_copied: u64,
    /// Those of its bytes that were read for other fragments at the same time, and counted for these, too.
    pub bytes_shared: u64,
    /// Bytes that it read from other nodes.
    pub bytes_moved: u64,
    /// Rows in the chunks it read.
    pub rows_scanned: u64,
    /// Rows in the chunks that its zone maps excluded.
    pub rows_skipped: u64,
    /// Rows that passed filter and probes.
    pub rows_passed: u64,
    /// Rows it sent.
    pub rows_sent: u64,
    /// Partial groups that it sent to the workers to which their keys belong, itself among them.
    pub groups_repartitioned: u64,
    /// Groups that it made of those that were sent to it.
    pub groups_merged: u64,
    /// Encoded bytes of the columns it touched.
    pub bytes: u64,
    /// Time it worked.
    pub busy: Duration,
    /// Encoded bytes of all columns of the fragment, in the chunks it read and those that zone maps excluded.
    pub column_bytes: u64,
    /// What it did in each phase; empty before it is done.
    pub phases: Vec<PhaseCounts>,
}
