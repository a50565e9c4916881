//! Commands about keys: batches of operations, and keys on their way from owner to owner.
//!
//! ```text
//! client ── Keys ─▶ owner ── HandOver: what is another's by now ─▶ owner ── KeysDone ─▶ client
//!        ── MoveOut ─▶ owner ── HandOver: segments, pieces ─▶ owner
//!                            ◀── TransferAcknowledged ──────
//!        ◀── MovedOut ──────
//! ```

use super::answers::{KeysDone, RowsDone};
use super::callback::{HandOverId, PartId, QuestionId, TransferId};
use super::request::{NoReply, Reply, Request};
use super::rows::RowBatch;
use super::words::without_words;
use crate::key_index::batch::KeyBatch;
use crate::key_index::measure::Measurement;
use crate::key_index::object::KeyObject;
use crate::key_index::transfer::{Acknowledgement, Handed, MovedOut, Transfer};
use eris_route::Rank;
use std::sync::Arc;

/// Operations on keys of a bare index.
pub(crate) struct ExecuteKeys(pub Box<KeyBatch>);

impl Request for ExecuteKeys {
    const RANK: Rank = Rank::Client;
    type Callback = PartId;
    type Reply = KeysDone;
}

/// Operations on rows by their keys.
pub(crate) struct ExecuteRows(pub Box<RowBatch>);

impl Request for ExecuteRows {
    const RANK: Rank = Rank::Client;
    type Callback = PartId;
    type Reply = RowsDone;
}

/// Keys that another owner shall have.
pub(crate) struct MoveOut(pub Transfer);

impl Request for MoveOut {
    const RANK: Rank = Rank::Client;
    type Callback = TransferId;
    type Reply = MovedOut;
}

/// From owner to owner: keys, and batches that follow them.
///
/// It is two requests in one, the only one that is. Commands arrive in order only if they are of one kind, and a batch
/// must not overtake its keys. Keys come from an owner, who gets the reply. A batch comes from a client, who gets what
/// [`ExecuteKeys`] is answered with: see [`Asked::of_batch`](super::asked::Asked::of_batch).
pub(crate) struct HandOver {
    pub object: Arc<KeyObject>,
    pub what: Handed,
}

impl Request for HandOver {
    const RANK: Rank = Rank::Scan;
    type Callback = HandOverId;
    /// Of keys only.
    type Reply = TransferAcknowledged;
}

/// What the new owner says of keys that were handed over.
pub(crate) struct TransferAcknowledged(pub Acknowledgement);

impl Reply<<TransferAcknowledged as Request>::Callback> for TransferAcknowledged {}

impl Request for TransferAcknowledged {
    const RANK: Rank = Rank::Reply;
    type Callback = HandOverId;
    type Reply = NoReply;
}

/// What were the segments of a bare index asked for?
#[derive(Clone, Copy)]
pub(crate) struct Measure;

impl Request for Measure {
    const RANK: Rank = Rank::Scan;
    type Callback = QuestionId;
    type Reply = Measurement;
}

without_words!(Measure);
