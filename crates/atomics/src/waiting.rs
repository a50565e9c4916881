//! Who waits until a number is reached.
//!
//! **Nobody is forgotten.** Whoever waits adds itself and then reads the number again. Whoever moves the number reads
//! afterwards how many wait. One of the two sees the other: all accesses are `SeqCst`. If nobody waits, that is one
//! read of a word that hardly changes, and no lock.

use crate::lock::Lock;
use crate::sync::{AtomicUsize, Ordering::SeqCst, write_then_read};
use std::task::Waker;

/// Tasks that wait until numbers are reached.
#[derive(Debug, Default)]
pub struct Waiting {
    wakers: Lock<Vec<(u64, Waker)>>,
    /// As many as are in the list. Written under its lock.
    count: AtomicUsize,
}

impl Waiting {
    /// Nobody waits.
    pub fn new() -> Self {
        Waiting::default()
    }

    /// Has a task woken once a number is reached. Several may wait for one. The caller must see afterwards that the
    /// number is not reached yet, or go on. A waker stays until then, also if its task waits by another one.
    pub fn add(&self, number: u64, waker: &Waker) {
        let mut wakers = self.wakers.lock();
        let is_known = |(waited, known): &(u64, Waker)| *waited == number && known.will_wake(waker);
        if !wakers.iter().any(is_known) {
            wakers.push((number, waker.clone()));
        }
        self.count.store(wakers.len(), SeqCst);
        drop(wakers);
        write_then_read();
    }

    /// Wakes whoever waits for a number that `reached` gives or an earlier one. Called after it has been moved.
    pub fn wake(&self, reached: impl Fn() -> u64) {
        write_then_read();
        if self.count.load(SeqCst) == 0 {
            return;
        }
        let due: Vec<(u64, Waker)> = {
            let mut wakers = self.wakers.lock();
            let reached = reached();
            let due = wakers.extract_if(.., |(number, _)| *number <= reached);
            let due = due.collect();
            self.count.store(wakers.len(), SeqCst);
            due
        };
        due.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::task::Wake;

    /// How often it was woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    #[test]
    fn all_who_wait_for_a_number_are_woken_once() {
        let waiting = Waiting::new();
        let tasks: [Arc<Woken>; 3] = Default::default();
        for (task, number) in tasks.iter().zip([7, 7, 8]) {
            // Polled twice.
            waiting.add(number, &Waker::from(Arc::clone(task)));
            waiting.add(number, &Waker::from(Arc::clone(task)));
        }
        let woken = || tasks.each_ref().map(|task| task.0.load(SeqCst));
        waiting.wake(|| 6);
        assert_eq!(woken(), [0, 0, 0]);
        waiting.wake(|| 7);
        assert_eq!(woken(), [1, 1, 0]);
        waiting.wake(|| 9);
        assert_eq!(woken(), [1, 1, 1]);
    }
}
