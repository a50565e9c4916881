//! Many keys at once: lookups in groups ([`super::descent`]), and what else a batch can do.
//!
//! Writes go down like lookups first, which brings all they need into the caches, and are then done one after the
//! other, in order, by the code for single keys.

use super::descent::{Descent, LANES};
use super::insert::Present;
use super::{Art, Key};
use crate::BatchError;
use std::ops::RangeBounds;

impl<K: Key + ?Sized> Art<K> {
    /// Brings into the caches what lies on the way to up to [`LANES`] keys. A key beside the one before it, as in a
    /// batch in order, needs nothing more.
    fn warm<'k>(&self, keys: impl Iterator<Item = K::View<'k>>) {
        let mut apart: [Option<K::View<'k>>; LANES] = [None; LANES];
        let mut lanes = 0;
        let mut last = None;
        for key in keys {
            if last.is_none_or(|last| !K::adjoin(last, key)) {
                apart[lanes] = Some(key);
                lanes += 1;
            }
            last = Some(key);
        }
        let key = |lane: usize| apart[lane].expect("a key per lane");
        Descent::new(self).run(lanes, key, |_, _| {});
    }

    /// Looks up many keys: `values[i]` becomes the value of `keys[i]`.
    ///
    /// # Panics
    /// If there are not as many values as keys.
    pub fn get_many(&self, keys: &[K::View<'_>], values: &mut [Option<u64>]) {
        assert_eq!(keys.len(), values.len(), "a value per key");
        let mut descent = Descent::new(self);
        for (keys, values) in keys.chunks(LANES).zip(values.chunks_mut(LANES)) {
            let found = |lane: usize, value| values[lane] = value;
            descent.run(keys.len(), |lane| keys[lane], found);
        }
    }

    /// [`Art::insert`] for many entries, in order: `present[i]` becomes what it returns for `entries[i]`.
    ///
    /// # Errors
    /// The error of the first entry that was rejected. Those before it are in the tree, it and those after it are not.
    ///
    /// # Panics
    /// As [`Art::insert`], and if `present` is not as long as `entries`.
    pub fn insert_many(
        &mut self,
        entries: &[(K::View<'_>, u64)],
        present: &mut [Option<u64>],
    ) -> Result<(), BatchError> {
        self.put_many(entries, present, Present::Keep)
    }

    /// [`Art::upsert`] for many entries, in order: `before[i]` becomes what it returns for `entries[i]`.
    ///
    /// # Errors
    /// As [`Art::insert_many`].
    ///
    /// # Panics
    /// As [`Art::insert_many`].
    pub fn upsert_many(
        &mut self,
        entries: &[(K::View<'_>, u64)],
        before: &mut [Option<u64>],
    ) -> Result<(), BatchError> {
        self.put_many(entries, before, Present::Replace)
    }

    fn put_many(
        &mut self,
        entries: &[(K::View<'_>, u64)],
        before: &mut [Option<u64>],
        present: Present,
    ) -> Result<(), BatchError> {
        assert_eq!(entries.len(), before.len(), "a place per entry");
        let mut done = 0;
        for (entries, before) in entries.chunks(LANES).zip(before.chunks_mut(LANES)) {
            self.warm(entries.iter().map(|entry| entry.0));
            let mut rest = before;
            for beside in entries.chunk_by(|a, b| K::adjoin(a.0, b.0)) {
                let (before, others) = rest.split_at_mut(beside.len());
                rest = others;
                let put = match beside {
                    [(key, value)] => (self.put(*key, *value, present))
                        .map(|old| before[0] = old)
                        .map_err(|error| (0, error)),
                    _ => self.put_beside(beside, before, present),
                };
                put.map_err(|(here, error)| BatchError {
                    done: done + here,
                    error,
                })?;
                done += beside.len();
            }
        }
        Ok(())
    }

    /// [`Art::remove`] for many keys, in order: `values[i]` becomes what it returns for `keys[i]`.
    ///
    /// # Panics
    /// If there are not as many values as keys.
    pub fn remove_many(&mut self, keys: &[K::View<'_>], values: &mut [Option<u64>]) {
        assert_eq!(keys.len(), values.len(), "a value per key");
        for (keys, values) in keys.chunks(LANES).zip(values.chunks_mut(LANES)) {
            self.warm(keys.iter().copied());
            for (key, value) in keys.iter().zip(values) {
                *value = self.remove(*key);
            }
        }
    }

    /// [`Art::range`] for many bounds, one after the other: `visit` gets the number of the bounds, a key and its value,
    /// and says whether to go on with these bounds.
    pub fn range_many<'a, B: RangeBounds<K::View<'a>>>(
        &'a self,
        bounds: &[B],
        mut visit: impl FnMut(usize, K::View<'a>, u64) -> bool,
    ) {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let mut number = 0;
        for bounds in bounds.chunks(LANES) {
            self.warm(
                bounds
                    .iter()
                    .filter_map(|bounds| match bounds.start_bound() {
                        Included(key) | Excluded(key) => Some(*key),
                        Unbounded => None,
                    }),
            );
            for bounds in bounds {
                let range = (bounds.start_bound().cloned(), bounds.end_bound().cloned());
                self.range(range)
                    .all(|(key, value)| visit(number, key, value));
                number += 1;
            }
        }
    }
}
