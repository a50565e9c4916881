//! What the log thread has done, for whoever looks. Commits do nothing for it.

use eris_home::FlushTimes;
use eris_log::Written;
use eris_types::Timestamp;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The times of so many groups are known.
const RECENT: usize = 1024;

/// What the log thread has done. It alone writes this; whoever reads takes each number as it is.
pub(crate) struct Flushes {
    groups: AtomicU64,
    bytes: AtomicU64,
    durable: AtomicU64,
    /// How many times were noted. The last ones are in the ring, in microseconds.
    noted: AtomicU64,
    ring: [AtomicU32; RECENT],
}

impl Default for Flushes {
    fn default() -> Self {
        Flushes {
            groups: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            noted: AtomicU64::new(0),
            ring: [const { AtomicU32::new(0) }; RECENT],
        }
    }
}

impl Flushes {
    /// So much has been written, and commits up to `durable` are durable. `took`: if there was a group, how long it
    /// took.
    pub fn add(&self, written: Written, durable: Timestamp, took: Option<Duration>) {
        self.groups.store(written.groups, Relaxed);
        self.bytes.store(written.bytes, Relaxed);
        self.durable.store(durable.0, Relaxed);
        if let Some(took) = took {
            let noted = self.noted.load(Relaxed);
            let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
            self.ring[noted as usize % RECENT].store(micros, Relaxed);
            self.noted.store(noted + 1, Relaxed);
        }
    }

    /// All commits up to this one are durable.
    pub fn durable(&self) -> Timestamp {
        Timestamp(self.durable.load(Relaxed))
    }

    /// What has been written.
    pub fn written(&self) -> Written {
        Written {
            groups: self.groups.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
        }
    }

    /// How long the last groups took.
    pub fn times(&self) -> Option<FlushTimes> {
        let noted = self.noted.load(Relaxed).min(RECENT as u64) as usize;
        let last = self.ring[..noted].iter();
        let mut micros: Vec<u32> = last.map(|micros| micros.load(Relaxed)).collect();
        micros.sort_unstable();
        // The least one that so many of a hundred do not exceed.
        let at = |percent: usize| {
            let rank = (micros.len() * percent).div_ceil(100);
            let micros = *micros.get(rank.checked_sub(1)?)?;
            Some(Duration::from_micros(micros.into()))
        };
        Some(FlushTimes {
            median: at(50)?,
            p99: at(99)?,
            longest: at(100)?,
        })
    }
}

impl fmt::Debug for Flushes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Flushes({:?} groups)", self.groups)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_last_groups() {
        let flushes = Flushes::default();
        let add = |micros: u64| {
            let took = Some(Duration::from_micros(micros));
            flushes.add(Written::default(), Timestamp::ZERO, took);
        };
        assert_eq!(flushes.times(), None);
        flushes.add(Written::default(), Timestamp::ZERO, None);
        assert_eq!(flushes.times(), None, "there was no group");
        let micros = |median, p99, longest| {
            Some(FlushTimes {
                median: Duration::from_micros(median),
                p99: Duration::from_micros(p99),
                longest: Duration::from_micros(longest),
            })
        };
        add(7);
        assert_eq!(flushes.times(), micros(7, 7, 7));
        (1..=99).for_each(add);
        // 1 … 99 and another 7.
        assert_eq!(flushes.times(), micros(49, 98, 99));
        add(u64::from(u32::MAX) + 5);
        assert_eq!(flushes.times(), micros(50, 99, u64::from(u32::MAX)));
        (0..RECENT as u64).for_each(|_| add(3));
        assert_eq!(flushes.times(), micros(3, 3, 3), "older ones are forgotten");
    }
}
