//! Snapshots that readers hold: each in a slot of its own, gathered by whoever asks for the horizon.
//!
//! ```text
//! slots    ┌────┬────┬────┬────┐
//!          │ t7 │  ─ │ t5 │  ─ │ …           one cache line each; a reader writes its own, and nobody else's
//!          └────┴────┴────┴────┘
//! floor    t8                              raised first by whoever gathers: nobody takes an older snapshot from now on
//! horizon  t5                              the oldest of all slots and of the floor; never goes back
//! ```
//!
//! **No snapshot is missed.** A reader writes its slot and then reads the floor. Whoever gathers raises the floor and
//! then reads the slots. Of the two reads, one comes after both writes. Either the slot is seen, or the reader sees a
//! floor above its snapshot and takes a newer one. All four accesses are `SeqCst`, for each side writes one word and
//! reads another.
//!
//! | field | written by | read by |
//! |---|---|---|
//! | a slot | whoever takes it, by an exchange; then its reader alone | whoever gathers |
//! | `reach` | readers, before they take a slot that was never used | whoever gathers: slots behind it are empty |
//! | `floor`, `horizon` | whoever gathers, upwards only | readers; owners |
//! | `beyond` | readers that find no slot, under its lock | whoever gathers, if `beyond_count` is not 0 |

use crate::lock::Lock;
use crate::place;
use crate::sync::{AtomicU64, AtomicUsize, Ordering::SeqCst, write_then_read};
use crossbeam_utils::CachePadded;
use std::collections::BTreeMap;

/// No snapshot is this one.
const EMPTY: u64 = u64::MAX;

/// Snapshots that readers hold.
#[derive(Debug)]
pub struct Snapshots {
    slots: Box<[CachePadded<AtomicU64>]>,
    reach: CachePadded<AtomicUsize>,
    floor: CachePadded<AtomicU64>,
    horizon: CachePadded<AtomicU64>,
    /// How many readers hold each snapshot, of those that have no slot.
    beyond: Lock<BTreeMap<u64, usize>>,
    beyond_count: AtomicUsize,
}

/// A snapshot that is held, to be given up by [`Snapshots::release`].
#[derive(Debug)]
#[must_use = "a snapshot that is not released is held for ever"]
pub struct Hold {
    at: u64,
    since: u64,
    /// `None`: it is among those beyond the slots.
    slot: Option<usize>,
}

impl Hold {
    /// The snapshot.
    pub fn at(&self) -> u64 {
        self.at
    }
}

impl Snapshots {
    /// Room for so many readers that take no lock.
    pub fn new(slots: usize) -> Self {
        Snapshots {
            slots: (0..slots)
                .map(|_| CachePadded::new(AtomicU64::new(EMPTY)))
                .collect(),
            reach: CachePadded::new(AtomicUsize::new(0)),
            floor: CachePadded::new(AtomicU64::new(0)),
            horizon: CachePadded::new(AtomicU64::new(0)),
            beyond: Lock::default(),
            beyond_count: AtomicUsize::new(0),
        }
    }

    /// Holds the newest snapshot, which `newest` reads. It only grows.
    pub fn hold(&self, newest: impl Fn() -> u64) -> Hold {
        let first = place::number();
        for slot in (first..first + self.slots.len()).map(|slot| slot % self.slots.len()) {
            if self.slots[slot].load(SeqCst) != EMPTY {
                continue;
            }
            if self.reach.load(SeqCst) <= slot {
                self.reach.fetch_max(slot + 1, SeqCst);
            }
            let since = newest();
            if self.slots[slot]
                .compare_exchange(EMPTY, since, SeqCst, SeqCst)
                .is_ok()
            {
                write_then_read();
                let mut at = since;
                while self.floor.load(SeqCst) > at {
                    at = newest();
                    self.slots[slot].store(at, SeqCst);
                    write_then_read();
                }
                let slot = Some(slot);
                return Hold { at, since, slot };
            }
        }
        self.hold_beyond(newest)
    }

    #[cold]
    fn hold_beyond(&self, newest: impl Fn() -> u64) -> Hold {
        let mut beyond = self.beyond.lock();
        self.beyond_count.fetch_add(1, SeqCst);
        write_then_read();
        // Whoever has raised the floor since waits for the lock, and finds it here. Whoever has done so before has
        // raised it to no more than what is the newest now.
        let at = newest();
        *beyond.entry(at).or_default() += 1;
        let (since, slot) = (at, None);
        Hold { at, since, slot }
    }

    /// Gives a snapshot up. Returns the oldest one by which the reader may have held the horizon back.
    pub fn release(&self, hold: Hold) -> u64 {
        match hold.slot {
            Some(slot) => self.slots[slot].store(EMPTY, SeqCst),
            None => {
                let mut beyond = self.beyond.lock();
                if let Some(readers) = beyond.get_mut(&hold.at) {
                    *readers -= 1;
                    if *readers == 0 {
                        beyond.remove(&hold.at);
                    }
                }
                self.beyond_count.fetch_sub(1, SeqCst);
            }
        }
        // Its caller asks next whether anybody has waited for that.
        write_then_read();
        hold.since
    }

    /// Moves the horizon as far as it can be; returns it.
    pub fn gather(&self, newest: impl Fn() -> u64) -> u64 {
        let newest = newest();
        self.floor.fetch_max(newest, SeqCst);
        write_then_read();
        let reach = self.reach.load(SeqCst).min(self.slots.len());
        let slots = self.slots[..reach].iter().map(|slot| slot.load(SeqCst));
        let mut oldest = slots.min().unwrap_or(EMPTY).min(newest);
        if self.beyond_count.load(SeqCst) > 0 {
            let beyond = self.beyond.lock();
            oldest = oldest.min(beyond.keys().next().copied().unwrap_or(EMPTY));
        }
        oldest.max(self.horizon.fetch_max(oldest, SeqCst))
    }

    /// How many slots were ever used: so many are looked at when somebody gathers.
    pub fn reach(&self) -> usize {
        self.reach.load(SeqCst)
    }

    /// The horizon, as it was when it was moved last.
    pub fn horizon(&self) -> u64 {
        self.horizon.load(SeqCst)
    }

    /// What was the newest when it was moved last.
    pub fn gathered(&self) -> u64 {
        self.floor.load(SeqCst)
    }
}
