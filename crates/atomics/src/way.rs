//! The ways to a word that many want to change.

use crate::sync::{AtomicU64, Ordering::Relaxed};

/// How a thread gets its share of a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Way {
    /// It changes the word itself, by an atomic instruction. The word's cache line goes from one to the next.
    #[default]
    Cpu,
    /// It asks for it in a slot of its own at the word's home. Whoever lives there serves all slots by one change.
    Delegated,
    /// Threads of a node ask in slots of the node. One of them serves the node's slots by one change.
    Hierarchical,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 3] = [Way::Cpu, Way::Delegated, Way::Hierarchical];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Way::Cpu => "cpu",
            Way::Delegated => "delegated",
            Way::Hierarchical => "hierarchical",
        }
    }
}

/// The way that is taken now. A relaxed number: whoever sees an old one goes the old way, which is as good.
#[derive(Debug)]
pub(crate) struct CurrentWay(AtomicU64);

impl CurrentWay {
    pub fn new(way: Way) -> Self {
        CurrentWay(AtomicU64::new(way as u64))
    }

    #[inline]
    pub fn get(&self) -> Way {
        Way::ALL[self.0.load(Relaxed) as usize]
    }

    pub fn set(&self, way: Way) {
        self.0.store(way as u64, Relaxed);
    }
}
