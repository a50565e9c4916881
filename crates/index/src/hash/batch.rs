//! Many keys at once. First the lines of all keys of a group are prefetched, then they are looked at. Where the slot
//! leads to a record, it is prefetched and looked at in a third pass.

use super::{Hash, HashIndex, record};
use crate::BatchError;
use crate::art::{Key, NodeKind, Present};
use crate::prefetch::prefetch;

/// Keys in a group.
const LANES: usize = 64;

impl<K: Key + ?Sized> HashIndex<K> {
    /// Looks up many keys: `values[i]` becomes the value of `keys[i]`.
    ///
    /// # Panics
    /// If there are not as many values as keys.
    pub fn get_many(&self, keys: &[K::View<'_>], values: &mut [Option<u64>]) {
        assert_eq!(keys.len(), values.len(), "a value per key");
        for (keys, values) in keys.chunks(LANES).zip(values.chunks_mut(LANES)) {
            let hashes = self.warm(keys.iter().copied());
            for ((key, hash), value) in keys.iter().zip(hashes).zip(values) {
                *value = self.get_hashed(*key, hash);
            }
        }
    }

    /// [`HashIndex::insert`] for many entries, in order: `present[i]` becomes what it returns for `entries[i]`.
    ///
    /// # Errors
    /// The error of the first entry that was rejected. Those before it are in the index, it and those after it are not.
    ///
    /// # Panics
    /// If `present` is not as long as `entries`.
    pub fn insert_many(
        &mut self,
        entries: &[(K::View<'_>, u64)],
        present: &mut [Option<u64>],
    ) -> Result<(), BatchError> {
        self.put_many(entries, present, Present::Keep)
    }

    /// [`HashIndex::upsert`] for many entries, in order: `before[i]` becomes what it returns for `entries[i]`.
    ///
    /// # Errors
    /// As [`HashIndex::insert_many`].
    ///
    /// # Panics
    /// As [`HashIndex::insert_many`].
    pub fn upsert_many(
        &mut self,
        entries: &[(K::View<'_>, u64)],
        before: &mut [Option<u64>],
    ) -> Result<(), BatchError> {
        self.put_many(entries, before, Present::Replace)
    }

    /// [`HashIndex::remove`] for many keys, in order: `values[i]` becomes what it returns for `keys[i]`.
    ///
    /// # Panics
    /// If there are not as many values as keys.
    pub fn remove_many(&mut self, keys: &[K::View<'_>], values: &mut [Option<u64>]) {
        assert_eq!(keys.len(), values.len(), "a value per key");
        for (keys, values) in keys.chunks(LANES).zip(values.chunks_mut(LANES)) {
            let hashes = self.warm(keys.iter().copied());
            for ((key, hash), value) in keys.iter().zip(hashes).zip(values) {
                *value = self.remove_hashed(*key, hash);
            }
        }
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
            let hashes = self.warm(entries.iter().map(|entry| entry.0));
            for (((key, value), hash), before) in entries.iter().zip(hashes).zip(before) {
                let put = self.put(*key, hash, *value, present);
                *before = put.map_err(|error| BatchError { done, error })?;
                done += 1;
            }
        }
        Ok(())
    }

    /// Brings into the caches what a group of keys needs; their hashes, by lane.
    #[inline(always)]
    fn warm<'k>(&self, keys: impl Iterator<Item = K::View<'k>>) -> [Hash; LANES] {
        let mut hashes = [Hash::default(); LANES];
        let mut lanes = 0;
        for (lane, key) in hashes.iter_mut().zip(keys) {
            *lane = self.hash(key);
            if let Some(table) = self.table(lane.hash) {
                table.prefetch(lane.hash);
            }
            lanes += 1;
        }
        if !K::INLINE {
            for &Hash { word, hash } in &hashes[..lanes] {
                if let Some(table) = self.table(hash)
                    && let Ok(slot) = table.find(word, hash, |_| true)
                {
                    // SAFETY: payloads in the tables are places of live records.
                    prefetch(unsafe {
                        self.space
                            .pointer(NodeKind::Record, record(table.payload(slot)))
                    });
                }
            }
        }
        hashes
    }
}
