//! Which AEU has which keys, as that changes.
//!
//! A cycle of balancing moves keys from owner to owner one range after the other, and then publishes the next table at once for all. Whoever
//! still goes by the one before reaches a former owner, who forwards.

use eris_route::RangeTable;
use eris_types::AeuId;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// One version of the partition table.
pub(crate) struct Table {
    pub version: u64,
    pub ranges: RangeTable<u64, AeuId>,
}

/// The newest version.
pub(crate) struct Layout {
    newest: RwLock<Arc<Table>>,
    /// That of `newest`. Written under its lock; read by clients before each operation, so that these take the lock only when something
    /// has changed. Release and acquire, though a client that misses it is only forwarded once more.
    version: AtomicU64,
}

impl Layout {
    pub fn new(ranges: RangeTable<u64, AeuId>) -> Self {
        Layout {
            newest: RwLock::new(Arc::new(Table { version: 1, ranges })),
            version: AtomicU64::new(1),
        }
    }

    /// The newest table.
    pub fn newest(&self) -> Arc<Table> {
        self.newest.read().expect(UNPOISONED).clone()
    }

    /// Replaces a table by the newest, if that is another.
    pub fn refresh(&self, known: &mut Arc<Table>) {
        if self.version.load(Ordering::Acquire) != known.version {
            *known = self.newest();
        }
    }

    /// From here on keys are where this table says.
    pub fn publish(&self, ranges: RangeTable<u64, AeuId>) {
        let mut newest = self.newest.write().expect(UNPOISONED);
        let version = newest.version + 1;
        *newest = Arc::new(Table { version, ranges });
        self.version.store(version, Ordering::Release);
    }
}

impl Table {
    /// [`spans`] of the ranges.
    pub fn spans(&self, low: u64, high: u64) -> impl Iterator<Item = (u64, u64, AeuId)> + '_ {
        spans(&self.ranges, low, high)
    }

    /// What an AEU has.
    pub fn of(&self, aeu: AeuId) -> impl Iterator<Item = (u64, u64)> + '_ {
        let spans = self.spans(0, u64::MAX);
        spans
            .filter(move |(.., holder)| *holder == aeu)
            .map(|(low, high, _)| (low, high))
    }
}

/// The parts of `low..=high` with the holder of each, ascending.
pub(super) fn spans<V: Ord + Copy>(
    ranges: &RangeTable<u64, V>,
    low: u64,
    high: u64,
) -> impl Iterator<Item = (u64, u64, V)> + '_ {
    let lasts = ranges.iter().skip(1).map(|(next, _)| next - 1);
    let all = ranges.iter().zip(lasts.chain([u64::MAX]));
    let all = all.enumerate().map(|(at, ((first, holder), last))| {
        // The first range has all keys below it, too.
        (if at == 0 { 0 } else { first }, last, holder)
    });
    all.skip_while(move |(_, last, _)| *last < low)
        .take_while(move |(first, ..)| *first <= high)
        .map(move |(first, last, holder)| (first.max(low), last.min(high), holder))
}

const UNPOISONED: &str = "nothing panics under this lock";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_the_ranges_cut_to_what_is_asked_for() {
        let ranges = [(10, AeuId(0)), (20, AeuId(1)), (30, AeuId(0))];
        let layout = Layout::new(RangeTable::new(ranges).unwrap());
        let mut known = layout.newest();
        let spans = |table: &Table, low, high| table.spans(low, high).collect::<Vec<_>>();
        assert_eq!(spans(&known, 3, 5), [(3, 5, AeuId(0))]);
        assert_eq!(
            spans(&known, 19, 20),
            [(19, 19, AeuId(0)), (20, 20, AeuId(1))]
        );
        let all = [
            (0, 19, AeuId(0)),
            (20, 29, AeuId(1)),
            (30, u64::MAX, AeuId(0)),
        ];
        assert_eq!(spans(&known, 0, u64::MAX), all);
        assert_eq!(known.of(AeuId(1)).collect::<Vec<_>>(), [(20, 29)]);

        layout.publish(RangeTable::new([(0, AeuId(2))]).unwrap());
        layout.refresh(&mut known);
        assert_eq!(spans(&known, 7, 9), [(7, 9, AeuId(2))]);
    }
}
