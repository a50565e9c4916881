//! How an endpoint that sleeps hears of a delivery.

use crate::sync::{AtomicBool, Mutex, Ordering, fence};
use std::task::Waker;

/// Rung after every delivery, and when room appears for somebody who was rejected.
///
/// The sleeper first announces that it sleeps, then passes a `SeqCst` fence, then looks at its inbox a last time. So
/// an implementation of `ring` must pass a `SeqCst` fence *before* it looks whether the endpoint sleeps: of the two
/// sides at least one then sees the other, and no wake-up is lost. It is called on the data path: when nobody sleeps
/// it must cost a fence and a load.
pub trait Bell: Send + Sync + 'static {
    /// Wakes the endpoint if it sleeps.
    fn ring(&self);
}

/// The bell of a session: holds the waker of whatever waits for a reply, a future or a thread.
///
/// | field | written by | read by | ordering, and why |
/// |---|---|---|---|
/// | `asleep` | owner sets, ringer clears | ringer | relaxed between two `SeqCst` fences (see [`Bell`]) |
/// | `waker` | owner | the ringer that cleared `asleep` | under the mutex; touched only beside a real sleep |
pub(crate) struct WakerBell {
    asleep: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl WakerBell {
    pub(crate) fn new() -> Self {
        WakerBell {
            asleep: AtomicBool::new(false),
            waker: Mutex::new(None),
        }
    }

    /// Announces that the owner sleeps. It must look at its inbox once more before it does.
    pub(crate) fn arm(&self, waker: &Waker) {
        *self
            .waker
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(waker.clone());
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// The owner is up again.
    pub(crate) fn disarm(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }
}

impl Bell for WakerBell {
    fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::AcqRel) {
            let waker = self
                .waker
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner())
                .take();
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}
