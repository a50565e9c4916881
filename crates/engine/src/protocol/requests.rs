//! What an owner may get: the requests of clients and of other owners.
//!
//! ```text
//! client ── Insert, Adopt, Delete, Check ─▶ owner  ◀── Done | Deleted | Rejected        a statement's rows, uncommitted until
//!        ── Commit | Abort ─▶                                                       one of these; a commit is seen by the sequencer
//!        ── Scan ─▶ participants       ◀── Batch* · End                             a fragment; the batches are a result stream
//!        ── Credit | Cancel ─▶
//!        ── Keys, Rows ─▶              ◀── KeysDone, RowsDone                        batches by key, executed where they belong
//!        ── MoveOut ─▶                 ◀── MovedOut                                 keys that another owner shall have
//!        ── questions ─▶               ◀── an answer of each owner
//! owner  ── HandOver ─▶ owner          ◀── TransferAcknowledged                     keys on their way; batches that follow them
//!        ── Intern ─▶ dictionary owner ◀── Interned                                 codes for unknown strings
//!        ── Help ─▶ participant                                                     there are chunks to be claimed
//!        ── Repartition* · RepartitionEnd ─▶ participants                           groups, by a hash of their keys
//! ```
//!
//! Ranks only ascend on the way from a request to what it causes: on that rests that no two endpoints wait for each other. What a
//! client wants of rows is client work. Scans, and what owners do for each other on the way, are scan work: a batch may be handed
//! on more than once, but an owner has one of each client at most, for which there is always room. Answers are replies, and so is
//! what scans make for each other. Everything that must never wait is control.

use super::callback::Callback;
use super::keys::{HandOver, Keys, Measure, MoveOut, Rows, TransferAcknowledged};
use super::message::{Message, Parcel, messages};
use super::objects::{
    Build, CollectGarbage, DropIndex, DropObject, Inspect, Locate, Recode, Reorganize,
};
use super::runs::{Cancel, Credit, Help, Repartition, RepartitionAborted, RepartitionEnd, Scan};
use super::statements::{
    Abort, Adopt, Check, Commit, Delete, Insert, Intern, Interned, OfferChunks,
};
use eris_route::Rank;

/// A message to an owner.
pub(crate) trait Request: Message {
    /// What it may wait for; see the page of [`eris_route`].
    const RANK: Rank;
    /// What the callback is to its sender.
    type Callback: Callback;
    /// What it is answered with, if somebody waits.
    type Reply: Reply;
    /// Whether somebody waits, who must hear of it if the owner panics.
    const AWAITED: bool = <Self::Reply as Reply>::IS_SENT;
}

/// What a request is answered with.
pub(crate) trait Reply {
    const IS_SENT: bool;
}

impl<M: Message> Reply for M {
    const IS_SENT: bool = true;
}

/// Nobody waits.
pub(crate) enum NoReply {}

impl Reply for NoReply {
    const IS_SENT: bool = false;
}

messages! {
    /// What an owner may get.
    enum ToOwner from 0 {
        Insert: parcel,
        Adopt: parcel,
        Delete: parcel,
        Check: parcel,
        Commit: parcel,
        Abort: words,
        OfferChunks: words,
        Intern: parcel,
        Interned: parcel,
        Scan: parcel,
        Help: words,
        Credit: words,
        Cancel: words,
        Repartition: parcel,
        RepartitionEnd: parcel,
        RepartitionAborted: words,
        Rows: parcel,
        Keys: parcel,
        MoveOut: parcel,
        HandOver: parcel,
        TransferAcknowledged: parcel,
        Measure: words,
        DropObject: words,
        CollectGarbage: words,
        Build: parcel,
        DropIndex: words,
        Recode: parcel,
        Reorganize: words,
        Inspect: words,
        Locate: words,
    }
}
