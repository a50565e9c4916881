//! The engine's commands: kinds, parcels and who answers what.
//!
//! ```text
//! session ── STAGE ──▶ owner        ◀── STAGED | REFUSED ──       (callback: the statement)
//!         ── DELETE ─▶ owners       ◀── DELETED | REFUSED ──      (callback: the statement; DELETED says how many)
//!         ── OFFER ──▶ owner        ◀── OFFERED ──                (chunks that another owner may adopt)
//!         ── ADOPT ──▶ owner        ◀── STAGED | REFUSED ──      (callback: the statement; a chunk of another owner)
//!         ── CHECK ──▶ owners       ◀── CHECKED | REFUSED ──      (callback: the statement; keys, once all is staged)
//!         ── COMMIT | ABORT | DROP ▶                              (commit is answered by the sequencer, drop by DROPPED)
//!         ── SCAN ──▶ participants  ◀── BATCH* · END ──           (callback: the run)
//!         ── CREDIT | CANCEL ▶                                    (CREDIT: how many batches, to which lane)
//!         ── INSPECT ──▶ owners     ◀── INSPECTED ──              (callback: the inspection)
//!         ── KEYS ──▶ owner         ◀── KEYED ──                  (callback: the part of a batch)
//!         ── ROWS ──▶ owner         ◀── ROWED ──                  (callback: the part of an operation on rows)
//!         ── COLLECT ──▶ owners                                   (garbage; nobody waits for it)
//!         ── RECODE ───▶ owners    ◀── RECODED ──                 (a column is stored by an order of keys from now on)
//!         ── REORGANIZE ▶ owners    ◀── REORGANIZED ──            (how the order of indexes is, perhaps to begin to change it)
//!         ── BUILD ──▶ owners       ◀── INDEXED | REFUSED ──      (callback: the building; a secondary index)
//!         ── UNINDEX ──▶ owners                                   (callback: the index)
//!         ── GIVE ──▶ owner        ◀── GIVEN ──                  (callback: the transfer; keys that another owner shall have)
//!         ── LOCATE ───▶ owners    ◀── LOCATED ──                 (callback: the question where memory lies)
//!         ── MEASURE ──▶ owners    ◀── MEASURED ──               (callback: the measurement; what segments were asked for)
//! owner   ── HAND_OVER ▶ owner     ◀── TOOK ──                   (callback: the transfer, or that of a batch that is forwarded)
//! owner   ── INTERN ──▶ dictionary owner  ◀── INTERNED ──         (callback: the waiting stage)
//! owner   ── HELP ──▶ idle participant                            (callback: the run)
//! owner   ── DEAL* · DEALT ──▶ participants                       (callback: the run; groups, and that these were all)
//! owner   ── SPOILT ──▶ participant                               (callback: the run; what it dealt got lost in a panic)
//! ```
//!
//! Ranks only ascend on the way from a request to what it causes: STAGE, ADOPT, DELETE, CHECK, KEYS, ROWS and GIVE are client work, SCAN, DROP, INSPECT, OFFER,
//! COLLECT, BUILD, RECODE, INTERN, LOCATE, MEASURE and HAND_OVER are scan work (a batch may be handed on more than once, but an owner has one of each client at most, for
//! which there is always room), answers are replies, and so is what scans make for each other, everything that must never wait is control.

