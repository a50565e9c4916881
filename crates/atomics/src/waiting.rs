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

    /// Has a task woken once a number is reached. One task waits for a number; a second waker replaces the first. The
    /// caller must see afterwards that the number is not reached yet, or go on.
    pub fn add(&self, number: u64, waker: &Waker) {
        let mut wakers = self.wakers.lock();
        match wakers.iter_mut().find(|(waited, _)| *waited == number) {
            Some((_, known)) => known.clone_from(waker),
            None => wakers.push((number, waker.clone())),
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
