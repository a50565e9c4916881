//! Which AEU has which keys, as that changes.
//!
//! A cycle of balancing moves keys from owner to owner one range after the other, and then publishes the next table at
//! once for all. Whoever still goes by the one before reaches a former owner, who forwards; a client that hears of it
//! is ahead of the table from then on.

use eris_atomics::SharedLock;
use eris_route::{RangeTable, Split};
use eris_types::AeuId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One version of the partition table.
pub(crate) struct PartitionTable {
    pub version: u64,
    pub ranges: RangeTable<u64, RangePlace>,
}

/// Where the keys of a range are. In the order of owners, so that a batch that is split by ranges is split by owners as
/// well, and each of them finds the keys of one range side by side: he has mostly one segment for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RangePlace {
    pub aeu: AeuId,
    /// The number of the range.
    range: u32,
}

/// The newest version.
pub(crate) struct NewestTable {
    newest: SharedLock<Arc<PartitionTable>>,
    /// That of `newest`. Written under its lock; read by clients before each operation, so that these take the lock
    /// only when something has changed. Release and acquire, though a client that misses it is only forwarded once
    /// more.
    version: AtomicU64,
}

impl NewestTable {
    /// Of ranges with these lower bounds, ascending.
    pub fn new(bounds: impl IntoIterator<Item = (u64, AeuId)>) -> Self {
        NewestTable {
            newest: SharedLock::new(Arc::new(PartitionTable::new(1, bounds))),
            version: AtomicU64::new(1),
        }
    }

    /// The newest table.
    pub fn newest(&self) -> Arc<PartitionTable> {
        self.newest.read().clone()
    }

    /// Replaces a table by the newest, if that is another.
    pub fn refresh(&self, known: &mut Arc<PartitionTable>) {
        if self.version.load(Ordering::Acquire) != known.version {
            *known = self.newest();
        }
    }

    /// From here on keys are in these ranges, by their lower bounds, ascending.
    pub fn publish(&self, bounds: impl IntoIterator<Item = (u64, AeuId)>) {
        let mut newest = self.newest.write();
        let version = newest.version + 1;
        *newest = Arc::new(PartitionTable::new(version, bounds));
        self.version.store(version, Ordering::Release);
    }
}

impl PartitionTable {
    fn new(version: u64, bounds: impl IntoIterator<Item = (u64, AeuId)>) -> Self {
        let ranges = bounds.into_iter().zip(0..);
        let ranges = ranges.map(|((low, aeu), range)| (low, RangePlace { aeu, range }));
        let ranges = RangeTable::new(ranges).expect("there is an AEU, and the bounds ascend");
        PartitionTable { version, ranges }
    }

    /// The same version as somebody knows it who has learnt that these ranges have other owners already.
    pub fn ahead(&self, bounds: impl IntoIterator<Item = (u64, AeuId)>) -> Self {
        PartitionTable::new(self.version, bounds)
    }

    /// Who has a key.
    pub fn owner(&self, key: u64) -> AeuId {
        self.ranges.get(key).aeu
    }

    /// Who owns which part of `low..=high`, ascending.
    pub fn owners(&self, low: u64, high: u64) -> impl Iterator<Item = (u64, u64, AeuId)> + '_ {
        parts(&self.ranges, low, high).map(|(low, high, place)| (low, high, place.aeu))
    }

    /// The parts of a batch that was split by the ranges: each owner that has keys, with their positions, range by
    /// range.
    pub fn parts<'a>(&'a self, split: &'a Split) -> impl Iterator<Item = (AeuId, &'a [u32])> + 'a {
        let mut of_ranges = self.ranges.parts(split).peekable();
        let mut rest = split.positions();
        std::iter::from_fn(move || {
            let (RangePlace { aeu, .. }, first) = of_ranges.next()?;
            let mut count = first.len();
            while let Some((_, next)) = of_ranges.next_if(|(place, _)| place.aeu == aeu) {
                count += next.len();
            }
            Some((aeu, rest.split_off(..count)?))
        })
    }

    /// What an AEU has.
    pub fn of(&self, aeu: AeuId) -> impl Iterator<Item = (u64, u64)> + '_ {
        let owners = self.owners(0, u64::MAX);
        owners
            .filter(move |(.., holder)| *holder == aeu)
            .map(|(low, high, _)| (low, high))
    }
}

/// The parts of `low..=high` with the holder of each, ascending.
pub(crate) fn parts<V: Ord + Copy>(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_the_ranges_cut_to_what_is_asked_for() {
        let ranges = [(10, AeuId(0)), (20, AeuId(1)), (30, AeuId(0))];
        let layout = NewestTable::new(ranges);
        let mut known = layout.newest();
        let owners =
            |table: &PartitionTable, low, high| table.owners(low, high).collect::<Vec<_>>();
        assert_eq!(owners(&known, 3, 5), [(3, 5, AeuId(0))]);
        assert_eq!(
            owners(&known, 19, 20),
            [(19, 19, AeuId(0)), (20, 20, AeuId(1))]
        );
        let all = [
            (0, 19, AeuId(0)),
            (20, 29, AeuId(1)),
            (30, u64::MAX, AeuId(0)),
        ];
        assert_eq!(owners(&known, 0, u64::MAX), all);
        assert_eq!(known.of(AeuId(1)).collect::<Vec<_>>(), [(20, 29)]);

        // Owners in their order, and of each the keys of one range side by side.
        let mut split = Split::default();
        known.ranges.split(&[35, 25, 0, 40, 21, 12], &mut split);
        let parts: Vec<_> = known.parts(&split).collect();
        assert_eq!(
            parts,
            [(AeuId(0), &[2, 5, 0, 3][..]), (AeuId(1), &[1, 4][..])]
        );

        layout.publish([(0, AeuId(2))]);
        layout.refresh(&mut known);
        assert_eq!(owners(&known, 7, 9), [(7, 9, AeuId(2))]);
    }
}
