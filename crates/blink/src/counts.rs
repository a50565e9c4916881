//! What is counted.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// What a tree looks like, and what has been done to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Levels.
    pub height: usize,
    /// Nodes of all levels: of 512 bytes each, of byte strings 4 KiB.
    pub nodes: u64,
    /// Entries.
    pub entries: u64,
    /// Which part of the leaves is in use.
    pub fill: f64,
    /// Nodes that were split.
    pub splits: u64,
    /// Nodes that were merged with another one.
    pub merges: u64,
    /// How often a writer went right because a node had been split. Readers are not counted: they write nothing.
    pub right_moves: u64,
    /// How often a writer began at the root again because a node had been merged.
    pub restarts: u64,
}

#[derive(Clone, Copy)]
pub(crate) enum Count {
    Splits,
    Merges,
    RightMoves,
    Restarts,
}

/// Counters of what writers do, of which all is rare.
#[derive(Default)]
pub(crate) struct Counts([AtomicU64; 4]);

impl Counts {
    pub fn add(&self, count: Count) {
        self.0[count as usize].fetch_add(1, Relaxed);
    }

    pub fn of(&self, count: Count) -> u64 {
        self.0[count as usize].load(Relaxed)
    }
}
