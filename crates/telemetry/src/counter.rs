//! A number that one writes and all may read.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter that only grows, wrapping around after 2^64.
///
/// *One writer at a time*, who hands over to the next one with an ordering of its own (the run token). Two writers at
/// once would lose counts, but break nothing else. Relaxed throughout: a counter guards no other memory, and a reader
/// gets some value that was current a moment ago.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `n`. For the counter's writer alone.
    #[inline]
    pub fn add(&self, n: u64) {
        // Not `fetch_add`: with one writer nothing can come in between, and a locked instruction costs about 20 times
        // as much.
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(n),
            Ordering::Relaxed,
        );
    }

    /// Adds one. For the counter's writer alone.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// The current value. For anyone.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
