//! Groups that are too many for the caches go to the participant that merges them, by a hash of their keys (ERIS paper,
//! Section 3.2: intermediate results are data commands).
//!
//! ```text
//!   AEU 0: claims chunks ──▶ small table ──full──▶ cut by a hash of the keys ─┬─▶ its own
//!                                                                            └─ Repartition ─▶ AEU 1 …
//!   AEU 1: claims chunks ──▶ small table ──full──▶ cut ──────────────────────┬─▶ its own
//!                                                          ◀─ Repartition ───┘
//!   nothing left to claim: the rest is sent, and RepartitionEnd says to everybody how many Repartitions it got
//!   RepartitionEnd from everybody, and as many Repartitions as they say: each hands on its own groups, each once
//! ```
//!
//! Whether groups are repartitioned is decided once for a run, by one compare-and-swap. Who first has too many groups
//! decides for it, and then all do it, also those that have few or none. Who is done before with few decides against
//! it: then everybody hands on what they have, apart from each other, for whoever merges them above. In a run with few
//! groups nobody sends or waits for anything.
//!
//! The sender has reserved the memory of what it sends. If the budget gets short, the participant that notices says
//! that groups come in parts. From then on nobody merges: what is there, and what comes, goes on as it is. That is
//! always right, for the receiver merges what comes in parts. It can only be said before one's own RepartitionEnd. So
//! who has all parts of a key knows it. Until then nobody uses its merged groups.

use eris_exec::{Division, Program};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Buckets of all participants together: 5 million groups are 20,000 in each.
const BUCKETS: u32 = 256;

/// Of each participant at least.
const LEAST_BUCKETS: u32 = 8;

/// Runs over fewer rows are over before a message has arrived, unless each of these is joined to many.
const LEAST_ROWS: u64 = 4 * eris_column::CHUNK_ROWS as u64;

/// With so many groups in the end, it is cheaper to repartition them than to have them merged above.
const LEAST_GROUPS: usize = 8 << 10;

/// What the participants of a run agree on.
pub(crate) struct Repartitioning {
    /// How keys are divided; `None` if groups are never repartitioned.
    division: Option<Division>,
    /// One of the numbers below. Changed once, by whoever decides; read by all. It guards nothing else.
    decision: AtomicU8,
    /// A group may come in parts. Set before the first of them is sent and before its sender's RepartitionEnd; with
    /// these messages it reaches those who look. Never reset.
    in_parts: AtomicBool,
}

const UNDECIDED: u8 = 0;
const APART: u8 = 1;
const REPARTITION: u8 = 2;

impl Repartitioning {
    /// For so many participants who read so many rows.
    pub fn new(program: &Program, workers: usize, rows: u64) -> Self {
        let workers = workers as u32;
        let division = Division {
            workers,
            buckets: (BUCKETS / workers).max(LEAST_BUCKETS),
        };
        let is_worth_it =
            program.has_keys() && (rows >= LEAST_ROWS || program.has_several_matches());
        Repartitioning {
            division: is_worth_it.then_some(division),
            decision: AtomicU8::new(UNDECIDED),
            in_parts: AtomicBool::new(false),
        }
    }

    /// Groups are never repartitioned.
    pub fn forbid(&mut self) {
        self.division = None;
    }

    pub fn division(&self) -> Option<Division> {
        self.division
    }

    fn decide(&self, wanted: u8) -> u8 {
        let decided =
            self.decision
                .compare_exchange(UNDECIDED, wanted, Ordering::Relaxed, Ordering::Relaxed);
        decided.map_or_else(|before| before, |_| wanted)
    }

    /// Somebody has too many groups: whether they are repartitioned.
    pub fn is_wanted(&self) -> bool {
        self.division.is_some() && self.decide(REPARTITION) == REPARTITION
    }

    /// Somebody has nothing left to claim and this many groups: whether they are repartitioned.
    pub fn is_wanted_at_the_end(&self, groups: usize) -> bool {
        let Some(Division { workers, .. }) = self.division else {
            return false;
        };
        let is_worth_it = groups >= LEAST_GROUPS && workers > 1;
        let wanted = if is_worth_it { REPARTITION } else { APART };
        self.decide(wanted) == REPARTITION
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
