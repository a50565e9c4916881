//! A slower core: an AEU that may use no more than a share of one.
//!
//! On a machine with fewer cores than AEUs the busiest AEU simply runs on while others sleep, so that it does not show how unevenly they
//! are loaded. With a share each, as if each had a core of its own, it does.
//!
//! ```text
//! tokens  ── share × time ──▶ bucket (at most BURST) ── what the thread's own clock says ──▶ below zero: sleep
//! ```

use eris_numa::thread_cpu_time;
use std::thread;
use std::time::{Duration, Instant};

/// What may be used at once after a pause.
const BURST: Duration = Duration::from_millis(2);

/// Steps take a millisecond or two. What seems to take longer than this is no work of theirs: on a virtual machine a thread's clock may go on while others
/// have its core, and a slow core would pay for it many times over.
const LONGEST: Duration = Duration::from_millis(10);

pub(crate) struct Throttle {
    share: f64,
    /// Seconds of a core that are left, or owed.
    tokens: f64,
    /// When tokens were counted last, and the thread's clock then.
    counted: (Instant, Duration),
}

impl Throttle {
    /// For the calling thread.
    pub fn new(share: f64) -> Self {
        Throttle {
            share,
            tokens: 0.0,
            counted: (Instant::now(), thread_cpu_time()),
        }
    }

    /// Sleeps if the thread has used more than its share.
    pub fn pause(&mut self) {
        self.count();
        if self.tokens < 0.0 {
            thread::sleep(Duration::from_secs_f64(-self.tokens / self.share));
            self.count();
        }
    }

    fn count(&mut self) {
        let (now, used) = (Instant::now(), thread_cpu_time());
        let (then, before) = std::mem::replace(&mut self.counted, (now, used));
        let earned = (now - then).as_secs_f64() * self.share;
        self.tokens += earned - (used - before).min(LONGEST).as_secs_f64();
        self.tokens = self.tokens.min(BURST.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_works_all_the_time_gets_its_share() {
        let (began, used) = (Instant::now(), thread_cpu_time());
        let mut throttle = Throttle::new(0.1);
        while began.elapsed() < Duration::from_millis(300) {
            let slice = thread_cpu_time();
            while thread_cpu_time() - slice < Duration::from_micros(200) {}
            throttle.pause();
        }
        let share = (thread_cpu_time() - used).as_secs_f64() / began.elapsed().as_secs_f64();
        assert!(share < 0.12, "{share}");
    }

    #[test]
    fn what_no_step_can_take_is_not_paid_for_in_full() {
        let (mut throttle, used) = (Throttle::new(0.01), thread_cpu_time());
        while thread_cpu_time() - used < 5 * LONGEST {}
        throttle.count();
        assert!(throttle.tokens < 0.0);
        assert!(throttle.tokens >= -LONGEST.as_secs_f64());
    }
}
