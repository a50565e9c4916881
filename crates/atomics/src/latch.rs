//! The right to be the only one, for a short time.
//!
//! ```text
//! cpu            every thread ── test and set ──▶ word
//! delegated      every thread ── enter ──▶ slot at home ── gives the word to one of them after the other
//! hierarchical   every thread ── enter ──▶ slot of node ── gives the word to some of its own, then to other nodes
//! ```
//!
//! ```text
//!            asks                serves                 leaves               serves
//!   IDLE ──┬─────▶ ENTER ──────────────────▶ GRANTED ──────────▶ LEFT ────────────────▶ IDLE
//!          └─────▶ TRY ──┬─────────────────▶ GRANTED                  the word goes on to the next, or is cleared
//!                        └──▶ DENIED ─▶ IDLE
//! ```
//!
//! Whoever serves sets the word for all of its slots. While it has it, it passes the right from slot to slot without
//! touching the word, and clears it for others after some passes. So ways can be mixed, and changed while threads hold
//! the latch: a guard leaves the way it came.
//!
//! In the paper's Figure 10 an attempt at a CPU latch fails in two cases of three, and at a delegated one hardly ever.
//! Here those who wait in slots do not attempt anything: they are given the right in turns.
//!
//! As with a [`Sequence`](crate::Sequence), who asks serves if nobody is at home. What is left in a slot is cleared by
//! the next who serves, so who finds the word set by [`Way::Cpu`] serves once and looks again.

use crate::slots::{IDLE, Serving, Slots, set};
use crate::sync::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{Relaxed, Release},
    spin_loop, yield_now,
};
use crate::way::{CurrentWay, Way};
use crossbeam_utils::CachePadded;
use eris_types::NodeId;

const TRY: u64 = 1;
pub(crate) const ENTER: u64 = 2;
pub(crate) const GRANTED: u64 = 3;
const DENIED: u64 = 4;
pub(crate) const LEFT: u64 = 5;

/// No slot has the right.
const NOBODY: usize = usize::MAX;
/// So often the right is passed on before others get a chance.
const PASSES: u64 = 64;
/// As in a sequence.
const SPINS: usize = if cfg!(loom) { 1 } else { 200 };

/// A latch. It guards what its users agree on.
#[derive(Debug)]
pub struct Latch {
    /// Whether somebody has the right, or a server has it for its slots.
    pub(crate) word: CachePadded<AtomicBool>,
    way: CurrentWay,
    pub(crate) home: Server,
    is_home: CachePadded<AtomicBool>,
    nodes: Box<[Server]>,
}

/// Slots, and what their server knows. Relaxed: only who has the right to serve reads and writes it.
#[derive(Debug)]
pub(crate) struct Server {
    pub slots: Slots,
    holder: AtomicUsize,
    next: AtomicUsize,
    passes: AtomicU64,
    /// Whether anybody has ever asked here.
    is_used: AtomicBool,
}

/// The right. It ends when this is dropped.
#[derive(Debug)]
#[must_use = "the right ends when this is dropped"]
pub struct LatchGuard<'a> {
    latch: &'a Latch,
    /// Where it was given; `None`: the word itself was set.
    slot: Option<(&'a Server, usize)>,
}

/// Where the right is, for a server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Right {
    /// Nobody has it, or somebody of another server.
    Elsewhere,
    /// A slot has it.
    Given,
    /// The server: it passes it on.
    Here,
    /// Cleared for others, and not taken again at once.
    Cleared,
}

impl Latch {
    /// A latch for threads of so many nodes. `senders` of them ask at a time at one place, 64 at most. More of them use
    /// CPU atomics meanwhile.
    pub fn new(way: Way, nodes: usize, senders: usize) -> Self {
        Latch {
            word: CachePadded::new(AtomicBool::new(false)),
            way: CurrentWay::new(way),
            home: Server::new(senders),
            is_home: CachePadded::new(AtomicBool::new(false)),
            nodes: (0..nodes.max(1)).map(|_| Server::new(senders)).collect(),
        }
    }

    /// How it is entered now.
    pub fn way(&self) -> Way {
        self.way.get()
    }

    /// How it is entered from now on.
    pub fn set_way(&self, way: Way) {
        self.way.set(way);
    }

