//! From string to code: hash tables of one size, in parts that versions share until one of them writes.
//!
//! ```text
//! hash    ········· ·········      its lowest bits are the part's number, all of it together says the place
//! part    │ hash, code │ hash, code │  empty  │ …   1,024 places; an entry's place taken: the next free one
//! ```
//!
//! The hash lies beside the code. So few strings are compared, and lookups of many strings can prefetch.

use eris_kernels::prefetch;
use hashbrown::DefaultHashBuilder;
use std::hash::BuildHasher;
use std::sync::Arc;

/// Places of a part; half of them are taken on average when the parts are doubled. A version that adds one string
/// copies one part (8 KiB) and one reference for each.
const PLACES: usize = 1024;

/// Places that an index begins with.
const FIRST_PLACES: usize = 16;

#[derive(Clone)]
pub(super) struct Index {
    hasher: DefaultHashBuilder,
    /// A power of two, each of as many places: [`PLACES`] as soon as there are several.
    parts: Vec<Arc<[Entry]>>,
    len: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u32,
    code: u32,
}

impl Entry {
    /// Of a place that is not taken; no code is so great.
    const EMPTY: Entry = Entry {
        hash: 0,
        code: u32::MAX,
    };

    fn is_empty(self) -> bool {
        self.code == Entry::EMPTY.code
    }
}

impl Default for Index {
    fn default() -> Self {
        Index {
            hasher: DefaultHashBuilder::default(),
            parts: vec![Arc::new([Entry::EMPTY; FIRST_PLACES])],
            len: 0,
        }
    }
}

/// Where in a part the search begins. The highest bits of a product follow from all of the hash, whose lowest are the
/// same for all of a part.
fn place(hash: u32, places: usize) -> usize {
    (hash.wrapping_mul(0x9e37_79b1) as usize * places) >> 32
}

/// The entries at which one with this hash might be, up to the first empty place.
fn probe(part: &[Entry], hash: u32) -> impl Iterator<Item = Entry> + '_ {
    let (before, from) = part.split_at(place(hash, part.len()));
    let places = from.iter().chain(before).copied();
    places.take_while(|entry| !entry.is_empty())
}

/// Puts an entry at the first free place; `false` if there is none.
fn put(part: &mut [Entry], entry: Entry) -> bool {
    let (before, from) = part.split_at_mut(place(entry.hash, part.len()));
    let mut places = from.iter_mut().chain(before);
    let free = places.find(|place| place.is_empty());
    free.map(|place| *place = entry).is_some()
}

impl Index {
    pub(super) fn hash(&self, string: &str) -> u32 {
        (self.hasher.hash_one(string) >> 32) as u32
    }

    fn part(&self, hash: u32) -> usize {
        hash as usize & (self.parts.len() - 1)
    }

    /// Has the memory fetched in which the search for a hash begins.
    pub(super) fn prefetch(&self, hash: u32) {
        let part = &self.parts[self.part(hash)];
        prefetch(&part[place(hash, part.len())]);
    }

    /// The code of the first string with this hash: nearly always the one that is looked for, if there is one.
    pub(super) fn candidate(&self, hash: u32) -> Option<u32> {
        let mut entries = probe(&self.parts[self.part(hash)], hash);
        let found = entries.find(|entry| entry.hash == hash);
        found.map(|entry| entry.code)
    }

    /// The code of `string`; `equals` tells whether a code is that of the string.
    pub(super) fn find(&self, string: &str, equals: impl Fn(u32) -> bool) -> Option<u32> {
        self.find_hash(self.hash(string), equals)
    }

    fn find_hash(&self, hash: u32, equals: impl Fn(u32) -> bool) -> Option<u32> {
        let mut entries = probe(&self.parts[self.part(hash)], hash);
        let found = entries.find(|entry| entry.hash == hash && equals(entry.code));
        found.map(|entry| entry.code)
    }

    /// The code of `string`, or, if there is none, `None` after having given it `code`.
    pub(super) fn find_or_insert(
        &mut self,
        string: &str,
        code: u32,
        equals: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let hash = self.hash(string);
        let found = self.find_hash(hash, equals);
        if found.is_none() {
            self.insert(Entry { hash, code });
        }
        found
    }

    fn insert(&mut self, entry: Entry) {
        let mut is_put = false;
        if self.len * 2 < self.parts.len() * self.parts[0].len() {
            let part = self.part(entry.hash);
            is_put = put(Arc::make_mut(&mut self.parts[part]), entry);
        }
        while !is_put {
            self.double();
            let part = self.part(entry.hash);
            is_put = put(Arc::make_mut(&mut self.parts[part]), entry);
        }
        self.len += 1;
    }

    fn double(&mut self) {
        let (mut count, mut places) = (self.parts.len(), self.parts[0].len());
        let is_put = |parts: &mut [Vec<Entry>], entry: &Entry| {
            let part = entry.hash as usize & (parts.len() - 1);
            put(&mut parts[part], *entry)
        };
        loop {
            match places < PLACES {
                true => places *= 2,
                false => count *= 2,
            }
            let mut parts = vec![vec![Entry::EMPTY; places]; count];
            let mut entries = self.parts.iter().flat_map(|part| part.iter());
            if entries.all(|entry| entry.is_empty() || is_put(&mut parts, entry)) {
                self.parts = parts.into_iter().map(Arc::from).collect();
                return;
            }
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.parts.len() * self.parts[0].len() * size_of::<Entry>()
    }

    #[cfg(test)]
    pub(super) fn shards_not_shared_with(&self, other: &Index) -> usize {
        assert_eq!(self.parts.len(), other.parts.len());
        let pairs = self.parts.iter().zip(&other.parts);
        pairs.filter(|(a, b)| !Arc::ptr_eq(a, b)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, Index, PLACES, place, put};

    #[test]
    fn entries_are_near_their_places() {
        let mut index = Index::default();
        for code in 0..1 << 20 {
            index.find_or_insert(&format!("text {code}"), code, |_| false);
        }
        assert_eq!(index.parts.len() * PLACES, 1 << 21);
        let mut far = 0;
        for part in &index.parts {
            let taken = part.iter().enumerate();
            far += taken
                .filter(|(at, entry)| {
                    let distance = at.wrapping_sub(place(entry.hash, PLACES)) % PLACES;
                    !entry.is_empty() && distance > 16
                })
                .count();
        }
        assert!(far < 1 << 10, "{far} entries are far from their places");
    }

    #[test]
    fn a_full_shard_takes_nothing_and_an_index_finds_room() {
        let mut part = [Entry::EMPTY; 4];
        for code in 0..4 {
            assert!(put(&mut part, Entry { hash: 7, code }));
        }
        assert!(!put(&mut part, Entry { hash: 7, code: 4 }));

        // All in one part of many, until this is full.
        let mut index = Index::default();
        for code in 0..3 * PLACES as u32 {
            index.insert(Entry {
                hash: code << 12,
                code,
            });
        }
        for code in 0..3 * PLACES as u32 {
            assert_eq!(index.candidate(code << 12), Some(code));
        }
        assert_eq!(index.candidate(5), None);
    }
}
