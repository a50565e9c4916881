//! Many strings, one behind the other.

use std::ops::Range;

/// Strings by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Strings {
    bytes: String,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Strings {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(super) fn push(&mut self, string: &str) {
        self.bytes.push_str(string);
        self.ends.push(self.bytes.len());
    }

    #[inline]
    pub(super) fn get(&self, number: usize) -> &str {
        &self.bytes[self.place(number)]
    }

    fn place(&self, number: usize) -> Range<usize> {
        let start = number.checked_sub(1).map_or(0, |last| self.ends[last]);
        start..self.ends[number]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).map(|number| self.get(number))
    }

    /// Forgets all, but keeps the room for them.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Memory taken.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}
