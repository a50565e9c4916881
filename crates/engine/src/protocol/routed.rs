//! Groups that are too many for the caches, routed by their keys to the participant that merges them (ERIS paper, Section 3.2:
//! intermediate results are data commands).
//!
//! ```text
//!   AEU 0: claims chunks ──▶ small table ──full──▶ cut by a hash of the keys ─┬─▶ its own
//!                                                                            └─ DEAL ─▶ AEU 1 …
//!   AEU 1: claims chunks ──▶ small table ──full──▶ cut ──────────────────────┬─▶ its own
//!                                                                  ◀─ DEAL ──┘
//!   nothing left to claim: the rest is dealt, and DEALT says to everybody how many DEALs it got
//!   DEALT from everybody, and as many DEALs as they say: each hands on what is its own, every group once
//! ```
//!
//! Whether groups are dealt is decided once for a run, by one compare-and-swap: who first has too many deals, and then all do, also
//! those that have few or none; who is done before with few has everybody hand on what they have, apart from each other, for
//! whoever merges them above. In a run with few groups nobody sends or waits for anything.
//!
//! What is dealt takes memory that its sender has reserved. If the budget gets short, the participant that notices says that
//! groups come in parts, and from then on nobody merges: what is there, and what comes, goes on as it is. That is
//! always right, for the receiver merges what comes in parts. It can only be said before one's own DEALT, so that whoever has
//! them all knows: what it merged is all there is of its keys, or nobody takes it for that.

use crate::protocol::commands::Deal;
use crate::protocol::run::Share;
use eris_exec::{Division, Groups, Merger, Program};
use eris_fragment::FragmentError;
use eris_numa::{Budget, Cause, OutOfMemory, Reservation};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Buckets of all participants together: 5 million groups are 20,000 in each.
const BUCKETS: u32 = 256;

/// Of each participant at least.
const LEAST_BUCKETS: u32 = 8;

/// Runs over fewer rows are over before a message has arrived, unless each of these is joined to many.
const LEAST_ROWS: u64 = 4 * eris_column::CHUNK_ROWS as u64;

/// With so many groups in the end, it is cheaper to deal them than to have them merged above.
const LEAST_GROUPS: usize = 8 << 10;

/// What waits is merged when it takes so many bytes.
const PENDING: usize = 16 << 20;

/// What the participants of a run agree on.
pub(crate) struct Routing {
    /// How keys are divided; `None` if groups are never dealt.
    division: Option<Division>,
    /// One of the ways below. Changed once, by whoever decides; read by all. It guards nothing else.
    way: AtomicU8,
    /// A group may come in parts. Set before the first of them is sent and before its sender's DEALT; with these messages it
    /// reaches those who look. Never reset.
    in_parts: AtomicBool,
}

const UNDECIDED: u8 = 0;
const APART: u8 = 1;
const DEALING: u8 = 2;

impl Routing {
    pub fn new(program: &Program, shares: &[Share]) -> Self {
        let rows: u64 = shares.iter().map(|share| share.rows).sum();
        let workers = shares.len() as u32;
        let division = Division {
            workers,
            buckets: (BUCKETS / workers).max(LEAST_BUCKETS),
        };
        let is_worth_it =
            program.has_keys() && (rows >= LEAST_ROWS || program.has_several_matches());
        Routing {
            division: is_worth_it.then_some(division),
            way: AtomicU8::new(UNDECIDED),
            in_parts: AtomicBool::new(false),
        }
    }

    /// Groups are never dealt.
    pub fn forbid(&mut self) {
        self.division = None;
    }

    pub fn division(&self) -> Option<Division> {
        self.division
    }

    fn decide(&self, way: u8) -> u8 {
        let decided =
            (self.way).compare_exchange(UNDECIDED, way, Ordering::Relaxed, Ordering::Relaxed);
        decided.map_or_else(|before| before, |_| way)
    }

    /// Somebody has too many groups: whether they are dealt.
    pub fn wants_to_deal(&self) -> bool {
        self.division.is_some() && self.decide(DEALING) == DEALING
    }

    /// Somebody has nothing left to claim and this many groups: whether they are dealt.
    pub fn ends_by_dealing(&self, groups: usize) -> bool {
        let Some(Division { workers, .. }) = self.division else {
            return false;
        };
        let way = match groups >= LEAST_GROUPS && workers > 1 {
            true => DEALING,
            false => APART,
        };
        self.decide(way) == DEALING
    }

    /// Says that a group may come in parts.
    pub fn divide_groups(&self) {
        self.in_parts.store(true, Ordering::Relaxed);
    }

    /// Whether a group may come in parts. If it is false behind the first batch of the run, it stays so.
    pub fn is_in_parts(&self) -> bool {
        self.in_parts.load(Ordering::Relaxed)
    }
}

/// What a participant has to do with dealt groups.
pub(crate) struct Routes {
    merger: Merger,
    /// DEALs to each participant.
    pub sent: Box<[u64]>,
    /// For what waits, and for what is being merged.
    waiting: Vec<Reservation>,
    merging: Vec<Reservation>,
}

impl Routes {
    pub fn new(program: &Program, division: Division) -> Self {
        Routes {
            merger: program.merger(division),
            sent: vec![0; division.workers as usize].into(),
            waiting: Vec::new(),
            merging: Vec::new(),
        }
    }

    /// Memory of the tables; what was dealt is paid for by its sender.
    pub fn bytes(&self) -> usize {
        self.merger.bytes()
    }

    /// Whether nothing is here to be merged or handed on.
    pub fn is_empty(&self) -> bool {
        self.merger.is_empty()
    }

    /// Takes in what was dealt.
    pub fn push(&mut self, groups: Groups, reserved: Reservation) {
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

/// Memory for groups that are dealt or merged. A quarter of the budget is left to others: who merges groups that come in parts
/// can use temporary files, but needs some memory to do so.
pub(crate) fn afford(budget: &Budget, bytes: u64) -> Result<Reservation, OutOfMemory> {
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
    budget.try_reserve(bytes)
}

/// What has come for a run.
#[derive(Default)]
pub(crate) struct Mail {
    /// DEALs that the task has not seen yet.
    pub arrived: Vec<Deal>,
    /// DEALs that have come.
    deals: u64,
    /// DEALs of which participants have said that they sent them.
    due: u64,
    /// Participants that deal no more.
    through: usize,
}

impl Mail {
    pub fn deal(&mut self, deal: Deal) {
        self.deals += 1;
        self.arrived.push(deal);
    }

    pub fn dealt(&mut self, deals: u64) {
        self.due += deals;
        self.through += 1;
    }

    /// Whether everything has come from so many others.
    pub fn is_complete(&self, others: usize) -> bool {
        self.through == others && self.deals == self.due
    }
}
