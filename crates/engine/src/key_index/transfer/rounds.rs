//! How a copy catches up with what is changed while it is made.
//!
//! ```text
//! changed      ▆▆▆▆▆▆▆▆ left from the time of copying           ▁▁ added since the last round
//! a round      takes twice as many as were added: less is left each time, and its owner does for the copy about as much as it does for
//!              those who change the keys
//! the last     takes what is left once all of it was added since the last round: there would be as much again
//! ```
//!
//! Between nodes a round is an exchange with the new owner. If that takes so long that ever more is added meanwhile, so that [`ROUNDS`] of them
//! leave no less, all that is left goes at once: then keys wait longer, but not for ever.

use super::PIECE;
use crate::key_index::segment::Changes;

/// Changes that are few enough to make the keys wait for them.
const FEW_CHANGES: usize = 256;
/// Rounds without progress.
const ROUNDS: usize = 16;

/// How many changes a round takes.
pub(super) fn some_changes(changes: Changes) -> usize {
    PIECE.max(2 * changes.added)
}

/// The rounds of a copy so far.
#[derive(Default)]
pub(super) struct Rounds {
    /// The least that was left before one of them.
    least: Option<usize>,
    /// How many there were since.
    without_progress: usize,
}

impl Rounds {
    /// How many changes the next round takes; `None`: all that are left, for it is the last.
    pub fn next(&mut self, changes: Changes) -> Option<usize> {
        if changes.left <= FEW_CHANGES.max(changes.added) {
            return None;
        }
        match self.least {
            Some(least) if changes.left >= least => self.without_progress += 1,
            _ => (self.least, self.without_progress) = (Some(changes.left), 0),
        }
        (self.without_progress < ROUNDS).then(|| some_changes(changes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rounds before the last, and what that has left, if so many are added from round to round.
    fn rounds(mut left: usize, added: impl Fn(usize) -> usize) -> (usize, usize) {
        let mut rounds = Rounds::default();
        for round in 0.. {
            let added = added(round);
            left += added;
            match rounds.next(Changes { left, added }) {
                Some(taken) => left = left.saturating_sub(taken),
                None => return (round, left),
            }
        }
        unreachable!("it ends")
    }

    #[test]
    fn little_is_left_for_the_last_round_however_much_is_changed() {
        assert_eq!(rounds(0, |_| 0), (0, 0));
        assert_eq!(rounds(100_000, |_| 0), (195, 160));
        assert_eq!(rounds(100_000, |_| 1_000), (100, 1_000));
        assert_eq!(rounds(100_000, |_| 25_000), (4, 25_000));
        // More or less in turn.
        let (count, left) = rounds(1_000_000, |round| [500, 9_000, 3_000][round % 3]);
        assert!(count < 300 && left <= 9_000, "{count} rounds, {left} left");
    }

    #[test]
    fn it_ends_where_ever_more_is_added() {
        // As where an exchange takes as long as it has changes.
        let (count, left) = rounds(100_000, |round| 100 * 3usize.pow(round.min(12) as u32));
        assert!(count <= 16 + 8, "{count} rounds, {left} left");
        let (count, _) = rounds(1_000_000, |round| 1_000 + 3 * round * round * round);
        assert!(count < 400, "{count} rounds");
    }
}
