//! How busy owners are with a table: what balancing goes by, and what `eris.partitions` shows.
//!
//! ```text
//! slice of a scan        one in 8 is timed by the thread's own clock      ─▶ busy with scans, bytes read
//! operation on keys      one in 64, whose keys are samples of what is asked for ─▶ busy with keys
//! ```
//!
//! Each AEU writes numbers of its own and nobody else's; whoever wants to know reads them all. They only ever grow, so
//! that any number of readers can tell what came since they looked last.

use crossbeam_utils::CachePadded;
use eris_atomics::Lock;
use eris_numa::thread_cpu_time;
use eris_types::AeuId;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::time::{Duration, Instant};

/// One slice of a scan of so many is timed.
const TIMED_SLICES: u64 = 8;
/// One operation on keys of so many is timed: the thread's clock costs as much as some lookups.
const TIMED: u64 = 64;
/// Keys of one operation that become samples at most.
const SAMPLES_AT_ONCE: usize = 16;
/// So many samples are kept, the newest: enough to cut a range where a few percent of its load lie before.
const SAMPLES: usize = 512;
/// Rates are over this time at least.
const LOOK: Duration = Duration::from_secs(1);

/// What owners were asked for of a table.
#[derive(Debug)]
pub(crate) struct Loads {
    parts: Box<[CachePadded<Part>]>,
    /// What somebody has seen some time ago, and the look before that: rates are what has come since.
    looks: Lock<Looks>,
}

/// One AEU's. Relaxed numbers, which guard nothing; whoever has the AEU's run token alone writes them.
#[derive(Debug, Default)]
struct Part {
    slices: AtomicU64,
    scanning: AtomicU64,
    read: AtomicU64,
    helped: AtomicU64,
    operations: AtomicU64,
    keys: AtomicU64,
    asking: AtomicU64,
    /// The newest samples, each in the place of the one that came [`SAMPLES`] before. One operation in some writes
    /// them.
    samples: OnceLock<Box<[AtomicI64]>>,
    /// How many samples have come, and how many of them had when loads were looked at last.
    sampled: AtomicU64,
    taken: AtomicU64,
}

#[derive(Debug)]
struct Looks {
    before: (Instant, Vec<Load>),
    last: (Instant, Vec<Load>),
}

/// What an AEU was asked for of a table, since the table was made or since another look.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// The time that it scanned, its own chunks or others'.
    pub scanning: Duration,
    /// Bytes that it scanned, and those of other AEUs' among them.
    pub read: u64,
    pub helped: u64,
    /// Keys that it was asked for, and the time that this took.
    pub keys: u64,
    pub asking: Duration,
}

impl Load {
    /// What has come since an earlier look.
    pub fn since(&self, before: &Load) -> Load {
        Load {
            scanning: self.scanning.saturating_sub(before.scanning),
            read: self.read - before.read,
            helped: self.helped - before.helped,
            keys: self.keys - before.keys,
            asking: self.asking.saturating_sub(before.asking),
        }
    }

    /// Whether nothing was asked for.
    pub fn is_nothing(&self) -> bool {
        self.read == 0 && self.keys == 0
    }

    /// All time.
    pub fn busy(&self) -> Duration {
        self.scanning + self.asking
    }
}

/// A slice or an operation that is being timed.
pub(crate) struct Timed(Duration);

impl Loads {
    pub fn new(aeus: usize) -> Self {
        let nothing = (Instant::now(), vec![Load::default(); aeus]);
        Loads {
            parts: (0..aeus).map(|_| CachePadded::default()).collect(),
            looks: Lock::new(Looks {
                before: nothing.clone(),
                last: nothing,
            }),
        }
    }

    /// A slice of a scan begins.
    pub fn begin_slice(&self, aeu: AeuId) -> Option<Timed> {
        let slices = add(&self.parts[aeu.index()].slices, 1);
        slices
            .is_multiple_of(TIMED_SLICES)
            .then(|| Timed(thread_cpu_time()))
    }

    /// It ends.
    pub fn end_slice(&self, aeu: AeuId, timed: Option<Timed>) {
        if let Some(Timed(began)) = timed {
            let time = thread_cpu_time().saturating_sub(began) * TIMED_SLICES as u32;
            let scanning = &self.parts[aeu.index()].scanning;
            add(scanning, time.as_nanos() as u64);
        }
    }

    /// A chunk was scanned.
    pub fn note_chunk(&self, aeu: AeuId, bytes: u64, is_helping: bool) {
        let part = &self.parts[aeu.index()];
        add(&part.read, bytes);
        if is_helping {
            add(&part.helped, bytes);
        }
    }

