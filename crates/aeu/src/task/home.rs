//! Where a resource is that one AEU alone touches.

use crate::sync::{AtomicU64, Ordering};
use eris_types::AeuId;

/// The home of a resource (*core mapping*). Only tasks that run there touch the resource, so they need no latch. It may
/// move.
///
/// ```text
/// home is A ── a task runs at A, which stores B ──▶ home is B
///    tasks that are still on their way to A are sent on to B
/// ```
/// The store releases what A has written. Whoever sends a task to B has seen it, here or by a message that came after
/// it. So the task that is run at B finds all that was done at A.
#[derive(Debug)]
pub struct Home(AtomicU64);

impl Home {
    /// At an AEU.
    pub fn new(home: AeuId) -> Self {
        Home(AtomicU64::new(u64::from(home.0)))
    }

    /// Where it is: soon, where it was.
    pub fn get(&self) -> AeuId {
        AeuId(self.0.load(Ordering::Acquire) as u16)
    }

    /// Moves it. Only for its home, between two tasks.
    pub(crate) fn set(&self, home: AeuId) {
        self.0.store(u64::from(home.0), Ordering::Release);
    }
}
