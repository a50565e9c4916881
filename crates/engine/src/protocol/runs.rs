//! Commands of fragments that run.
//!
//! ```text
//! client ── Scan ─▶ participants ── Repartition* · RepartitionEnd ─▶ participants, if groups are many
//!   ▲ └──── Credit · Cancel ─▶  └── Help ─▶ those that wait for chunks
//!   └─────── Batch* · End ────────┘
//! ```

use super::answers::End;
use super::callback::RunId;
use super::request::{NoReply, Request};
use super::run::Run;
use super::words::{Words, without_words};
use eris_exec::Groups;
use eris_numa::NodeReservation;
use eris_route::Rank;
use std::sync::Arc;

/// A fragment to take part in. Batches go to the run's result streams, each as far as there is credit.
#[derive(Clone)]
pub(crate) struct Scan(pub Arc<Run>);

impl Request for Scan {
    const RANK: Rank = Rank::Scan;
    type Callback = RunId;
    type Reply = End;
}

/// There may be chunks of others to be claimed, or the run has failed.
pub(crate) struct Help;

impl Request for Help {
    const RANK: Rank = Rank::Control;
    type Callback = RunId;
    type Reply = NoReply;
}

/// So many more batches may be sent to a result stream.
pub(crate) struct Credit {
    pub batches: u32,
    pub stream: u32,
}

impl Request for Credit {
    const RANK: Rank = Rank::Control;
    type Callback = RunId;
    type Reply = NoReply;
}

impl Words for Credit {
    const LEN: usize = 2;

    fn to_words(&self) -> [u64; 2] {
        [self.batches.into(), self.stream.into()]
    }

    fn of(words: &[u64]) -> Self {
        Credit {
            batches: words[0] as u32,
            stream: words[1] as u32,
        }
    }
}

/// Nobody reads a result stream any more.
pub(crate) struct Cancel;

impl Request for Cancel {
    const RANK: Rank = Rank::Control;
    type Callback = RunId;
    type Reply = NoReply;
}

/// Groups whose keys belong to the receiver, by a hash. It may not have begun with the run yet.
pub(crate) struct Repartition {
    pub run: Arc<Run>,
    pub groups: Groups,
    /// For the groups, until they are merged: they lie on their sender's node.
    pub reserved: NodeReservation,
}

impl Request for Repartition {
    const RANK: Rank = Rank::Reply;
    type Callback = RunId;
    type Reply = NoReply;
}

/// The sender has no more groups for the receiver.
pub(crate) struct RepartitionEnd {
    pub run: Arc<Run>,
    /// How many [`Repartition`]s it has sent.
    pub sent: u64,
}

impl Request for RepartitionEnd {
    const RANK: Rank = Rank::Reply;
    type Callback = RunId;
    type Reply = NoReply;
}

/// What the receiver of this has repartitioned got lost in a panic.
pub(crate) struct RepartitionAborted;

impl Request for RepartitionAborted {
    const RANK: Rank = Rank::Control;
    type Callback = RunId;
    type Reply = NoReply;
}

without_words!(Help, Cancel, RepartitionAborted);
