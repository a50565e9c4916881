//! From string to code: a hash table in shards that versions share until one of them writes.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;
use std::sync::Arc;

/// Entries of a shard on average at which the shards are doubled. A version that adds one string copies one shard
/// (about 5 KiB) and one reference for each.
const SHARD: usize = 512;

#[derive(Clone)]
pub(super) struct Index {
    hasher: DefaultHashBuilder,
    /// A power of two.
    shards: Vec<Arc<HashTable<Entry>>>,
    len: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u32,
    code: u32,
}

impl Default for Index {
    fn default() -> Self {
        Index {
            hasher: DefaultHashBuilder::default(),
            shards: vec![Arc::default()],
            len: 0,
        }
    }
}

/// The table's hash from the 32 bits that entries keep: spread, as high and low bits both matter to the table.
fn spread(hash: u32) -> u64 {
    (hash as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Index {
    fn hash(&self, string: &str) -> u32 {
        (self.hasher.hash_one(string) >> 32) as u32
    }

    fn shard(&self, hash: u32) -> usize {
        hash as usize & (self.shards.len() - 1)
    }

    /// The code of `string`; `equals` tells whether a code is that of the string.
    pub(super) fn find(&self, string: &str, equals: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = self.hash(string);
        let shard = &self.shards[self.shard(hash)];
        let entry = shard.find(spread(hash), |entry| {
            entry.hash == hash && equals(entry.code)
        });
        entry.map(|entry| entry.code)
    }

    /// The code of `string`, or, if there is none, `None` after having given it `code`.
    pub(super) fn find_or_insert(
        &mut self,
        string: &str,
        code: u32,
        equals: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let found = self.find(string, equals);
        if found.is_none() {
            if self.len == self.shards.len() * SHARD {
                self.double();
            }
            let hash = self.hash(string);
            let shard = self.shard(hash);
            Arc::make_mut(&mut self.shards[shard]).insert_unique(
                spread(hash),
                Entry { hash, code },
                |entry| spread(entry.hash),
            );
            self.len += 1;
        }
        found
    }

    fn double(&mut self) {
        let count = self.shards.len() * 2;
        let mut shards = vec![HashTable::with_capacity(SHARD); count];
        for entry in self.shards.iter().flat_map(|shard| shard.iter()) {
            shards[entry.hash as usize & (count - 1)].insert_unique(
                spread(entry.hash),
                *entry,
                |entry| spread(entry.hash),
            );
        }
        self.shards = shards.into_iter().map(Arc::new).collect();
    }

    pub(super) fn bytes(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| shard.allocation_size())
            .sum()
    }

    #[cfg(test)]
    pub(super) fn shards_not_shared_with(&self, other: &Index) -> usize {
        assert_eq!(self.shards.len(), other.shards.len());
        let pairs = self.shards.iter().zip(&other.shards);
        pairs.filter(|(a, b)| !Arc::ptr_eq(a, b)).count()
    }
}
