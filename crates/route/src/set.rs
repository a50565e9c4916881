//! The bitmap partition table: which AEUs hold a part of an object that has no partitioning key.

use eris_types::AeuId;
use std::fmt;

/// A set of AEUs, one bit each. Commands for such an object are multicast to its members.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct AeuSet {
    /// No trailing zero words, so that equal sets are equal values.
    words: Vec<u64>,
}

impl AeuSet {
    /// The empty set.
    pub const fn new() -> Self {
        AeuSet { words: Vec::new() }
    }

    /// The AEUs `0..count`.
    pub fn first(count: usize) -> Self {
        (0..count).map(|n| AeuId(n as u16)).collect()
    }

    /// Adds an AEU; true if it was not there.
    pub fn insert(&mut self, aeu: AeuId) -> bool {
        let (word, bit) = (aeu.index() / 64, 1 << (aeu.index() % 64));
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Removes an AEU; true if it was there.
    pub fn remove(&mut self, aeu: AeuId) -> bool {
        let present = self.contains(aeu);
        if present {
            self.words[aeu.index() / 64] &= !(1 << (aeu.index() % 64));
            while self.words.last() == Some(&0) {
                self.words.pop();
            }
        }
        present
    }

    /// Whether the AEU is a member.
    pub fn contains(&self, aeu: AeuId) -> bool {
        self.words
            .get(aeu.index() / 64)
            .is_some_and(|word| word >> (aeu.index() % 64) & 1 == 1)
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.words
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = AeuId> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            let rest = |word: &u64| Some(word & word.wrapping_sub(1)).filter(|&rest| rest != 0);
            std::iter::successors(Some(word).filter(|&word| word != 0), rest)
                .map(move |word| AeuId((at * 64) as u16 + word.trailing_zeros() as u16))
        })
    }
}

impl FromIterator<AeuId> for AeuSet {
    fn from_iter<I: IntoIterator<Item = AeuId>>(aeus: I) -> Self {
        let mut set = AeuSet::new();
        set.extend(aeus);
        set
    }
}

impl Extend<AeuId> for AeuSet {
    fn extend<I: IntoIterator<Item = AeuId>>(&mut self, aeus: I) {
        for aeu in aeus {
            self.insert(aeu);
        }
    }
}

impl fmt::Debug for AeuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|aeu| aeu.0)).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_a_set_of_numbers(operations in prop::collection::vec((any::<bool>(), 0u16..300), 0..200)) {
            let (mut set, mut oracle) = (AeuSet::new(), BTreeSet::new());
            for (insert, n) in operations {
                if insert {
                    prop_assert_eq!(set.insert(AeuId(n)), oracle.insert(n));
                } else {
                    prop_assert_eq!(set.remove(AeuId(n)), oracle.remove(&n));
                }
                prop_assert_eq!(set.len(), oracle.len());
                prop_assert_eq!(set.is_empty(), oracle.is_empty());
            }
            prop_assert!(set.iter().map(|aeu| aeu.0).eq(oracle.iter().copied()));
            prop_assert_eq!(&set, &oracle.iter().map(|&n| AeuId(n)).collect::<AeuSet>());
        }
    }
}
