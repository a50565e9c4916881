//! A latch at which tasks wait instead of threads.
//!
//! ```text
//! 63                        25   24   23                          0
//! ┌───────────────────────────┬──────┬─────────────────────────────┐
//! │ version (39)              │ held │ last of those who wait, + 1 │
//! └───────────────────────────┴──────┴─────────────────────────────┘
//!
//!           enter                          leave: version + 1
//!  free ───────────▶ held, nobody waits ────────────────────────▶ free
//!                       │         ▲
//!                 wait  ▼         │ take all who wait
//!                    held, some wait
//! ```
//!
//! *One word* for the latch and the queue: to enter and to wait is one attempt on it, and so is to leave and to take
//! over who waits. So a latch that nobody waits at costs what any latch costs. (In the paper, Section 3, producers and
//! the consumer of a nearly empty queue share an atomic beside that.)
//!
//! Who waits is a chain of [slots](crate::task::slots), the last one first; who takes it turns it round.
//!
//! *Readers* write nothing. They note the word, read, and look again: if it is the same, nobody has written meanwhile.
//! The fences are those of Boehm, *Can seqlocks get along with programming language memory models?*, MSPC 2012. The
//! words that the latch guards are atomic, and read and written relaxed. A version comes again after 2^39 writes, while
//! one reader reads.
//!
//! Who leaves releases, who enters acquires: writers find what writers before them have written. Who waits releases its
//! slot, who takes over acquires it; those who wait in between continue the release sequence.

use crate::sync::{AtomicU64, Ordering, fence};
use std::fmt;

const WAITING: u64 = (1 << 24) - 1;
const HELD: u64 = 1 << 24;
const VERSION: u64 = 1 << 25;
/// A reader tries so often before it waits like a writer.
const READS: usize = 4;

/// The most slots that a latch can tell apart.
pub(crate) const MOST_SLOTS: u32 = WAITING as u32;

/// The right to a resource; see [`Access`](crate::task::Access). Tasks wait for it, not AEUs.
pub struct TaskLatch(AtomicU64);

/// What became of a task that came to a latch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It may run, and must leave.
    Entered,
    /// It is in the chain.
    Waits,
}

impl TaskLatch {
    /// A latch that is free.
    pub fn new() -> Self {
        TaskLatch(AtomicU64::new(0))
    }

    /// Whether somebody holds it; by now it may be otherwise.
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) & HELD != 0
    }

    /// What `read` returns, if nobody has written meanwhile.
    #[inline]
    pub(crate) fn read<T>(&self, read: impl Fn() -> T) -> Option<T> {
        for _ in 0..READS {
            let before = self.0.load(Ordering::Acquire);
            if before & HELD != 0 {
                return None;
            }
            let found = read();
            fence(Ordering::Acquire);
            if self.0.load(Ordering::Relaxed) == before {
                return Some(found);
            }
        }
        None
    }

    /// Takes it, if nobody has it.
    #[inline]
    pub(crate) fn try_enter(&self) -> bool {
        let state = self.0.load(Ordering::Relaxed);
        state & HELD == 0 && self.take(state)
    }

    #[inline]
    fn take(&self, state: u64) -> bool {
        let (from, to) = (Ordering::Acquire, Ordering::Relaxed);
        let taken = self
            .0
            .compare_exchange(state, state | HELD, from, to)
            .is_ok();
        if taken {
            // Before any word is written.
            fence(Ordering::Release);
        }
        taken
    }

    /// Takes it, or puts a slot into the chain. `link` writes into the slot which one comes before it (0: none).
    pub(crate) fn enter_or_wait(&self, slot: u32, link: impl Fn(u32)) -> Entry {
        loop {
            let state = self.0.load(Ordering::Relaxed);
            if state & HELD == 0 {
                if self.take(state) {
                    return Entry::Entered;
                }
                continue;
            }
            link((state & WAITING) as u32);
            let with = state & !WAITING | u64::from(slot + 1);
            let (from, to) = (Ordering::Release, Ordering::Relaxed);
            if self.0.compare_exchange(state, with, from, to).is_ok() {
                return Entry::Waits;
            }
        }
    }

    /// Leaves it, or takes those over who wait: the last slot + 1. For who holds it, and still does then. If nothing
    /// was changed, readers need not read again.
    pub(crate) fn leave(&self, is_changed: bool) -> Option<u32> {
        loop {
            let state = self.0.load(Ordering::Relaxed);
            debug_assert!(state & HELD != 0, "only who holds a latch leaves it");
            let (waiting, free) = ((state & WAITING) as u32, state & !HELD);
            let (next, order) = match waiting {
                0 => (
                    free.wrapping_add(u64::from(is_changed) * VERSION),
                    Ordering::Release,
                ),
                _ => (state & !WAITING, Ordering::Acquire),
            };
            let left = self
                .0
                .compare_exchange(state, next, order, Ordering::Relaxed);
            if left.is_ok() {
                return (waiting > 0).then_some(waiting);
            }
        }
    }
}

impl Default for TaskLatch {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TaskLatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.load(Ordering::Relaxed);
        let held = if state & HELD != 0 { ", held" } else { "" };
        let waiting = if state & WAITING != 0 {
            ", some wait"
        } else {
            ""
        };
        write!(f, "TaskLatch(version {}{held}{waiting})", state / VERSION)
    }
}
