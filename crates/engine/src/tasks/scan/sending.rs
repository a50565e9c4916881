//! What an AEU sends to the lanes of a fragment.

use super::{ScanTask, State};
use crate::protocol::commands::{BATCH, END, header};
use crate::protocol::run::Run;
use crate::tasks::owner::{Context, Owner};
use arrow_array::RecordBatch;
use eris_fragment::FragmentError;
use eris_route::Parcel;
use std::collections::VecDeque;

/// What goes to one lane.
pub(super) struct Outgoing {
    lane: usize,
    /// Batches that wait for credit.
    batches: VecDeque<RecordBatch>,
    has_ended: bool,
}

impl ScanTask {
    /// Hands on groups of participants' keys.
    pub(super) fn emit_all(&mut self, batches: Vec<(u32, RecordBatch)>) {
        for (worker, batch) in batches {
            let of = match self.run.is_keyed() {
                true => worker as usize,
                false => self.share,
            };
            self.emit(self.run.shares[of].lane, batch);
        }
    }

    pub(super) fn emit(&mut self, lane: usize, batch: RecordBatch) {
        emit(&self.run, self.share, &mut self.lanes, lane, batch);
    }

    /// Sends what there is credit for; says whether that was all.
    pub(super) fn send(&mut self, owner: &mut Owner, cx: &mut Context<'_>) -> bool {
        let Some(riding) = owner.runs.get_mut(&self.run.id) else {
            return true;
        };
        let mut is_all = true;
        for out in &mut self.lanes {
            let lane = &self.run.lanes[out.lane];
            if self.run.is_dropped(out.lane) {
                out.batches.clear();
            }
            let credits = &mut riding.credits[out.lane];
            while *credits > 0
                && let Some(batch) = out.batches.pop_front()
            {
                *credits -= 1;
                let header = header(BATCH, self.run.object.id, cx.endpoint(), self.run.id);
                cx.send(lane.endpoint, header, &[], Some(Parcel::owned(batch)));
            }
            // A lane that is read to its end must not wait until another one is read.
            if self.state == State::Draining && out.batches.is_empty() {
                out.end(Ok(()), &self.run, cx);
            }
            is_all &= out.batches.is_empty();
        }
        if is_all {
            self.passing.clear();
        }
        is_all
    }

    /// Whether nobody reads any more what it sends.
    pub(super) fn is_deserted(&self) -> bool {
        let mut lanes = self.lanes.iter();
        lanes.all(|out| out.has_ended || self.run.is_dropped(out.lane))
    }
}

impl Outgoing {
    pub(super) fn new(lane: usize) -> Self {
        Outgoing {
            lane,
            batches: VecDeque::new(),
            has_ended: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    pub(super) fn end(
        &mut self,
        result: Result<(), FragmentError>,
        run: &Run,
        cx: &mut Context<'_>,
    ) {
        if !std::mem::replace(&mut self.has_ended, true) {
            let header = header(END, run.object.id, cx.endpoint(), run.id);
            let endpoint = run.lanes[self.lane].endpoint;
            cx.send(endpoint, header, &[], Some(Parcel::owned(result)));
        }
    }
}

/// Puts a batch of a share's into a lane's queue.
pub(super) fn emit(
    run: &Run,
    share: usize,
    lanes: &mut [Outgoing],
    lane: usize,
    batch: RecordBatch,
) {
    if batch.num_rows() > 0 {
        run.count_sent(batch.num_rows());
        let report = &run.shares[share].report;
        let mut report = report.lock().expect("nothing panics under this lock");
        report.rows_sent += batch.num_rows() as u64;
        let out = lanes.iter_mut().find(|out| out.lane == lane);
        out.expect("one of its lanes").batches.push_back(batch);
    }
}
