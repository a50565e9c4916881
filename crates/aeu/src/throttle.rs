//! A slower core: an AEU that may use no more than a share of one.
//!
//! On a machine with fewer cores than AEUs the busiest AEU simply runs on while others sleep, so that it does not show
//! how unevenly they are loaded. With a share each, as if each had a core of its own, it does.
//!
//! ```text
//! tokens  ── share × time ──▶ bucket (at most BURST) ── what the thread's own clock says ──▶ below zero: sleep
//! ```

use eris_numa::thread_cpu_time;
use std::thread;
use std::time::{Duration, Instant};

/// What may be used at once after a pause.
const BURST: Duration = Duration::from_millis(2);

/// A step is paid for up to so many times what steps usually take. On a virtual machine a thread's clock goes on while
/// others have its core, now and then for milliseconds: a slow core would pay for them many times over, and all who
/// wait for its answers with it. Work that has become longer is usual soon; what moving keys takes is paid for but for
/// a thousandth, with half as much it would be but for a twentieth.
const OUTLIER: f64 = 4.0;
/// What is usual after so much time of a core has hardly to do with what was before.
const MEMORY: Duration = Duration::from_millis(5);
/// Shorter steps have found nothing to do, and say nothing about those that have.
const IDLE: Duration = Duration::from_micros(20);
/// What steps take, before any has been seen.
const FIRST: Duration = Duration::from_millis(1);

pub(crate) struct Throttle {
    share: f64,
    /// Seconds of a core that are left, or owed.
    tokens: f64,
    /// When tokens were counted last, and the thread's clock then.
    counted: (Instant, Duration),
    /// Seconds that the step takes in which an average moment lies.
    usual: f64,
}

impl Throttle {
    /// For the calling thread.
    pub fn new(share: f64) -> Self {
        Throttle {
            share,
            tokens: 0.0,
            counted: (Instant::now(), thread_cpu_time()),
            usual: FIRST.as_secs_f64(),
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
        self.tokens += earned - self.paid((used - before).as_secs_f64());
        self.tokens = self.tokens.min(BURST.as_secs_f64());
    }

    /// What of a step that took so long is paid for.
    fn paid(&mut self, took: f64) -> f64 {
        if took < IDLE.as_secs_f64() {
            return took;
        }
        let paid = took.min(OUTLIER * self.usual);
        let weight = (paid / MEMORY.as_secs_f64()).min(1.0);
        self.usual += weight * (paid - self.usual);
        paid
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
    fn what_is_unusual_is_not_paid_for_in_full_but_longer_work_is() {
        let mut throttle = Throttle::new(0.01);
        // Nearly all steps find nothing to do.
        let mut step = |took: f64| {
            let _: f64 = (0..99).map(|_| throttle.paid(2e-6)).sum();
            throttle.paid(took)
        };
        let _: f64 = (0..200).map(|_| step(4e-4)).sum();
        let outlier = step(5e-3);
        assert!((4e-4..17e-4).contains(&outlier), "{outlier}");
        assert_eq!(step(4e-4), 4e-4);
        let paid: f64 = (0..100).map(|_| step(2e-3)).sum();
        assert!(paid > 0.8 * 100.0 * 2e-3, "{paid}");
    }
}
