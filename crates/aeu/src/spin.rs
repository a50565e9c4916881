//! How long to spin before sleeping.
//!
//! Spinning for about as long as a sleep and a wake-up cost is at most twice as expensive as knowing the future (the
//! classic argument for spin-then-block locks, Karlin et al. 1991). What that costs is measured, not guessed: here a
//! hand-over through the kernel takes some 15 µs, on bare metal 2 to 5.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Bounds for a measurement on a machine that is busy with something else.
const SHORTEST: Duration = Duration::from_micros(2);
const LONGEST: Duration = Duration::from_micros(100);

const ROUNDS: u32 = 32;

/// Measures one unpark with the wake-up it causes: half of the median round trip between two threads that sleep.
pub(crate) fn measure_hand_over() -> Duration {
    let ball = Arc::new(AtomicU32::new(0));
    let other = {
        let (ball, main) = (ball.clone(), thread::current());
        thread::spawn(move || {
            for round in 0..ROUNDS {
                while ball.load(Ordering::Acquire) != 2 * round + 1 {
                    thread::park();
                }
                ball.store(2 * round + 2, Ordering::Release);
                main.unpark();
            }
        })
    };
    let mut trips: Vec<Duration> = (0..ROUNDS)
        .map(|round| {
            let start = Instant::now();
            ball.store(2 * round + 1, Ordering::Release);
            other.thread().unpark();
            while ball.load(Ordering::Acquire) != 2 * round + 2 {
                thread::park();
            }
            start.elapsed()
        })
        .collect();
    // It ends by itself after its last round, which has been seen.
    let _ = other.join();
    trips.sort_unstable();
    (trips[trips.len() / 2] / 2).clamp(SHORTEST, LONGEST)
}

/// A bounded wait that is begun anew after every piece of work.
pub(crate) struct Spin {
    limit: Duration,
    since: Option<Instant>,
}

impl Spin {
    pub(crate) fn new(limit: Duration) -> Self {
        Spin { limit, since: None }
    }

    /// There was work.
    pub(crate) fn reset(&mut self) {
        self.since = None;
    }

    /// Waits a little; false once the bound is reached.
    pub(crate) fn wait(&mut self) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        for _ in 0..8 {
            std::hint::spin_loop();
        }
        since.elapsed() < self.limit
    }
}
