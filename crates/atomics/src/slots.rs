//! Slots in which threads ask, and the right to serve them.
//!
//! ```text
//!          asks            serves            takes
//!  IDLE ─────────▶ request ───────▶ answer ─────────▶ IDLE         a slot belongs to who asks until it is idle again
//! ```
//!
//! A slot is one word with a cache line of its own. So a request costs two transfers of a line, to whoever serves and
//! back, and the word that is asked for does not move at all.
//!
//! A thread that loses its core while it serves keeps all others waiting, as it would with a lock. A number that was
//! counted cannot be given back, or there would be a gap. So these ways are for threads with cores of their own.
//!
//! | field | written by | read by | ordering |
//! |---|---|---|---|
//! | a slot | who asks, then who serves, in turns | the other | release, acquire: it hands over what came before |
//! | `reach` | who asks first in a slot | who serves, up to there | relaxed reads: what is missed is served later |
//! | `is_serving` | who takes the right to serve | the next who does | acquire, release |

use crate::place;
use crate::sync::{
    AtomicBool, AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use crossbeam_utils::CachePadded;

/// Nobody asks.
pub(crate) const IDLE: u64 = 0;

/// So many slots are side by side at most: one bit each in a word.
const MOST: usize = 64;

/// The slots of one server.
#[derive(Debug)]
pub(crate) struct Slots {
    slots: Box<[CachePadded<AtomicU64>]>,
    reach: CachePadded<AtomicUsize>,
    is_serving: CachePadded<AtomicBool>,
}

/// The right to serve, until it is dropped.
pub(crate) struct Serving<'a>(&'a Slots);

impl Slots {
    /// Room for so many requests at a time.
    pub fn new(slots: usize) -> Self {
        Slots {
            slots: (0..slots.min(MOST))
                .map(|_| CachePadded::default())
                .collect(),
            reach: CachePadded::default(),
            is_serving: CachePadded::new(AtomicBool::new(false)),
        }
    }

    /// Asks, in a slot that is idle; its number. `None`: there is none.
    pub fn ask(&self, request: u64) -> Option<usize> {
        let first = place::number();
        let all = (first..first + self.slots.len()).map(|slot| slot % self.slots.len());
        for slot in all {
            let is_idle = self.slots[slot].load(Relaxed) == IDLE;
            if is_idle
                && self.slots[slot]
                    .compare_exchange(IDLE, request, AcqRel, Relaxed)
                    .is_ok()
            {
                if self.reach.load(Relaxed) <= slot {
                    self.reach.fetch_max(slot + 1, AcqRel);
                }
                return Some(slot);
            }
        }
        None
    }

    /// What a slot has now.
    #[inline]
    pub fn read(&self, slot: usize) -> u64 {
        self.slots[slot].load(Acquire)
    }

    /// Hands a slot over to the other side.
    #[inline]
    pub fn write(&self, slot: usize, value: u64) {
        self.slots[slot].store(value, Release);
    }

    /// The right to serve, unless somebody else has it.
    #[inline]
    pub fn try_serve(&self) -> Option<Serving<'_>> {
        set(&self.is_serving).then(|| Serving(self))
    }
}

/// Sets a word that is not set; whether it was not. Who finds it set does not write: that would take its line from who
/// clears it.
#[inline]
pub(crate) fn set(word: &AtomicBool) -> bool {
    !word.load(Relaxed) && word.compare_exchange(false, true, Acquire, Relaxed).is_ok()
}

impl Serving<'_> {
    /// The numbers of slots that were ever used.
    #[inline]
    pub fn slots(&self) -> std::ops::Range<usize> {
        0..self.0.reach.load(Relaxed)
    }
}

impl Drop for Serving<'_> {
    fn drop(&mut self) {
        self.0.is_serving.store(false, Release);
    }
}
