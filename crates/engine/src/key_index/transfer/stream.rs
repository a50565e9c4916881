//! Keys on their way to another node, piece by piece: which were sent, and which of those the new owner has taken in.
//!
//! ```text
//! segment   ┌ taken ┬ sent ┬ left ─────────────── others ┐
//!           │ the new owner's     this owner's           │
//!           └───────┴──▶ asked for at the new owner, behind the piece itself
//! ```
//!
//! Pieces go from one end of their segment inwards, and are taken in or rejected in this order: what follows a rejected
//! one is rejected, too.

use super::PIECE;
use crate::key_index::segment::{End, Piece, Segment};
use std::collections::VecDeque;

/// A copy under way.
pub(crate) struct PieceStream {
    end: End,
    /// What has not been sent.
    left: Option<(u64, u64)>,
    /// What has not been answered, in this order, and the entries of each piece.
    sent: VecDeque<((u64, u64), usize)>,
    taken: Option<(u64, u64)>,
    entries: usize,
}

impl PieceStream {
    /// Of these keys, which are the first or the last of a segment, or all.
    pub fn new(segment: &Segment, low: u64, high: u64) -> Self {
        let end = match low == segment.low {
            true => End::First,
            false => End::Last,
        };
        PieceStream {
            end,
            left: Some((low, high)),
            sent: VecDeque::new(),
            taken: None,
            entries: 0,
        }
    }

    /// A key of those that have not been sent.
    pub fn next_key(&self) -> Option<u64> {
        self.left.map(|(low, _)| low)
    }

    /// The next piece of the segment that has them, and whether others went before it.
    ///
    /// # Panics
    /// If all were sent.
    pub fn send(&mut self, segment: &Segment) -> (Piece, bool) {
        let (low, high) = self.left.expect("there are more");
        let piece = segment.piece((low, high), self.end, PIECE);
        self.left = match self.end {
            End::First => (piece.high < high).then(|| (piece.high + 1, high)),
            End::Last => (piece.low > low).then(|| (low, piece.low - 1)),
        };
        let follows = self.taken.is_some() || !self.sent.is_empty();
        (self.sent).push_back(((piece.low, piece.high), piece.entries.len()));
        (piece, follows)
    }

    /// Pieces that have not been answered.
    pub fn under_way(&self) -> usize {
        self.sent.len()
    }

    /// Whether the new owner has not answered all that was sent.
    pub fn is_behind(&self) -> bool {
        !self.sent.is_empty()
    }

    /// The keys that have not been answered.
    pub fn unanswered(&self) -> Option<(u64, u64)> {
        let sent = self.sent.iter().map(|(keys, _)| *keys);
        sent.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    /// The new owner has taken in the first of them.
    pub fn note_taken(&mut self) {
        let Some(((low, high), entries)) = self.sent.pop_front() else {
            return;
        };
        self.entries += entries;
        self.taken = Some(match self.taken {
            None => (low, high),
            Some(taken) => (low.min(taken.0), high.max(taken.1)),
        });
    }

    /// The new owner has these of those that were not answered, and no others; says whether that is all.
    pub fn note_standing(&mut self, has: Option<(u64, u64)>) -> bool {
        let is_had = |keys: (u64, u64)| has.is_some_and(|has| has.0 <= keys.0 && keys.1 <= has.1);
        while self.sent.front().is_some_and(|(keys, _)| is_had(*keys)) {
            self.note_taken();
        }
        let is_all = self.sent.is_empty();
        self.sent.clear();
        is_all
    }

    /// What the new owner has taken in, and the entries of that.
    pub fn taken(&self) -> (Option<(u64, u64)>, usize) {
        (self.taken, self.entries)
    }
}
