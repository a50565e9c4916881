//! What many show, and one at a time looks at.
//!
//! ```text
//!             a place      who shows            who looks
//!             ┌─────┐
//!             │ old │
//!             │  —  │                           takes old, and copies the reference
//!             │ new │      exchanges: — ▶ new
//!             │ old │                           puts old back, and gets new: it was shown meanwhile
//!             │ new │                           puts new back, and gets old: done
//!             └─────┘
//! ```
//!
//! A reference cannot be copied out of a place without a lock: whoever exchanges it may drop the last one meanwhile. It
//! can be exchanged as a whole. So who looks has it in hand for a moment. What he gets when he puts it back was shown
//! after it. That is what must stay.

use crate::lock::Lock;
use crate::sync::{
    AtomicBool, AtomicCell,
    Ordering::{Acquire, Relaxed, Release},
};
use crossbeam_utils::CachePadded;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Places in which something is shown.
pub struct Shown<T> {
    places: Box<[CachePadded<Place<T>>]>,
    /// One at a time looks.
    looking: Lock<()>,
}

struct Place<T> {
    /// Written by who has the place, or shows something there, and by who looks. Each exchange acquires and releases:
    /// it hands over what the reference leads to.
    shown: AtomicCell<Option<Arc<T>>>,
    /// Whether it belongs to who has taken it. What is shown there stays when he leaves. Set by who takes it (acquire)
    /// and cleared by him (release): so his exchanges come before those of the next one.
    is_taken: AtomicBool,
}

impl<T> Shown<T> {
    /// So many places, in which nothing is shown.
    pub fn new(places: usize) -> Self {
        #[cfg(not(loom))]
        const {
            assert!(AtomicCell::<Option<Arc<T>>>::is_lock_free())
        };
        let empty = || Place {
            shown: AtomicCell::new(None),
            is_taken: AtomicBool::new(false),
        };
        Shown {
            places: (0..places).map(|_| CachePadded::new(empty())).collect(),
            looking: Lock::new(()),
        }
    }

    /// Takes one of these places, modulo their number, and shows something there. The number of the place. `None`: none
    /// of them is free.
    pub fn take(&self, places: Range<usize>, shown: &Arc<T>) -> Option<usize> {
        let mut free = places
            .map(|place| place % self.places.len())
            .filter(|place| {
                let is_taken = &self.places[*place].is_taken;
                !is_taken.load(Relaxed)
                    && is_taken
                        .compare_exchange(false, true, Acquire, Relaxed)
                        .is_ok()
            });
        let place = free.next()?;
        self.show(place, Arc::clone(shown));
        Some(place)
    }

    /// Leaves a place for the next who takes one. What is shown there stays until then.
    pub fn leave(&self, place: usize) {
        self.places[place].is_taken.store(false, Release);
    }

    /// Shows something in this place, modulo their number, instead of what was shown there. Of several who do so at a
    /// time, any may be the last. What was shown there before, unless somebody looks at it at this moment.
    pub fn show(&self, place: usize, shown: Arc<T>) -> Option<Arc<T>> {
        let place = &self.places[place % self.places.len()];
        place.shown.swap(Some(shown))
    }

    /// All that is shown, in the order of the places.
    pub fn all(&self) -> Vec<Arc<T>> {
        let _alone = self.looking.lock();
        let shown = self.places.iter().filter_map(|place| place.look());
        shown.collect()
    }
}

impl<T> Place<T> {
    fn look(&self) -> Option<Arc<T>> {
        let found = self.shown.take()?;
        let mut put = Arc::clone(&found);
        // What was put back before. It is kept, so that nothing else has its address meanwhile.
        let mut before = None;
        while let Some(other) = self.shown.swap(Some(Arc::clone(&put))) {
            if before
                .as_ref()
                .is_some_and(|before| Arc::ptr_eq(before, &other))
            {
                break;
            }
            before = Some(std::mem::replace(&mut put, other));
        }
        Some(found)
    }
}

impl<T> fmt::Debug for Shown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shown({})", self.places.len())
    }
}