    /// An operation on keys begins.
    pub fn begin_keys(&self, aeu: AeuId) -> Option<Timed> {
        let operations = add(&self.parts[aeu.index()].operations, 1);
        operations
            .is_multiple_of(TIMED)
            .then(|| Timed(thread_cpu_time()))
    }

    /// It ends. `number` gives some of its keys' numbers.
    pub fn end_keys(
        &self,
        aeu: AeuId,
        timed: Option<Timed>,
        count: usize,
        numbers: impl FnOnce(&[u32]) -> Vec<i64>,
    ) {
        let part = &self.parts[aeu.index()];
        add(&part.keys, count as u64);
        let Some(Timed(began)) = timed else {
            return;
        };
        let time = thread_cpu_time().saturating_sub(began) * TIMED as u32;
        add(&part.asking, time.as_nanos() as u64);
        let step = count.div_ceil(SAMPLES_AT_ONCE).max(1);
        let some: Vec<u32> = (0..count as u32).step_by(step).collect();
        let nothing = || (0..SAMPLES).map(|_| AtomicI64::new(0)).collect();
        let samples = part.samples.get_or_init(nothing);
        let sampled = part.sampled.load(Relaxed);
        let numbers = numbers(&some);
        for (place, number) in (sampled..).zip(&numbers) {
            samples[place as usize % SAMPLES].store(*number, Relaxed);
        }
        // After the samples, for whoever takes them.
        (part.sampled).store(sampled + numbers.len() as u64, Release);
    }

    /// For how many keys an AEU was asked since the table was made.
    pub fn keys_of(&self, aeu: AeuId) -> u64 {
        self.parts[aeu.index()].keys.load(Relaxed)
    }

    /// What every AEU was asked for since the table was made.
    pub fn all(&self) -> Vec<Load> {
        let parts = self.parts.iter();
        parts
            .map(|part| Load {
                scanning: Duration::from_nanos(part.scanning.load(Relaxed)),
                read: part.read.load(Relaxed),
                helped: part.helped.load(Relaxed),
                keys: part.keys.load(Relaxed),
                asking: Duration::from_nanos(part.asking.load(Relaxed)),
            })
            .collect()
    }

    /// The numbers of keys that an AEU was asked for since the last call, ascending.
    pub fn take_samples(&self, aeu: AeuId) -> Vec<i64> {
        let part = &self.parts[aeu.index()];
        let sampled = part.sampled.load(Acquire);
        let taken = part.taken.swap(sampled, Relaxed);
        let places = taken.max(sampled.saturating_sub(SAMPLES as u64))..sampled;
        let Some(samples) = part.samples.get() else {
            return Vec::new();
        };
        let numbers = places.map(|place| samples[place as usize % SAMPLES].load(Relaxed));
        let mut numbers: Vec<i64> = numbers.collect();
        numbers.sort_unstable();
        numbers
    }

    /// What every AEU was asked for lately, and in how long.
    pub fn lately(&self) -> (Duration, Vec<Load>) {
        let now = (Instant::now(), self.all());
        let mut looks = self.looks.lock();
        if now.0 - looks.last.0 >= LOOK {
            looks.before = std::mem::replace(&mut looks.last, now.clone());
        }
        let before = &looks.before;
        let loads = now.1.iter().zip(&before.1);
        let loads = loads.map(|(now, before)| now.since(before));
        (now.0 - before.0, loads.collect())
    }
}

/// Adds to a number that nobody else writes; what it was before.
fn add(number: &AtomicU64, more: u64) -> u64 {
    let before = number.load(Relaxed);
    number.store(before.wrapping_add(more), Relaxed);
    before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_between_two_looks_is_told_and_samples_are_the_newest() {
        let loads = Loads::new(2);
        let ask = |from: i64| {
            let timed = loads.begin_keys(AeuId(1));
            loads.end_keys(AeuId(1), timed, 40, |some| {
                some.iter().map(|at| from + i64::from(*at)).collect()
            });
        };
        (0..=TIMED as i64).for_each(|round| ask(round * 100));
        let before = loads.all()[1];
        ask(7);
        assert_eq!(loads.all()[1].since(&before).keys, 40);
        assert_eq!(loads.all()[0].keys, 0);
        let samples = loads.take_samples(AeuId(1));
        assert!(samples.is_sorted() && samples.len() <= 3 * SAMPLES_AT_ONCE);
        assert!(samples.contains(&0) && samples.contains(&(TIMED as i64 * 100)));
        assert!(loads.take_samples(AeuId(1)).is_empty());
        for round in 0..SAMPLES as i64 * TIMED as i64 {
            ask(round);
        }
        let samples = loads.take_samples(AeuId(1));
        assert_eq!(samples.len(), SAMPLES);
        assert!(samples[0] > 0, "the newest are kept");
    }
}
