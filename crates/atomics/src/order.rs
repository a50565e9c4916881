//! Numbers that finish in any order and become visible in theirs.
//!
//! ```text
//!            visible
//!               │
//!  …  t5  t6   t7   t8   t9   t10          t9 has finished but waits for t8
//!  ──────────────┤  open done open
//! ```
//!
//! Whoever finishes a number writes its slot and then moves `visible` as far as slots say. Of two neighbours that
//! finish at a time, one sees the other's slot: all accesses are `SeqCst`.
//!
//! There are so many slots. A number that finishes more than these ahead of `visible` has none yet, and goes to a list
//! under a lock. Whoever moves `visible` looks afterwards whether somebody is in the list. So it does not matter for
//! correctness how many numbers are open. Who draws them sees to it that they are few.

use crate::lock::Lock;
use crate::sync::{AtomicU64, AtomicUsize, Ordering::SeqCst, write_then_read};
use crossbeam_utils::CachePadded;
use std::collections::BTreeSet;

/// Which numbers have finished.
#[derive(Debug)]
pub struct CommitOrder {
    /// All up to this one have. Moved by whoever finds that it can be.
    visible: CachePadded<AtomicU64>,
    /// Slot `t % open` holds `t` once `t` has finished. It is free for the next one once `t` is visible.
    finished: Box<[AtomicU64]>,
    /// Those that have finished and have no slot. `late_count` says how many; it is written under the lock.
    late: Lock<BTreeSet<u64>>,
    late_count: AtomicUsize,
}

impl CommitOrder {
    /// Nothing has finished; the first number is 1. `open` numbers have slots.
    pub fn new(open: u64) -> Self {
        Self::behind(0, open)
    }

    /// All up to `last` have finished, and no other.
    pub fn behind(last: u64, open: u64) -> Self {
        CommitOrder {
            visible: CachePadded::new(AtomicU64::new(last)),
            finished: (0..open).map(|_| AtomicU64::new(0)).collect(),
            late: Lock::default(),
            late_count: AtomicUsize::new(0),
        }
    }

    /// The newest number up to which all have finished.
    #[inline]
    pub fn visible(&self) -> u64 {
        self.visible.load(SeqCst)
    }

    fn slot(&self, number: u64) -> &AtomicU64 {
        &self.finished[(number % self.open()) as usize]
    }

    fn open(&self) -> u64 {
        self.finished.len() as u64
    }

    /// A number has finished. It is visible once all before it have.
    pub fn finish(&self, number: u64) {
        if number <= self.visible() + self.open() {
            self.slot(number).store(number, SeqCst);
        } else {
            let mut late = self.late.lock();
            late.insert(number);
            self.late_count.store(late.len(), SeqCst);
        }
        write_then_read();
        loop {
            let visible = self.visible();
            let following = visible + 1;
            if self.slot(following).load(SeqCst) == following {
                // A failure means that somebody else has moved it; the loop looks again from there.
                let _ = self
                    .visible
                    .compare_exchange(visible, following, SeqCst, SeqCst);
                write_then_read();
            } else if self.late_count.load(SeqCst) == 0 || !self.place_late() {
                return;
            }
        }
    }

    /// Gives those slots that can have one by now; says whether there were any.
    #[cold]
    fn place_late(&self) -> bool {
        let mut late = self.late.lock();
        let end = self.visible() + self.open();
        let mut any = false;
        while let Some(number) = late.first().copied().filter(|number| *number <= end) {
            late.remove(&number);
            self.slot(number).store(number, SeqCst);
            any = true;
        }
        self.late_count.store(late.len(), SeqCst);
        drop(late);
        write_then_read();
        any
    }
}
