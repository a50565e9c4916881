//! How keys change their owner (ERIS paper, Section 3.3.2): *link* within a node, *copy* from node to node.
//!
//! ```text
//! link   GIVE ─▶ part the segment that is only partly meant: the smaller side gets a tree of its own
//!             ─▶ segments go over as they are ──────────────────────────────────────── LINK ─▶ linked
//! copy   GIVE ─▶ entries, flat and ascending ── ENTRIES ─▶ a tree is built  ◀─ TOOK ─ …
//!             ─▶ what was changed meanwhile, in rounds ── CHANGES ─▶ applied    ◀─ TOOK ─ …
//!             ─▶ the keys are closed, the last changes ── CLOSE ─▶ linked      ◀─ TOOK ─ opened at the new owner
//! ```
//!
//! Until the last step the former owner has the keys and executes everything on them; from then on it forwards. Only while a copy is being
//! closed – for one answer of the new owner – operations on its keys wait. Nobody who fails on the way has changed anything: the copy is
//! thrown away. All that passes between owners, forwarded batches included, is of one kind, so that it arrives in the order in which it was sent.
//!
//! What the former owner does is in [`give`], with the parting of a segment in [`part`], how changes are made up for in [`rounds`], and what it
//! is told in [`answers`]; what the new one does in [`take`].

mod answers;
mod give;
mod part;
mod rounds;
mod take;

pub(crate) use answers::Giving;
pub(crate) use give::GiveTask;
pub(crate) use take::Incoming;

use super::KeyObject;
use super::batch::KeyBatch;
use super::segment::Segment;
use eris_types::AeuId;
use std::sync::Arc;

/// Entries that are copied at once, and go over in one piece.
const PIECE: usize = 512;
/// GIVE: keys that another owner shall have.
#[derive(Clone)]
pub(crate) struct Transfer {
    pub object: Arc<KeyObject>,
    pub low: u64,
    pub high: u64,
    pub to: AeuId,
}

/// What a transfer has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Keys that changed their owner.
    pub keys: u64,
    /// Bytes of the trees that were linked.
    pub linked: u64,
    /// Bytes of entries that were copied, within a node to part a segment, or to another one.
    pub copied: u64,
}

/// GIVEN: what came of a transfer.
pub(crate) struct Given {
    pub moved: Moved,
    /// The keys that have another owner now.
    pub ranges: Vec<(u64, u64)>,
    /// Why these are not all.
    pub failure: Option<String>,
}

/// HAND_OVER: from owner to owner.
pub(crate) enum Handed {
    /// A segment as it is.
    Link(Box<Segment>),
    /// Entries of keys from `low` to `high`, behind those that came before.
    Entries {
        low: u64,
        high: u64,
        entries: Vec<(u64, u64)>,
    },
    /// Entries that have changed since they were copied; with the last of them the keys are the new owner's.
    Changes {
        changes: Vec<(u64, Option<u64>)>,
        last: bool,
    },
    /// The copy is not wanted any more.
    GiveUp,
    /// Answers have been lost, or come twice, in a panic: how do things stand? The copy of `closed` keys was to be linked.
    Again {
        number: u64,
        closed: Option<(u64, u64)>,
    },
    /// Operations on keys that are the receiver's by now.
    Batch(Box<KeyBatch>),
}

/// TOOK: what the new owner says.
#[derive(Clone, Debug)]
pub(crate) enum Took {
    /// Entries or changes, but not the last.
    Some,
    /// All: the keys are its own.
    Linked,
    /// Nothing, and nothing of this copy.
    Failed(String),
    /// The new owner has panicked, before or after it has answered, and does not know what else it has got.
    Doubt(String),
    /// Everything up to the question of this number has been answered; this is how things stand.
    Settled(u64, Box<Took>),
}

const DROPPED: &str = "the index was dropped";
