//! Commit order: timestamps are drawn here and become visible in order.
//!
//! ```text
//!            visible            next
//!               │                │
//!  …  t5  t6   t7   t8   t9   t10 ▼        t7 is the newest snapshot; t9 has finished but waits for t8
//!  ──────────────┤  open done open
//! ```
//!
//! A writer draws a timestamp once all its rows are written, has them stamped by their owners, and then finishes it.
//! Readers take [`Sequencer::visible`] as their snapshot, so whoever sees a write sees every earlier one. While they
//! read they hold their snapshot. The *horizon* stays at or before the oldest that is held. Nobody can see what was
//! deleted before the horizon.
//!
//! Why a timestamp is drawn so late: docs/decisions/0003.

use crate::lock::Lock;
use eris_types::Timestamp;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::task::{Context, Poll, Waker};

/// How many timestamps may be open at a time.
const OPEN: u64 = 4096;

/// Draws timestamps and publishes them in order.
#[derive(Debug)]
pub(crate) struct Sequencer {
    /// The next timestamp to be drawn. Written by every writer through compare-and-swap.
    next: AtomicU64,
    /// The newest timestamp up to which all have finished. Advanced by whoever finds that it can be.
    visible: AtomicU64,
    /// Slot `t % OPEN` holds `t` once `t` has finished. Storing a slot and then reading its neighbour, by two writers
    /// at a time, must not let both miss the other's store: hence sequential consistency throughout.
    finished: Box<[AtomicU64]>,
    /// Writers that wait until their timestamp is visible.
    waiting: Lock<Vec<(Timestamp, Waker)>>,
    /// How many readers hold each snapshot. Locked twice per statement.
    held: Lock<BTreeMap<Timestamp, usize>>,
    /// No snapshot is older, held or yet to be taken. Written under the lock of `held`, read by owners without it: an
    /// old value only keeps garbage longer.
    horizon: AtomicU64,
}

impl Sequencer {
    pub fn new() -> Self {
        Sequencer {
            next: AtomicU64::new(1),
            visible: AtomicU64::new(0),
            finished: (0..OPEN).map(|_| AtomicU64::new(0)).collect(),
            waiting: Lock::default(),
            held: Lock::default(),
            horizon: AtomicU64::new(0),
        }
    }

    /// The newest snapshot.
    pub fn visible(&self) -> Timestamp {
        Timestamp(self.visible.load(SeqCst))
    }

    /// The newest snapshot, which stays readable until it is released as often as it was held.
    pub fn hold(&self) -> Timestamp {
        let mut held = self.held.lock();
        // Under the lock, so that no horizon gets beyond it in between.
        let snapshot = self.visible();
        *held.entry(snapshot).or_default() += 1;
        snapshot
    }

    /// Gives a snapshot up that was held; returns the horizon.
    pub fn release(&self, snapshot: Timestamp) -> Timestamp {
        let mut held = self.held.lock();
        if let Some(readers) = held.get_mut(&snapshot) {
            *readers -= 1;
            if *readers == 0 {
                held.remove(&snapshot);
            }
        }
        self.move_horizon(&held)
    }

    /// Moves the horizon as far as it can be; returns it.
    pub fn advance_horizon(&self) -> Timestamp {
        let held = self.held.lock();
        self.move_horizon(&held)
    }

    fn move_horizon(&self, held: &BTreeMap<Timestamp, usize>) -> Timestamp {
        let visible = self.visible();
        let oldest = held.keys().next().copied().unwrap_or(visible);
        self.horizon.store(oldest.0, SeqCst);
        oldest
    }

    /// Up to where nobody needs to tell commits apart.
    pub fn horizon(&self) -> Timestamp {
        Timestamp(self.horizon.load(SeqCst))
    }

    /// Draws a timestamp, which must be finished by all means; `None` while too many are open.
    pub fn draw(&self) -> Option<Timestamp> {
        let drawn = self.next.fetch_update(SeqCst, SeqCst, |next| {
            // If others have drawn and finished since `next` was read, `visible` is beyond it, and the exchange fails.
            let open = next.saturating_sub(self.visible.load(SeqCst));
            (open <= OPEN).then_some(next + 1)
        });
        drawn.ok().map(Timestamp)
    }

