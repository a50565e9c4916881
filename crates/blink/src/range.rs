//! Entries in the order of their keys, leaf by leaf, from either end.
//!
//! ```text
//! left: what is still to be read    front ◀──[ a leaf ]   first … last   [ a leaf ]──▶ back
//! ```
//! Of a leaf all entries are read at one version, with its fences. Where the next leaf begins, or the one before it
//! ends, is a fence, whatever is split meanwhile. So nothing is missed or seen twice that is there all the time.

use crate::entries::Buffer;
use crate::key::Key;
use crate::node::{Node, Side};
use crate::tree::Tree;
use std::ops::{Bound, RangeBounds};

/// Entries of a [`Tree`] in the order of their keys; see [`Tree::range`].
///
/// As an iterator it copies each key. [`next_leaf`](Self::next_leaf) and [`next_leaf_back`](Self::next_leaf_back) copy
/// a leaf at a time.
pub struct Range<'a, K: Key + ?Sized = u64> {
    tree: &'a Tree<K>,
    left: Option<Left<K>>,
    front: Rest<K>,
    back: Rest<K>,
}

/// What was not read yet. Its first key is part of it, and its last one may be.
struct Left<K: Key + ?Sized> {
    first: K::Owned,
    last: K::Owned,
    has_last: bool,
}

impl<K: Key + ?Sized> Left<K> {
    fn first(&self) -> K::Ref<'_> {
        K::lend(&self.first)
    }

    fn last(&self) -> K::Ref<'_> {
        K::lend(&self.last)
    }

    /// Whether there may be something.
    fn is_some(&self) -> bool {
        let beside = K::compare(self.first(), self.last());
        beside.is_lt() || (beside.is_eq() && self.has_last)
    }
}

/// Entries of a leaf, and which of them are still to be given out.
struct Rest<K: Key + ?Sized> {
    entries: K::Entries,
    from: usize,
    to: usize,
}

impl<K: Key + ?Sized> Rest<K> {
    fn new() -> Self {
        Rest {
            entries: K::Entries::default(),
            from: 0,
            to: 0,
        }
    }

    fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// All entries are still to be given out.
    fn is_filled(&mut self) {
        (self.from, self.to) = (0, self.entries.count());
    }

    fn at(&self, at: usize) -> (K::Owned, u64) {
        let (key, value) = self.entries.entry(at);
        (K::own(key), value)
    }

    fn pop_front(&mut self) -> Option<(K::Owned, u64)> {
        if self.is_empty() {
            return None;
        }
        self.from += 1;
        Some(self.at(self.from - 1))
    }

    fn pop_back(&mut self) -> Option<(K::Owned, u64)> {
        if self.is_empty() {
            return None;
        }
        self.to -= 1;
        Some(self.at(self.to))
    }

    /// Gives out all that are left. Whether there are any.
    fn move_to(&mut self, entries: &mut K::Entries) -> bool {
        let is_there = !self.is_empty();
        for at in self.from..self.to {
            let (key, value) = self.entries.entry(at);
            entries.add(key, value);
        }
        self.from = self.to;
        is_there
    }
}

