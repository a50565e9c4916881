//! A running fragment: what its participants share.
//!
//! ```text
//!            stream 0                 stream 1            streams to the receiver, k credits per AEU
//!          ▲        ▲             ▲        ▲
//!        AEU 0    AEU 2         AEU 1    AEU 3        shares
//!          │        │             │        │
//!       queue    queue       queue    queue       chunks of the AEU's partition, frozen at the start, one cursor each
//! ```
//!
//! An owner publishes the chunks of its partition as a *queue*. It claims from its own queue first; whoever has nothing
//! left claims from the queues of others, the nearest first. Chunks are immutable, so helping needs no latch. With the
//! last reference to a run its queues go, and with them the memory of chunks that nobody else holds.
//!
//! Rows go to the stream of whoever found them. A group goes to the stream of the participant to which its key belongs,
//! whoever hands it on, so that no two streams have groups in common. See [`crate::protocol::repartition`] for groups
//! that are merged on the way.

use super::append::Append;
use super::callback::RunId;
use super::copies::Copies;
use super::repartition::Repartitioning;
use super::report::ShareReport;
use crate::object::data_object::DataObject;
use crate::object::path::Path;
use eris_exec::Program;
use eris_fragment::{FragmentError, ScanOptions};
use eris_numa::{NodeAccount, NodeMemory};
use eris_route::Endpoint;
use eris_store::{Chunk, ChunkView};
use eris_types::{AeuId, Timestamp};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// Batches an AEU may have under way to its stream.
pub(crate) const CREDITS: u32 = 8;

/// A partition of fewer rows is not worth waiting for: its owner is done before a helper is there.
const HELP_ROWS: u64 = 4 * eris_column::CHUNK_ROWS as u64;

/// One execution of a fragment.
pub(crate) struct Run {
    pub id: RunId,
    pub object: Arc<DataObject>,
    /// As the client has compiled it.
    pub program: Arc<Program>,
    /// The same on each node.
    pub copies: Option<Copies>,
    pub snapshot: Timestamp,
    pub limit: Option<u64>,
    pub options: ScanOptions,
    /// The index that leads to the rows.
    pub path: Option<Path>,
    /// Where its rows go, if they are not sent.
    pub append: Option<Append>,
    pub streams: Box<[ResultReceiver]>,
    /// One per participant, in order of the AEUs.
    pub shares: Box<[Share]>,
    pub repartitioning: Repartitioning,
    /// Rows that passed so far, for `limit`; only ever added to.
    sent: AtomicU64,
    failed: OnceLock<FragmentError>,
}

/// The receiving end of a result stream.
pub(crate) struct ResultReceiver {
    pub endpoint: Endpoint,
    /// Set by the receiver when it goes away; read by the stream's AEUs before each slice. It alone is the message.
    dropped: AtomicBool,
}

/// What one participant has to do, and to say.
pub(crate) struct Share {
    pub aeu: AeuId,
    pub stream: usize,
    /// The rows of its partition, as planned.
    pub rows: u64,
    queue: OnceLock<WorkQueue>,
    /// Set by a participant that waits for others' queues. See [`Run::publish`].
    willing: AtomicBool,
    /// Set by the participant itself, when it begins. It alone reads it, so that it begins once.
    begun: AtomicBool,
    pub report: Arc<ShareReport>,
}

/// An owner's chunks, to be claimed by whoever is free.
pub(crate) struct WorkQueue {
    views: Box<[ChunkView]>,
    /// The chunk that is claimed first, and the number of claims so far, over any number of claimers. Only the claim
    /// itself is shared: what a view points to was published with the queue.
    ///
    /// The first chunk is where the owner's shared pass stood: fragments that start together claim the same chunks one
    /// after the other, so that all but the first find them in the cache.
    claims: AtomicU64,
}

/// The first chunk and the claims, in one word.
#[derive(Clone, Copy)]
struct Claims {
    first: u32,
    count: u32,
}

impl Claims {
    fn to_word(self) -> u64 {
        u64::from(self.first) << 32 | u64::from(self.count)
    }

    fn from_word(word: u64) -> Self {
        Claims {
            first: (word >> 32) as u32,
            count: word as u32,
        }
    }

    /// The position of the next chunk; `None`: there is none.
    fn next(self, chunks: usize) -> Option<usize> {
        let count = self.count as usize;
        (count < chunks).then(|| (self.first as usize + count) % chunks)
    }
}

