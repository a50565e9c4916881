//! A fragment at one AEU: a task that takes one chunk per slice, or a few narrow ones.
//!
//! ```text
//! start ──queue published──▶ claiming ──nothing left──▶ merging ──all handed on──▶ draining ──all batches sent──▶ END
//!                          │    ▲      (if groups     │   ▲                     │   ▲
//!             no credit or ▼    │       are sent on)  ▼   │ Repartition,   ▼   │ CREDIT
//!             no queue yet   suspended             suspended CREDIT           suspended
//! ```
//!
//! Tasks take turns, one slice each. Fragments on the same data object start where the others are, and a slice works on
//! a chunk for all of them: see [`sharing`]. A fragment without credit is suspended and thereby leaves the pass; its
//! cursor stays where it is.

mod appending;
mod begin;
mod pulling;
mod repartitioning;
mod sending;
pub(super) mod sharing;

use super::insert::InsertTask;
use super::owner::Owner;
use super::repartition::{GroupExchange, afford};
use crate::protocol::message::Context;
use crate::protocol::report::ShareReport;
use crate::protocol::run::{Run, WorkQueue};
use appending::Appending;
use arrow_array::RecordBatch;
use eris_aeu::{Slice, Sliced};
use eris_exec::{Partial, Program, Work};
use eris_fragment::{FragmentError, NumaStrategy};
use eris_numa::{NodeReservation, Topology};
use eris_store::ChunkView;
use eris_types::{AeuId, NodeId, ObjectId};
use pulling::{Helped, Origin, Pulls, Scanned};
use sending::StreamQueue;
pub(crate) use sharing::MaybeScan;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A slice touches about so many bytes: half of a full-width chunk, some ten microseconds. Narrow chunks are taken
/// several at a time, so that the step around a slice stays small beside it.
const SLICE_BYTES: u64 = 256 << 10;

/// What a claim counts for, so that a slice over skipped chunks ends, too.
const CLAIM_BYTES: u64 = 4 << 10;

/// Groups that take more than this are handed on, and new ones begun: whoever merges them can put them on the disk. A
/// table of groups of this size is far beyond any cache, so that little is lost where they come again.
const MOST_GROUPS: u64 = 64 << 20;

/// Memory of groups and buffered rows is reserved in steps of so many bytes.
const RESERVE_STEP: u64 = 1 << 20;

pub(crate) struct ScanTask {
    run: Arc<Run>,
    /// Of the run, for this node.
    program: Arc<Program>,
    share: usize,
    node: NodeId,
    /// The other shares.
    others: Vec<usize>,
    /// Those of them whose queues it may help with, the nearest node first.
    helped: Vec<usize>,
    /// Chunks of other nodes that are on their way.
    pulls: Pulls,
    scanned: Scanned,
    /// Time of this slice in which it worked for others.
    lent: Duration,
    /// What was aggregated or buffered so far; `None` once it is finished.
    partial: Option<Partial>,
    /// What `partial` may take of the budget.
    reserved: Vec<NodeReservation>,
    reserved_bytes: u64,
    /// The result streams that it sends to.
    streams: Vec<StreamQueue>,
    /// What becomes of groups that are repartitioned; `None` in a run that repartitions none.
    exchange: Option<GroupExchange>,
    /// For groups that were repartitioned and are handed on as they are.
    passing: Vec<NodeReservation>,
    /// Rows on their way into another data object.
    appending: Appending,
    state: ScanState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScanState {
    Starting,
    Claiming,
    Merging,
    Draining,
    Over,
}

impl ScanTask {
    pub fn new(run: Arc<Run>, program: Arc<Program>, aeu: AeuId, topology: &Topology) -> Self {
        let share = run.share_of(aeu);
        let node = topology.node_of(aeu);
        let distances = &topology.nodes()[node.index()].distances;
        let is_near = |&other: &usize| topology.node_of(run.shares[other].aeu) == node;
        let others: Vec<usize> = (0..run.shares.len()).filter(|&o| o != share).collect();
        let mut helped = others.clone();
        helped.retain(|other| run.options.strategy != NumaStrategy::Push || is_near(other));
        let count = run.shares.len();
        // Helpers of one distance begin with different queues.
        helped.sort_by_key(|&other| {
            let node = topology.node_of(run.shares[other].aeu).index();
            (distances[node], (other + count - share) % count)
        });
        let mut partial = program.start();
        let division = run.repartitioning.division();
        if let Some(division) = division {
            program.start_repartitioning(division, &mut partial);
        }
        let streams = run.streams_of(share).map(StreamQueue::new);
        ScanTask {
            partial: Some(partial),
            streams: streams.collect(),
            exchange: division.map(|division| GroupExchange::new(&program, division)),
            run,
            program,
            share,
            node,
            others,
            helped,
            pulls: Pulls::default(),
            scanned: Scanned::default(),
            lent: Duration::ZERO,
            reserved: Vec::new(),
            reserved_bytes: 0,
            passing: Vec::new(),
            appending: Appending::default(),
            state: ScanState::Starting,
        }
    }

