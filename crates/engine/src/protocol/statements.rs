//! Commands of statements that write.
//!
//! ```text
//! rows ── Insert | Adopt | Delete ─▶ uncommitted at their owners ── Check ─▶ keys entered ── Commit ─▶ visible
//! keys ── OfferKeys, AdoptKeys ─────┘             └────────────────────┴──── Abort ─▶ no trace
//! ```

use super::answers::{Deleted, Done, OfferedChunks, OfferedKeys};
use super::callback::{EncodingId, QuestionId};
use super::request::{NoReply, Reply, Request};
use super::words::{Words, without_words};
use crate::error::EngineError;
use crate::held::dictionaries::NewStrings;
use crate::held::partition::{KeySelection, OfferedChunk, OfferedRows};
use crate::object::data_object::DataObject;
use crate::object::statement::Statement;
use crate::sequencer::Sequencer;
use arrow_array::RecordBatch;
use eris_column::Dictionary;
use eris_numa::Reservation;
use eris_route::Rank;
use eris_types::{RowId, StatementId, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Rows to be kept until their statement commits. Together at most a chunk.
pub(crate) struct Insert {
    pub object: Arc<DataObject>,
    pub statement: Arc<Statement>,
    pub batches: Vec<RecordBatch>,
    /// For the rows, until they are encoded.
    pub reserved: Reservation,
}

impl Request for Insert {
    const RANK: Rank = Rank::Client;
    type Callback = StatementId;
    type Reply = Done;
}

/// A chunk of another owner, whose rows are the receiver's once the statement has committed.
pub(crate) struct Adopt {
    pub object: Arc<DataObject>,
    pub statement: Arc<Statement>,
    pub offered: OfferedChunk,
    pub is_linked: bool,
}

impl Request for Adopt {
    const RANK: Rank = Rank::Client;
    type Callback = StatementId;
    type Reply = Done;
}

/// Which rows with some keys could another owner of the node get as they are? The statement has the write lock, so that
/// they stay as they are until it commits.
#[derive(Clone)]
pub(crate) struct OfferKeys {
    pub object: Arc<DataObject>,
    pub statement: Arc<Statement>,
    pub keys: KeySelection,
    /// About so many rows are enough: those with the least keys.
    pub enough: u64,
}

impl Request for OfferKeys {
    const RANK: Rank = Rank::Client;
    type Callback = StatementId;
    type Reply = OfferedKeys;
}

/// Rows of another owner of the node, which are the receiver's once the statement has committed.
pub(crate) struct AdoptKeys {
    pub object: Arc<DataObject>,
    pub statement: Arc<Statement>,
    pub offered: Box<OfferedRows>,
}

impl Request for AdoptKeys {
    const RANK: Rank = Rank::Client;
    type Callback = StatementId;
    type Reply = Done;
}

/// Rows that are deleted when their statement commits. Every owner takes those that it has, and says how many these
/// are.
#[derive(Clone, Debug)]
pub(crate) struct Delete {
    pub statement: Arc<Statement>,
    /// Ascending.
    pub ids: Arc<[RowId]>,
}

impl Request for Delete {
    const RANK: Rank = Rank::Client;
    type Callback = StatementId;
    type Reply = Deleted;
}

/// All rows of the statement are with their owners; no two rows may have one key.
#[derive(Clone)]
pub(crate) struct Check {
    pub object: Arc<DataObject>,
    pub statement: Arc<Statement>,
}

impl Request for Check {
    const RANK: Rank = Rank::Client;
    type Callback = StatementId;
    type Reply = Done;
}

/// The statement's rows are visible from a timestamp on.
#[derive(Clone, Debug)]
pub(crate) struct Commit(pub Arc<CommitPoint>);

impl Request for Commit {
    const RANK: Rank = Rank::Control;
    type Callback = StatementId;
    type Reply = NoReply;
}

/// What all owners of all data objects share that a statement writes to. The last one finishes the timestamp, whether
/// or not the session still waits.
#[derive(Debug)]
pub(crate) struct CommitPoint {
    pub at: Timestamp,
    pub sequencer: Arc<Sequencer>,
    /// Owners that have not committed yet. Each decrements it once; acquire-release, so that the last one has seen all.
    pub open: AtomicUsize,
    /// An owner has panicked over it: rows may be missing. Written before `open` is decremented.
    pub is_broken: AtomicBool,
}

impl CommitPoint {
    /// For so many owners.
    pub fn new(at: Timestamp, sequencer: Arc<Sequencer>, owners: usize) -> Self {
        CommitPoint {
            at,
            sequencer,
            open: AtomicUsize::new(owners),
            is_broken: AtomicBool::new(false),
        }
    }

    /// One owner's share: done when it is dropped, come what may, for a timestamp that is never finished stops all
    /// others.
    pub fn share(&self) -> CommitShare<'_> {
        CommitShare(self)
    }
}

/// See [`CommitPoint::share`].
pub(crate) struct CommitShare<'a>(&'a CommitPoint);

impl Drop for CommitShare<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_broken.store(true, Ordering::Relaxed);
        }
        if self.0.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.sequencer.finish(self.0.at);
        }
    }
}

/// The statement is given up.
pub(crate) struct Abort;

impl Request for Abort {
    const RANK: Rank = Rank::Control;
    type Callback = StatementId;
    type Reply = NoReply;
}

/// Which chunks could another owner adopt? About so many rows of them, and so many chunks at most.
#[derive(Clone, Copy)]
pub(crate) struct OfferChunks {
    pub rows: u64,
    pub chunks: u64,
}

impl Request for OfferChunks {
    const RANK: Rank = Rank::Scan;
    type Callback = QuestionId;
    type Reply = OfferedChunks;
}

impl Words for OfferChunks {
    const LEN: usize = 2;

    fn to_words(&self) -> [u64; 2] {
        [self.rows, self.chunks]
    }

    fn of(words: &[u64]) -> Self {
        OfferChunks {
            rows: words[0],
            chunks: words[1],
        }
    }
}

/// Strings that may have no codes yet, to the owner of the column's dictionary.
pub(crate) struct Intern(pub NewStrings);

impl Request for Intern {
    const RANK: Rank = Rank::Scan;
    type Callback = EncodingId;
    type Reply = Interned;
}

/// The answer to [`Intern`].
pub(crate) enum Interned {
    /// The codes.
    Codes(Codes),
    /// They are to be asked for again: there is no room in the log at present.
    Later,
    /// Why there are none.
    Failed(EngineError),
}

impl Reply<<Interned as Request>::Callback> for Interned {}

/// The newest dictionary of a column, or `None` if its strings are stored as they are from now on.
pub(crate) struct Codes {
    pub column: usize,
    pub dictionary: Option<Dictionary>,
}

impl Request for Interned {
    const RANK: Rank = Rank::Reply;
    type Callback = EncodingId;
    type Reply = NoReply;
}

without_words!(Abort);

#[cfg(test)]
mod tests {
    use super::*;
    use eris_atomics::Way;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_commit_that_panics_is_finished_and_broken() {
        let sequencer = Arc::new(Sequencer::new(1, Way::Cpu));
        let point = CommitPoint::new(Timestamp(1), sequencer, 2);
        drop(point.share());
        assert!(!point.is_broken.load(Ordering::Relaxed));
        let panic = || {
            let _share = point.share();
            panic!("on purpose");
        };
        assert!(catch_unwind(AssertUnwindSafe(panic)).is_err());
        assert_eq!(point.open.load(Ordering::Relaxed), 0);
        assert!(point.is_broken.load(Ordering::Relaxed));
    }
}
