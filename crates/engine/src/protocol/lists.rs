//! What an owner may get, and what a client may: the requests and their answers.
//!
//! ```text
//! client ── Insert, Adopt, Delete, Check ─▶ owner  ◀── Done|Deleted|Rejected a statement's rows, uncommitted until
//!        ── Commit | Abort ─▶                                               one of these; the sequencer sees a commit
//!        ── OfferKeys, AdoptKeys ─▶    ◀── OfferedKeys | Done               the same of rows that change owners
//!        ── Scan ─▶ participants       ◀── Batch* · End                     a fragment; batches are a result stream
//!        ── Credit | Cancel ─▶
//!        ── ExecuteKeys|Rows ─▶        ◀── KeysDone | RowsDone              batches by key, executed where they belong
//!        ── MoveOut ─▶                 ◀── MovedOut                         keys that another owner shall have
//!        ── questions ─▶               ◀── an answer of each owner
//! owner  ── HandOver ─▶ owner          ◀── TransferAcknowledged             keys on their way; batches follow them
//!        ── Intern ─▶ dictionary owner ◀── Interned                         codes for unknown strings
//!        ── Help ─▶ participant                                             there are chunks to be claimed
//!        ── Repartition* · RepartitionEnd ─▶ participants                   groups, by a hash of their keys
//! ```
//!
//! Ranks only ascend on the way from a request to what it causes: on that rests that no two endpoints wait for each
//! other. What a client wants of rows is client work. Scans, and what owners do for each other on the way, are scan
//! work. A batch may be handed on more than once, but an owner has one of each client at most. There is always room for
//! that. Answers are replies, and so is what scans make for each other. Everything that must never wait is control.

use super::answers::{
    Batch, Deleted, Done, End, Frozen, Indexes, KeysDone, LocatedParts, OfferedChunks, OfferedKeys,
    Panicked, Rejected, RowsDone, Segments,
};
use super::keys::{ExecuteKeys, ExecuteRows, HandOver, Measure, MoveOut, TransferAcknowledged};
use super::message::messages;
use super::objects::{
    Analyze, Build, CollectGarbage, DropIndex, DropObject, Freeze, Inspect, Locate, Recode,
    Reorganize,
};
use super::runs::{Cancel, Credit, Help, Repartition, RepartitionAborted, RepartitionEnd, Scan};
use super::statements::{
    Abort, Adopt, AdoptKeys, Check, Commit, Delete, Insert, Intern, Interned, OfferChunks,
    OfferKeys,
};
use crate::key_index::measure::Measurement;
use crate::key_index::transfer::MovedOut;

/// What travels as a parcel.
pub(crate) enum Parcel {
    ToOwner(ToOwner),
    ToClient(ToClient),
}

messages! {
    /// What an owner may get.
    requests enum ToOwner, OwnerKind from 0 {
        Insert: parcel Load,
        Adopt: parcel Move,
        OfferKeys: parcel Move,
        AdoptKeys: parcel Move,
        Delete: parcel Load,
        Check: parcel Commit,
        Commit: parcel Commit,
        Abort: words Commit,
        OfferChunks: words Move,
        Intern: parcel Load,
        Interned: parcel Load,
        Scan: parcel Control,
        Help: words Control,
        Credit: words Control,
        Cancel: words Control,
        Repartition: parcel Result,
        RepartitionEnd: parcel Result,
        RepartitionAborted: words Result,
        ExecuteRows: parcel Rows,
        ExecuteKeys: parcel Keys,
        MoveOut: parcel Move,
        HandOver: parcel Move,
        TransferAcknowledged: parcel Move,
        Measure: words Control,
        DropObject: words Control,
        CollectGarbage: words Control,
        Build: parcel Control,
        DropIndex: words Control,
        Recode: parcel Control,
        Reorganize: words Control,
        Inspect: words Control,
        Freeze: words Control,
        Locate: words Control,
        Analyze: words Control,
    }
}

messages! {
    /// What a client may get.
    answers enum ToClient, ClientKind from 128 {
        Done: words Load Reply,
        Deleted: words Load Reply,
        OfferedKeys: parcel Move Reply,
        Rejected: parcel Control Reply,
        Panicked: parcel Control Control,
        Batch: parcel Result Reply,
        End: parcel Result Reply,
        KeysDone: parcel Keys Reply,
        RowsDone: parcel Rows Reply,
        MovedOut: parcel Move Reply,
        Measurement: parcel Control Reply,
        OfferedChunks: parcel Move Reply,
        Segments: parcel Control Reply,
        Frozen: parcel Control Reply,
        LocatedParts: parcel Control Reply,
        Indexes: parcel Control Reply,
    }
}
