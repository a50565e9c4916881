//! The bitmap partition table: which AEUs hold a part of an object that has no partitioning key.

use eris_types::AeuId;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

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
        members(self.words.iter().copied())
    }
}

/// The members of a set of these words, ascending.
fn members(words: impl Iterator<Item = u64>) -> impl Iterator<Item = AeuId> {
    words.enumerate().flat_map(|(at, word)| {
        let rest = |word: &u64| Some(word & word.wrapping_sub(1)).filter(|&rest| rest != 0);
        std::iter::successors(Some(word).filter(|&word| word != 0), rest)
            .map(move |word| AeuId((at * 64) as u16 + word.trailing_zeros() as u16))
    })
}

/// A bitmap partition table that everybody reads, and in which each AEU sets and clears its own bit.
///
/// Bits change seldom: with an owner's first row, and with its last one. So the words stay in the caches of all who
/// read them, and nobody waits. Everything is relaxed. A bit guards no memory. Who must see it has seen something else
/// that its AEU released after it: the commit that brought the first row.
#[derive(Debug)]
pub struct SharedAeuSet {
    words: Box<[AtomicU64]>,
}

impl SharedAeuSet {
    /// An empty one, for the AEUs `0..count`.
    pub fn new(count: usize) -> Self {
        let words = (0..count.div_ceil(64)).map(|_| AtomicU64::new(0));
        SharedAeuSet {
            words: words.collect(),
        }
    }

    /// Says whether an AEU is a member. For that AEU alone. Nothing is written if it is known.
    pub fn set(&self, aeu: AeuId, is_member: bool) {
        let (word, bit) = (&self.words[aeu.index() / 64], 1 << (aeu.index() % 64));
        if (word.load(Ordering::Relaxed) & bit != 0) == is_member {
            return;
        }
        match is_member {
            true => word.fetch_or(bit, Ordering::Relaxed),
            false => word.fetch_and(!bit, Ordering::Relaxed),
        };
    }

    /// The members, ascending, each as it was some time during the walk.
    pub fn iter(&self) -> impl Iterator<Item = AeuId> + '_ {
        members(self.words.iter().map(|word| word.load(Ordering::Relaxed)))
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
            let shared = SharedAeuSet::new(300);
            (0..300).for_each(|n| shared.set(AeuId(n), !oracle.contains(&n)));
            (0..300).for_each(|n| shared.set(AeuId(n), oracle.contains(&n)));
            prop_assert!(shared.iter().map(|aeu| aeu.0).eq(oracle.iter().copied()));
            prop_assert_eq!(&set, &oracle.iter().map(|&n| AeuId(n)).collect::<AeuSet>());
        }
    }

    #[test]
    fn bits_of_one_word_that_change_at_once_are_all_kept() {
        let shared = SharedAeuSet::new(70);
        std::thread::scope(|scope| {
            for n in 0..4 {
                let shared = &shared;
                scope.spawn(move || {
                    for round in 0..10_000 {
                        shared.set(AeuId(60 + n), round % 2 == 0 || round == 9_999);
                    }
                });
            }
        });
        let members: Vec<u16> = shared.iter().map(|aeu| aeu.0).collect();
        assert_eq!(members, [60, 61, 62, 63]);
    }
}
