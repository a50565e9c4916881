//! A link that is made as slow as another machine's.
//!
//! ```text
//!            ┌ latency ┐
//!  request ──┴─────────┴─▶ bytes arrive       crossings share the bandwidth: each begins when the one before it
//!               ▓▓▓▓▓▓▓▓                      has left the link, and arrives a latency after its last byte
//! ```
//!
//! Whoever reads memory of another node asks the link first, reads as ever, and then waits until the link would have
//! let it through. So what is slower than the link stays as it is.

use crate::profile::Link;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Waits that are longer are slept, but for their last part: the system wakes nobody in time.
const SPUN: Duration = Duration::from_micros(150);

/// One link, shared by all who cross it.
#[derive(Debug)]
pub struct PacedLink {
    nanoseconds_per_byte: f64,
    latency: u64,
    began: Instant,
    /// When the last byte that is on its way leaves the link, in nanoseconds since it began. A reservation is one
    /// exchange; nobody learns anything else by it, so no other memory is ordered.
    free_at: AtomicU64,
}

impl PacedLink {
    /// A link with this bandwidth and latency.
    pub fn new(link: &Link) -> Self {
        PacedLink {
            nanoseconds_per_byte: 1.0 / link.gigabytes_per_second,
            latency: link.nanoseconds as u64,
            began: Instant::now(),
            free_at: AtomicU64::new(0),
        }
    }

    /// Asks for so many bytes. They may be copied while they are on their way.
    pub fn request(&self, bytes: u64) -> Arrival {
        let arrives = self.reserve(self.now(), bytes);
        Arrival(Some(self.began + Duration::from_nanos(arrives)))
    }

    /// Seconds that so many bytes take if nobody else crosses.
    pub fn seconds(&self, bytes: u64) -> f64 {
        (bytes as f64 * self.nanoseconds_per_byte + self.latency as f64) * 1e-9
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// When bytes that are asked for now have arrived.
    fn reserve(&self, now: u64, bytes: u64) -> u64 {
        let takes = (bytes as f64 * self.nanoseconds_per_byte).ceil() as u64;
        let leaves = |free_at: u64| free_at.max(now).saturating_add(takes);
        let before = self
            .free_at
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |free_at| {
                Some(leaves(free_at))
            });
        let before = before.unwrap_or_else(|free_at| free_at);
        leaves(before).saturating_add(self.latency)
    }
}

/// When bytes will have crossed a link.
#[derive(Clone, Copy, Debug)]
#[must_use = "bytes that nobody waits for are there at once"]
pub struct Arrival(Option<Instant>);

impl Arrival {
    /// Of bytes that cross no paced link.
    pub const NOW: Arrival = Arrival(None);

    /// Whether they are there.
    pub fn is_there(&self) -> bool {
        self.0.is_none_or(|at| Instant::now() >= at)
    }

    /// How long it is until they are there.
    pub fn left(&self) -> Duration {
        self.0.map_or(Duration::ZERO, |at| {
            at.saturating_duration_since(Instant::now())
        })
    }

    /// How long whoever waits for them may sleep, and look again then. `None`: they are there. A time that is too short
    /// for sleep is waited for here: the system wakes nobody in time.
    pub fn rest(self) -> Option<Duration> {
        match self.left().checked_sub(SPUN) {
            Some(rest) if !rest.is_zero() => Some(rest),
            _ => {
                self.wait();
                None
            }
        }
    }

    /// Waits until they are there.
    pub fn wait(self) {
        loop {
            let left = self.left();
            if left.is_zero() {
                return;
            }
            match left.checked_sub(SPUN) {
                Some(asleep) if !asleep.is_zero() => thread::sleep(asleep),
                _ => std::hint::spin_loop(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> PacedLink {
        PacedLink::new(&Link {
            name: "slow".into(),
            gigabytes_per_second: 0.5,
            nanoseconds: 300.0,
            copies: Vec::new(),
        })
    }

    #[test]
    fn a_crossing_takes_its_bytes_and_the_latency() {
        assert_eq!(link().reserve(1000, 0), 1300);
        assert_eq!(link().reserve(1000, 100), 1500);
    }

    #[test]
    fn crossings_share_the_bandwidth_but_not_the_latency() {
        let link = link();
        assert_eq!(link.reserve(0, 1000), 2300);
        assert_eq!(link.reserve(10, 1000), 4300);
        // The link has been idle for long.
        assert_eq!(link.reserve(10_000, 500), 11_300);
    }

    #[test]
    fn bytes_do_not_arrive_before_they_could() {
        let link = link();
        let begun = Instant::now();
        let (first, second) = (link.request(100_000), link.request(100_000));
        second.wait();
        first.wait();
        assert!(begun.elapsed() >= Duration::from_micros(400));
    }
}
