//! Which ids the chunks of a segment may have: where to look for a row without touching the others.
//!
//! ```text
//! chunk       0         1         2         │  3        4           places: chunks, then levels of the append buffer
//! ids     0 ── 99  100 ── 180  181 ── 300   │  40 ── 50 301 ── 310
//!         ascend, one behind the other: one │  have come back from another owner: any
//!         of them has an id, at most        │
//! ```
//! Rows come in the order of their ids, so that mostly all ascend.

use eris_types::RowId;

/// The least and the greatest id of each chunk and level.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    all: Vec<(RowId, RowId)>,
    /// So many from the first on ascend, and do not overlap.
    ascending: usize,
}

impl Extents {
    /// Of all chunks and levels.
    pub fn new(all: impl IntoIterator<Item = (RowId, RowId)>) -> Self {
        let mut extents = Extents {
            all: all.into_iter().collect(),
            ascending: 0,
        };
        extents.count_ascending(0);
        extents
    }

    /// One more at a place.
    pub fn insert(&mut self, place: usize, extent: (RowId, RowId)) {
        self.all.insert(place, extent);
        self.count_ascending(place);
    }

    /// Those before a place are as they were.
    fn count_ascending(&mut self, place: usize) {
        self.ascending = self.ascending.min(place);
        // What has no ids has a last one before its first.
        while let Some((first, last)) = self.all.get(self.ascending)
            && first <= last
            && (self.ascending.checked_sub(1)).is_none_or(|before| self.all[before].1 < *first)
        {
            self.ascending += 1;
        }
    }

    /// The places where a row may be.
    pub fn having(&self, id: RowId) -> impl Iterator<Item = usize> + '_ {
        let (ascending, others) = self.all.split_at(self.ascending);
        let before = ascending.partition_point(|(first, _)| *first <= id);
        let one = before
            .checked_sub(1)
            .filter(|&place| id <= ascending[place].1);
        let others = (self.ascending..).zip(others);
        let others = others.filter(move |(_, (first, last))| (first..=last).contains(&&id));
        one.into_iter().chain(others.map(|(place, _)| place))
    }

    /// The places where one of `ids`, which ascend, may be.
    pub fn places(&self, ids: &[RowId]) -> Vec<usize> {
        let (ascending, others) = self.all.split_at(self.ascending);
        let mut places = Vec::new();
        let mut left = ids;
        while let Some(id) = left.first() {
            let behind = ascending.partition_point(|(_, last)| last < id);
            let Some((first, last)) = ascending.get(behind) else {
                break;
            };
            if first <= id {
                places.push(behind);
            }
            let bound = |of: &RowId| if first <= id { of <= last } else { of < first };
            left = &left[left.partition_point(bound)..];
        }
        let others = (self.ascending..).zip(others);
        let having = others.filter(|(_, (first, last))| {
            let next = ids.partition_point(|id| id < first);
            ids.get(next).is_some_and(|id| id <= last)
        });
        places.extend(having.map(|(place, _)| place));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn extent() -> impl Strategy<Value = (RowId, RowId)> {
        let some =
            (0..60u64, 0..6u64).prop_map(|(first, more)| (RowId(first), RowId(first + more)));
        prop_oneof![9 => some, 1 => Just((RowId(u64::MAX), RowId(0)))]
    }

    proptest! {
        #[test]
        fn places_are_those_that_a_look_at_each_finds(
            begin in prop::collection::vec(1..8u64, 0..8),
            inserted in prop::collection::vec((any::<prop::sample::Index>(), extent()), 0..6),
            ids in prop::collection::btree_set(0..70u64, 0..12),
        ) {
            // Some that ascend, and some anywhere.
            let mut all = Vec::new();
            let mut next = 0;
            for length in begin {
                all.push((RowId(next), RowId(next + length - 1)));
                next += length + length % 2;
            }
            let mut extents = Extents::new(all.iter().copied());
            for (at, extent) in inserted {
                let at = at.index(all.len() + 1);
                all.insert(at, extent);
                extents.insert(at, extent);
            }
            let ids: Vec<RowId> = ids.into_iter().map(RowId).collect();
            let has = |extent: &(RowId, RowId), id: &RowId| extent.0 <= *id && *id <= extent.1;
            let having = |is: &dyn Fn(&(RowId, RowId)) -> bool| -> Vec<usize> {
                (0..all.len()).filter(|&place| is(&all[place])).collect()
            };
            let expected = having(&|extent| ids.iter().any(|id| has(extent, id)));
            prop_assert_eq!(extents.places(&ids), expected);
            for id in &ids {
                let expected = having(&|extent| has(extent, id));
                prop_assert_eq!(extents.having(*id).collect::<Vec<_>>(), expected);
            }
        }
    }
}
