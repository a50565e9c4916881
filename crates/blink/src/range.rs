//! Entries in the order of their keys, leaf by leaf, from either end.
//!
//! ```text
//! left: what is still to be read    front ◀──[ a leaf ]   next … last   [ a leaf ]──▶ back
//! ```
//! Of a leaf all entries are read at one version, with its fences. Where the next leaf begins, or the one before it
//! ends, is a fence, whatever is split meanwhile. So nothing is missed or seen twice that is there all the time.

use crate::node::{Node, ROOM};
use crate::tree::Tree;
use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};

/// Entries of a [`Tree`] in the order of their keys; see [`Tree::range`].
pub struct Range<'a> {
    tree: &'a Tree,
    /// The first and the last key that were not read.
    left: Option<(u64, u64)>,
    front: VecDeque<(u64, u64)>,
    back: VecDeque<(u64, u64)>,
}

/// What a leaf had at some time.
struct Leaf {
    low: Option<u64>,
    high: Option<u64>,
    count: usize,
    entries: [(u64, u64); ROOM],
}

impl Leaf {
    fn read(node: Node<'_>) -> Self {
        let meta = node.meta();
        let mut entries = [(0, 0); ROOM];
        let places = entries.iter_mut().take(meta.count()).enumerate();
        places.for_each(|(at, entry)| *entry = (node.key(at), node.value(at)));
        Leaf {
            low: (!meta.is_first()).then(|| node.low()),
            high: (!meta.is_last()).then(|| node.high()),
            count: meta.count(),
            entries,
        }
    }
}

impl<'a> Range<'a> {
    pub(crate) fn new(tree: &'a Tree, keys: impl RangeBounds<u64>) -> Self {
        let first = match keys.start_bound() {
            Bound::Included(&first) => Some(first),
            Bound::Excluded(&before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let last = match keys.end_bound() {
            Bound::Included(&last) => Some(last),
            Bound::Excluded(&behind) => behind.checked_sub(1),
            Bound::Unbounded => Some(u64::MAX),
        };
        let left = first.zip(last).filter(|(first, last)| first <= last);
        Range {
            tree,
            left,
            front: VecDeque::new(),
            back: VecDeque::new(),
        }
    }

    /// The leaf that has a key.
    fn leaf(&self, key: u64) -> Leaf {
        let leaf = self.tree.find(key, 0, |_, node| Leaf::read(node));
        leaf.expect("every tree has leaves")
    }

    /// Leaves the next leaf out. How many entries it has in the range; `None`: there is none.
    pub(crate) fn skip_leaf(&mut self) -> Option<usize> {
        self.left?;
        self.read_leaf();
        let count = self.front.len();
        self.front.clear();
        Some(count)
    }

    fn read_leaf(&mut self) {
        if let Some((first, last)) = self.left {
            let leaf = self.leaf(first);
            self.front.extend(Self::entries(&leaf, (first, last)));
            self.left = (leaf.high)
                .filter(|high| *high < last)
                .map(|high| (high + 1, last));
        }
    }

    fn entries(
        leaf: &Leaf,
        (first, last): (u64, u64),
    ) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        let entries = leaf.entries[..leaf.count].iter().copied();
        entries.filter(move |(key, _)| (first..=last).contains(key))
    }
}

impl Iterator for Range<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        while self.front.is_empty() && self.left.is_some() {
            self.read_leaf();
        }
        self.front.pop_front().or_else(|| self.back.pop_front())
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<(u64, u64)> {
        while self.back.is_empty()
            && let Some((first, last)) = self.left
        {
            let leaf = self.leaf(last);
            self.back.extend(Self::entries(&leaf, (first, last)));
            self.left = (leaf.low)
                .filter(|low| *low >= first)
                .map(|low| (first, low));
        }
        self.back.pop_back().or_else(|| self.front.pop_back())
    }
}
