//! The right to change something: shared by those who disturb nobody, as changes of single rows, or one statement's
//! alone.
//!
//! ```text
//! share   open? ── yes ─▶ one is more in it ─▶ … ─▶ one is less          no lock
//!               └─ no ──▶ waits in the queue, as one of those who share
//! alone   waits in the queue ─▶ closes ─▶ waits for those who are in it ─▶ … ─▶ opens
//! ```
//!
//! The queue is served in the order in which they came. Whoever is first in it and wants to be alone closes, so that
//! nobody passes it by. The queue has a mutex inside, which counts as a lock; those who find it open do not come near
//! it.

use crate::Sharers;
use crate::lock::count;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// The right to change something.
#[derive(Debug, Default)]
pub struct WriteLock {
    sharers: Sharers,
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
    lock: Arc<WriteLock>,
    #[expect(dead_code, reason = "held until it is dropped")]
    queued: OwnedRwLockWriteGuard<()>,
}

impl WriteLock {
    /// A share of the right, if nobody has it alone.
    pub fn try_share(self: &Arc<Self>) -> Option<SharedWrite> {
        self.sharers.try_enter().then(|| SharedWrite {
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
        let queued = Arc::clone(&self.queue).write_owned().await;
        self.sharers.close();
        // Made before it waits: whoever gives up opens it again.
        let alone = ExclusiveWrite {
            lock: Arc::clone(self),
            queued,
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

impl Drop for ExclusiveWrite {
    fn drop(&mut self) {
        // Before the next in the queue has its turn.
        self.lock.sharers.open();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

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
