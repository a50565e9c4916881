//! A running fragment: what its participants share.
//!
//! ```text
//!            lane 0                 lane 1            streams to the receiver, k credits per AEU
//!          ▲        ▲             ▲        ▲
//!        AEU 0    AEU 2         AEU 1    AEU 3        shares
//!          │        │             │        │
//!       ticket    ticket       ticket    ticket       chunks of the AEU's partition, frozen at the start, one cursor each
//! ```
//!
//! An owner publishes the chunks of its partition as a *ticket*. It claims from its own ticket first; whoever has nothing
//! left claims from the tickets of others, the nearest first. Chunks are immutable, so helping needs no latch. With the last
//! reference to a run its tickets go, and with them the memory of chunks that nobody else holds.
//!
//! Rows go to the lane of whoever found them. A group goes to the lane of the participant to which its key belongs, whoever
//! hands it on, so that no two lanes have groups in common. See [`crate::protocol::routed`] for groups that are merged on the way.

use crate::object::data_object::DataObject;
use crate::object::path::Path;
use crate::protocol::routed::Routing;
use eris_exec::Program;
use eris_fragment::{FragmentError, WorkerReport};
use eris_route::Endpoint;
use eris_store::ChunkView;
use eris_types::{AeuId, Timestamp};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock};

/// Batches an AEU may have under way to its lane.
pub(crate) const CREDITS: u32 = 8;

/// A partition of fewer rows is not worth waiting for: its owner is done before a helper is there.
const HELP_ROWS: u64 = 4 * eris_column::CHUNK_ROWS as u64;

pub(crate) struct Run {
    pub id: u64,
    pub object: Arc<DataObject>,
    pub program: Program,
    pub snapshot: Timestamp,
    pub limit: Option<u64>,
    /// The index that leads to the rows.
    pub path: Option<Path>,
    pub lanes: Box<[Lane]>,
    /// One per participant, in order of the AEUs.
    pub shares: Box<[Share]>,
    pub routing: Routing,
    /// Rows that passed so far, for `limit`; only ever added to.
    sent: AtomicU64,
    failed: OnceLock<FragmentError>,
}

pub(crate) struct Lane {
    pub endpoint: Endpoint,
    /// Set by the receiver when it goes away; read by the lane's AEUs before each slice. It alone is the message.
    dropped: AtomicBool,
}

pub(crate) struct Share {
    pub aeu: AeuId,
    pub lane: usize,
    /// The rows of its partition, as planned.
    pub rows: u64,
    ticket: OnceLock<Ticket>,
    /// Set by a participant that waits for others' tickets. See [`Run::publish`].
    willing: AtomicBool,
    /// Set by the participant itself, when it begins. It alone reads it, so that it begins once.
    begun: AtomicBool,
    pub report: Arc<Mutex<WorkerReport>>,
}

/// An owner's chunks, to be claimed by whoever is free.
pub(crate) struct Ticket {
    views: Box<[ChunkView]>,
    /// Where the owner's shared pass stood: fragments that start together claim the same chunks one after the other, so
    /// that all but the first find them in the cache.
    start: usize,
    /// Claims so far, over any number of claimers. Only the claim itself is shared: what a view points to was published
    /// with the ticket.
    claims: AtomicUsize,
}

impl Ticket {
    pub fn new(views: Vec<ChunkView>, start: usize) -> Self {
        Ticket {
            start: if views.is_empty() {
                0
            } else {
                start % views.len()
            },
            views: views.into(),
            claims: AtomicUsize::new(0),
        }
    }

    /// The next chunk and its position.
    pub fn claim(&self) -> Option<(usize, &ChunkView)> {
        if self.claims.load(Ordering::Relaxed) >= self.views.len() {
            return None;
        }
        let claim = self.claims.fetch_add(1, Ordering::Relaxed);
        if claim >= self.views.len() {
            return None;
        }
        let position = (self.start + claim) % self.views.len();
        Some((position, &self.views[position]))
    }

    /// The chunk so many behind the one at a position, as the owner claims them.
    pub fn behind(&self, position: usize, distance: usize) -> Option<&ChunkView> {
        self.views.get(position + distance)
    }
}

/// What a participant finds when it looks for work in others' tickets.
pub(crate) enum Help<'a> {
    /// A chunk.
    Claimed(&'a ChunkView),
    /// Nothing yet, but a large partition is still to be published; HELP will come.
    Later,
    /// Nothing any more.
    Nothing,
}

impl Lane {
    pub fn new(endpoint: Endpoint) -> Self {
        Lane {
            endpoint,
            dropped: AtomicBool::new(false),
        }
    }
}

impl Share {
    pub fn new(aeu: AeuId, node: u32, lane: usize, rows: u64) -> Self {
        let report = WorkerReport {
            worker: aeu.0.into(),
            node,
            ..WorkerReport::default()
        };
        Share {
            aeu,
            lane,
            rows,
            ticket: OnceLock::new(),
            willing: AtomicBool::new(false),
            begun: AtomicBool::new(false),
            report: Arc::new(Mutex::new(report)),
        }
    }
}

