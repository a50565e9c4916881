//! What the segments of an index were asked for, merged on reading.

use crossbeam_utils::CachePadded;
use eris_atomics::Lock;
use eris_types::AeuId;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A segment and what it was asked for since the last look.
#[derive(Clone, Debug)]
pub struct SegmentLoad {
    /// Its owner.
    pub aeu: AeuId,
    /// Its keys are from this one
    pub low: u64,
    /// to this one.
    pub high: u64,
    /// Keys in its tree.
    pub keys: u64,
    /// Bytes of its nodes and records.
    pub bytes: u64,
    /// Keys that were asked for.
    pub asked: u64,
    /// What that took the owner.
    pub busy: Duration,
    /// Some of these keys, ascending; each as likely as any other.
    pub samples: Vec<u64>,
}

/// What one owner says of its segments.
pub(crate) struct Measurement {
    pub aeu: AeuId,
    /// How much it had done by then.
    pub done: u64,
    pub segments: Vec<SegmentLoad>,
}

/// What owners have done, and what was last known of their segments.
pub(crate) struct Measured {
    /// Per AEU a number that grows with whatever it does to its part. Written by whoever steps the AEU, read by who
    /// measures. Relaxed: an operation that somebody has seen the answer of was counted before; others count the next
    /// time.
    done: Box<[CachePadded<AtomicU64>]>,
    /// Per AEU the last measurement, without what it was asked for up to then.
    last: Lock<Vec<Measurement>>,
}

impl Measurement {
    /// Of an owner that has nothing of the index.
    pub fn nothing(aeu: AeuId) -> Self {
        Measurement {
            aeu,
            done: 0,
            segments: Vec::new(),
        }
    }
}

impl Measured {
    pub fn new(aeus: impl Iterator<Item = AeuId>) -> Self {
        let last: Vec<_> = aeus.map(Measurement::nothing).collect();
        Measured {
            done: last.iter().map(|_| CachePadded::default()).collect(),
            last: Lock::new(last),
        }
    }

    /// Notes that an owner, who says so, does something.
    #[inline]
    pub fn note(&self, aeu: AeuId) {
        let done = &self.done[aeu.index()];
        done.store(done.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    pub fn done(&self, aeu: AeuId) -> u64 {
        self.done[aeu.index()].load(Ordering::Relaxed)
    }

    /// Those who have done something since they were asked last.
    pub fn active(&self) -> Vec<AeuId> {
        let last = self.last.lock();
        let active = last.iter().filter(|last| last.done != self.done(last.aeu));
        active.map(|last| last.aeu).collect()
    }

    /// All segments in the order of their keys: as owners show them, and those of others as they were.
    pub fn take_in(&self, answers: Vec<Measurement>) -> Vec<SegmentLoad> {
        let mut last = self.last.lock();
        let mut all = Vec::new();
        for answer in answers {
            let known = &mut last[answer.aeu.index()];
            known.done = answer.done;
            known.segments = answer.segments.iter().map(SegmentLoad::idle).collect();
            all.extend(answer.segments);
        }
        let is_idle = |known: &&Measurement| !all.iter().any(|one| one.aeu == known.aeu);
        let idle = last
            .iter()
            .filter(is_idle)
            .flat_map(|known| &known.segments);
        let idle: Vec<_> = idle.cloned().collect();
        all.extend(idle);
        all.sort_by_key(|segment: &SegmentLoad| segment.low);
        all
    }
}

impl SegmentLoad {
    /// As long as nobody asks for any of its keys.
    fn idle(&self) -> Self {
        SegmentLoad {
            asked: 0,
            busy: Duration::ZERO,
            samples: Vec::new(),
            ..*self
        }
    }
}
