//! What tasks have done, counted by each AEU for itself.

use eris_telemetry::Counter;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Kinds that are counted apart; those above count as the last one.
pub(crate) const KINDS: usize = 16;

/// The counters of one AEU, which alone writes them.
#[derive(Debug, Default)]
pub(crate) struct TaskCounters {
    pub run: [Counter; KINDS],
    /// Of some groups: tasks and nanoseconds.
    pub timed: [(Counter, Counter); KINDS],
    /// How many tasks ahead lines are asked for.
    pub distances: [AtomicU64; KINDS],
    pub spawned: Counter,
    pub waited: Counter,
    pub sent_on: Counter,
    pub moved: Counter,
    pub panics: Counter,
    /// Tasks of its last group; none if it found nothing to do. Written by others, too.
    pub load: AtomicU64,
}

/// What one AEU has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskStatistics {
    /// Tasks that it has run to their end.
    pub run: u64,
    /// Those that its tasks have spawned.
    pub spawned: u64,
    /// Those that found a latch held and waited there.
    pub waited: u64,
    /// Those that were sent on, as their resource's home was another AEU.
    pub sent_on: u64,
    /// Resources that it has given to AEUs that had nothing to do.
    pub moved: u64,
    /// Panics of tasks.
    pub panics: u64,
    /// By kind, of which the last one stands for those above it.
    pub kinds: Vec<KindStatistics>,
}

/// What one AEU has done of one kind of tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KindStatistics {
    /// Tasks that it has run to their end.
    pub run: u64,
    /// What one took, in groups that were timed; `None` if there was none.
    pub time: Option<Duration>,
    /// How many tasks ahead lines are asked for.
    pub prefetch_distance: u64,
}

impl TaskCounters {
    pub fn read(&self) -> TaskStatistics {
        let kind = |kind: usize| {
            let (tasks, nanoseconds) = &self.timed[kind];
            let each = nanoseconds.get().checked_div(tasks.get());
            KindStatistics {
                run: self.run[kind].get(),
                time: each.map(Duration::from_nanos),
                prefetch_distance: self.distances[kind].load(Relaxed),
            }
        };
        TaskStatistics {
            run: self.run.iter().map(Counter::get).sum(),
            spawned: self.spawned.get(),
            waited: self.waited.get(),
            sent_on: self.sent_on.get(),
            moved: self.moved.get(),
            panics: self.panics.get(),
            kinds: (0..KINDS).map(kind).collect(),
        }
    }

    /// Whether the AEU has found nothing to do.
    pub fn is_idle(&self) -> bool {
        self.load.load(Relaxed) == 0
    }

    /// Claims an AEU that has nothing to do, to give it something.
    pub fn claim(&self) -> bool {
        (self.load.compare_exchange(0, 1, Relaxed, Relaxed)).is_ok()
    }
}
