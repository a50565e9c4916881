//! Chunks of other nodes: copied into a block of this AEU's node while it works on the block before.
//!
//! ```text
//!                 asked for        has arrived       worked on
//! block n            │─────────────────▶│──────────────▶│ free
//! block n+1                             │─────────────────▶│──────────────▶│
//! ```
//!
//! Source: "Hardware-Accelerated Memory Operations on Large-Scale NUMA Systems", Section 3.2: two buffers, and the scan
//! works on them as on any memory. A block is one chunk's columns, or those of several chunks if they are narrow. It
//! has the columns that are read as a stream; of others, lines are read where they lie. Why so: docs/decisions/0029.

use super::{CLAIM_BYTES, ScanTask};
use crate::protocol::message::Context;
use crate::protocol::run::{Help, Run, WorkQueue};
use crate::tasks::owner::Owner;
use eris_aeu::Slice;
use eris_column::CHUNK_ROWS;
use eris_cost::help::{Queue, Reading, helps};
use eris_exec::Work;
use eris_fragment::{FragmentError, NumaStrategy};
use eris_home::TrafficKind;
use eris_numa::{Arrival, CopyBlock, CopyEngine, ScanKernel};
use eris_store::ChunkView;
use eris_types::{ColumnId, NodeId};
use std::collections::VecDeque;
use std::time::Duration;

/// A chunk's columns for which nothing is known, in bytes.
const CHUNK_BYTES: f64 = 4.0 * CHUNK_ROWS as f64;

/// Chunks on their way.
#[derive(Default)]
pub(super) struct Pulls {
    /// At most two, the first to be worked on first.
    blocks: VecDeque<PulledBlock>,
    /// Before this nothing is worked on: bytes that were read where they lie are still to cross.
    until: Option<Arrival>,
}

/// A block that is filled.
struct PulledBlock {
    block: CopyBlock,
    views: VecDeque<PulledChunk>,
    arrival: Arrival,
}

/// A chunk of which columns were copied.
struct PulledChunk {
    view: ChunkView,
    from: Origin,
}

/// Where a chunk comes from.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    /// From another AEU's queue.
    pub helping: bool,
    /// The node of that AEU.
    pub home: NodeId,
    /// Bytes that were copied to the node of this one.
    pub copied: u64,
}

/// What came of looking for chunks of others.
pub(super) enum Helped {
    /// So many bytes were worked on.
    Worked(u64),
    /// There is nothing to do until later.
    Waits(Slice),
    /// There is nothing to do any more.
    Nothing,
}

impl Origin {
    /// The AEU's own queue.
    pub fn own(node: NodeId) -> Self {
        Origin {
            helping: false,
            home: node,
            copied: 0,
        }
    }
}

impl Pulls {
    /// How this slice ends if bytes are still to cross; short times are waited for here.
    fn pause(&mut self) -> Option<Slice> {
        let arrival = self
            .until
            .or(self.blocks.front().map(|block| block.arrival));
        let rest = arrival?.rest();
        if rest.is_none() {
            self.until = None;
        }
        rest.map(Slice::Rest)
    }

    /// Chunks that wait to be worked on.
    fn waiting(&self) -> usize {
        self.blocks.iter().map(|block| block.views.len()).sum()
    }

    /// Gives blocks back that are done with.
    fn retire(&mut self, owner: &mut Owner) {
        while let Some(done) = self.blocks.pop_front_if(|block| block.views.is_empty()) {
            owner.copies.give_back(done.block);
        }
    }

    /// The next chunk of the first block, whose bytes are there.
    fn next(&mut self) -> Option<PulledChunk> {
        self.blocks.front_mut()?.views.pop_front()
    }

    /// Whether one more block may be asked for.
    fn has_room(&self) -> bool {
        self.blocks.len() < 2
    }

    /// Whether nothing is on its way.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Gives everything up.
    pub fn clear(&mut self, owner: &mut Owner) {
        for done in self.blocks.drain(..) {
            drop(done.views);
            owner.copies.give_back(done.block);
        }
        self.until = None;
    }
}

