//! Entries that are copied from nodes.

use crate::key::Key;

/// Entries in the order of their keys, in memory that is used again.
pub trait Buffer<K: Key + ?Sized>: Default {
    /// How many there are.
    #[doc(hidden)]
    fn count(&self) -> usize;
    /// The entry at a position.
    #[doc(hidden)]
    fn entry(&self, at: usize) -> (K::Ref<'_>, u64);
    /// Puts one behind the others.
    #[doc(hidden)]
    fn add(&mut self, key: K::Ref<'_>, value: u64);
    /// Takes the last one out.
    #[doc(hidden)]
    fn drop_last(&mut self);
    /// Takes all of them out.
    #[doc(hidden)]
    fn empty(&mut self);
}

impl Buffer<u64> for Vec<(u64, u64)> {
    fn count(&self) -> usize {
        self.len()
    }

    fn entry(&self, at: usize) -> (u64, u64) {
        self[at]
    }

    fn add(&mut self, key: u64, value: u64) {
        self.push((key, value));
    }

    fn drop_last(&mut self) {
        self.pop();
    }

    fn empty(&mut self) {
        self.clear();
    }
}

/// Byte strings that lie one behind the other, in their order, and their values.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    bytes: Vec<u8>,
    /// Where each ends, and its value.
    ends: Vec<(usize, u64)>,
}

impl Entries {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The entry at a position.
    ///
    /// # Panics
    /// If there is none.
    pub fn get(&self, at: usize) -> (&[u8], u64) {
        let begin = at.checked_sub(1).map_or(0, |before| self.ends[before].0);
        let (end, value) = self.ends[at];
        (&self.bytes[begin..end], value)
    }

    /// All of them, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], u64)> + ExactSizeIterator {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Takes all of them out.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Puts one behind the others, of which `write` appends the bytes, and so many of them are the key's.
    #[inline]
    pub(crate) fn add_with(&mut self, bytes: usize, value: u64, write: impl FnOnce(&mut Vec<u8>)) {
        let end = self.bytes.len() + bytes;
        write(&mut self.bytes);
        self.bytes.truncate(end);
        self.ends.push((self.bytes.len(), value));
    }
}

impl Buffer<[u8]> for Entries {
    fn count(&self) -> usize {
        self.len()
    }

    fn entry(&self, at: usize) -> (&[u8], u64) {
        self.get(at)
    }

    fn add(&mut self, key: &[u8], value: u64) {
        self.add_with(key.len(), value, |bytes| bytes.extend_from_slice(key));
    }

    fn drop_last(&mut self) {
        self.ends.pop();
        self.bytes
            .truncate(self.ends.last().map_or(0, |(end, _)| *end));
    }

    fn empty(&mut self) {
        self.clear();
    }
}
