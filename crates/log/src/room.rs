//! Room on disk, in the log or in chunk files: taken before rows are written, so that a commit finds it.
//!
//! ```text
//! file in use  ░░░░░░░░░░▒▒▒▒        ░ written   ▒ the rest of it
//! next file    ▒▒▒▒▒▒▒▒▒▒▒▒▒▒        allocated in advance
//! ```
//!
//! What is reserved at a time fits into the rest of the file in use or into the next file, whichever is longer. So the
//! group of all of it fits into one of the two, and so does what is left over when only a part of it becomes a group.
//! Little is kept back for those who free room, such as DELETE. All is kept for them while a checkpoint works with the
//! last room of the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// What only those may take who free room, at most.
const KEPT_BACK: u64 = 1 << 20;
/// And of little room no more than this part.
const KEPT_PART: u64 = 8;

/// Who asks for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Adding something.
    Adding,
    /// Freeing something: it may use what is kept back.
    Freeing,
}

/// There is no room at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// The log writer makes some; it is to be asked again.
    Later,
    /// The disk has none.
    Full {
        /// So much was asked for.
        bytes: u64,
    },
    /// The log has failed: nothing is written any more.
    Failed,
}

/// The room of a log.
#[derive(Clone, Debug, Default)]
pub struct Room(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// Bytes that are reserved and not written.
    reserved: AtomicU64,
    /// What may be reserved at a time. Written by the log writer only.
    limit: AtomicU64,
    /// The most that somebody has waited for; the log writer sees to it that the next file is longer.
    wanted: AtomicU64,
    /// The longest piece that somebody has waited for, and what has to be there beside it.
    longest: AtomicU64,
    /// Whether the disk has denied the log writer more.
    is_full: AtomicBool,
    /// Whether only those get something who free room. Written by whoever makes a checkpoint.
    is_kept: AtomicBool,
    /// Whether the log writer writes nothing any more.
    has_failed: AtomicBool,
}

/// Reserved bytes, until they are written or this is dropped.
#[derive(Debug)]
pub struct ReservedRoom {
    bytes: u64,
    of: Room,
}

impl Room {
    /// Reserves bytes of records.
    ///
    /// # Errors
    /// There are none. After [`NoRoom::Later`] the log writer is to be woken.
    pub fn reserve(&self, bytes: u64, purpose: Purpose) -> Result<ReservedRoom, NoRoom> {
        let state = &*self.0;
        if state.has_failed.load(SeqCst) {
            return Err(NoRoom::Failed);
        }
        if purpose == Purpose::Adding && self.is_kept() {
            return Err(NoRoom::Full { bytes });
        }
        let reserved = state.reserved.fetch_add(bytes, SeqCst) + bytes;
        let limit = state.limit.load(SeqCst);
        let kept_back = match purpose {
            Purpose::Adding => KEPT_BACK.min(limit / KEPT_PART),
            Purpose::Freeing => 0,
        };
        if reserved + kept_back <= limit {
            return Ok(ReservedRoom {
                bytes,
                of: self.clone(),
            });
        }
        state.reserved.fetch_sub(bytes, SeqCst);
        state.wanted.fetch_max(reserved + KEPT_BACK, SeqCst);
        let kept_back = KEPT_BACK.min(bytes / (KEPT_PART - 1) + 1);
        state.longest.fetch_max(bytes + kept_back, SeqCst);
        match state.is_full.load(SeqCst) {
            true => Err(NoRoom::Full { bytes }),
            false => Err(NoRoom::Later),
        }
    }

    /// Bytes that are reserved and not written.
    pub fn reserved(&self) -> u64 {
        self.0.reserved.load(SeqCst)
    }

    /// So much may be reserved at a time from now on.
    pub(crate) fn set_limit(&self, limit: u64, is_full: bool) {
        self.0.limit.store(limit, SeqCst);
        self.0.is_full.store(is_full, SeqCst);
    }

    /// From now on only those get room who free some; or all again. Meanwhile new files are no longer than they must
    /// be.
    pub(crate) fn keep(&self, is_kept: bool) {
        self.0.is_kept.store(is_kept, SeqCst);
        // Those who wanted it have none of it.
        self.take_wanted();
        self.take_longest();
    }

    /// Whether only those get room who free some.
    pub(crate) fn is_kept(&self) -> bool {
        self.0.is_kept.load(SeqCst)
    }

    /// Nothing is written any more.
    pub(crate) fn fail(&self) {
        self.0.has_failed.store(true, SeqCst);
    }

    /// The most that was asked for in vain since the last time, beside what was reserved.
    pub(crate) fn take_wanted(&self) -> u64 {
        self.0.wanted.swap(0, SeqCst)
    }

    /// The longest piece that was asked for in vain since the last time. What is written soon after it was reserved
    /// needs no more: whoever waits finds room when others are done.
    pub(crate) fn take_longest(&self) -> u64 {
        self.0.longest.swap(0, SeqCst)
    }
}

impl ReservedRoom {
    /// So many bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for ReservedRoom {
    fn drop(&mut self) {
        self.of.0.reserved.fetch_sub(self.bytes, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_given_up_to_the_limit_and_comes_back() {
        let room = Room::default();
        assert_eq!(
            room.reserve(1, Purpose::Freeing).unwrap_err(),
            NoRoom::Later
        );
        room.set_limit(800, false);
        let most = room.reserve(700, Purpose::Adding).unwrap();
        assert!(room.reserve(1, Purpose::Adding).is_err(), "a part is kept");
        drop(most);
        room.take_wanted();
        room.set_limit(KEPT_BACK * KEPT_PART, false);
        let all = KEPT_BACK * (KEPT_PART - 1);
        let most = room.reserve(all, Purpose::Adding).unwrap();
        assert_eq!(room.reserve(1, Purpose::Adding).unwrap_err(), NoRoom::Later);
        assert_eq!(room.take_wanted(), all + 1 + KEPT_BACK);
        let freeing = room.reserve(KEPT_BACK, Purpose::Freeing).unwrap();
        assert!(room.reserve(1, Purpose::Freeing).is_err());
        drop(freeing);
        room.set_limit(KEPT_BACK * KEPT_PART, true);
        assert_eq!(
            room.reserve(7, Purpose::Adding).unwrap_err(),
            NoRoom::Full { bytes: 7 }
        );
        drop(most);
        assert_eq!(room.reserved(), 0);
        assert_eq!(room.reserve(7, Purpose::Adding).unwrap().bytes(), 7);
        room.fail();
        assert_eq!(
            room.reserve(7, Purpose::Freeing).unwrap_err(),
            NoRoom::Failed
        );
    }

    #[test]
    fn room_for_the_longest_piece_is_room_enough() {
        for bytes in (0..5000).chain([KEPT_BACK * 7, KEPT_BACK * 8, KEPT_BACK * 9, 1 << 40]) {
            let room = Room::default();
            assert!(room.reserve(bytes + 1, Purpose::Adding).is_err());
            room.set_limit(room.take_longest(), false);
            assert!(room.reserve(bytes + 1, Purpose::Adding).is_ok(), "{bytes}");
            assert_eq!(room.take_longest(), 0);
        }
    }
}
