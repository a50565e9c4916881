//! A fragment at one AEU: a task that takes one chunk per slice, or a few narrow ones.
//!
//! ```text
//! start ──publish the ticket──▶ claiming ──nothing left──▶ draining ──all batches sent──▶ END
//!                                 │    ▲                     │   ▲
//!                    no credit or ▼    │ CREDIT, HELP        ▼   │ CREDIT
//!                    no ticket yet  suspended               suspended
//! ```
//!
//! Tasks take turns, one slice each. Fragments on the same data object start where the others are, so the slices of one turn
//! work on the same chunk: it comes from memory once for all of them (scan sharing, ERIS paper, Section 3.1). A fragment
//! without credit is suspended and thereby leaves the pass; its cursor stays where it is.

use crate::owner::{Context, Owner};
use crate::protocol::*;
use crate::run::{Help, Run, Ticket};
use arrow_array::RecordBatch;
use eris_aeu::Slice;
use eris_exec::{Partial, Work};
use eris_fragment::{FragmentError, WorkerReport};
use eris_numa::{Reservation, Topology};
use eris_route::Parcel;
use eris_store::ChunkView;
use eris_types::{AeuId, ObjectId};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// A slice touches about so many bytes: half of a full-width chunk, some ten microseconds. Narrow chunks are taken several at a
/// time, so that the step around a slice stays small beside it.
const SLICE_BYTES: u64 = 256 << 10;

/// What a claim counts for, so that a slice over skipped chunks ends, too.
const CLAIM_BYTES: u64 = 4 << 10;

/// Groups that take more than this are handed on, and new ones begun: whoever merges them can put them on the disk. A table of
/// groups of this size is far beyond any cache, so that little is lost where they come again.
const MOST_GROUPS: u64 = 64 << 20;

/// Memory of groups and buffered rows is reserved in steps of so many bytes.
const RESERVE_STEP: u64 = 1 << 20;

pub(crate) struct ScanTask {
    run: Arc<Run>,
    share: usize,
    /// The other shares, nearest node first.
    others: Vec<usize>,
    /// What was aggregated or buffered so far; `None` once it is finished.
    partial: Option<Partial>,
    /// What `partial` may take of the budget.
    reserved: Vec<Reservation>,
    reserved_bytes: u64,
    /// Batches that wait for credit.
    outgoing: VecDeque<RecordBatch>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Starting,
    Claiming,
    Draining,
    Over,
}

impl ScanTask {
    pub fn new(run: Arc<Run>, aeu: AeuId, topology: &Topology) -> Self {
        let share = run.share_of(aeu);
        let distances = &topology.nodes()[topology.node_of(aeu).index()].distances;
        let mut others: Vec<usize> = (0..run.shares.len()).filter(|&o| o != share).collect();
        let count = run.shares.len();
        // Helpers of one distance begin with different tickets.
        others.sort_by_key(|&other| {
            let node = topology.node_of(run.shares[other].aeu).index();
            (distances[node], (other + count - share) % count)
        });
        ScanTask {
            partial: Some(run.program.start()),
            run,
            share,
            others,
            reserved: Vec::new(),
            reserved_bytes: 0,
            outgoing: VecDeque::new(),
            state: State::Starting,
        }
    }

    /// The data object that is scanned.
    pub fn object(&self) -> ObjectId {
        self.run.object.id
    }

    pub fn slice(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        let began = Instant::now();
        let lane = self.run.shares[self.share].lane;
        let slice = if self.run.is_dropped(lane) {
            self.leave(owner, cx)
        } else if let Some(error) = self.run.failure().cloned() {
            self.fail(error, owner, cx)
        } else {
            match self.advance(owner, cx) {
                Ok(slice) => slice,
                Err(error) => self.fail(error, owner, cx),
            }
        };
        self.report(|report| report.busy += began.elapsed());
        slice
    }