impl ScanTask {
    /// One step with chunks of others: asks for another block, or works on a chunk.
    pub(super) fn help<T>(
        &mut self,
        run: &Run,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Result<Helped, FragmentError> {
        if self.pulls.until.is_some()
            && let Some(slice) = self.pulls.pause()
        {
            return Ok(Helped::Waits(slice));
        }
        self.pulls.retire(owner);
        if self.pulls.has_room() {
            let waiting = self.pulls.waiting();
            let may = |share, queue: &WorkQueue| self.may_help(share, queue, waiting, owner);
            match run.help(self.share, &self.helped, may) {
                Help::Claimed(share, view) if self.pull(run, share, view, owner) => {
                    return Ok(Helped::Worked(0));
                }
                Help::Claimed(share, view) => {
                    let from = Origin {
                        helping: true,
                        home: owner.topology.node_of(run.shares[share].aeu),
                        copied: 0,
                    };
                    return Ok(Helped::Worked(self.work(view, from, owner, cx)?));
                }
                Help::Later if self.pulls.blocks.is_empty() => {
                    return Ok(Helped::Waits(Slice::Suspend));
                }
                Help::Nothing if self.pulls.blocks.is_empty() => return Ok(Helped::Nothing),
                Help::Later | Help::Nothing => {}
            }
        }
        if let Some(slice) = self.pulls.pause() {
            return Ok(Helped::Waits(slice));
        }
        let Some(chunk) = self.pulls.next() else {
            return Ok(Helped::Worked(0));
        };
        let worked = self.work(&chunk.view, chunk.from, owner, cx)?;
        Ok(Helped::Worked(worked))
    }

    /// Counts what a chunk's bytes were read from, and has what is still to cross waited for. Returns the bytes that
    /// were read from another node.
    pub(super) fn cross(
        &mut self,
        work: &Work,
        from: Origin,
        took: Option<Duration>,
        owner: &Owner,
    ) -> u64 {
        let is_near = from.home == self.node;
        self.scanned.claimed += 1;
        self.scanned.read += u64::from(work.chunks > 0);
        if let Some(took) = took.filter(|_| is_near || from.copied > 0)
            && work.chunks > 0
        {
            self.scanned.chunks += 1;
            self.scanned.bytes += work.bytes;
            self.scanned.seconds += took.as_secs_f64();
        }
        if is_near {
            return 0;
        }
        let in_place = work.bytes.saturating_sub(from.copied);
        let arrival = (owner.remote).request(self.node, from.home, TrafficKind::Scan, in_place);
        if !arrival.is_there() {
            self.pulls.until = Some(arrival);
        }
        from.copied + in_place
    }

    /// Whether this AEU takes a chunk of a queue now, with so many others before it.
    pub(super) fn may_help(
        &self,
        share: usize,
        queue: &WorkQueue,
        waiting: usize,
        owner: &Owner,
    ) -> bool {
        let home = owner.topology.node_of(self.run.shares[share].aeu);
        if home == self.node || self.run.options.strategy == NumaStrategy::Pull {
            return true;
        }
        let bytes = self.chunk_bytes();
        let scan = self.scan_rate(owner);
        // An owner with several scans has only a part of its time for this one.
        let scans = owner.remote.scans(self.run.shares[share].aeu);
        let queue = Queue {
            bytes: queue.left() as f64 * bytes * self.scanned.share_read(),
            workers: 1.0 / f64::from(scans.max(1)),
            scan,
        };
        let taken = (1 + waiting) as f64 * bytes;
        helps(&queue, &owner.remote.way(self.node, home), taken)
    }

    /// Begins to copy chunks of a share's queue, of which the first has been claimed; whether it does: it may be better
    /// to read that where it lies.
    fn pull(&mut self, run: &Run, share: usize, first: &ChunkView, owner: &mut Owner) -> bool {
        let home = owner.topology.node_of(run.shares[share].aeu);
        let scan = self.scan_rate(owner);
        let crossing = owner.remote.crossing(self.node, home, scan);
        let copies = home != self.node
            && (run.options.strategy == NumaStrategy::Pull
                || crossing.way.reading(self.chunk_bytes(), scan) == Reading::Copied);
        if !copies {
            return false;
        }
        let columns = self.streamed_columns(first);
        if columns.is_empty() {
            return false;
        }
        let Some(mut block) = owner.copies.lend(&owner.memory) else {
            return false;
        };
        let mut views = VecDeque::new();
        let engine = crossing.engine;
        let mut bytes = copy(first, &columns, home, engine, &mut block, &mut views);
        let queue = run.queue(share).expect("a chunk of it was claimed");
        // Narrow chunks come together, so that the time of a request counts once.
        let most = crossing.way.copy.block as u64;
        let before = self.pulls.waiting();
        let mut has_room = bytes > 0;
        while has_room
            && bytes + CLAIM_BYTES * (views.len() as u64) < most
            && self.may_help(share, queue, before + views.len(), owner)
            && let Some((position, view)) = queue.claim()
        {
            self.program
                .fetch_ahead(|distance| queue.behind(position, distance));
            let columns = self.streamed_columns(view);
            let copied = copy(view, &columns, home, engine, &mut block, &mut views);
            bytes += copied;
            has_room = copied > 0 || columns.is_empty();
        }
        let arrival = (owner.remote).request(self.node, home, TrafficKind::Scan, bytes);
        self.pulls.blocks.push_back(PulledBlock {
            block,
            views,
            arrival,
        });
        true
    }

    /// The columns of a chunk that are worth copying.
    fn streamed_columns(&mut self, view: &ChunkView) -> Vec<ColumnId> {
        let partial = self.partial.as_mut().expect("not finished while claiming");
        let columns = self.program.streamed_columns(view, partial);
        columns.unwrap_or_default()
    }

    /// The bytes that this AEU has read of a chunk on average.
    fn chunk_bytes(&self) -> f64 {
        match self.scanned.chunks {
            0 => CHUNK_BYTES,
            chunks => (self.scanned.bytes as f64 / chunks as f64).max(1.0),
        }
    }

    /// The bytes that it has scanned per second; until then, what is known of values as wide.
    fn scan_rate(&self, owner: &Owner) -> f64 {
        match self.scanned.seconds {
            0.0 => {
                let bits = 8.0 * self.chunk_bytes() / CHUNK_ROWS as f64;
                owner.remote.scan(ScanKernel::Compare, bits)
            }
            seconds => (self.scanned.bytes as f64 / seconds).max(1.0),
        }
    }
}

/// Copies a chunk's columns into a block as far as there is room; returns the bytes.
fn copy(
    view: &ChunkView,
    columns: &[ColumnId],
    home: NodeId,
    engine: CopyEngine,
    block: &mut CopyBlock,
    views: &mut VecDeque<PulledChunk>,
) -> u64 {
    let mut room = block.room();
    let mut copied = 0;
    let fits = |column: &ColumnId| {
        let bytes = view.chunk.column(*column).bytes_to_copy();
        let left = room.checked_sub(bytes + PIECES * LINE);
        room = left.unwrap_or(room);
        copied += left.map_or(0, |_| bytes as u64);
        left.is_some()
    };
    let fitting: Vec<ColumnId> = columns.iter().copied().filter(fits).collect();
    let copy = view.copied(&fitting, block, engine);
    let (view, copied) = match copy {
        Some(copy) => (copy, copied),
        None => (view.clone(), 0),
    };
    let from = Origin {
        helping: true,
        home,
        copied,
    };
    views.push_back(PulledChunk { view, from });
    copied
}

/// Pieces of memory that a column of any encoding has at most.
const PIECES: usize = 6;

/// A line of a cache, in bytes.
const LINE: usize = 64;

/// What an AEU has scanned of chunks that lie on its own node.
#[derive(Clone, Copy, Default)]
pub(super) struct Scanned {
    /// Chunks of any node, and those of them that zone maps did not exclude.
    claimed: u64,
    read: u64,
    pub chunks: u64,
    pub bytes: u64,
    pub seconds: f64,
}

/// Whoever scans fewer bytes per second than this spends most of the time on something else than reading them.
const READING: f64 = 4e9;

/// A chunk of less than this is done before anything else matters.
const SHORT: Duration = Duration::from_micros(60);

impl Scanned {
    /// Whether most of the time goes into reading and comparing.
    pub fn is_bound_by_reading(&self) -> bool {
        self.bytes as f64 >= READING * self.seconds || self.each() < SHORT
    }

    /// The share of chunks that zone maps leave, as far as is known.
    fn share_read(&self) -> f64 {
        // One more of each: whoever has seen none knows nothing.
        (self.read + 1) as f64 / (self.claimed + 1) as f64
    }

    /// How long a chunk takes on average.
    pub fn each(&self) -> Duration {
        Duration::from_secs_f64(self.seconds / self.chunks.max(1) as f64)
    }
}
