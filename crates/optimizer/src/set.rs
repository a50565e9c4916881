//! Sets of relations.

use std::fmt;

/// A set of relations by their numbers, of which the greatest is 63.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RelationSet(u64);

impl RelationSet {
    /// So many relations a set can have.
    pub const CAPACITY: usize = 64;

    /// None.
    pub const EMPTY: RelationSet = RelationSet(0);

    /// This one alone.
    pub fn one(relation: usize) -> Self {
        RelationSet(1 << relation)
    }

    /// The relations 0 to `count` - 1.
    pub fn first(count: usize) -> Self {
        match count {
            Self::CAPACITY => RelationSet(u64::MAX),
            _ => RelationSet((1 << count) - 1),
        }
    }

    /// Whether it has no relation.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether it has this relation.
    pub fn contains(self, relation: usize) -> bool {
        self.0 >> relation & 1 == 1
    }

    /// Whether all of the other's are in this one.
    pub fn includes(self, other: RelationSet) -> bool {
        other.0 & !self.0 == 0
    }

    /// Whether both have one in common.
    pub fn meets(self, other: RelationSet) -> bool {
        self.0 & other.0 != 0
    }

    /// The relations of both.
    pub fn union(self, other: RelationSet) -> Self {
        RelationSet(self.0 | other.0)
    }

    /// Its relations that the other has not.
    pub fn without(self, other: RelationSet) -> Self {
        RelationSet(self.0 & !other.0)
    }

    /// Their numbers, the least first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = usize> + Clone {
        (0..Self::CAPACITY).filter(move |&relation| self.contains(relation))
    }

    /// The subsets of this set but the empty one, each after those that it includes.
    pub(crate) fn subsets(self) -> impl Iterator<Item = RelationSet> {
        let mut next = Some(0_u64);
        std::iter::from_fn(move || {
            // The next number that has bits of the set only.
            let subset = next?.wrapping_sub(self.0) & self.0;
            next = (subset != self.0).then_some(subset);
            (subset != 0).then_some(RelationSet(subset))
        })
    }
}

impl FromIterator<usize> for RelationSet {
    fn from_iter<I: IntoIterator<Item = usize>>(relations: I) -> Self {
        let relations = relations.into_iter();
        relations.fold(Self::EMPTY, |set, relation| set.union(Self::one(relation)))
    }
}

impl fmt::Debug for RelationSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subsets_come_behind_what_they_include() {
        let set = RelationSet::from_iter([1, 3, 4]);
        let subsets: Vec<_> = set.subsets().collect();
        let expected = [
            vec![1],
            vec![3],
            vec![1, 3],
            vec![4],
            vec![1, 4],
            vec![3, 4],
            vec![1, 3, 4],
        ];
        assert_eq!(subsets, expected.map(RelationSet::from_iter));
        assert_eq!(RelationSet::EMPTY.subsets().count(), 0);
    }

    #[test]
    fn sets_may_be_full() {
        let all = RelationSet::first(64);
        assert_eq!(all.count(), 64);
        assert!(all.includes(RelationSet::one(63)));
        assert_eq!(RelationSet::first(3), RelationSet::from_iter([0, 1, 2]));
    }
}
