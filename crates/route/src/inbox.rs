//! The incoming buffers of one endpoint: written by every sender, read by one owner, without a latch.
//!
//! After Section 3.2 of the ERIS paper (which adapts LLAMA's multi-buffer). Two buffers of equal size; one is
//! writable, the other is being processed. Each has a 64-bit descriptor:
//!
//! ```text
//!   63      62 .................. 31   30 .................. 0
//!  ┌───────┬───────────────────────┬─────────────────────────┐
//!  │active │ offset in words (32)  │ writers at work (31)    │
//!  └───────┴───────────────────────┴─────────────────────────┘
//! ```
//!
//! A sender reserves room by one CAS that adds its words to the offset and one to the writers, copies, and takes one
//! from the writers. The owner swaps by activating the empty buffer, pointing the door at it and deactivating the full
//! one. The paper's owner then "holds on" until the writers have finished; ours does other work and looks again.
//!
//! ```text
//!                   owner: swap            last writer leaves          owner: receive again
//!  [active, n, w] ───────────────► [–, n, w] ───────────► [–, n, 0] ─────────────────────► [–, 0, 0]
//!        ▲   senders add n, w        draining                readable                         empty │
//!        └───────────────────────────────────── owner: swap ───────────────────────────────────────┘
//! ```
//!
//! # Access protocol
//!
//! | field | written by | read by | ordering, and why |
//! |---|---|---|---|
//! | `door.state` | owner | senders | owner's store is release, senders' load acquire: who sees a buffer named sees it
//! activated. It is only a hint where to write; the descriptor decides |
//! | `door.admit` | owner | senders | relaxed: a late look costs the owner a few more commands to put off |
//! | `door.starving` | rejected senders set, owner clears | owner | relaxed between `SeqCst` fences: the sender sets,
//! fences, tries again; the owner swaps, fences, looks. One of them sees the other |
//! | `descriptor`, active → inactive | owner, `fetch_and` acq-rel | senders | release: a sender that finds the buffer
//! inactive (acquire) also finds the door moved, so it does not wait for the owner |
//! | `descriptor`, inactive → active | owner, release store | senders | the CAS of a sender acquires: the owner's reads
//! of the old words happen before the sender's writes |
//! | `descriptor`, reserve | senders, CAS acquire | senders, owner | an RMW, so it continues the release sequences of
//! writers before it |
//! | `descriptor`, commit | senders, `fetch_sub` release | owner, load acquire | the owner that reads "no writers" sees
//! the words of every writer |
//! | `words[a..b]` | the sender that reserved `a..b` | owner, once inactive and without writers | by the two lines
//! above |
//! | `pointers` | senders, before commit | owner, after "no writers" | relaxed: ordered by the commit |
//!
//! Why a stalled CAS is harmless: a sender may read a descriptor, sleep through two swaps, and succeed because the
//! bits are equal again. The bits say "active", so the buffer is the writable one, and the room it takes is free.
//!
//! # Sessions come and go
//!
//! A session's slot is reused by later sessions, with the same two buffers. The door carries the generation; a sender
//! checks it *after* its reservation. Opening stores the door before it activates a buffer, so a reservation in a
//! successor's buffer is always found out: the sender then leaves the room void and reports [`Rejected::Dead`].
//! While its reservation lasts, the session cannot close, so the answer cannot change under it.

use crate::doorbell::Bell;
use crate::sync::{AtomicBool, AtomicU8, AtomicU64, Ordering, Words, fence, spin_loop, yield_now};
use crate::wire;
use crate::{Endpoint, Rank};
use crossbeam_utils::CachePadded;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

const ACTIVE: u64 = 1 << 63;
const OFFSET_SHIFT: u32 = 31;
const WRITERS: u64 = (1 << OFFSET_SHIFT) - 1;

const fn offset(descriptor: u64) -> usize {
    (descriptor >> OFFSET_SHIFT) as u32 as usize
}

/// The door's low bits: the writable buffer, or that there is none.
const UNOPENED: u64 = 2;
const CLOSED: u64 = 3;

const fn door(generation: u32, low: u64) -> u64 {
    (generation as u64) << 2 | low
}

struct Door {
    state: AtomicU64,
    admit: AtomicU8,
    starving: AtomicBool,
}

struct Buffer {
    descriptor: AtomicU64,
    pointers: AtomicBool,
    words: Words,
}

/// The shared part of an endpoint's inbox. All parcels that its words own are of type `P`, and [`crate::Router::new`]
/// has seen to it that these may be sent.
pub(crate) struct Inbox<P> {
    door: CachePadded<Door>,
    buffers: [CachePadded<Buffer>; 2],
    /// Up to which offset each rank may write: the watermarks.
    limits: [usize; 4],
    bell: OnceLock<Arc<dyn Bell>>,
    parcels: PhantomData<fn(P) -> P>,
}

