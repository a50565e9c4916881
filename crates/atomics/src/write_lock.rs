//! The right to change something: shared by those who do not disturb each other, or one's alone.
//!
//! ```text
//! share   open? ── yes ─▶ one is more in it ─▶ … ─▶ one is less          no lock
//!               └─ no ──▶ waits in the queue, as one of those who share
//! alone   says so ─▶ waits in the queue ─▶ closes ─▶ waits for those who are in it ─▶ … ─▶ opens
//! ```
//!
//! The queue is served in the order in which they came. As soon as somebody waits who wants to be alone, those who
//! share go through the queue, too: so nobody passes him by. The queue has a mutex inside, which counts as a lock.
//! Those who find it open do not come near it.

use crate::Sharers;
use crate::lock::count;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// The right to change something.
#[derive(Debug, Default)]
pub struct WriteLock {
    sharers: Sharers,
    /// How many want to be alone, or are. Written by them; read by who shares. Relaxed: who reads too late comes in
    /// before them, and they wait for him as for all who are in it.
    alone: AtomicU64,
    queue: Arc<RwLock<()>>,
}

/// A share of the right, until it is dropped.
#[derive(Debug)]
pub struct SharedWrite {
    lock: Arc<WriteLock>,
    /// Of who came through the queue.
    queued: Option<OwnedRwLockReadGuard<()>>,
}

/// The right of one alone, until it is dropped.
#[derive(Debug)]
pub struct ExclusiveWrite {
    // Dropped in this order: it is open before the next in the queue has its turn.
    _closed: Closed,
    _queued: OwnedRwLockWriteGuard<()>,
    _announced: Announced,
}

/// That somebody wants to be alone.
#[derive(Debug)]
struct Announced(Arc<WriteLock>);

/// That nobody comes in.
#[derive(Debug)]
struct Closed(Arc<WriteLock>);

impl WriteLock {
    /// A share of the right, if nobody has it alone.
    pub fn try_share(self: &Arc<Self>) -> Option<SharedWrite> {
        let is_free = self.alone.load(Relaxed) == 0 && self.sharers.try_enter();
        is_free.then(|| SharedWrite {
            lock: Arc::clone(self),
            queued: None,
        })
    }

    /// Waits for a share of the right.
    pub async fn share(self: &Arc<Self>) -> SharedWrite {
        if let Some(shared) = self.try_share() {
            return shared;
        }
        count();
        SharedWrite {
            queued: Some(Arc::clone(&self.queue).read_owned().await),
            lock: Arc::clone(self),
        }
    }

    /// Waits for the right alone.
    pub async fn alone(self: &Arc<Self>) -> ExclusiveWrite {
        count();
        // Whoever gives up while he waits takes back what he has said, and opens it again.
        self.alone.fetch_add(1, Relaxed);
        let announced = Announced(Arc::clone(self));
        let queued = Arc::clone(&self.queue).write_owned().await;
        self.sharers.close();
        let alone = ExclusiveWrite {
            _closed: Closed(Arc::clone(self)),
            _queued: queued,
            _announced: announced,
        };
        poll_fn(|cx| match self.sharers.poll_empty(cx.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
        alone
    }
}

impl Drop for SharedWrite {
    fn drop(&mut self) {
        if self.queued.is_none() {
            self.lock.sharers.leave();
        }
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        self.0.alone.fetch_sub(1, Relaxed);
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.0.sharers.open();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn nobody_passes_by_one_who_waits_in_the_queue() {
        let lock = Arc::new(WriteLock::default());
        let first = lock.alone().now_or_never().unwrap();
        let mut shares = Box::pin(lock.share());
        assert!(shares.as_mut().now_or_never().is_none());
        let mut second = Box::pin(lock.alone());
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        let shared = shares.now_or_never().unwrap();
        assert!(lock.try_share().is_none(), "it came later than the second");
        drop(shared);
        assert!(second.now_or_never().is_some());
        assert!(lock.try_share().is_some());
    }

    #[test]
    fn one_alone_waits_for_those_who_share_and_lets_none_pass() {
        let lock = Arc::new(WriteLock::default());
        let first = lock.try_share().unwrap();
        let mut alone = Box::pin(lock.alone());
        assert!(alone.as_mut().now_or_never().is_none());
        assert!(lock.try_share().is_none(), "closed");
        let mut second = Box::pin(lock.share());
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        let alone = alone.now_or_never().unwrap();
        assert!(second.as_mut().now_or_never().is_none());
        drop(alone);
        let second = second.now_or_never().unwrap();
        let third = lock.try_share().unwrap();
        let mut given_up = Box::pin(lock.alone());
        drop(second);
        assert!(given_up.as_mut().now_or_never().is_none());
        assert!(lock.try_share().is_none(), "closed");
        drop(given_up);
        drop(lock.try_share().expect("open again"));
        drop(third);
        assert!(lock.alone().now_or_never().is_some());
    }
}
