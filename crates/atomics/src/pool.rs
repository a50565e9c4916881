//! What is kept for the next who needs one.
//!
//! Each thread begins at a slot of its own, so that what it gives back it mostly takes again, and no cache line is
//! shared. A slot is exchanged as a whole: whatever lay in it goes on to the next one.

use crate::place;
use crossbeam_utils::CachePadded;
use crossbeam_utils::atomic::AtomicCell;
use std::fmt;

/// Things that are kept, up to a number of them.
pub struct Pool<T> {
    slots: Box<[Slot<T>]>,
}

type Slot<T> = CachePadded<AtomicCell<Option<Box<T>>>>;

impl<T> Pool<T> {
    /// Room for so many.
    pub fn new(room: usize) -> Self {
        const { assert!(AtomicCell::<Option<Box<T>>>::is_lock_free()) };
        Pool {
            slots: (0..room).map(|_| CachePadded::default()).collect(),
        }
    }

    fn slots(&self) -> impl Iterator<Item = &Slot<T>> {
        let (before, from) = self
            .slots
            .split_at(place::number() % self.slots.len().max(1));
        from.iter().chain(before)
    }

    /// Takes one out, if there is one.
    pub fn take(&self) -> Option<Box<T>> {
        self.slots().find_map(|slot| slot.take())
    }

    /// Keeps one, or drops one if there is no room.
    pub fn put(&self, one: Box<T>) {
        let mut one = Some(one);
        for slot in self.slots() {
            one = slot.swap(one);
            if one.is_none() {
                return;
            }
        }
    }
}

impl<T> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({})", self.slots.len())
    }
}
