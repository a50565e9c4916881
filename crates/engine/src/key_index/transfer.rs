//! How keys change their owner (ERIS paper, Section 3.3.2): *link* within a node, *copy* from node to node.
//!
//! ```text
//! link   MoveOut ─▶ part the segment that is only partly meant: the smaller side gets a tree of its own
//!             ─▶ segments go over as they are ─────────────────────── Link ──▶ linked
//! copy   MoveOut ─▶ entries go over piece by piece, flat and ascending ─ Piece ─▶ put into a tree there
//!                                                                   ◀─ TransferAcknowledged ── each time
//! ```
//!
//! No key waits for others of its transfer: with each piece its keys are the new owner's, and what is to be done with
//! them is forwarded from then on, behind the piece itself. So nothing is done twice, however much is written
//! meanwhile. Who cannot take a piece in has executed nothing on it either, and the former owner still has the entries:
//! they are its own again, and what was forwarded comes back. All that passes between owners, forwarded batches
//! included, is of one kind, so that it arrives in the order in which it was sent.
//!
//! Here is what they have of it: the parting of a segment in [`part`], and what is on its way in [`stream`]. What they
//! do is in [`tasks`](crate::tasks::keys).

pub(crate) mod part;
pub(crate) mod stream;

use super::batch::KeyBatch;
use super::object::KeyObject;
use super::segment::{Piece, Segment};
use eris_home::Moved;
use eris_types::AeuId;
use std::sync::Arc;

/// Entries that are copied at once, and go over in one piece.
pub(crate) const PIECE: usize = 512;
/// Keys that another owner shall have.
#[derive(Clone)]
pub(crate) struct Transfer {
    pub object: Arc<KeyObject>,
    pub low: u64,
    pub high: u64,
    pub to: AeuId,
}

/// What came of a transfer.
pub(crate) struct MovedOut {
    pub moved: Moved,
    /// The keys that have another owner now.
    pub ranges: Vec<(u64, u64)>,
    /// Why these are not all.
    pub failure: Option<String>,
}

/// From owner to owner.
pub(crate) enum Handed {
    /// A segment as it is.
    Link(Box<Segment>),
    /// Keys that are the receiver's with this, if it can take them in. Whether they `follow` others of the same copy.
    Piece { piece: Piece, follows: bool },
    /// The copy is not wanted any more.
    GiveUp,
    /// Answers have been lost, or come twice, in a panic, or something was rejected: how do things stand, and with
    /// these keys, which have been sent?
    Again {
        number: u64,
        keys: Option<(u64, u64)>,
    },
    /// Operations on keys that are the receiver's by now.
    Batch(Box<KeyBatch>),
}

/// What the new owner says.
#[derive(Clone, Debug)]
pub(crate) enum Acknowledgement {
    /// A piece is its own.
    Piece,
    /// A segment is.
    Link,
    /// A piece is not, nor what follows it.
    Failed(String),
    /// The new owner has panicked, before or after it has answered, and does not know what else it has got.
    Doubt(String),
    /// Everything up to the question of this number has been answered; this is how things stand.
    Certain(u64, Standing),
}

/// How things stand at the new owner.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// What it has of the keys in question.
    pub has: Option<(u64, u64)>,
    /// Why it takes in no more.
    pub failure: Option<String>,
}

pub(crate) const DROPPED: &str = "the index was dropped";
pub(crate) const LOST: &str = "some of it was lost when an owner panicked";
