//! Who can send and receive: AEUs, numbered for life, and sessions, whose slots are reused.

use eris_types::AeuId;
use std::fmt;

/// An AEU or a session, as 32 bits that fit a command header.
///
/// ```text
///  31        30 ........... 14   13 ....... 0
/// ┌─────────┬───────────────────┬────────────┐
/// │ session │ generation        │ slot       │   session
/// │ 0       │ 0          AEU number (16 bits)│   AEU
/// └─────────┴───────────────────┴────────────┘
/// ```
///
/// A session's generation tells it from earlier sessions in the same slot, so a late reply is rejected instead of
/// reaching a stranger. Generations repeat after 131,072 sessions of one slot; slots are reused oldest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Endpoint(u32);

const SESSION: u32 = 1 << 31;
/// The model checker gets few slots: it builds a router for every schedule.
const SLOT_BITS: u32 = if cfg!(loom) { 1 } else { 14 };

impl Endpoint {
    /// How many sessions can be open at once.
    pub const MAX_SESSIONS: usize = 1 << SLOT_BITS;
    pub(crate) const GENERATIONS: u32 = 1 << (31 - SLOT_BITS);

    /// The endpoint of an AEU.
    pub const fn aeu(id: AeuId) -> Self {
        Endpoint(id.0 as u32)
    }

    pub(crate) const fn session(slot: u32, generation: u32) -> Self {
        Endpoint(SESSION | (generation % Self::GENERATIONS) << SLOT_BITS | slot)
    }

    /// The AEU behind this endpoint; `None` for a session.
    pub const fn as_aeu(self) -> Option<AeuId> {
        if self.0 & SESSION == 0 {
            Some(AeuId(self.0 as u16))
        } else {
            None
        }
    }

    pub(crate) const fn slot(self) -> usize {
        (self.0 & ((1 << SLOT_BITS) - 1)) as usize
    }

    /// Zero for an AEU, whose inbox has one owner for life.
    pub(crate) const fn generation(self) -> u32 {
        if self.0 & SESSION == 0 {
            0
        } else {
            (self.0 & !SESSION) >> SLOT_BITS
        }
    }

    /// The 32 bits, for a wire form or a callback.
    pub const fn to_bits(self) -> u32 {
        self.0
    }

    /// The endpoint of these bits. Bits that never were an endpoint make one to which every delivery is rejected.
    pub const fn from_bits(bits: u32) -> Self {
        Endpoint(bits)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_aeu() {
            Some(aeu) => aeu.fmt(f),
            None => write!(f, "session {}.{}", self.slot(), self.generation()),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_session_and_its_successor_in_the_slot_differ() {
        let first = Endpoint::session(5, 8);
        let next = Endpoint::session(5, 9);
        assert_ne!(first, next);
        assert_eq!((first.slot(), first.generation()), (5, 8));
        assert_eq!(first.as_aeu(), None);
        assert_eq!(Endpoint::from_bits(next.to_bits()), next);
        assert_eq!(next.to_string(), "session 5.9");
    }

    #[test]
    fn the_largest_numbers_fit() {
        let last = Endpoint::session(Endpoint::MAX_SESSIONS as u32 - 1, Endpoint::GENERATIONS - 1);
        assert_eq!(last.slot(), Endpoint::MAX_SESSIONS - 1);
        assert_eq!(last.generation(), Endpoint::GENERATIONS - 1);
        assert_eq!(
            Endpoint::aeu(AeuId(u16::MAX)).as_aeu(),
            Some(AeuId(u16::MAX))
        );
    }
}
