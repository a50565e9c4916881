//! A participant's side of a hash repartition of groups. See [`crate::protocol::repartition`].

use crate::protocol::runs::Repartition;
use eris_exec::{Division, Groups, Merger, Program};
use eris_fragment::FragmentError;
use eris_numa::{Cause, NodeAccount, NodeReservation, OutOfMemory};

/// What waits is merged when it takes so many bytes.
const PENDING: usize = 16 << 20;

/// What a participant has to do with groups that others send it, and what it has sent.
pub(crate) struct GroupExchange {
    merger: Merger,
    /// Messages with groups to each participant.
    pub sent: Box<[u64]>,
    /// For what waits, and for what is being merged.
    waiting: Vec<NodeReservation>,
    merging: Vec<NodeReservation>,
}

impl GroupExchange {
    pub fn new(program: &Program, division: Division) -> Self {
        GroupExchange {
            merger: program.merger(division),
            sent: vec![0; division.workers as usize].into(),
            waiting: Vec::new(),
            merging: Vec::new(),
        }
    }

    /// Memory of the tables; what was sent here is paid for by its sender.
    pub fn bytes(&self) -> usize {
        self.merger.bytes()
    }

    /// Whether nothing is here to be merged or handed on.
    pub fn is_empty(&self) -> bool {
        self.merger.is_empty()
    }

    /// Takes in what was sent here.
    pub fn push(&mut self, groups: Groups, reserved: NodeReservation) {
        self.merger.push(groups);
        self.waiting.push(reserved);
    }

    /// Whether what waits should be merged now, to take less memory.
    pub fn is_due(&self) -> bool {
        self.merger.is_in_round() || self.merger.pending_bytes() >= PENDING
    }

    /// Merges a bucket of what waits.
    pub fn merge(&mut self, program: &Program) -> Result<(), FragmentError> {
        if !self.merger.is_in_round() {
            self.merger.begin_round();
            self.merging.append(&mut self.waiting);
        }
        if program.merge_next(&mut self.merger)? {
            self.merging.clear();
        }
        Ok(())
    }

    /// Merged groups, about a batch, each of them once; none once all have been taken.
    pub fn take(
        &mut self,
        program: &Program,
    ) -> Result<Vec<arrow_array::RecordBatch>, FragmentError> {
        let batches = program.take_merged(&mut self.merger)?;
        if self.merger.is_empty() {
            self.waiting.clear();
            self.merging.clear();
        }
        Ok(batches)
    }
}

/// Memory for groups that are sent or merged. A quarter of the budget is left to others: who merges groups that come in
/// parts can use temporary files, but needs some memory to do so.
pub(crate) fn afford(account: &NodeAccount, bytes: u64) -> Result<NodeReservation, OutOfMemory> {
    let budget = account.budget();
    let (used, limit) = (budget.used(), budget.limit());
    if used.saturating_add(bytes) > limit - limit / 4 {
        return Err(OutOfMemory {
            asked: bytes,
            used,
            limit,
            node: None,
            cause: Cause::Budget,
        });
    }
    account.try_reserve(bytes)
}

/// What others have sent for a run.
#[derive(Default)]
pub(crate) struct ReceivedGroups {
    /// Groups that the task has not seen yet.
    pub waiting: Vec<Repartition>,
    /// Messages with groups that have come.
    messages: u64,
    /// Messages that participants have said that they sent.
    due: u64,
    /// Participants that send no more.
    ended: usize,
}

impl ReceivedGroups {
    pub fn add(&mut self, groups: Repartition) {
        self.messages += 1;
        self.waiting.push(groups);
    }

    /// A participant sends no more; it has sent so many messages.
    pub fn end(&mut self, sent: u64) {
        self.due += sent;
        self.ended += 1;
    }

    /// Whether everything has come from so many others.
    pub fn is_complete(&self, others: usize) -> bool {
        self.ended == others && self.messages == self.due
    }
}
