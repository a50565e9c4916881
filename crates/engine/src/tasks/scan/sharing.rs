//! One pass over a chunk for all fragments that are about to scan it (scan sharing, ERIS paper, Section 3.1).
//!
//! ```text
//!            chunk 4   chunk 5   chunk 6   …       slices of one AEU
//! scan A       █         ▒         ▒                █ its slice; ▒ worked for in another one's
//! scan B       ▒         █         ▒
//! scan C                 ▒         █               joined at chunk 5, ends after chunk 4 of the next round
//! scan D       ▒                                    waits for its client, and leaves
//! ```
//!
//! Whoever has the slice claims its next chunk, and looks for others here whose next chunk is the same one. Each keeps
//! its own queue, snapshot, selection and result. So nobody waits for anybody. A scan that has not begun yet begins
//! with the chunk at hand. One that had to wait finds nobody at its chunk, and goes on alone.

use super::pulling::Origin;
use super::{CLAIM_BYTES, ScanState, ScanTask};
use crate::protocol::message::Context;
use crate::protocol::run::Run;
use crate::tasks::owner::Owner;
use eris_aeu::TaskId;
use eris_exec::{Member, Outcome, Work, run_together};
use eris_fragment::FragmentError;
use eris_store::{Chunk, ChunkView};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Chunks of scans that are worked on together take no longer than this, as far as one can tell: commands wait
/// meanwhile.
const LONGEST: Duration = Duration::from_micros(600);

/// A task of an AEU that may be a scan.
pub(crate) trait MaybeScan {
    /// The scan, if it is one.
    fn as_scan(&mut self) -> Option<&mut ScanTask>;
}

/// A scan that is worked for in another one's slice.
struct Companion<T> {
    id: TaskId,
    task: T,
    run: Arc<Run>,
    /// Where in its own queue the chunk was.
    position: usize,
    work: Work,
}

impl ScanTask {
    /// Works on a chunk of this AEU's queue, and for all scans here whose next chunk it is. Returns the bytes that were
    /// touched.
    pub(super) fn work_together<T: MaybeScan>(
        &mut self,
        position: usize,
        view: &ChunkView,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) -> Result<u64, FragmentError> {
        self.run.object.panic_if_poisoned();
        let from = Origin::own(self.node);
        let mut others = match owner.runs.len() > 1 && self.is_willing() {
            true => self.companions(position, &view.chunk, owner, cx),
            false => Vec::new(),
        };
        if others.is_empty() {
            return self.work(view, from, owner, cx);
        }
        // Whatever panics from here on until they are put back is caught: the others would be lost with it.
        self.prepare();
        let began = (owner.clock)();
        let (own, outcomes, work) = {
            let program = self.program.clone();
            let mut work = Work::default();
            let partial = self.partial.as_mut().expect("not finished while claiming");
            let mut members = vec![Member::new(&program, view, partial, &mut work)];
            for other in &mut others {
                let scan = other.task.as_scan().expect("only scans were taken out");
                scan.prepare();
                let partial = scan.partial.as_mut().expect("not finished while claiming");
                let view = other
                    .run
                    .queue(scan.share)
                    .map(|queue| queue.at(other.position));
                let view = view.expect("it was claimed");
                members.push(Member::new(&scan.program, view, partial, &mut other.work));
            }
            run_together(&mut members);
            let mut outcomes = members.into_iter().map(|member| member.outcome);
            let own = outcomes.next().expect("this scan is the first");
            let outcomes: Vec<Outcome> = outcomes.collect();
            (own, outcomes, work)
        };
        let took = (owner.clock)().duration_since(began);
        let each = took / (1 + others.len() as u32);
        let mut bytes = work.bytes + CLAIM_BYTES;
        for (mut other, outcome) in others.into_iter().zip(outcomes) {
            bytes += other.work.bytes.saturating_sub(other.work.bytes_shared) + CLAIM_BYTES;
            let scan = other.task.as_scan().expect("only scans were taken out");
            scan.take_outcome(outcome, &other.work, view.chunk.rows(), each, owner, cx);
            self.lent += each;
            cx.put_back(other.id, other.task);
        }
        // The others have been put back: a panic is this scan's alone.
        let batches = own.unwrap_or_else(|payload| resume_unwind(payload))?;
        self.took(&work, view.chunk.rows(), from, Some(each), owner, cx);
        self.keep(batches, owner, cx)?;
        Ok(bytes)
    }

    /// The scans here whose next chunk is this one: taken out, with the chunk claimed for each.
    fn companions<T: MaybeScan>(
        &self,
        position: usize,
        chunk: &Chunk,
        owner: &Owner,
        cx: &mut Context<'_, T>,
    ) -> Vec<Companion<T>> {
        let mut expected = self.scanned.each();
        let mut found = Vec::new();
        for active in owner.runs.values() {
            let is_other = !Arc::ptr_eq(&active.run, &self.run);
            if !is_other || active.run.object.id != self.run.object.id || expected > LONGEST {
                continue;
            }
            let scan = cx.task(active.task).and_then(MaybeScan::as_scan);
            let Some(scan) = scan.filter(|scan| scan.is_ready()) else {
                continue;
            };
            let each = scan.scanned.each();
            let queue = active
                .run
                .queue(scan.share)
                .expect("published at the start");
            // Taken out first: of a scan that is not queued no chunk may be claimed.
            let Some(task) = cx.take_out(active.task) else {
                continue;
            };
            match queue.claim_if(chunk, position) {
                Some((position, _)) => found.push(Companion {
                    id: active.task,
                    task,
                    run: active.run.clone(),
                    position,
                    work: Work::default(),
                }),
                None => {
                    cx.put_back(active.task, task);
                    continue;
                }
            }
            expected += each;
        }
        found
    }

    /// Whether it gains by reading chunks with others: not if it computes much with what it reads.
    fn is_willing(&self) -> bool {
        self.run.options.sharing && self.scanned.is_bound_by_reading()
    }

    /// Whether it could work on a chunk now, if this were its slice.
    fn is_ready(&self) -> bool {
        let run = &self.run;
        self.state == ScanState::Claiming
            && self.is_willing()
            && !self.is_deserted()
            && !run.is_satisfied()
            && run.failure().is_none()
            && self.pulls.is_empty()
            && self.streams.iter().all(super::StreamQueue::is_empty)
            && !self
                .exchange
                .as_ref()
                .is_some_and(|exchange| exchange.is_due())
            && self
                .partial
                .as_ref()
                .is_some_and(|partial| !partial.is_midway())
    }

    /// What has become of a chunk that was worked on in another scan's slice. A failure or a panic is this scan's
    /// alone.
    fn take_outcome<T>(
        &mut self,
        outcome: Outcome,
        work: &Work,
        rows: usize,
        took: Duration,
        owner: &mut Owner,
        cx: &mut Context<'_, T>,
    ) {
        let kept = catch_unwind(AssertUnwindSafe(|| {
            let batches = outcome.unwrap_or_else(|payload| resume_unwind(payload))?;
            self.report().add_busy(took);
            self.took(work, rows, Origin::own(self.node), Some(took), owner, cx);
            self.keep(batches, owner, cx)?;
            self.send(owner, cx);
            Ok(())
        }));
        let error = match kept {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error,
            Err(payload) => FragmentError::Panicked {
                worker: owner.aeu.to_string(),
                object: self.object(),
                message: message_of(&*payload),
            },
        };
        // Its own slice ends it.
        self.run.fail(error);
    }
}

/// What a panic says.
fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a message".to_owned())
}
