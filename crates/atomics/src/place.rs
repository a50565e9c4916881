//! Where a thread looks first, so that threads do not meet in one cache line.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The next thread's number. Relaxed: the numbers only have to be different.
static NEXT: AtomicUsize = AtomicUsize::new(0);

const NONE: usize = usize::MAX;

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(NONE) };
}

/// This thread's number: dense from zero, in the order in which threads have asked first.
#[inline]
pub(crate) fn number() -> usize {
    let number = NUMBER.get();
    if number != NONE {
        return number;
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    NUMBER.set(number);
    number
}
