//! What an AEU sends to the result streams of a fragment.

use super::{ScanState, ScanTask};
use crate::protocol::answers::End;
use crate::protocol::asked::Asked;
use crate::protocol::message::Context;
use crate::protocol::run::Run;
use crate::protocol::runs::Scan;
use crate::tasks::owner::Owner;
use arrow_array::RecordBatch;
use eris_fragment::FragmentError;
use std::collections::VecDeque;

/// What goes to one result stream.
pub(super) struct StreamQueue {
    stream: usize,
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
            self.emit(self.run.shares[of].stream, batch);
        }
    }

    pub(super) fn emit(&mut self, stream: usize, batch: RecordBatch) {
        emit(&self.run, self.share, &mut self.streams, stream, batch);
    }

    /// Sends what there is credit for; says whether that was all. Rows that are [appended](Self::append) stay.
    pub(super) fn send<T>(&mut self, owner: &mut Owner, cx: &mut Context<'_, T>) -> bool {
        if self.run.append.is_some() {
            return self.streams.iter().all(StreamQueue::is_empty);
        }
        let Some(active) = owner.runs.get_mut(&self.run.id) else {
            return true;
        };
        let mut is_all = true;
        for out in &mut self.streams {
            let receiver = receiver(&self.run, out.stream);
            if self.run.is_dropped(out.stream) {
                out.batches.clear();
            }
            let credits = &mut active.credits[out.stream];
            while *credits > 0
                && let Some(batch) = out.batches.pop_front()
            {
                *credits -= 1;
                receiver.batch(batch, cx);
            }
            // A stream that is read to its end must not wait until another one is read.
            if self.state == ScanState::Draining && out.batches.is_empty() {
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
        let mut streams = self.streams.iter();
        streams.all(|out| out.has_ended || self.run.is_dropped(out.stream))
    }
}

impl StreamQueue {
    pub(super) fn new(stream: usize) -> Self {
        StreamQueue {
            stream,
            batches: VecDeque::new(),
            has_ended: false,
        }
    }

    /// The next batch, and back with what is left of it.
    pub(super) fn pop(&mut self) -> Option<RecordBatch> {
        self.batches.pop_front()
    }

    pub(super) fn push_back(&mut self, rest: RecordBatch) {
        self.batches.push_front(rest);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    pub(super) fn end<T>(
        &mut self,
        result: Result<(), FragmentError>,
        run: &Run,
        cx: &mut Context<'_, T>,
    ) {
        if !std::mem::replace(&mut self.has_ended, true) {
            receiver(run, self.stream).answer(End(result), cx);
        }
    }
}

/// Who gets what is sent to a stream, which need not be who has sent the request.
fn receiver(run: &Run, stream: usize) -> Asked<Scan> {
    Asked {
        sender: run.streams[stream].endpoint,
        object: run.object.id,
        callback: run.id,
    }
}

/// Puts a batch of a share's into a stream's queue.
pub(super) fn emit(
    run: &Run,
    share: usize,
    streams: &mut [StreamQueue],
    stream: usize,
    batch: RecordBatch,
) {
    if batch.num_rows() > 0 {
        run.count_sent(batch.num_rows());
        let report = &run.shares[share].report;
        report.rows_sent.add(batch.num_rows() as u64);
        let out = streams.iter_mut().find(|out| out.stream == stream);
        out.expect("one of its streams").batches.push_back(batch);
    }
}