    /// The right, if nobody has it. `node`: where the thread runs.
    pub fn try_lock(&self, node: NodeId) -> Option<LatchGuard<'_>> {
        self.try_lock_by(self.way.get(), node)
    }

    /// The same in a way of the caller's choice.
    pub fn try_lock_by(&self, way: Way, node: NodeId) -> Option<LatchGuard<'_>> {
        match self.server(way, node) {
            None => self.try_set(),
            Some(server) => self.ask(server, TRY),
        }
    }

    /// Waits for the right. `node`: where the thread runs.
    pub fn lock(&self, node: NodeId) -> LatchGuard<'_> {
        self.lock_by(self.way.get(), node)
    }

    /// The same in a way of the caller's choice.
    pub fn lock_by(&self, way: Way, node: NodeId) -> LatchGuard<'_> {
        if let Some(server) = self.server(way, node) {
            return self.ask(server, ENTER).expect("who enters is not denied");
        }
        self.wait_for_word()
    }

    fn wait_for_word(&self) -> LatchGuard<'_> {
        loop {
            for _ in 0..SPINS {
                if let Some(guard) = self.try_set() {
                    return guard;
                }
                spin_loop();
            }
            yield_now();
        }
    }

    fn server(&self, way: Way, node: NodeId) -> Option<&Server> {
        match way {
            Way::Cpu => None,
            Way::Delegated => Some(&self.home),
            Way::Hierarchical => Some(&self.nodes[node.index() % self.nodes.len()]),
        }
    }

    /// Sets the word.
    fn try_set(&self) -> Option<LatchGuard<'_>> {
        let is_mine = set(&self.word) || (self.clear_left() && set(&self.word));
        // Not made before it is mine: a guard that is dropped clears the word.
        is_mine.then(|| LatchGuard {
            latch: self,
            slot: None,
        })
    }

    /// Serves wherever somebody has asked before: the word may be set for a guard that has gone. Whether there was such
    /// a place.
    fn clear_left(&self) -> bool {
        let servers = self.nodes.iter().chain([&self.home]);
        let used = servers.filter(|server| server.is_used.load(Relaxed));
        used.fold(false, |_, server| {
            server.serve(&self.word);
            true
        })
    }

    /// Whether whoever lives at the home [serves](Self::serve) from now on.
    pub fn set_home(&self, is_there: bool) {
        self.is_home.store(is_there, Relaxed);
    }

    /// Serves those who have asked at home or have left; whether there were any who left. Called again and again by
    /// whoever lives there.
    pub fn serve(&self) -> bool {
        self.home.serve(&self.word).unwrap_or(false)
    }

    fn is_served(&self, server: &Server) -> bool {
        std::ptr::eq(server, &self.home) && self.is_home.load(Relaxed)
    }

    fn ask<'a>(&'a self, server: &'a Server, request: u64) -> Option<LatchGuard<'a>> {
        if !server.is_used.load(Relaxed) {
            server.is_used.store(true, Relaxed);
        }
        let Some(slot) = server.slots.ask(request) else {
            return match request {
                TRY => self.try_set(),
                _ => Some(self.wait_for_word()),
            };
        };
        let mut has_waited = false;
        loop {
            for _ in 0..SPINS {
                match server.slots.read(slot) {
                    GRANTED => {
                        return Some(LatchGuard {
                            latch: self,
                            slot: Some((server, slot)),
                        });
                    }
                    DENIED => {
                        server.slots.write(slot, IDLE);
                        return None;
                    }
                    _ if !self.is_served(server) || has_waited => {
                        // Somebody else may have the right, in a slot of another server.
                        if server.serve(&self.word).is_none_or(|any| !any) {
                            self.clear_others(server);
                            spin_loop();
                        }
                    }
                    _ => spin_loop(),
                }
            }
            has_waited = true;
            yield_now();
        }
    }

    /// Serves the others, if there are any: one may have the word for a guard that has gone.
    fn clear_others(&self, mine: &Server) {
        let servers = self.nodes.iter().chain([&self.home]);
        for server in servers.filter(|server| !std::ptr::eq(*server, mine)) {
            if server.is_used.load(Relaxed) {
                server.serve(&self.word);
            }
        }
    }
}

impl Drop for LatchGuard<'_> {
    fn drop(&mut self) {
        match self.slot {
            None => self.latch.word.store(false, Release),
            Some((server, slot)) => {
                server.slots.write(slot, LEFT);
                if !self.latch.is_served(server) {
                    server.serve(&self.latch.word);
                }
            }
        }
    }
}

impl Server {
    fn new(senders: usize) -> Self {
        Server {
            slots: Slots::new(senders),
            holder: AtomicUsize::new(NOBODY),
            next: AtomicUsize::new(0),
            passes: AtomicU64::new(0),
            is_used: AtomicBool::new(false),
        }
    }

    /// Serves all slots once; whether somebody had left. `None`: somebody else is serving.
    pub fn serve(&self, word: &AtomicBool) -> Option<bool> {
        let serving = self.slots.try_serve()?;
        let mut any = false;
        let mut right = match self.holder.load(Relaxed) {
            NOBODY => Right::Elsewhere,
            _ => Right::Given,
        };
        let mut look = |right: &mut Right| {
            if *right == Right::Given && self.slots.read(self.holder.load(Relaxed)) == LEFT {
                *right = self.take_back(word);
                any = true;
            }
        };
        look(&mut right);
        for slot in self.order(&serving) {
            let request = self.slots.read(slot);
            if request != TRY && request != ENTER {
                continue;
            }
            // Whoever has it may have left since.
            look(&mut right);
            let passes = match right {
                Right::Here => Some(self.passes.load(Relaxed) + 1),
                Right::Elsewhere => set(word).then_some(0),
                Right::Given | Right::Cleared => None,
            };
            if let Some(passes) = passes {
                self.passes.store(passes, Relaxed);
                self.holder.store(slot, Relaxed);
                self.next.store(slot + 1, Relaxed);
                self.slots.write(slot, GRANTED);
                right = Right::Given;
            } else if request == TRY {
                self.slots.write(slot, DENIED);
            }
        }
        if right == Right::Here {
            word.store(false, Release);
        }
        Some(any)
    }

    /// Takes the right from the slot whose guard has gone.
    fn take_back(&self, word: &AtomicBool) -> Right {
        self.slots.write(self.holder.load(Relaxed), IDLE);
        self.holder.store(NOBODY, Relaxed);
        if self.passes.load(Relaxed) < PASSES {
            return Right::Here;
        }
        word.store(false, Release);
        Right::Cleared
    }

    /// All slots, those first that come after the one that was given the right last.
    fn order(&self, serving: &Serving<'_>) -> impl Iterator<Item = usize> {
        let all = serving.slots();
        let next = self.next.load(Relaxed).min(all.end);
        (next..all.end).chain(0..next)
    }
}
