//! Sets of 64-bit integers as sorted, disjoint, non-adjacent ranges: the algebra behind every condition on one
//! column of integers (or of floats, through [`float_key`](super::truth::float_key)).

/// A set of `i64`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IntervalSet(Vec<(i64, i64)>);

impl IntervalSet {
    pub(crate) fn empty() -> Self {
        IntervalSet(Vec::new())
    }

    pub(crate) fn all() -> Self {
        IntervalSet(vec![(i64::MIN, i64::MAX)])
    }

    /// All values from `low` to `high`, both included; empty when `low > high`.
    pub(crate) fn range(low: i64, high: i64) -> Self {
        IntervalSet(if low <= high {
            vec![(low, high)]
        } else {
            Vec::new()
        })
    }

    /// The single values, in any order.
    pub(crate) fn points(mut values: Vec<i64>) -> Self {
        values.sort_unstable();
        Self::from_sorted(values.into_iter().map(|value| (value, value)))
    }

    /// Ranges in ascending order of their low ends, which may touch or overlap.
    fn from_sorted(ranges: impl Iterator<Item = (i64, i64)>) -> Self {
        let mut merged: Vec<(i64, i64)> = Vec::new();
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        IntervalSet(merged)
    }

    pub(crate) fn ranges(&self) -> &[(i64, i64)] {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut ranges: Vec<_> = self.0.iter().chain(&other.0).copied().collect();
        ranges.sort_unstable();
        Self::from_sorted(ranges.into_iter())
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut ranges = Vec::new();
        while let (Some(&&(l0, l1)), Some(&&(r0, r1))) = (left.peek(), right.peek()) {
            if l0.max(r0) <= l1.min(r1) {
                ranges.push((l0.max(r0), l1.min(r1)));
            }
            if l1 < r1 {
                left.next();
            } else {
                right.next();
            }
        }
        IntervalSet(ranges)
    }

    pub(crate) fn complement(&self) -> Self {
        let mut ranges = Vec::with_capacity(self.0.len() + 1);
        let mut from = Some(i64::MIN);
        for &(low, high) in &self.0 {
            if let Some(from) = from
                && from < low
            {
                ranges.push((from, low - 1));
            }
            from = high.checked_add(1);
        }
        if let Some(from) = from {
            ranges.push((from, i64::MAX));
        }
        IntervalSet(ranges)
    }

    /// The least and the greatest value; `None` when empty.
    pub(crate) fn hull(&self) -> Option<(i64, i64)> {
        Some((self.0.first()?.0, self.0.last()?.1))
    }

    /// The number of values, saturating.
    pub(crate) fn len(&self) -> u64 {
        self.0.iter().fold(0, |sum, &(low, high)| {
            u64::saturating_add(sum, high.abs_diff(low).saturating_add(1))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ends near each other, so that ranges touch, and at the ends of the domain.
    fn end() -> impl Strategy<Value = i64> {
        prop_oneof![
            4 => -6..6i64,
            1 => Just(i64::MIN),
            1 => Just(i64::MAX),
            1 => Just(i64::MIN + 1),
            1 => Just(i64::MAX - 1),
        ]
    }

    fn set() -> impl Strategy<Value = (IntervalSet, Vec<(i64, i64)>)> {
        proptest::collection::vec((end(), end()), 0..5).prop_map(|ranges| {
            let set = ranges
                .iter()
                .fold(IntervalSet::empty(), |set, &(low, high)| {
                    set.union(&IntervalSet::range(low, high))
                });
            (set, ranges)
        })
    }

    fn contains(set: &IntervalSet, value: i64) -> bool {
        set.ranges()
            .iter()
            .any(|&(low, high)| low <= value && value <= high)
    }

    proptest! {
        #[test]
        fn operations_agree_with_membership((a, ranges) in set(), (b, _) in set(), value in end()) {
            let named = ranges.iter().any(|&(low, high)| low <= value && value <= high);
            prop_assert_eq!(contains(&a, value), named);
            prop_assert_eq!(contains(&a.union(&b), value), contains(&a, value) || contains(&b, value));
            prop_assert_eq!(contains(&a.intersection(&b), value), contains(&a, value) && contains(&b, value));
            prop_assert_eq!(contains(&a.complement(), value), !contains(&a, value));
        }

        #[test]
        fn the_form_is_canonical((a, _) in set(), (b, _) in set()) {
            for set in [a.union(&b), a.intersection(&b), a.complement()] {
                for pair in set.ranges().windows(2) {
                    prop_assert!(pair[0].1 < i64::MAX && pair[0].1 + 1 < pair[1].0, "{set:?}");
                }
                prop_assert_eq!(set.complement().complement(), set);
            }
        }
    }

    #[test]
    fn points_join_to_ranges() {
        let set = IntervalSet::points(vec![5, 1, 2, 2, 3, 9]);
        assert_eq!(set.ranges(), [(1, 3), (5, 5), (9, 9)]);
        assert_eq!((set.hull(), set.len()), (Some((1, 9)), 5));
    }
}