impl Run {
    pub fn new(
        id: u64,
        object: Arc<DataObject>,
        program: Program,
        snapshot: Timestamp,
        limit: Option<u64>,
        lanes: Box<[Lane]>,
        shares: Box<[Share]>,
    ) -> Self {
        Run {
            routing: Routing::new(&program, &shares),
            id,
            object,
            program,
            snapshot,
            limit,
            path: None,
            lanes,
            shares,
            sent: AtomicU64::new(0),
            failed: OnceLock::new(),
        }
    }

    /// The same, if an index leads to the rows.
    pub fn along(mut self, path: Option<Path>) -> Self {
        if path.is_some() {
            // It leads to few rows.
            self.routing.forbid();
        }
        self.path = path;
        self
    }

    /// Whether groups go to lanes by their keys: every participant may then send to every lane.
    pub fn is_keyed(&self) -> bool {
        self.program.has_keys()
    }

    /// The lanes to which a share sends.
    pub fn lanes_of(&self, share: usize) -> Range<usize> {
        let lane = self.shares[share].lane;
        match self.is_keyed() {
            true => 0..self.lanes.len(),
            false => lane..lane + 1,
        }
    }

    /// Whether this is the first time that a share is begun.
    pub fn begin(&self, share: usize) -> bool {
        !self.shares[share].begun.swap(true, Ordering::Relaxed)
    }

    /// The position of an AEU's share.
    pub fn share_of(&self, aeu: AeuId) -> usize {
        let found = self.shares.binary_search_by_key(&aeu, |share| share.aeu);
        found.expect("only participants get the run")
    }

    /// Fails the whole fragment; the first failure counts.
    pub fn fail(&self, error: FragmentError) {
        let _ = self.failed.set(error);
    }

    /// Why the fragment failed, if it did.
    pub fn failure(&self) -> Option<&FragmentError> {
        self.failed.get()
    }

    /// The lane's receiver has gone.
    pub fn drop_lane(&self, lane: usize) {
        self.lanes[lane].dropped.store(true, Ordering::Relaxed);
    }

    /// Whether the lane's receiver has gone.
    pub fn is_dropped(&self, lane: usize) -> bool {
        self.lanes[lane].dropped.load(Ordering::Relaxed)
    }

    /// Whether as many rows were sent as anybody wants.
    pub fn is_satisfied(&self) -> bool {
        (self.limit).is_some_and(|limit| self.sent.load(Ordering::Relaxed) >= limit)
    }

    /// Counts rows that are sent.
    pub fn count_sent(&self, rows: usize) {
        self.sent.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// The share's ticket, once it is published.
    pub fn ticket(&self, share: usize) -> Option<&Ticket> {
        self.shares[share].ticket.get()
    }

    /// How many chunks have been claimed, of how many that are published.
    pub fn claims(&self) -> (usize, usize) {
        let tickets = self.shares.iter().filter_map(|share| share.ticket.get());
        tickets.fold((0, 0), |(claimed, all), ticket| {
            let own = ticket.claims.load(Ordering::Relaxed);
            let views = ticket.views.len();
            (claimed + own.min(views), all + views)
        })
    }

    /// Publishes the share's ticket; returns the participants that wait for one.
    ///
    /// A helper says that it is willing and then looks at the tickets; an owner publishes and then looks for the willing.
    /// The fences on both sides see to it that at least one finds the other.
    pub fn publish(&self, share: usize, ticket: Ticket) -> impl Iterator<Item = AeuId> + '_ {
        let fresh = self.shares[share].ticket.set(ticket).is_ok();
        assert!(fresh, "a ticket is published once");
        self.wake()
    }

    /// The participants that wait for a ticket. They are told once.
    pub fn wake(&self) -> impl Iterator<Item = AeuId> + '_ {
        fence(Ordering::SeqCst);
        let shares = self.shares.iter();
        shares
            .filter(|share| share.willing.swap(false, Ordering::Relaxed))
            .map(|share| share.aeu)
    }

    /// A chunk of somebody else's ticket, in the order of `others` (positions of shares).
    pub fn help(&self, own: usize, others: &[usize]) -> Help<'_> {
        if let Some(view) = self.claim_from(others) {
            return Help::Claimed(view);
        }
        if !self.is_ticket_due(others) {
            return Help::Nothing;
        }
        self.shares[own].willing.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        match self.claim_from(others) {
            Some(view) => Help::Claimed(view),
            None if self.is_ticket_due(others) => Help::Later,
            None => Help::Nothing,
        }
    }

    fn claim_from(&self, others: &[usize]) -> Option<&ChunkView> {
        let tickets = others.iter().filter_map(|&other| self.ticket(other));
        tickets
            .filter_map(Ticket::claim)
            .map(|(_, view)| view)
            .next()
    }

    fn is_ticket_due(&self, others: &[usize]) -> bool {
        let due =
            |&other: &usize| self.shares[other].rows >= HELP_ROWS && self.ticket(other).is_none();
        self.failed.get().is_none() && others.iter().any(due)
    }
}
