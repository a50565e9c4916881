//! Numbers in a row: each is drawn once, and none is left out.
//!
//! ```text
//! cpu            every thread ── add n ──▶ word
//! delegated      every thread ── n ──▶ slot at home ── one adds the sum ──▶ word      each gets its part back
//! hierarchical   every thread ── n ──▶ slot of node ── one adds the sum ──▶ word      each gets its part back
//! ```
//!
//! **All ways end in one addition to one word.** Its result is handed out to the last number. So ways can be mixed, and
//! changed while threads draw, and there is no gap and no number twice: nothing has to be handed over from one way to
//! the other. A request that was made before a change is served as before.
//!
//! **Nobody waits for a thread that sleeps.** Whoever lives at the home says whether it is there. If it is not, whoever
//! asks takes the right to serve and serves all slots, its own among them. So it does after a while in any case, for
//! the home's thread may have lost its core. That costs less than to wake somebody.
//!
//! # The paper's ways
//!
//! Section 4 of *Hardware-Accelerated Memory Operations on Large-Scale NUMA Systems* compares CPU atomics with
//! operations of the GRU, a unit beside the memory of each node. Its plain atomics are executed where the word lies, so
//! that no cache has the word. Here the home's thread does what the unit does; the slots are its control blocks.
//!
//! The paper's *registered* operations keep the word in the memory of the GRU that used it last, and move it from one
//! to the next. Without such a unit that is what a CPU atomic does: the line stays in the cache of who used it last.
//! So [`Way::Cpu`] stands for both, and there is no fourth way.
//!
//! The paper's *mix* is some threads that use CPU atomics while the others delegate. Then the word's line leaves the
//! home again and again. It is correct here, too; see [`Sequence::draw_by`].

use crate::slots::{IDLE, Slots};
use crate::sync::{
    AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst, spin_loop, yield_now,
};
use crate::way::{CurrentWay, Way};
use crossbeam_utils::CachePadded;
use eris_types::NodeId;

/// An answer has this bit, a request has not.
pub(crate) const ANSWER: u64 = 1 << 63;
/// So often a thread looks for its answer before it lets others have its core.
const SPINS: usize = if cfg!(loom) { 1 } else { 200 };

/// Numbers in a row.
#[derive(Debug)]
pub struct Sequence {
    /// The next number. Changed by additions alone.
    word: CachePadded<AtomicU64>,
    way: CurrentWay,
    pub(crate) home: Slots,
    /// Whether somebody serves at home. Relaxed: who sees an old value waits a little longer, or serves himself.
    is_home: CachePadded<AtomicBool>,
    nodes: Box<[Slots]>,
}

impl Sequence {
    /// Numbers from `first` on, for threads of so many nodes. `senders` of them ask at a time at one place, 64 at most.
    /// More of them use CPU atomics meanwhile.
    pub fn new(first: u64, way: Way, nodes: usize, senders: usize) -> Self {
        Sequence {
            word: CachePadded::new(AtomicU64::new(first)),
            way: CurrentWay::new(way),
            home: Slots::new(senders),
            is_home: CachePadded::new(AtomicBool::new(false)),
            nodes: (0..nodes.max(1)).map(|_| Slots::new(senders)).collect(),
        }
    }

    /// The next number, which somebody may be drawing.
    #[inline]
    pub fn next(&self) -> u64 {
        self.word.load(SeqCst)
    }

    /// How numbers are drawn now.
    pub fn way(&self) -> Way {
        self.way.get()
    }

    /// How they are drawn from now on.
    pub fn set_way(&self, way: Way) {
        self.way.set(way);
    }

    /// Draws so many numbers, at least 1; returns the first. `node`: where the thread runs.
    #[inline]
    pub fn draw(&self, count: u64, node: NodeId) -> u64 {
        self.draw_by(self.way.get(), count, node)
    }

    /// The same in a way of the caller's choice, whatever others do.
    #[inline]
    pub fn draw_by(&self, way: Way, count: u64, node: NodeId) -> u64 {
        match way {
            Way::Cpu => self.word.fetch_add(count, SeqCst),
            Way::Delegated => self.ask(&self.home, count, || self.is_home.load(Relaxed)),
            // Nobody lives at a node: who asks there serves.
            Way::Hierarchical => {
                let slots = &self.nodes[node.index() % self.nodes.len()];
                self.ask(slots, count, || false)
            }
        }
    }

    /// Whether whoever lives at the home [serves](Self::serve) from now on.
    pub fn set_home(&self, is_there: bool) {
        self.is_home.store(is_there, Relaxed);
    }

    /// Serves all who have asked at home, by one addition; how many these were. Called again and again by whoever lives
    /// there.
    pub fn serve(&self) -> usize {
        self.serve_slots(&self.home).unwrap_or(0)
    }

    fn ask(&self, slots: &Slots, count: u64, is_home: impl Fn() -> bool) -> u64 {
        debug_assert!(0 < count && count < 1 << 32);
        let Some(slot) = slots.ask(count) else {
            return self.word.fetch_add(count, SeqCst);
        };
        let mut has_waited = false;
        loop {
            for _ in 0..SPINS {
                let value = slots.read(slot);
                if value & ANSWER != 0 {
                    slots.write(slot, IDLE);
                    return value & !ANSWER;
                }
                if (!is_home() || has_waited) && self.serve_slots(slots).is_some() {
                    continue;
                }
                spin_loop();
            }
            // Whoever is at home may wait for a core, too: it is not waited for twice.
            has_waited = true;
            yield_now();
        }
    }

    /// `None`: somebody else is serving.
    pub(crate) fn serve_slots(&self, slots: &Slots) -> Option<usize> {
        let serving = slots.try_serve()?;
        let (mut asking, mut sum) = (0u64, 0);
        for slot in serving.slots() {
            let value = slots.read(slot);
            if value != IDLE && value & ANSWER == 0 {
                asking |= 1 << slot;
                sum += value;
            }
        }
        if asking == 0 {
            return Some(0);
        }
        let served = asking.count_ones();
        let mut first = self.word.fetch_add(sum, SeqCst);
        while asking != 0 {
            let slot = asking.trailing_zeros() as usize;
            asking &= asking - 1;
            let count = slots.read(slot);
            slots.write(slot, ANSWER | first);
            first += count;
        }
        Some(served as usize)
    }
}
