//! What kinds of work an AEU does.

use crate::counter::Counter;
use std::time::Duration;

/// As many kinds of work can be told apart. What they are, others know.
pub const WORK_KINDS: usize = 64;

/// What has been done of one kind. Written by the AEU.
#[derive(Debug, Default)]
pub struct WorkCounters {
    /// Commands that were executed, or slices that were run.
    pub run: Counter,
    /// Tasks that have been spawned.
    pub spawned: Counter,
    /// Those of them that have come to their end or were cancelled.
    pub ended: Counter,
    /// How often a task has begun to wait for something else.
    pub waits: Counter,
    /// Those of `run` whose time was taken: some.
    pub timed: Counter,
    /// What these took. Unit: nanoseconds.
    pub nanoseconds: Counter,
}

/// The counters of all kinds.
#[derive(Debug)]
pub struct Work(Box<[WorkCounters; WORK_KINDS]>);

/// What has been done of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkSnapshot {
    /// Which kind.
    pub kind: usize,
    /// Commands that were executed, or slices that were run.
    pub run: u64,
    /// Tasks that have been spawned.
    pub spawned: u64,
    /// Those of them that are not at their end: they are queued, wait for something else, or run.
    pub waiting: u64,
    /// How often a task has begun to wait for something else.
    pub waits: u64,
    /// What all of them took, if they took as long as those whose time was taken; `None` if there is none of these.
    pub time: Option<Duration>,
}

impl Default for Work {
    fn default() -> Self {
        Work(Box::new(std::array::from_fn(|_| WorkCounters::default())))
    }
}

impl Work {
    /// The counters of a kind; of those beyond the last one, its.
    #[inline]
    pub fn of(&self, kind: usize) -> &WorkCounters {
        &self.0[kind.min(WORK_KINDS - 1)]
    }

    /// What has been done so far, without kinds of which there was nothing. For anyone.
    pub fn read(&self) -> impl Iterator<Item = WorkSnapshot> + '_ {
        let all = self.0.iter().enumerate().map(|(kind, counters)| {
            // Who ends is counted after it was spawned, so it is read before.
            let ended = counters.ended.get();
            let (run, timed) = (counters.run.get(), counters.timed.get());
            let spawned = counters.spawned.get();
            let each = (timed > 0).then(|| counters.nanoseconds.get() as f64 / timed as f64);
            WorkSnapshot {
                kind,
                run,
                spawned,
                waiting: spawned.saturating_sub(ended),
                waits: counters.waits.get(),
                time: each.map(|each| Duration::from_nanos((each * run as f64) as u64)),
            }
        });
        all.filter(|work| work.run > 0 || work.spawned > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_estimated_from_some() {
        let work = Work::default();
        work.of(3).run.add(1000);
        work.of(3).timed.add(10);
        work.of(3).nanoseconds.add(500);
        work.of(WORK_KINDS + 7).run.add(1);
        let of = |kind, run, nanoseconds: Option<u64>| WorkSnapshot {
            kind,
            run,
            spawned: 0,
            waiting: 0,
            waits: 0,
            time: nanoseconds.map(Duration::from_nanos),
        };
        let expected = [of(3, 1000, Some(50_000)), of(WORK_KINDS - 1, 1, None)];
        assert_eq!(work.read().collect::<Vec<_>>(), expected);
    }
}