    fn advance(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Result<Slice, FragmentError> {
        if self.state != State::Starting && !self.send(owner, cx) {
            return Ok(Slice::Suspend);
        }
        match self.state {
            State::Starting => self.start(owner, cx),
            State::Claiming => self.claim(owner, cx),
            State::Draining | State::Over => Ok(self.end(Ok(()), owner, cx)),
        }
    }

    /// Publishes the ticket of this AEU's partition.
    fn start(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Result<Slice, FragmentError> {
        let object = self.run.object.clone();
        if object.is_dropped() {
            return Err(FragmentError::NoSuchObject(object.id));
        }
        let horizon = owner.sequencer.horizon();
        let (partition, home) = owner.partition(&object);
        let (path, aeu) = (self.run.path.as_ref(), self.run.shares[self.share].aeu);
        let views =
            match path.and_then(|path| partition.view_by(path, self.run.snapshot, horizon, aeu)) {
                Some(views) => views,
                None => partition.view(self.run.snapshot, home, horizon),
            };
        let ticket = Ticket::new(views, partition.board());
        let willing = self.run.publish(self.share, ticket).collect();
        owner.call_for_help(&self.run, willing, cx);
        self.state = State::Claiming;
        Ok(Slice::Again)
    }

    /// Works on a chunk, or on a few if they are narrow.
    fn claim(&mut self, owner: &mut Owner, cx: &Context<'_>) -> Result<Slice, FragmentError> {
        let run = self.run.clone();
        let own = run.ticket(self.share).expect("published at the start");
        let mut bytes = 0;
        while bytes < SLICE_BYTES && self.outgoing.is_empty() {
            if run.is_satisfied() {
                return self.finish(owner);
            }
            if self.go_on(owner)? {
                return Ok(Slice::Again);
            }
            if let Some((position, view)) = own.claim() {
                if let Some(partition) = owner.existing(run.object.id) {
                    partition.advance(position);
                }
                run.program
                    .fetch_ahead(|distance| own.behind(position, distance));
                bytes += self.work(view, false, owner, cx)?;
                continue;
            }
            match run.help(self.share, &self.others) {
                Help::Claimed(view) => bytes += self.work(view, true, owner, cx)?,
                Help::Later => return Ok(Slice::Suspend),
                Help::Nothing => return self.finish(owner),
            }
        }
        Ok(Slice::Again)
    }

    /// Works on one chunk; returns the bytes that it touched, and some for the claim itself.
    fn work(
        &mut self,
        view: &ChunkView,
        helping: bool,
        owner: &mut Owner,
        cx: &Context<'_>,
    ) -> Result<u64, FragmentError> {
        self.run.object.trip();
        let partial = self.partial.as_mut().expect("not finished while claiming");
        let mut work = Work::default();
        let batches = self.run.program.run(view, partial, &mut work)?;
        self.report(|report| {
            report.chunks += work.chunks;
            report.chunks_skipped += work.chunks_skipped;
            report.chunks_helped += u64::from(helping);
            report.rows_scanned += work.rows_scanned;
            if work.chunks_skipped > 0 {
                report.rows_skipped += view.chunk.rows() as u64;
            }
            report.rows_passed += work.rows_passed;
            report.bytes += work.bytes;
        });
        let counters = cx.counters();
        counters.chunks_scanned.add(work.chunks);
        counters.chunks_skipped.add(work.chunks_skipped);
        counters.chunks_helped.add(u64::from(helping));
        counters.rows_scanned.add(work.rows_scanned);
        counters.bytes_scanned.add(work.bytes);
        self.keep(batches, owner)?;
        Ok(work.bytes + CLAIM_BYTES)
    }

    /// Goes on with a chunk whose rows are joined to very many; whether there was one.
    fn go_on(&mut self, owner: &Owner) -> Result<bool, FragmentError> {
        let partial = self.partial.as_mut().expect("not finished while claiming");
        if !partial.is_midway() {
            return Ok(false);
        }
        let batches = self.run.program.go_on(partial)?;
        self.keep(batches, owner)?;
        Ok(true)
    }

    /// Emits batches, and accounts for what is aggregated or buffered.
    fn keep(&mut self, batches: Vec<RecordBatch>, owner: &Owner) -> Result<(), FragmentError> {
        batches.into_iter().for_each(|batch| self.emit(batch));
        let partial = self.partial.as_ref().expect("not finished while claiming");
        let bytes = partial.bytes() as u64;
        let refused = self.reserve(bytes, owner);
        if bytes >= MOST_GROUPS || refused.is_err() {
            self.flush(refused)?;
        }
        Ok(())
    }

    /// Hands on the groups, or the rows that wait. What they take stays reserved until they are sent.
    fn flush(&mut self, refused: Result<(), FragmentError>) -> Result<(), FragmentError> {
        let partial = self.partial.as_mut().expect("not finished while claiming");
        let batches = self.run.program.flush(partial)?;
        if batches.is_empty() {
            // An empty table of groups, or the sums of all rows, are too little to fail for.
            return refused.or_else(|error| match partial.bytes() as u64 {
                0..=RESERVE_STEP => Ok(()),
                _ => Err(error),
            });
        }
        batches.into_iter().for_each(|batch| self.emit(batch));
        Ok(())
    }

    fn finish(&mut self, owner: &mut Owner) -> Result<Slice, FragmentError> {
        if let Some(partial) = self.partial.take() {
            self.report_phases(&partial);
            self.alight(owner);
            for batch in self.run.program.finish(partial)? {
                self.emit(batch);
            }
        }
        self.state = State::Draining;
        Ok(Slice::Again)
    }

    fn emit(&mut self, batch: RecordBatch) {
        if batch.num_rows() > 0 {
            self.run.count_sent(batch.num_rows());
            self.report(|report| report.rows_sent += batch.num_rows() as u64);
            self.outgoing.push_back(batch);
        }
    }

    /// Sends what there is credit for; says whether that was all.
    fn send(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> bool {
        let Some(riding) = owner.runs.get_mut(&self.run.id) else {
            return true;
        };
        let endpoint = self.run.lanes[self.run.shares[self.share].lane].endpoint;
        while riding.credits > 0
            && let Some(batch) = self.outgoing.pop_front()
        {
            riding.credits -= 1;
            let header = header(BATCH, self.run.object.id, cx.endpoint(), self.run.id);
            cx.send(endpoint, header, &[], Some(Parcel::owned(batch)));
        }
        self.outgoing.is_empty()
    }

    fn reserve(&mut self, bytes: u64, owner: &Owner) -> Result<(), FragmentError> {
        // All batches have been sent, or nothing would be claimed.
        while self.reserved_bytes >= bytes + 2 * RESERVE_STEP {
            self.reserved.pop();
            self.reserved_bytes -= RESERVE_STEP;
        }
        while bytes > self.reserved_bytes {
            let step = owner.budget.try_reserve(RESERVE_STEP);
            let step = step.map_err(|error| FragmentError::OutOfMemory(error.to_string()))?;
            self.reserved.push(step);
            self.reserved_bytes += RESERVE_STEP;
        }
        Ok(())
    }

    /// Fails the fragment for everybody and tells this lane.
    pub fn fail(&mut self, error: FragmentError, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        self.run.fail(error.clone());
        let willing = self.run.wake().collect();
        owner.call_for_help(&self.run, willing, cx);
        self.end(Err(error), owner, cx)
    }

    fn end(
        &mut self,
        result: Result<(), FragmentError>,
        owner: &mut Owner,
        cx: &mut Context<'_>,
    ) -> Slice {
        if self.state != State::Over {
            let endpoint = self.run.lanes[self.run.shares[self.share].lane].endpoint;
            let header = header(END, self.run.object.id, cx.endpoint(), self.run.id);
            cx.send(endpoint, header, &[], Some(Parcel::owned(result)));
        }
        self.leave(owner, cx)
    }

    /// Gives everything up. Those who wait for this AEU's ticket must not wait for ever.
    fn leave(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> Slice {
        if self.state == State::Starting {
            let nothing = Ticket::new(Vec::new(), 0);
            if self.run.ticket(self.share).is_none() {
                let willing = self.run.publish(self.share, nothing).collect();
                owner.call_for_help(&self.run, willing, cx);
            }
        } else if let Some(partial) = self.partial.take() {
            self.report_phases(&partial);
            self.alight(owner);
        }
        self.state = State::Over;
        self.outgoing.clear();
        self.reserved.clear();
        owner.runs.remove(&self.run.id);
        Slice::Done
    }

    fn alight(&self, owner: &mut Owner) {
        if let Some(partition) = owner.existing(self.run.object.id) {
            partition.alight();
        }
    }

    fn report_phases(&self, partial: &Partial) {
        let (phases, column_bytes) = partial.phases();
        self.report(|report| {
            report.phases = phases.to_vec();
            report.column_bytes = column_bytes;
        });
    }

    fn report(&self, change: impl FnOnce(&mut WorkerReport)) {
        let report = &self.run.shares[self.share].report;
        change(&mut report.lock().expect("nothing panics under this lock"));
    }
}
