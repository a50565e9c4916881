//! How an owner's own work leaves time to those who use its keys.
//!
//! ```text
//! used      slice ▪▪ rest ───────────── slice ▪▪ rest ─────────────      clients execute in place, owners catch up
//! unused    slice ▪▪ slice ▪▪ slice ▪▪
//! ```

use eris_aeu::Slice;
use eris_numa::thread_cpu_time;
use std::time::Duration;

/// A rest is so many times as long as the slice before it. Not only its owner: who is given keys takes about twice as
/// long as who gives them.
const REST: u32 = 12;
/// For less it does not pay to fall asleep.
const SHORTEST: Duration = Duration::from_micros(100);

/// Of one task.
pub(crate) struct Pace {
    /// For how many keys the owner had been asked by the last slice that was ended, and by the newest.
    seen: u64,
    asked: u64,
    /// By the thread's own clock, which does not run while others have the core.
    began: Duration,
    rest: Duration,
}

impl Pace {
    /// Of a task that begins when its owner has been asked for so many keys.
    pub fn new(asked: u64) -> Self {
        Pace {
            seen: asked,
            asked,
            began: Duration::ZERO,
            rest: SHORTEST,
        }
    }

    /// A slice begins, when the owner has been asked for so many keys; returns how many that are since the last one
    /// that was ended.
    pub fn begin(&mut self, asked: u64) -> u64 {
        self.asked = asked;
        self.began = thread_cpu_time();
        asked.saturating_sub(self.seen)
    }

    /// The slice is over, and there is more to be done.
    pub fn end(&mut self) -> Slice {
        let is_used = self.asked > self.seen;
        self.seen = self.asked;
        if !is_used {
            return Slice::Again;
        }
        let took = thread_cpu_time().saturating_sub(self.began);
        self.rest = SHORTEST.max(REST * took);
        Slice::Rest(self.rest)
    }

    /// There was nothing to be done yet in this slice: as long as after the last one.
    pub fn rest(&self) -> Slice {
        Slice::Rest(self.rest)
    }
}
