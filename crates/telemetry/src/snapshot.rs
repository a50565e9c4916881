//! The counters as plain data.

use crate::RANKS;
use crate::counter::Counter;
use serde::{Deserialize, Serialize};

/// The values of one AEU's counters, or of several AEUs added up. Units and writers: [`crate::AeuCounters`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AeuSnapshot {
    /// Commands taken from the inbox, by rank.
    pub received: [u64; RANKS],
    /// Commands put into outgoing buffers, by rank.
    pub sent: [u64; RANKS],
    /// Groups executed.
    pub groups: u64,
    /// Tasks run to their end.
    pub tasks: u64,
    /// Slices run.
    pub slices: u64,
    /// Steps that found something to do.
    pub steps_busy: u64,
    /// Steps that found nothing.
    pub steps_idle: u64,
    /// Nanoseconds in busy steps.
    pub busy_nanoseconds: u64,
    /// Times the thread went to sleep.
    pub parks: u64,
    /// Times it was woken.
    pub wakes: u64,
    /// Rows scanned.
    pub rows_scanned: u64,
    /// Bytes scanned.
    pub bytes_scanned: u64,
    /// Chunks scanned.
    pub chunks_scanned: u64,
    /// Chunks skipped by their minimum and maximum.
    pub chunks_skipped: u64,
    /// Chunks scanned for another AEU.
    pub chunks_helped: u64,
    /// Panics caught.
    pub panics: u64,
}

/// The values of all AEUs' counters at about one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// By AEU.
    pub aeus: Vec<AeuSnapshot>,
}

impl Snapshot {
    /// All AEUs added up.
    pub fn total(&self) -> AeuSnapshot {
        let mut total = AeuSnapshot::default();
        self.aeus.iter().for_each(|aeu| total.add(aeu));
        total
    }

    /// What has been counted since `earlier`, a snapshot of the same engine.
    ///
    /// # Panics
    /// If the snapshots have different numbers of AEUs.
    pub fn since(&self, earlier: &Snapshot) -> Snapshot {
        assert_eq!(
            self.aeus.len(),
            earlier.aeus.len(),
            "snapshots of one engine"
        );
        let pairs = self.aeus.iter().zip(&earlier.aeus);
        Snapshot {
            aeus: pairs.map(|(now, then)| now.since(then)).collect(),
        }
    }
}

/// From counters to numbers.
pub(crate) trait Read {
    type Number;
    fn read(&self) -> Self::Number;
}

impl Read for Counter {
    type Number = u64;
    fn read(&self) -> u64 {
        self.get()
    }
}

impl Read for [Counter; RANKS] {
    type Number = [u64; RANKS];
    fn read(&self) -> [u64; RANKS] {
        self.each_ref().map(Counter::get)
    }
}

/// One number, or one per rank. Wraps around as counters do.
pub(crate) trait Number: Copy {
    fn add(&mut self, other: Self);
    fn since(self, earlier: Self) -> Self;
}

impl Number for u64 {
    fn add(&mut self, other: u64) {
        *self = self.wrapping_add(other);
    }

    fn since(self, earlier: u64) -> u64 {
        self.wrapping_sub(earlier)
    }
}

impl Number for [u64; RANKS] {
    fn add(&mut self, other: Self) {
        for (mine, other) in self.iter_mut().zip(other) {
            Number::add(mine, other);
        }
    }

    fn since(self, earlier: Self) -> Self {
        std::array::from_fn(|rank| self[rank].since(earlier[rank]))
    }
}
