//! Thread-local caches of small slots, so that a small buffer mostly takes no lock.
//!
//! Each thread has a stack of slots per manager and class. An empty stack is filled with a batch, a full one gives its
//! older half back, and the end of the thread gives all back. At most 16 KiB per class are kept, 384 KiB per thread and
//! node. A slot lands in the cache of the thread that drops it, whoever had allocated it.

use crate::classes::{CLASSES, Class};
use crate::node::NodeState;
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};

/// Bytes of one class that one thread keeps at most.
const KEPT: usize = 16 << 10;
/// Bytes that are fetched at once, if they are more than one slot.
const BATCH: usize = 4 << 10;

thread_local! {
    static CACHES: RefCell<Vec<Cache>> = const { RefCell::new(Vec::new()) };
}

/// What one thread keeps of one manager.
struct Cache {
    id: u64,
    owner: Weak<NodeState>,
    slots: [Vec<NonNull<u8>>; CLASSES],
}

/// A slot of any content.
pub(crate) fn take(state: &Arc<NodeState>, class: Class) -> Result<NonNull<u8>, i32> {
    let cached = with(state, |cache| {
        let slots = &mut cache.slots[class.index()];
        if slots.is_empty() {
            *slots = state.take_slots(class, (BATCH / class.bytes()).max(1))?;
        }
        Ok(slots.pop().expect("filled above"))
    });
    // A thread that is ending has no cache any more.
    cached.unwrap_or_else(|| state.take_slots(class, 1).map(|slots| slots[0]))
}

/// Gives a slot back.
pub(crate) fn give(state: &Arc<NodeState>, class: Class, slot: NonNull<u8>) {
    let cached = with(state, |cache| {
        let slots = &mut cache.slots[class.index()];
        slots.push(slot);
        if slots.len() * class.bytes() > KEPT {
            let half = slots.len() / 2;
            state.give_slots(slots.drain(..half));
        }
    });
    if cached.is_none() {
        state.give_slots(std::iter::once(slot));
    }
}

/// Gives back what the calling thread keeps of this manager.
pub(crate) fn flush(state: &Arc<NodeState>) {
    with(state, |cache| cache.give_all(state));
}

fn with<R>(state: &Arc<NodeState>, work: impl FnOnce(&mut Cache) -> R) -> Option<R> {
    let access = |caches: &RefCell<Vec<Cache>>| {
        let mut caches = caches.borrow_mut();
        let at = caches
            .iter()
            .position(|cache| cache.id == state.id)
            .unwrap_or_else(|| {
                // Forget managers that are gone whenever another one comes.
                caches.retain(|cache| cache.owner.strong_count() > 0);
                caches.push(Cache {
                    id: state.id,
                    owner: Arc::downgrade(state),
                    slots: [const { Vec::new() }; CLASSES],
                });
                caches.len() - 1
            });
        work(&mut caches[at])
    };
    CACHES.try_with(access).ok()
}

impl Cache {
    fn give_all(&mut self, state: &NodeState) {
        for class in Class::all() {
            state.give_slots(self.slots[class.index()].drain(..));
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        if let Some(state) = self.owner.upgrade() {
            self.give_all(&state);
        }
    }
}
