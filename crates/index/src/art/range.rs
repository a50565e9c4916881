//! Ranges of keys in order, from both ends.

use super::cursor::{Cursor, Subtree, through};
use super::node::{BranchNode, Prefix, with_inner};
use super::reference::{NodeKind, Ref};
use super::{Art, Key};
use std::ops::{Bound, RangeBounds};

/// Keys with their values, ascending; from the other end by [`Iterator::rev`]. See [`Art::range`].
pub struct Range<'a, K: Key + ?Sized> {
    tree: &'a Art<K>,
    part: Subtree<K>,
    /// What is left lies between these.
    lower: Bound<K::View<'a>>,
    upper: Bound<K::View<'a>>,
    /// Made when first asked.
    front: Option<Cursor<'a, K, false>>,
    back: Option<Cursor<'a, K, true>>,
}

impl<K: Key + ?Sized> Art<K> {
    /// All keys, ascending.
    pub fn iter(&self) -> Range<'_, K> {
        self.range(..)
    }

    /// The keys within bounds, ascending.
    ///
    /// ```
    /// # use eris_index::Art;
    /// # use eris_numa::{HugePages, Memory, Topology};
    /// # use eris_types::{NodeId, ObjectId};
    /// # let memory = Memory::new(&Topology::fake(1, 1), HugePages::Auto, Some(64 << 20))?;
    /// let mut tree: Art<u64> = Art::new(memory.node(NodeId(0)), ObjectId(1));
    /// for key in [3, 1, 500, 7] {
    ///     tree.insert(key, key * 10)?;
    /// }
    /// assert!(tree.range(2..=7).eq([(3, 30), (7, 70)]));
    /// assert_eq!(tree.range(..).next_back(), Some((500, 5000)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn range<'a>(&'a self, bounds: impl RangeBounds<K::View<'a>>) -> Range<'a, K> {
        let part = Subtree {
            at: self.root,
            depth: 0,
            path: K::Path::default(),
        };
        self.range_in(
            part,
            bounds.start_bound().cloned(),
            bounds.end_bound().cloned(),
        )
    }

    /// The least key with its value.
    pub fn first(&self) -> Option<(K::View<'_>, u64)> {
        self.iter().next()
    }

    /// The greatest key with its value.
    pub fn last(&self) -> Option<(K::View<'_>, u64)> {
        self.iter().next_back()
    }

    fn range_in<'a>(
        &'a self,
        part: Subtree<K>,
        lower: Bound<K::View<'a>>,
        upper: Bound<K::View<'a>>,
    ) -> Range<'a, K> {
        Range {
            tree: self,
            part,
            lower,
            upper,
            front: None,
            back: None,
        }
    }
}

impl Art<[u8]> {
    /// The keys that begin with these bytes, ascending.
    pub fn prefix(&self, bytes: &[u8]) -> Range<'_, [u8]> {
        let part = self.below(bytes).unwrap_or(Subtree {
            at: Ref::NONE,
            depth: 0,
            path: (),
        });
        self.range_in(part, Bound::Unbounded, Bound::Unbounded)
    }

    /// The part of the tree that holds all keys that begin with these bytes.
    fn below(&self, bytes: &[u8]) -> Option<Subtree<[u8]>> {
        let mut part = Subtree {
            at: self.root,
            depth: 0,
            path: (),
        };
        while part.depth < bytes.len() {
            // SAFETY: references in the tree lead to live nodes and records, and the kind says the type.
            unsafe {
                match part.at.kind() {
                    NodeKind::None => return None,
                    NodeKind::Record => {
                        let key = self.space.record_key::<[u8]>(part.at);
                        return key.starts_with(bytes).then_some(part);
                    }
                    NodeKind::Prefix => {
                        let prefix = self.space.node::<Prefix>(part.at);
                        let wanted = &bytes[part.depth..];
                        let both = wanted.len().min(prefix.bytes().len());
                        if prefix.bytes()[..both] != wanted[..both] {
                            return None;
                        }
                        part = through(part, prefix);
                    }
                    kind => with_inner!(kind, N => {
                        part.at = self.space.node::<N>(part.at).find(bytes[part.depth])?;
                        part.depth += 1;
                    }, _ => unreachable!("byte strings lie in records")),
                }
            }
        }
        Some(part)
    }
}

impl<'a, K: Key + ?Sized> Range<'a, K> {
    fn is_beyond(&self, key: K::View<'_>) -> bool {
        match self.upper {
            Bound::Unbounded => false,
            Bound::Included(last) => K::compare(key, last).is_gt(),
            Bound::Excluded(end) => K::compare(key, end).is_ge(),
        }
    }

    fn is_before(&self, key: K::View<'_>) -> bool {
        match self.lower {
            Bound::Unbounded => false,
            Bound::Included(first) => K::compare(key, first).is_lt(),
            Bound::Excluded(before) => K::compare(key, before).is_le(),
        }
    }
}

impl<'a, K: Key + ?Sized> Iterator for Range<'a, K> {
    type Item = (K::View<'a>, u64);

    fn next(&mut self) -> Option<Self::Item> {
        let cursor = self.front.get_or_insert_with(|| match self.lower {
            Bound::Unbounded => Cursor::new(self.tree, self.part),
            Bound::Included(key) | Bound::Excluded(key) => Cursor::seek(self.tree, self.part, key),
        });
        let mut found = cursor.next()?;
        if matches!(self.lower, Bound::Excluded(before) if K::compare(found.0, before).is_eq()) {
            found = cursor.next()?;
        }
        // It may have met the walk from the other end.
        if self.is_beyond(found.0) {
            self.part.at = Ref::NONE;
            self.front = Some(Cursor::new(self.tree, self.part));
            return None;
        }
        self.lower = Bound::Excluded(found.0);
        Some(found)
    }
}

impl<K: Key + ?Sized> DoubleEndedIterator for Range<'_, K> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let cursor = self.back.get_or_insert_with(|| match self.upper {
            Bound::Unbounded => Cursor::new(self.tree, self.part),
            Bound::Included(key) | Bound::Excluded(key) => Cursor::seek(self.tree, self.part, key),
        });
        let mut found = cursor.next()?;
        if matches!(self.upper, Bound::Excluded(end) if K::compare(found.0, end).is_eq()) {
            found = cursor.next()?;
        }
        if self.is_before(found.0) {
            self.part.at = Ref::NONE;
            self.back = Some(Cursor::new(self.tree, self.part));
            return None;
        }
        self.upper = Bound::Excluded(found.0);
        Some(found)
    }
}

impl<K: Key + ?Sized> std::iter::FusedIterator for Range<'_, K> {}