    /// The data object that is scanned.
    pub fn object(&self) -> ObjectId {
        self.run.object.id
    }

    pub fn slice<T: Sliced + MaybeScan + From<Box<InsertTask>>>(
        &mut self,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Slice {
        let began = Instant::now();
        let timed = self.run.object.loads.begin_slice(owner.aeu);
        let slice = if self.is_deserted() {
            self.leave(owner, cx)
        } else if let Some(error) = self.run.failure().cloned() {
            self.fail(error, owner, cx)
        } else {
            match self.advance(owner, cx) {
                Ok(slice) => slice,
                Err(error) => self.fail(error, owner, cx),
            }
        };
        self.run.object.loads.end_slice(owner.aeu, timed);
        let lent = std::mem::take(&mut self.lent);
        self.report().add_busy(began.elapsed().saturating_sub(lent));
        slice
    }

    fn advance<T: Sliced + MaybeScan + From<Box<InsertTask>>>(
        &mut self,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Result<Slice, FragmentError> {
        self.take_in(owner)?;
        if self.state != ScanState::Starting {
            let is_all = match self.run.append {
                Some(_) => self.append(owner, cx)?,
                None => self.send(owner, cx),
            };
            if !is_all {
                return Ok(Slice::Suspend);
            }
        }
        if self.gives_up_merging()? {
            return Ok(Slice::Again);
        }
        match self.state {
            ScanState::Starting => self.start(owner, cx),
            ScanState::Claiming => self.claim(owner, cx),
            ScanState::Merging => self.merge(owner),
            ScanState::Draining | ScanState::Over => Ok(self.end(Ok(()), owner, cx)),
        }
    }

    /// Publishes the work queue of this AEU's partition.
    fn start<T>(
        &mut self,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Result<Slice, FragmentError> {
        let object = self.run.object.clone();
        if object.is_dropped() {
            return Err(FragmentError::NoSuchObject(object.id));
        }
        let horizon = owner.sequencer.horizon();
        let of_keys =
            (self.run.path.as_ref()).filter(|path| path.index.is_none() && path.is_points);
        let timed = of_keys.and_then(|_| object.loads.begin_keys(owner.aeu));
        let (partition, home) = owner.partition(&object);
        let (path, aeu) = (self.run.path.as_ref(), self.run.shares[self.share].aeu);
        let views =
            match path.and_then(|path| partition.view_by(path, self.run.snapshot, horizon, aeu)) {
                Some(views) => views,
                None => partition.view(self.run.snapshot, home, horizon),
            };
        if let Some(path) = of_keys {
            path.note_keys(&object, aeu, timed);
        }
        let queue = WorkQueue::new(views, partition.join_pass());
        let willing = self.run.publish(self.share, queue).collect();
        owner.call_for_help(&self.run, willing, cx);
        self.state = ScanState::Claiming;
        Ok(Slice::Again)
    }

    /// Works on a chunk, or on a few if they are narrow.
    fn claim<T: MaybeScan>(
        &mut self,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Result<Slice, FragmentError> {
        let run = self.run.clone();
        let own = run.queue(self.share).expect("published at the start");
        let mut bytes = 0;
        while bytes < SLICE_BYTES && self.streams.iter().all(StreamQueue::is_empty) {
            if run.is_satisfied() {
                return self.finish(owner, cx);
            }
            if let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.is_due()) {
                exchange.merge(&self.program)?;
                bytes += SLICE_BYTES / 4;
                continue;
            }
            // No other chunk before this one is done with.
            if self.go_on(owner, cx)? {
                return Ok(Slice::Again);
            }
            if let Some((position, view)) = own.claim() {
                // Few rows that an index leads to say nothing of where others are.
                if run.path.is_none()
                    && let Some(partition) = owner.existing(run.object.id)
                {
                    partition.advance(position);
                }
                self.program
                    .fetch_ahead(|distance| own.behind(position, distance));
                bytes += self.work_together(position, view, owner, cx)?;
                if owner.runs.len() > 1 {
                    // Now, not in the next slice: others may be about to read the next chunk for it.
                    self.send(owner, cx);
                }
                continue;
            }
            match self.help(&run, owner, cx)? {
                Helped::Worked(more) => bytes += more,
                Helped::Waits(slice) => return Ok(slice),
                Helped::Nothing => return self.finish(owner, cx),
            }
        }
        Ok(Slice::Again)
    }

    /// Works on one chunk; returns the bytes that it touched, and some for the claim itself.
    fn work<T>(
        &mut self,
        view: &ChunkView,
        from: Origin,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Result<u64, FragmentError> {
        self.run.object.panic_if_poisoned();
        self.prepare();
        let partial = self.partial.as_mut().expect("not finished while claiming");
        let mut work = Work::default();
        // Nobody asks how long a chunk takes where there are no others, and zone maps exclude many in less time.
        let is_timed = owner.runs.len() > 1 || owner.topology.nodes().len() > 1;
        let began = is_timed.then(owner.clock);
        let batches = self.program.run(view, partial, &mut work)?;
        let took = began.map(|began| (owner.clock)().duration_since(began));
        self.took(&work, view.chunk.rows(), from, took, owner, cx);
        self.keep(batches, owner, cx)?;
        Ok(work.bytes + CLAIM_BYTES)
    }

    /// Before a chunk is worked on: has groups stay, if they are handed on in parts by now.
    fn prepare(&mut self) {
        if self.run.repartitioning.is_in_parts() {
            let partial = self.partial.as_mut().expect("not finished while claiming");
            self.program.stop_repartitioning(partial);
        }
    }

    /// Counts a chunk that was worked on.
    fn took<T>(
        &mut self,
        work: &Work,
        rows: usize,
        from: Origin,
        took: Option<Duration>,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) {
        let moved = self.cross(work, from, took, owner);
        let report = self.report();
        report.chunks.add(work.chunks);
        report.chunks_skipped.add(work.chunks_skipped);
        report.chunks_helped.add(u64::from(from.helping));
        report.chunks_copied.add(u64::from(from.copied > 0));
        report.rows_scanned.add(work.rows_scanned);
        if work.chunks_skipped > 0 {
            report.rows_skipped.add(rows as u64);
        }
        report.rows_passed.add(work.rows_passed);
        report.bytes.add(work.bytes);
        report.bytes_shared.add(work.bytes_shared);
        report.bytes_moved.add(moved);
        let counters = cx.counters();
        counters.chunks_scanned.add(work.chunks);
        counters.chunks_skipped.add(work.chunks_skipped);
        counters.chunks_helped.add(u64::from(from.helping));
        counters.rows_scanned.add(work.rows_scanned);
        counters.bytes_scanned.add(work.bytes);
        (self.run.object.loads).note_chunk(owner.aeu, work.bytes, from.helping);
    }

    /// Goes on with a chunk whose rows are joined to very many; whether there was one.
    fn go_on<T>(
        &mut self,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Result<bool, FragmentError> {
        let partial = self.partial.as_mut().expect("not finished while claiming");
        if !partial.is_midway() {
            return Ok(false);
        }
        if self.run.repartitioning.is_in_parts() {
            self.program.stop_repartitioning(partial);
        }
        let batches = self.program.go_on(partial)?;
        self.keep(batches, owner, cx)?;
        Ok(true)
    }

    /// Emits batches, repartitions groups, and accounts for what is aggregated or buffered.
    fn keep<T>(
        &mut self,
        batches: Vec<RecordBatch>,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Result<(), FragmentError> {
        let partial = self.partial.as_mut().expect("not finished while claiming");
        let parts = self.program.take_repartitioned(partial);
        let bytes = partial.bytes() + self.exchange.as_ref().map_or(0, GroupExchange::bytes);
        let own = self.run.shares[self.share].stream;
        batches.into_iter().for_each(|batch| self.emit(own, batch));
        if !parts.is_empty() {
            let is_repartitioned = self.run.repartitioning.is_wanted();
            self.send_groups(parts, is_repartitioned, owner, cx)?;
        }
        let denied = self.reserve(bytes as u64, owner);
        let partial = self.partial.as_ref().expect("not finished while claiming");
        if partial.bytes() as u64 >= MOST_GROUPS || denied.is_err() {
            self.flush(denied)?;
        }
        Ok(())
    }

    /// Hands on the groups, or the rows that wait. What they take stays reserved until they are sent.
    fn flush(&mut self, denied: Result<(), FragmentError>) -> Result<(), FragmentError> {
        let partial = self.partial.as_mut().expect("not finished while claiming");
        let workers = self.run.shares.len() as u32;
        self.run.repartitioning.divide_groups();
        let batches = self.program.flush(partial, workers)?;
        if batches.is_empty() && self.exchange.as_ref().is_none_or(GroupExchange::is_empty) {
            // An empty table of groups, or the sums of all rows, are too little to fail for.
            return denied.or_else(|error| match partial.bytes() as u64 {
                0..=RESERVE_STEP => Ok(()),
                _ => Err(error),
            });
        }
        self.emit_all(batches);
        Ok(())
    }

    /// Hands on what is left: rows and groups to the streams, or groups to the participants to which their keys belong.
    fn finish<T>(
        &mut self,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Result<Slice, FragmentError> {
        self.pulls.clear(owner);
        let mut partial = self.partial.take().expect("finished once");
        self.report_phases(&partial);
        self.leave_pass(owner);
        let run = self.run.clone();
        if let Some(division) = run.repartitioning.division()
            && run.repartitioning.is_wanted_at_the_end(partial.groups())
        {
            let parts = self.program.repartition(division, &mut partial);
            drop(partial);
            self.send_groups(parts, true, owner, cx)?;
            self.say_sent(cx);
            self.state = ScanState::Merging;
            return Ok(Slice::Again);
        }
        let workers = run.shares.len() as u32;
        if workers > 1 {
            run.repartitioning.divide_groups();
        }
        self.emit_all(self.program.finish(partial, workers)?);
        self.state = ScanState::Draining;
        Ok(Slice::Again)
    }

    fn reserve(&mut self, bytes: u64, owner: &Owner) -> Result<(), FragmentError> {
        // All batches have been sent, or nothing would be claimed.
        while self.reserved_bytes >= bytes + 2 * RESERVE_STEP {
            self.reserved.pop();
            self.reserved_bytes -= RESERVE_STEP;
        }
        while bytes > self.reserved_bytes {
            let step = match &self.exchange {
                Some(exchange) if !exchange.is_empty() => afford(&owner.buffers, RESERVE_STEP),
                _ => owner.buffers.try_reserve(RESERVE_STEP),
            };
            let step = step.map_err(|error| FragmentError::OutOfMemory(error.to_string()))?;
            self.reserved.push(step);
            self.reserved_bytes += RESERVE_STEP;
        }
        Ok(())
    }

    /// Fails the fragment for everybody and tells its streams. Others may wait for what this one will not send.
    pub fn fail<T>(
        &mut self,
        error: FragmentError,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Slice {
        self.run.fail(error.clone());
        let others = self.others.iter();
        let others = others.map(|&other| self.run.shares[other].aeu).collect();
        owner.call_for_help(&self.run, others, cx);
        self.end(Err(error), owner, cx)
    }

    fn end<T>(
        &mut self,
        result: Result<(), FragmentError>,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Slice {
        if self.state != ScanState::Over {
            for out in &mut self.streams {
                out.end(result.clone(), &self.run, cx);
            }
        }
        self.leave(owner, cx)
    }

    /// Gives everything up. Those who wait for this AEU's work queue must not wait for ever.
    fn leave<T>(&mut self, owner: &mut Owner, cx: &mut Context<'_, T>) -> Slice {
        if self.state == ScanState::Starting {
            let nothing = WorkQueue::new(Vec::new(), 0);
            if self.run.queue(self.share).is_none() {
                let willing = self.run.publish(self.share, nothing).collect();
                owner.call_for_help(&self.run, willing, cx);
            }
        } else if let Some(partial) = self.partial.take() {
            self.report_phases(&partial);
            self.leave_pass(owner);
        }
        self.state = ScanState::Over;
        self.pulls.clear(owner);
        self.streams.clear();
        self.exchange = None;
        self.passing.clear();
        self.appending = Appending::default();
        self.reserved.clear();
        owner.runs.remove(&self.run.id);
        owner.remote.set_scans(owner.aeu, owner.runs.len());
        if owner.runs.is_empty() {
            let aeus = owner.topology.aeus().len();
            owner.copies.release(owner.memory.budget(), aeus);
        }
        Slice::Done
    }

    fn leave_pass(&self, owner: &mut Owner) {
        if let Some(partition) = owner.existing(self.run.object.id) {
            partition.leave_pass();
        }
    }

    fn report_phases(&self, partial: &Partial) {
        let (phases, column_bytes) = partial.phases();
        self.report().set_phases(phases, column_bytes);
    }

    /// What this AEU says of its share, to which it alone writes.
    fn report(&self) -> &ShareReport {
        &self.run.shares[self.share].report
    }
}