    /// Like [`draw`](Self::draw), and wakes the task again while too many are open.
    pub fn poll_draw(&self, cx: &mut Context<'_>) -> Poll<Timestamp> {
        match self.draw() {
            Some(at) => Poll::Ready(at),
            None => {
                // Thousands of statements are committing; each takes microseconds.
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// Says that the writes of `drawn` are complete (or given up) everywhere.
    pub fn finish(&self, drawn: Timestamp) {
        self.finished[(drawn.0 % OPEN) as usize].store(drawn.0, SeqCst);
        loop {
            let visible = self.visible.load(SeqCst);
            let following = visible + 1;
            if self.finished[(following % OPEN) as usize].load(SeqCst) != following {
                break;
            }
            // A failure means that somebody else advanced it; the loop looks again from there.
            let _ = self
                .visible
                .compare_exchange(visible, following, SeqCst, SeqCst);
        }
        let visible = self.visible();
        let mut waiting = self.waiting.lock();
        waiting.retain(|(timestamp, waker)| {
            let wait = *timestamp > visible;
            if !wait {
                waker.wake_by_ref();
            }
            wait
        });
    }

    /// Whether `timestamp` is visible; if not, `waker` is woken once it is. One waits for a timestamp: who has drawn
    /// it.
    pub fn poll_visible(&self, timestamp: Timestamp, waker: &Waker) -> bool {
        if timestamp <= self.visible() {
            return true;
        }
        let mut waiting = self.waiting.lock();
        match waiting.iter_mut().find(|(waited, _)| *waited == timestamp) {
            Some((_, known)) => known.clone_from(waker),
            None => waiting.push((timestamp, waker.clone())),
        }
        // It may have become visible before the waker was in the list.
        timestamp <= self.visible()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_become_visible_in_order() {
        let sequencer = Sequencer::new();
        let drawn: Vec<Timestamp> = (0..3).map(|_| sequencer.draw().unwrap()).collect();
        assert_eq!(sequencer.visible(), Timestamp::ZERO);
        sequencer.finish(drawn[1]);
        assert_eq!(sequencer.visible(), Timestamp::ZERO);
        sequencer.finish(drawn[0]);
        assert_eq!(sequencer.visible(), drawn[1]);
        sequencer.finish(drawn[2]);
        assert_eq!(sequencer.visible(), drawn[2]);
    }

    #[test]
    fn the_horizon_waits_for_the_oldest_reader() {
        let sequencer = Sequencer::new();
        let commit = || sequencer.finish(sequencer.draw().unwrap());
        commit();
        let old = sequencer.hold();
        commit();
        let new = sequencer.hold();
        assert_eq!(sequencer.hold(), new);
        commit();
        assert_eq!(sequencer.advance_horizon(), old);
        assert_eq!(sequencer.release(new), old);
        assert_eq!(sequencer.release(old), new);
        assert_eq!(sequencer.release(new), Timestamp(3));
        assert_eq!(sequencer.horizon(), Timestamp(3));
    }

    #[test]
    fn only_so_many_timestamps_are_open() {
        let sequencer = Sequencer::new();
        let drawn: Vec<_> = (0..OPEN).map(|_| sequencer.draw().unwrap()).collect();
        assert_eq!(sequencer.draw(), None);
        sequencer.finish(drawn[0]);
        assert!(sequencer.draw().is_some());
    }

    #[test]
    fn threads_that_finish_at_a_time_leave_none_behind() {
        let sequencer = Sequencer::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        // A thread that is interrupted between the two holds all others back, thousands of draws later.
                        let drawn = loop {
                            match sequencer.draw() {
                                Some(drawn) => break drawn,
                                None => std::thread::yield_now(),
                            }
                        };
                        sequencer.finish(drawn);
                    }
                });
            }
        });
        assert_eq!(sequencer.visible(), Timestamp(80_000));
    }
}
