//! A segment becomes two, while it is used: one of its ends gets a tree of its own, the smaller one.
//!
//! ```text
//!            low ────────── cut ───── high
//! counting   ●●●●▶          ●●●●▶            side by side, until one of them is at its end: that one is smaller
//! moving     ●●●●●●●●●●●●●● ●●●● ◀ ○○○○      piece by piece, from the end inwards; each is the other segment's at once
//! ```

use super::PIECE;
use crate::key_index::owned::OwnedKeys;
use crate::key_index::segment::{End, Segment};
use eris_index::IndexError;

/// Entries that are counted in one step, on either side: that takes about as long as it takes to move a piece.
const COUNTED: usize = 8 * PIECE;

/// A segment is cut before a key.
pub(crate) enum Parting {
    Counting {
        cut: u64,
        /// Where to go on below it and above.
        below: u64,
        above: u64,
    },
    Moving {
        cut: u64,
        /// Which side gets another tree.
        end: End,
        /// A key of the segment that has got the pieces before.
        neighbour: Option<u64>,
        moved: usize,
    },
}

pub(crate) enum Parted {
    Again(Parting),
    /// So many entries were copied.
    Done(usize),
}

impl Parting {
    /// Begins to cut a segment before one of its keys that is not the first.
    pub fn new(segment: &Segment, cut: u64) -> Self {
        Parting::Counting {
            cut,
            below: segment.low,
            above: cut,
        }
    }

    /// Counts or moves some more.
    ///
    /// # Errors
    /// No memory: what has been moved is a segment all the same.
    pub fn step(self, keys: &mut OwnedKeys) -> Result<Parted, IndexError> {
        match self {
            Parting::Counting { cut, below, above } => {
                Ok(Parted::Again(count(cut, below, above, keys)))
            }
            Parting::Moving {
                cut,
                end,
                neighbour,
                moved,
            } => {
                let inner = match end {
                    End::First => cut - 1,
                    End::Last => cut,
                };
                let segment = keys.segment(inner).expect(STAYS);
                let side = match end {
                    End::First => (segment.low, inner),
                    End::Last => (inner, segment.high),
                };
                let piece = segment.piece(side, end, PIECE);
                keys.part(&piece, neighbour)?;
                let moved = moved + piece.entries.len();
                if (piece.low..=piece.high).contains(&inner) {
                    return Ok(Parted::Done(moved));
                }
                Ok(Parted::Again(Parting::Moving {
                    cut,
                    end,
                    neighbour: Some(piece.low),
                    moved,
                }))
            }
        }
    }
}

/// Counts some more on both sides.
fn count(cut: u64, below: u64, above: u64, keys: &mut OwnedKeys) -> Parting {
    let segment = keys.segment(cut).expect(STAYS);
    let next = |low: u64, high: u64| {
        let last = segment.range(low, high).nth(COUNTED - 1);
        last.map(|(key, _)| key).filter(|key| *key < high)
    };
    let end = match (next(below, cut - 1), next(above, segment.high)) {
        (Some(below), Some(above)) => {
            return Parting::Counting {
                cut,
                below: below + 1,
                above: above + 1,
            };
        }
        (None, _) => End::First,
        (_, None) => End::Last,
    };
    Parting::Moving {
        cut,
        end,
        neighbour: None,
        moved: 0,
    }
}

const STAYS: &str = "the segment stays until it is parted";
