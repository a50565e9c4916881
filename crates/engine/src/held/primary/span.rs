//! Keys between two, and what is left of them without others.

use eris_index::Key;
use std::ops::Bound;

/// Keys between two: from the first to before the end; `None`: there is no end.
#[derive(Debug)]
pub(crate) struct Span<K: Key + ?Sized> {
    pub low: Option<K::Owned>,
    pub end: Option<K::Owned>,
}

impl<K: Key + ?Sized> Clone for Span<K> {
    fn clone(&self) -> Self {
        Span {
            low: self.low.clone(),
            end: self.end.clone(),
        }
    }
}

/// Bounds of keys that are kept.
pub(super) type Bounds<'a, T> = (Bound<&'a T>, Bound<&'a T>);

impl<K: Key + ?Sized> Span<K> {
    /// All keys.
    pub fn all() -> Self {
        Span {
            low: None,
            end: None,
        }
    }

    /// Whether it has a key.
    pub fn has(&self, key: K::View<'_>) -> bool {
        let (low, end) = (self.low.as_ref(), self.end.as_ref());
        low.is_none_or(|low| K::compare(key, K::view(low)).is_ge())
            && end.is_none_or(|end| K::compare(key, K::view(end)).is_lt())
    }

    /// Whether no key can be in it.
    pub fn is_empty(&self) -> bool {
        let both = self.low.as_ref().zip(self.end.as_ref());
        both.is_some_and(|(low, end)| low >= end)
    }

    /// The keys that are in both.
    pub fn and(&self, other: &Self) -> Self {
        Span {
            low: self.low.clone().max(other.low.clone()),
            end: least(self.end.clone(), other.end.clone()),
        }
    }

    /// What is left of it without others, in order.
    pub fn without(&self, mut others: Vec<Span<K>>) -> Vec<Span<K>> {
        others.retain(|other| !other.is_empty());
        others.sort_by(|one, other| one.low.cmp(&other.low));
        let (mut left, mut low) = (Vec::new(), self.low.clone());
        let mut add = |low: &Option<K::Owned>, end: Option<K::Owned>| {
            let low = low.clone();
            let gap = Span { low, end };
            if !gap.is_empty() {
                left.push(gap);
            }
        };
        for other in others {
            if let Some(first) = other.low {
                add(&low, least(Some(first), self.end.clone()));
            }
            match other.end {
                Some(end) => low = low.max(Some(end)),
                None => return left,
            }
        }
        add(&low, self.end.clone());
        left
    }

    /// Those of its keys that lie within bounds.
    pub(super) fn cut<'a>(&'a self, (from, to): Bounds<'a, K::Owned>) -> Bounds<'a, K::Owned> {
        let from = match (self.low.as_ref(), from) {
            (None, from) => from,
            (Some(low), Bound::Included(key) | Bound::Excluded(key)) if key >= low => from,
            (Some(low), _) => Bound::Included(low),
        };
        let to = match (self.end.as_ref(), to) {
            (None, to) => to,
            (Some(end), Bound::Included(key)) if key < end => to,
            (Some(end), Bound::Excluded(key)) if key <= end => to,
            (Some(end), _) => Bound::Excluded(end),
        };
        (from, to)
    }

    /// As bounds.
    pub(super) fn bounds(&self) -> Bounds<'_, K::Owned> {
        let (low, end) = (self.low.as_ref(), self.end.as_ref());
        (
            low.map_or(Bound::Unbounded, Bound::Included),
            end.map_or(Bound::Unbounded, Bound::Excluded),
        )
    }
}

/// The least of two ends, of which there may be none.
pub(super) fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// Whether nothing can lie within bounds.
pub(super) fn is_nothing<T: Ord>(bounds: &Bounds<'_, T>) -> bool {
    match bounds {
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Excluded(end)) => low >= end,
        (Bound::Excluded(before), Bound::Included(high)) => before >= high,
        _ => false,
    }
}

/// Bounds as a tree takes them.
pub(super) fn views<'a, K: Key + ?Sized>(
    (from, to): Bounds<'a, K::Owned>,
) -> (Bound<K::View<'a>>, Bound<K::View<'a>>) {
    (from.map(K::view), to.map(K::view))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spans() -> impl Strategy<Value = Vec<(Option<u64>, Option<u64>)>> {
        let end = || prop::option::weighted(0.9, 0_u64..20);
        prop::collection::vec((end(), end()), 0..5)
    }

    proptest! {
        #[test]
        fn what_is_left_has_the_keys_that_no_other_has(all in spans(), low in prop::option::of(0_u64..20), end in prop::option::of(0_u64..20)) {
            let span: Span<u64> = Span { low, end };
            let others: Vec<Span<u64>> = all.into_iter().map(|(low, end)| Span { low, end }).collect();
            let left = span.without(others.clone());
            for key in 0..22 {
                let expected = span.has(key) && !others.iter().any(|other| other.has(key));
                prop_assert_eq!(left.iter().filter(|left| left.has(key)).count(), usize::from(expected), "{}", key);
            }
            prop_assert!(left.is_sorted_by(|one, other| one.end.is_some() && one.end <= other.low));
        }

        #[test]
        fn cut_bounds_have_the_keys_that_both_have(low in prop::option::of(0_u64..9), end in prop::option::of(0_u64..9), from in 0_u64..9, to in 0_u64..9, kinds in 0..9) {
            let bound = |kind, key| match kind {
                0 => Bound::Unbounded,
                1 => Bound::Included(key),
                _ => Bound::Excluded(key),
            };
            let span: Span<u64> = Span { low, end };
            let bounds = (bound(kinds % 3, &from), bound(kinds / 3, &to));
            let cut = span.cut(bounds);
            let both: Vec<u64> = (0..10).filter(|key| span.has(*key) && std::ops::RangeBounds::<u64>::contains(&bounds, key)).collect();
            let found: Vec<u64> = (0..10).filter(|key| std::ops::RangeBounds::<u64>::contains(&cut, key)).collect();
            prop_assert_eq!(is_nothing(&cut) && !both.is_empty(), false);
            prop_assert_eq!(found, both);
        }
    }
}
