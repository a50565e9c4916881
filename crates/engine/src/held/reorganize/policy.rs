//! When a reorganisation is worth it, and how much of it a lookup pays for.

use super::work::PHASES;
use super::{ReorganizationCause, ReorganizationEffect};

/// Keys asked for that pay for one unit of work, by [`ReorganizationPhase`](super::work::ReorganizationPhase). About a
/// sixth of the time of a large batch goes into the work while it lasts: a unit takes some 0.1 µs, 1 µs and 2 µs, and a
/// key in such a batch 0.06 µs.
pub(super) const PER_UNIT: [u64; PHASES] = [16, 96, 192];

/// What decides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// Samples that are looked at together. The ring is fixed in size, and grows only as lookups come.
    pub ring: usize,
    /// One key of so many is sampled.
    pub every: u64,
    /// An index of fewer bytes lies in the caches anyway.
    pub least_bytes: usize,
    /// Units of work in a slice that nobody pays for: some tens of microseconds.
    pub slice: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            ring: 1 << 15,
            every: 16,
            least_bytes: 4 << 20,
            slice: 32,
        }
    }
}

/// One in so many samples must be of a key that was sampled more than once. Of millions of keys that are asked for
/// equally often hardly one is; by Zipf's law with an exponent of 1, half of the samples are.
const REPEATED: usize = 4;
/// Walks per lookup from which on the translation buffer matters.
const WALKS: f64 = 0.05;
/// Pages, or lines, of so many times the bytes of what lies on them are worth being emptied.
const SPREAD: u64 = 3;
/// Hot lines of fewer bytes lie in the second-level cache of their core.
const CACHED: u64 = 256 << 10;

impl Policy {
    /// Whether few keys are asked for often: so many samples are of keys that were sampled more than once.
    pub fn is_skewed(self, repeated: usize, samples: usize) -> bool {
        repeated * REPEATED >= samples
    }

    /// Whether what is hot lies scattered: over more pages than the translation buffer holds, or in lines that it
    /// shares with what is cold.
    pub fn is_scattered(self, spread: &Spread, walks: f64) -> bool {
        let pages = walks >= WALKS && spread.pages << spread.page_bits >= SPREAD * spread.bytes;
        let lines = spread.lines * 64;
        pages || lines >= CACHED && lines >= SPREAD * spread.read_bytes
    }

    /// For how many rings the next look waits.
    pub fn rest(self, effect: &ReorganizationEffect) -> u64 {
        match effect.cause {
            ReorganizationCause::Policy if effect.nodes_moved == 0 => 16,
            _ => 4,
        }
    }
}

/// Where the hot nodes and records lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spread {
    /// Their bytes.
    pub bytes: u64,
    /// Pages that lookups read, and log2 of a page's bytes.
    pub pages: u64,
    pub page_bits: u32,
    /// Lines that lookups read, and the bytes of hot nodes and records in them.
    pub lines: u64,
    pub read_bytes: u64,
}
