//! Who shares something, until somebody closes it and waits for them to leave.
//!
//! One word has both: whether it is closed, and how many are in it. So who enters sees that it is closed, or is seen.
//! The last one to leave after that reads whether anybody waits; see [`Waiting`].

use crate::sync::{AtomicU64, Ordering::SeqCst};
use crate::waiting::Waiting;
use std::task::Waker;

const CLOSED: u64 = 1 << 63;

/// How many share something.
#[derive(Debug, Default)]
pub struct Sharers {
    state: AtomicU64,
    waiting: Waiting,
}

impl Sharers {
    /// Nobody does; it is open.
    pub fn new() -> Self {
        Sharers::default()
    }

    /// Enters, unless it is closed; whether this was so.
    #[inline]
    pub fn try_enter(&self) -> bool {
        let entered = self.state.fetch_update(SeqCst, SeqCst, |state| {
            (state & CLOSED == 0).then_some(state + 1)
        });
        entered.is_ok()
    }

    /// Leaves; who has entered must do so once.
    #[inline]
    pub fn leave(&self) {
        if self.state.fetch_sub(1, SeqCst) == CLOSED | 1 {
            self.waiting.wake(|| u64::MAX);
        }
    }

    /// Closes it. One at a time may do so, until it opens it again.
    pub fn close(&self) {
        self.state.fetch_or(CLOSED, SeqCst);
    }

    /// Opens it.
    pub fn open(&self) {
        self.state.fetch_and(!CLOSED, SeqCst);
    }

    /// Whether all have left since it was closed; if not, `waker` is woken once they have.
    pub fn poll_empty(&self, waker: &Waker) -> bool {
        let is_empty = || self.state.load(SeqCst) == CLOSED;
        is_empty() || {
            self.waiting.add(0, waker);
            is_empty()
        }
    }
}
