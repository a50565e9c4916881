//! Wakes a thread that waits for work.
//!
//! ```text
//! somebody   work is there ─ ring: is it rung? ── no ─▶ rung, unpark
//!                                              └─ yes ─▶ nothing: it will look
//! thread     wait: rung? ── no ─▶ park          it is quiet again ─ look for work ─ …
//! ```
//!
//! Who rings has said before what there is, and who has waited looks afterwards. So nothing is missed: either the ring
//! comes behind the last look, or the look finds it. While the thread works, all but the first ring cost one read.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, Thread};
use std::time::Duration;

/// A bell that a thread waits for.
#[derive(Debug, Default)]
pub(crate) struct Doorbell {
    is_rung: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Doorbell {
    /// There is work.
    pub fn ring(&self) {
        if !self.is_rung.load(SeqCst)
            && !self.is_rung.swap(true, SeqCst)
            && let Some(thread) = self.thread.get()
        {
            thread.unpark();
        }
    }

    /// Waits until somebody rings, so long at most. One thread waits, always the same.
    pub fn wait(&self, most: Option<Duration>) {
        self.thread.get_or_init(thread::current);
        if !self.is_rung.swap(false, SeqCst) {
            match most {
                Some(most) => thread::park_timeout(most),
                None => thread::park(),
            }
            // A ring in between is work that is looked for now.
            self.is_rung.store(false, SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn no_ring_is_missed() {
        let (bell, work, seen) = (Doorbell::default(), AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                while seen.load(SeqCst) < 20_000 {
                    bell.wait(None);
                    seen.store(work.load(SeqCst), SeqCst);
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        work.fetch_add(1, SeqCst);
                        bell.ring();
                    }
                });
            }
        });
        assert_eq!(seen.load(SeqCst), 20_000);
    }
}