use crate::error::EngineError;
use crate::object::data_object::DataObject;
use crate::protocol::run::Run;
use crate::sequencer::Sequencer;
use arrow_array::RecordBatch;
use eris_column::Dictionary;
use eris_exec::Groups;
use eris_numa::Reservation;
use eris_route::{Endpoint, Header, Rank};
use eris_types::{ObjectId, RowId, StatementId, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

pub(crate) const STAGE: u16 = 1;
pub(crate) const COMMIT: u16 = 2;
pub(crate) const ABORT: u16 = 3;
pub(crate) const DROP: u16 = 4;
pub(crate) const SCAN: u16 = 5;
pub(crate) const HELP: u16 = 6;
pub(crate) const CREDIT: u16 = 7;
pub(crate) const CANCEL: u16 = 8;
pub(crate) const INTERN: u16 = 9;
pub(crate) const INTERNED: u16 = 10;
pub(crate) const INSPECT: u16 = 11;
pub(crate) const DELETE: u16 = 12;
pub(crate) const COLLECT: u16 = 13;
pub(crate) const CHECK: u16 = 14;

pub(crate) const OFFER: u16 = 29;
pub(crate) const ADOPT: u16 = 30;

pub(crate) const DEAL: u16 = 26;
pub(crate) const DEALT: u16 = 27;
pub(crate) const SPOILT: u16 = 28;

pub(crate) const KEYS: u16 = 16;
pub(crate) const ROWS: u16 = 17;
pub(crate) const BUILD: u16 = 18;
pub(crate) const GIVE: u16 = 20;
pub(crate) const HAND_OVER: u16 = 21;
pub(crate) const MEASURE: u16 = 22;
pub(crate) const UNINDEX: u16 = 19;
pub(crate) const LOCATE: u16 = 23;
pub(crate) const REORGANIZE: u16 = 24;
pub(crate) const RECODE: u16 = 25;

pub(crate) const STAGED: u16 = 32;
pub(crate) const REFUSED: u16 = 33;
pub(crate) const DROPPED: u16 = 34;
pub(crate) const BATCH: u16 = 35;
pub(crate) const END: u16 = 36;
pub(crate) const INSPECTED: u16 = 38;
pub(crate) const KEYED: u16 = 48;
pub(crate) const ROWED: u16 = 49;
pub(crate) const INDEXED: u16 = 50;
pub(crate) const GIVEN: u16 = 51;
pub(crate) const TOOK: u16 = 52;
pub(crate) const MEASURED: u16 = 53;
pub(crate) const LOCATED: u16 = 54;
pub(crate) const REORGANIZED: u16 = 56;
pub(crate) const RECODED: u16 = 57;
pub(crate) const OFFERED: u16 = 58;
pub(crate) const DELETED: u16 = 39;
pub(crate) const CHECKED: u16 = 40;
/// The owner panicked over a group of commands; those of them that await an answer get this.
pub(crate) const PANICKED: u16 = 37;

/// A header of the rank that belongs to its kind.
pub(crate) fn header(kind: u16, object: ObjectId, sender: Endpoint, callback: u64) -> Header {
    let rank = match kind {
        STAGE | ADOPT | DELETE | CHECK | KEYS | ROWS | GIVE => Rank::Client,
        SCAN | DROP | INTERN | INSPECT | OFFER | COLLECT | BUILD | LOCATE | REORGANIZE | RECODE
        | MEASURE | HAND_OVER => Rank::Scan,
        STAGED | DELETED | CHECKED | REFUSED | DROPPED | BATCH | END | INTERNED | INSPECTED
        | KEYED | ROWED | OFFERED | INDEXED | REORGANIZED | RECODED | DEAL | DEALT | GIVEN
        | TOOK | MEASURED | LOCATED => Rank::Reply,
        _ => Rank::Control,
    };
    Header {
        kind,
        rank,
        object,
        sender,
        callback,
    }
}

/// A statement that writes, as far as its owners must know.
#[derive(Debug)]
pub(crate) struct Statement {
    pub id: StatementId,
    /// Set by the session that gave it up, before it sends ABORT; read by owners before they stage. An ABORT may overtake a
    /// STAGE, which must then find this. Release and acquire, though the flag alone carries all there is to know.
    pub aborted: AtomicBool,
}

/// STAGE: rows to be kept until their statement commits. Together at most a chunk.
pub(crate) struct Stage {
    pub object: Arc<DataObject>,
    pub statement: Arc<Statement>,
    pub batches: Vec<RecordBatch>,
    /// For the rows, until they are encoded.
    pub reserved: Reservation,
}

/// DELETE: rows that end when their statement commits. Every owner takes those that it has.
#[derive(Debug)]
pub(crate) struct Delete {
    pub statement: Arc<Statement>,
    /// Ascending.
    pub ids: Box<[RowId]>,
}

/// CHECK: all rows of the statement are staged; no two rows may have one key.
pub(crate) struct Check {
    pub object: Arc<DataObject>,
    pub statement: Arc<Statement>,
}

/// COMMIT: shared by all owners, of all data objects that a statement writes to; the last one finishes the timestamp, whether or not the session still waits.
#[derive(Debug)]
pub(crate) struct Commit {
    pub at: Timestamp,
    pub sequencer: Arc<Sequencer>,
    /// Owners that have not committed yet. Each decrements it once; acquire-release, so that the last one has seen all.
    pub open: AtomicUsize,
}

impl Commit {
    /// One owner's share: done when it is dropped, come what may, for a timestamp that is never finished stops all others.
    pub fn share(&self) -> CommitShare<'_> {
        CommitShare(self)
    }
}

/// See [`Commit::share`].
pub(crate) struct CommitShare<'a>(&'a Commit);

impl Drop for CommitShare<'_> {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.sequencer.finish(self.0.at);
        }
    }
}

/// DEAL: groups whose keys belong to the receiver. It may not have begun with the run yet.
pub(crate) struct Deal {
    pub run: Arc<Run>,
    pub groups: Groups,
    /// For the groups, until they are merged.
    pub reserved: Reservation,
}

/// INTERN: text that the dictionary may not have.
pub(crate) struct Intern {
    pub object: Arc<DataObject>,
    pub column: usize,
    pub values: Arc<[String]>,
    /// The rows among which these values were found.
    pub rows: usize,
}

/// INTERNED: the newest dictionary, or `None` if the column's text is stored as it is from now on; or why there are no codes.
pub(crate) struct Interned {
    pub column: usize,
    pub dictionary: Result<Option<Dictionary>, EngineError>,
}