impl<'a, K: Key + ?Sized> Range<'a, K> {
    pub(crate) fn new<'k>(tree: &'a Tree<K>, keys: impl RangeBounds<K::Ref<'k>>) -> Self {
        let first = match keys.start_bound() {
            Bound::Included(&first) => Some(K::own(first)),
            Bound::Excluded(&before) => K::successor(before),
            Bound::Unbounded => Some(K::own(K::least())),
        };
        let (last, has_last) = match keys.end_bound() {
            Bound::Included(&last) => (K::own(last), true),
            Bound::Excluded(&behind) => (K::own(behind), false),
            Bound::Unbounded => (K::own(K::greatest()), true),
        };
        let left = first.map(|first| Left {
            first,
            last,
            has_last,
        });
        Range {
            tree,
            left: left.filter(Left::is_some),
            front: Rest::new(),
            back: Rest::new(),
        }
    }

    /// Replaces the entries by those of the next leaf that are in the range, ascending. Whether there are any: a range
    /// that has ended leaves none.
    pub fn next_leaf(&mut self, entries: &mut K::Entries) -> bool {
        entries.empty();
        if self.front.move_to(entries) {
            return true;
        }
        while entries.count() == 0 && self.left.is_some() {
            self.read_first(entries);
        }
        entries.count() > 0 || self.back.move_to(entries)
    }

    /// The same from the end of the range: those of its last leaf, which are ascending among themselves.
    pub fn next_leaf_back(&mut self, entries: &mut K::Entries) -> bool {
        entries.empty();
        if self.back.move_to(entries) {
            return true;
        }
        while entries.count() == 0 && self.left.is_some() {
            self.read_last(entries);
        }
        entries.count() > 0 || self.front.move_to(entries)
    }

    /// Reads what the first leaf has of the range.
    fn read_first(&mut self, entries: &mut K::Entries) {
        let Some(left) = self.left.take() else {
            return;
        };
        let high = self.tree.find(left.first(), 0, |_, leaf| {
            read(leaf, &left, End::First, entries);
            (!leaf.meta().is_last()).then(|| K::fences(leaf).1)
        });
        let high = high.expect("every tree has leaves");
        self.left = high
            .and_then(|high| K::successor(K::lend(&high)))
            .map(|first| Left { first, ..left })
            .filter(Left::is_some);
    }

    /// Reads what the last leaf has of the range.
    fn read_last(&mut self, entries: &mut K::Entries) {
        let Some(left) = self.left.take() else {
            return;
        };
        let low = self.tree.find(left.last(), 0, |_, leaf| {
            read(leaf, &left, End::Last, entries);
            (!leaf.meta().is_first()).then(|| K::fences(leaf).0)
        });
        let low = low.expect("every tree has leaves");
        self.left = low
            .map(|last| Left {
                last,
                has_last: true,
                ..left
            })
            .filter(Left::is_some);
    }
}

/// The end of a range that a leaf has, which it was found by.
#[derive(Clone, Copy, PartialEq)]
enum End {
    First,
    Last,
}

/// Copies the entries of a leaf that are in a range. What was copied before, at another version, goes.
fn read<K: Key + ?Sized>(leaf: Node<'_, K>, left: &Left<K>, has: End, entries: &mut K::Entries) {
    entries.empty();
    let has = |end, key| end == has || K::side(leaf, key, 0) == Side::Here;
    let from = match has(End::First, left.first()) {
        true => K::find(leaf, left.first()).0,
        false => 0,
    };
    let to = match has(End::Last, left.last()) {
        true => {
            let (at, is_there) = K::find(leaf, left.last());
            at + usize::from(is_there && left.has_last)
        }
        false => leaf.count(),
    };
    K::read(leaf, from..to, entries);
}

impl<K: Key + ?Sized> Iterator for Range<'_, K> {
    type Item = (K::Owned, u64);

    fn next(&mut self) -> Option<Self::Item> {
        while self.front.is_empty() && self.left.is_some() {
            let mut entries = std::mem::take(&mut self.front.entries);
            self.read_first(&mut entries);
            self.front.entries = entries;
            self.front.is_filled();
        }
        self.front.pop_front().or_else(|| self.back.pop_front())
    }
}

impl<K: Key + ?Sized> DoubleEndedIterator for Range<'_, K> {
    fn next_back(&mut self) -> Option<Self::Item> {
        while self.back.is_empty() && self.left.is_some() {
            let mut entries = std::mem::take(&mut self.back.entries);
            self.read_last(&mut entries);
            self.back.entries = entries;
            self.back.is_filled();
        }
        self.back.pop_back().or_else(|| self.front.pop_back())
    }
}