/// Why a reservation failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// So many words are left under the rank's watermark.
    Full { room: usize },
    /// The endpoint is gone.
    Dead,
}

impl<P> Inbox<P> {
    /// An inbox that nobody owns yet. Senders keep what they have for it until it is opened.
    pub(crate) fn new(words: usize) -> Self {
        assert!(words <= u32::MAX as usize, "an inbox offset has 32 bits");
        let buffer = || {
            CachePadded::new(Buffer {
                descriptor: AtomicU64::new(0),
                pointers: AtomicBool::new(false),
                words: Words::new(words),
            })
        };
        Inbox {
            door: CachePadded::new(Door {
                state: AtomicU64::new(door(0, UNOPENED)),
                admit: AtomicU8::new(0),
                starving: AtomicBool::new(false),
            }),
            buffers: [buffer(), buffer()],
            limits: [words / 2, words / 4 * 3, words / 10 * 9, words],
            bell: OnceLock::new(),
            parcels: PhantomData,
        }
    }

    // ---- senders ----

    /// Reserves room for `len` words of a rank.
    #[inline]
    pub(crate) fn reserve(
        &self,
        to: Endpoint,
        rank: Rank,
        len: usize,
    ) -> Result<ReservedSlot<'_>, Rejected> {
        debug_assert!(len >= wire::HEADER_WORDS);
        loop {
            let state = self.door.state.load(Ordering::Acquire);
            if state >> 2 != to.generation() as u64 || state & 3 == CLOSED {
                return Err(Rejected::Dead);
            }
            if state & 3 == UNOPENED || (rank as u8) < self.door.admit.load(Ordering::Relaxed) {
                return Err(Rejected::Full { room: 0 });
            }
            let buffer = &self.buffers[(state & 1) as usize];
            let mut seen = buffer.descriptor.load(Ordering::Acquire);
            while seen & ACTIVE != 0 {
                let at = offset(seen);
                let room = self.limits[rank as usize].saturating_sub(at);
                if len > room {
                    return Err(Rejected::Full { room });
                }
                let wanted = seen + ((len as u64) << OFFSET_SHIFT) + 1;
                match buffer.descriptor.compare_exchange_weak(
                    seen,
                    wanted,
                    Ordering::Acquire,
                    Ordering::Acquire,
                ) {
                    Ok(_) => {
                        return self.check_generation(
                            ReservedSlot {
                                buffer,
                                at,
                                end: at + len,
                            },
                            to,
                        );
                    }
                    Err(now) => seen = now,
                }
            }
            // The owner swapped in between; the door has moved already.
            spin_loop();
        }
    }

    #[inline]
    fn check_generation<'a>(
        &'a self,
        mut slot: ReservedSlot<'a>,
        to: Endpoint,
    ) -> Result<ReservedSlot<'a>, Rejected> {
        if self.door.state.load(Ordering::Relaxed) >> 2 == to.generation() as u64 {
            return Ok(slot);
        }
        // Behind the header the room keeps what it held; nobody looks at it.
        slot.write(&wire::void_words(slot.end - slot.at));
        slot.commit(false);
        Err(Rejected::Dead)
    }

    /// Tells the owner that a sender waits for room. The sender must try once more before it sleeps.
    pub(crate) fn mark_starving(&self) {
        self.door.starving.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Wakes the owner if it sleeps.
    #[inline]
    pub(crate) fn ring(&self) {
        if let Some(bell) = self.bell.get() {
            bell.ring();
        }
    }

    /// Whom to ring. The first call counts.
    pub(crate) fn set_bell(&self, bell: Arc<dyn Bell>) {
        let _ = self.bell.set(bell);
    }

    // ---- the owner; which thread that is, [`crate::Incoming`] guarantees ----

    /// Opens the inbox for an endpoint. The memory is first touched here, on the owner's node.
    ///
    /// Owner only, and not while open.
    pub(crate) fn open(&self, owner: Endpoint) {
        for buffer in &self.buffers {
            debug_assert_eq!(buffer.descriptor.load(Ordering::Relaxed), 0);
            // SAFETY: inactive and without writers, so nobody else may touch the words.
            unsafe { buffer.words.touch() };
        }
        self.door.admit.store(0, Ordering::Relaxed);
        // The door first: a stale sender that gets into the buffer must see the new generation.
        self.door
            .state
            .store(door(owner.generation(), 0), Ordering::Release);
        self.buffers[0].descriptor.store(ACTIVE, Ordering::Release);
    }

    /// The generation the slot had last.
    pub(crate) fn generation(&self) -> u32 {
        (self.door.state.load(Ordering::Relaxed) >> 2) as u32
    }

    /// Whether something was written into the writable buffer. Owner only.
    #[inline]
    pub(crate) fn has_mail(&self, writable: usize) -> bool {
        offset(self.buffers[writable].descriptor.load(Ordering::Relaxed)) > 0
    }

    /// Makes the other buffer writable; true if a sender waits for room. Owner only, with the other buffer empty.
    pub(crate) fn swap(&self, writable: usize, owner: Endpoint) -> bool {
        let other = 1 - writable;
        self.buffers[other]
            .descriptor
            .store(ACTIVE, Ordering::Release);
        self.door
            .state
            .store(door(owner.generation(), other as u64), Ordering::Release);
        self.buffers[writable]
            .descriptor
            .fetch_and(!ACTIVE, Ordering::AcqRel);
        self.take_starving()
    }

    /// Whether a sender was rejected since the last look. Owner only, after it made room.
    pub(crate) fn take_starving(&self) -> bool {
        fence(Ordering::SeqCst);
        let starving = self.door.starving.load(Ordering::Relaxed);
        if starving {
            self.door.starving.store(false, Ordering::Relaxed);
        }
        starving
    }

    /// The words of an inactive buffer, and whether pointers are among them; `None` while writers are at work.
    ///
    /// # Safety
    /// Owner only; the buffer is inactive and is not emptied while the slice lives.
    #[inline]
    pub(crate) unsafe fn read(&self, buffer: usize) -> Option<(&[u64], bool)> {
        let buffer = &self.buffers[buffer];
        let seen = buffer.descriptor.load(Ordering::Acquire);
        debug_assert_eq!(seen & ACTIVE, 0);
        if seen & WRITERS != 0 {
            return None;
        }
        // SAFETY: the offset never passes a watermark; every writer has left, which the acquire load made visible;
        // none can come while the buffer is inactive, and the caller keeps it so.
        let words = unsafe { buffer.words.read(offset(seen)) };
        Some((words, buffer.pointers.load(Ordering::Relaxed)))
    }

    /// Empties a buffer that was read. Owner only; its pointers have been taken.
    #[inline]
    pub(crate) fn empty(&self, buffer: usize) {
        self.buffers[buffer]
            .pointers
            .store(false, Ordering::Relaxed);
        // Relaxed: senders look at it only after the release store that activates it.
        self.buffers[buffer].descriptor.store(0, Ordering::Relaxed);
    }

    /// The lowest rank that senders may deliver. Owner only.
    pub(crate) fn admit(&self, rank: Rank) {
        self.door.admit.store(rank as u8, Ordering::Relaxed);
    }

    /// Rejects all further commands and drops those that were delivered and not read. Waits until the writers that are
    /// copying have left. Owner only.
    pub(crate) fn close(&self, owner: Endpoint) {
        self.door
            .state
            .store(door(owner.generation(), CLOSED), Ordering::Release);
        for buffer in 0..2 {
            self.buffers[buffer]
                .descriptor
                .fetch_and(!ACTIVE, Ordering::AcqRel);
            loop {
                // SAFETY: owner, just deactivated, emptied below.
                if let Some((words, pointers)) = unsafe { self.read(buffer) } {
                    if pointers {
                        // SAFETY: whole commands whose pointers nobody took, for the owner empties what it read.
                        unsafe { wire::drop_commands::<P>(words) };
                    }
                    break;
                }
                yield_now();
            }
            self.empty(buffer);
        }
    }
}

/// Reserved room in a buffer. It must be filled and committed: until then the owner cannot read the buffer.
#[must_use]
pub(crate) struct ReservedSlot<'a> {
    buffer: &'a Buffer,
    at: usize,
    end: usize,
}

impl ReservedSlot<'_> {
    /// Writes the next words.
    #[inline]
    pub(crate) fn write(&mut self, words: &[u64]) {
        assert!(
            words.len() <= self.end - self.at,
            "more words than were reserved"
        );
        // SAFETY: inside the room that this slot reserved, which is nobody else's until the commit.
        unsafe { self.buffer.words.write(self.at, words) };
        self.at += words.len();
    }

    /// Hands the room to the owner. `pointers`: whether some of the words own parcels or spilled data.
    #[inline]
    pub(crate) fn commit(self, pointers: bool) {
        if pointers {
            self.buffer.pointers.store(true, Ordering::Relaxed);
        }
        self.buffer.descriptor.fetch_sub(1, Ordering::Release);
    }
}
