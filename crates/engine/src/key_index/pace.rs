//! How an owner's own work leaves time to those who use its keys.
//!
//! ```text
//! used      slice ▪▪ rest ───────────── slice ▪▪ rest ─────────────      clients execute in place meanwhile, and other owners catch up
//! unused    slice ▪▪ slice ▪▪ slice ▪▪
//! ```

use eris_aeu::Slice;
use std::time::{Duration, Instant};

/// A rest is so many times as long as the slice before it. Not only its owner: who is given keys takes about twice as long as who gives them.
const REST: u32 = 8;

/// Of one task.
pub(crate) struct Pace {
    /// For how many keys the owner had been asked by the last slice.
    seen: u64,
    is_used: bool,
    began: Instant,
    rest: Duration,
}

impl Pace {
    /// Of a task that begins when its owner has been asked for so many keys.
    pub fn new(asked: u64) -> Self {
        Pace {
            seen: asked,
            is_used: false,
            began: Instant::now(),
            rest: Duration::ZERO,
        }
    }

    /// A slice begins, when the owner has been asked for so many keys; returns how many that are since the last one.
    pub fn begin(&mut self, asked: u64) -> u64 {
        let new = asked.saturating_sub(self.seen);
        self.seen = asked;
        self.is_used = new > 0;
        self.began = Instant::now();
        new
    }

    /// The slice is over, and there is more to be done.
    pub fn end(&mut self) -> Slice {
        if !self.is_used {
            return Slice::Again;
        }
        self.rest = REST * self.began.elapsed();
        Slice::Rest(self.rest)
    }

    /// There is nothing to be done yet: as long as after the last slice, if the owner is used.
    pub fn wait(&self) -> Option<Slice> {
        self.is_used.then_some(Slice::Rest(self.rest))
    }
}