impl WorkQueue {
    pub fn new(views: Vec<ChunkView>, first: usize) -> Self {
        let claims = Claims {
            first: (first % views.len().max(1)) as u32,
            count: 0,
        };
        WorkQueue {
            views: views.into(),
            claims: AtomicU64::new(claims.to_word()),
        }
    }

    fn claims(&self) -> Claims {
        Claims::from_word(self.claims.load(Ordering::Relaxed))
    }

    /// The next chunk and its position.
    pub fn claim(&self) -> Option<(usize, &ChunkView)> {
        // Claimers do not count on when all is claimed.
        self.claims().next(self.views.len())?;
        let claims = Claims::from_word(self.claims.fetch_add(1, Ordering::Relaxed));
        let position = claims.next(self.views.len())?;
        Some((position, &self.views[position]))
    }

    /// The next chunk, if it is this one. If none has been claimed yet, the queue begins with it, which has this
    /// position in another queue.
    pub fn claim_if(&self, chunk: &Chunk, position: usize) -> Option<(usize, &ChunkView)> {
        let known = self.claims();
        let is_at = |position: usize| {
            let view = self.views.get(position);
            view.is_some_and(|view| std::ptr::eq(&*view.chunk, chunk))
        };
        let first = match known.count {
            0 if is_at(position) => position as u32,
            _ => known.first,
        };
        let claims = Claims { first, ..known };
        let position = claims.next(self.views.len()).filter(|&next| is_at(next))?;
        let claimed = Claims {
            count: claims.count + 1,
            ..claims
        };
        let exchanged = self.claims.compare_exchange(
            known.to_word(),
            claimed.to_word(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        exchanged.ok().map(|_| (position, &self.views[position]))
    }

    /// The chunk at a position.
    pub fn at(&self, position: usize) -> &ChunkView {
        &self.views[position]
    }

    /// How many chunks nobody has claimed.
    pub fn left(&self) -> usize {
        self.views
            .len()
            .saturating_sub(self.claims().count as usize)
    }

    /// The chunk so many behind the one at a position, as the owner claims them.
    pub fn behind(&self, position: usize, distance: usize) -> Option<&ChunkView> {
        self.views.get(position + distance)
    }
}

/// What a participant finds when it looks for work in others' queues.
pub(crate) enum Help<'a> {
    /// A chunk of this share's queue.
    Claimed(usize, &'a ChunkView),
    /// Nothing yet, but a large partition is still to be published; [`Help`](super::runs::Help) will come.
    Later,
    /// Nothing any more.
    Nothing,
}

impl ResultReceiver {
    pub fn new(endpoint: Endpoint) -> Self {
        ResultReceiver {
            endpoint,
            dropped: AtomicBool::new(false),
        }
    }
}

impl Share {
    pub fn new(aeu: AeuId, node: u32, stream: usize, rows: u64) -> Self {
        Share {
            aeu,
            stream,
            rows,
            queue: OnceLock::new(),
            willing: AtomicBool::new(false),
            begun: AtomicBool::new(false),
            report: Arc::new(ShareReport::new(aeu, node)),
        }
    }
}

impl Run {
    pub fn new(
        id: RunId,
        object: Arc<DataObject>,
        program: Program,
        snapshot: Timestamp,
        limit: Option<u64>,
        streams: Box<[ResultReceiver]>,
        shares: Box<[Share]>,
    ) -> Self {
        Run {
            repartitioning: Repartitioning::new(
                &program,
                shares.len(),
                shares.iter().map(|share| share.rows).sum(),
            ),
            id,
            object,
            program: Arc::new(program),
            copies: None,
            snapshot,
            limit,
            options: ScanOptions::default(),
            path: None,
            append: None,
            streams,
            shares,
            sent: AtomicU64::new(0),
            failed: OnceLock::new(),
        }
    }

    /// The same, executed so.
    pub fn with(mut self, options: ScanOptions) -> Self {
        self.options = options;
        self
    }

    /// The same, if an index leads to the rows.
    pub fn along(mut self, path: Option<Path>) -> Self {
        if path.is_some() {
            // It leads to few rows.
            self.repartitioning.forbid();
        }
        self.path = path;
        self
    }

    /// The same, with a program for each node.
    pub fn copied(mut self, copies: Option<Copies>) -> Self {
        self.copies = copies;
        self
    }

    /// The program for AEUs of a node.
    pub fn program_on(&self, memory: &NodeMemory, account: &NodeAccount) -> Arc<Program> {
        let copies = self.copies.as_ref();
        let copy = copies.and_then(|copies| copies.on(memory, account));
        copy.unwrap_or_else(|| self.program.clone())
    }

    /// The same, whose rows go into another data object.
    pub fn into(mut self, append: Append) -> Self {
        self.append = Some(append);
        self
    }

    /// Rows that were found, or appended, by each participant.
    pub fn rows_by_aeu(&self) -> impl Iterator<Item = (AeuId, u64)> + '_ {
        let shares = self.shares.iter();
        shares.map(|share| (share.aeu, share.report.rows_sent.get()))
    }

    /// Whether groups go to streams by their keys: every participant may then send to every stream.
    pub fn is_keyed(&self) -> bool {
        self.program.has_keys()
    }

    /// The streams to which a share sends.
    pub fn streams_of(&self, share: usize) -> Range<usize> {
        let stream = self.shares[share].stream;
        match self.is_keyed() {
            true => 0..self.streams.len(),
            false => stream..stream + 1,
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

    /// The stream's receiver has gone.
    pub fn drop_stream(&self, stream: usize) {
        self.streams[stream].dropped.store(true, Ordering::Relaxed);
    }

    /// Whether the stream's receiver has gone.
    pub fn is_dropped(&self, stream: usize) -> bool {
        self.streams[stream].dropped.load(Ordering::Relaxed)
    }

    /// Whether as many rows were sent as anybody wants.
    pub fn is_satisfied(&self) -> bool {
        (self.limit).is_some_and(|limit| self.sent.load(Ordering::Relaxed) >= limit)
    }

    /// Counts rows that are sent.
    pub fn count_sent(&self, rows: usize) {
        self.sent.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// The share's queue, once it is published.
    pub fn queue(&self, share: usize) -> Option<&WorkQueue> {
        self.shares[share].queue.get()
    }

    /// How many chunks have been claimed, of how many that are published.
    pub fn claims(&self) -> (usize, usize) {
        let queues = self.shares.iter().filter_map(|share| share.queue.get());
        queues.fold((0, 0), |(claimed, all), queue| {
            let own = queue.claims().count as usize;
            let views = queue.views.len();
            (claimed + own.min(views), all + views)
        })
    }

    /// Publishes the share's queue; returns the participants that wait for one.
    ///
    /// A helper says that it is willing and then looks at the queues; an owner publishes and then looks for the
    /// willing. The fences on both sides see to it that at least one finds the other.
    pub fn publish(&self, share: usize, queue: WorkQueue) -> impl Iterator<Item = AeuId> + '_ {
        let fresh = self.shares[share].queue.set(queue).is_ok();
        assert!(fresh, "a queue is published once");
        self.wake()
    }

    /// The participants that wait for a queue. They are told once.
    pub fn wake(&self) -> impl Iterator<Item = AeuId> + '_ {
        fence(Ordering::SeqCst);
        let shares = self.shares.iter();
        shares
            .filter(|share| share.willing.swap(false, Ordering::Relaxed))
            .map(|share| share.aeu)
    }

    /// A chunk of somebody else's queue, in the order of `others` (positions of shares), from queues of which `may`
    /// says so.
    pub fn help(
        &self,
        own: usize,
        others: &[usize],
        may: impl Fn(usize, &WorkQueue) -> bool,
    ) -> Help<'_> {
        let claim = || {
            let queues = (others.iter()).filter_map(|&other| Some((other, self.queue(other)?)));
            let willing = queues.filter(|(other, queue)| may(*other, queue));
            let mut claims = willing.filter_map(|(other, queue)| Some((other, queue.claim()?.1)));
            claims.next()
        };
        if let Some((share, view)) = claim() {
            return Help::Claimed(share, view);
        }
        if !self.is_queue_due(others) {
            return Help::Nothing;
        }
        self.shares[own].willing.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        match claim() {
            Some((share, view)) => Help::Claimed(share, view),
            None if self.is_queue_due(others) => Help::Later,
            None => Help::Nothing,
        }
    }

    fn is_queue_due(&self, others: &[usize]) -> bool {
        let due =
            |&other: &usize| self.shares[other].rows >= HELP_ROWS && self.queue(other).is_none();
        self.failed.get().is_none() && others.iter().any(due)
    }
}
