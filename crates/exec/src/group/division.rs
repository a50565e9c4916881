//! Which worker merges which groups.
//!
//! ```text
//! 64 bits of a key's hash    63 … 57   56 ………… 48   47 ………… 16   15 …… 0
//!                            hash table's tag         │            hash table's first slot
//!                                                     └─▶ · workers · buckets >> 32 ─▶ worker, bucket
//! ```
//!
//! The bits of the hash that say where a group goes are not those by which a table finds it, so that the groups of one
//! bucket still spread over a table of their own.

use super::index::hash;
use super::interner::Interner;
use super::keys::{BitPlace, GroupKeys, dictionary};
use crate::columns::FragmentColumns;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::ops::Range;

/// How keys are divided among the workers of a program, and each worker's into buckets, of which a table fits into a
/// core's cache. The same for all workers of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// At least one.
    pub workers: u32,
    /// Of each worker, at least one.
    pub buckets: u32,
}

impl Division {
    fn parts(self) -> u64 {
        u64::from(self.workers) * u64::from(self.buckets)
    }

    /// The part of a key with this hash: the buckets of the first worker, then those of the second, and so on.
    fn part(self, hash: u64) -> u32 {
        ((u64::from((hash >> 16) as u32) * self.parts()) >> 32) as u32
    }

    /// A worker's parts.
    pub(super) fn of_worker(self, worker: u32) -> Range<usize> {
        let (worker, buckets) = (worker as usize, self.buckets as usize);
        worker * buckets..(worker + 1) * buckets
    }
}

/// Groups by the part that they belong to.
pub(super) struct GroupsByPart {
    /// Numbers of groups, those of the first part first.
    pub(super) order: Vec<u32>,
    /// Where each part ends.
    pub(super) ends: Vec<u32>,
}

impl GroupsByPart {
    /// Sorts groups by a number of each, all below `parts`.
    pub(super) fn by(numbers: &[u32], parts: usize) -> Self {
        let mut ends = vec![0u32; parts];
        for &part in numbers {
            ends[part as usize] += 1;
        }
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut order = vec![0; numbers.len()];
        for (group, &part) in numbers.iter().enumerate() {
            let place = &mut ends[part as usize];
            order[*place as usize] = group as u32;
            *place += 1;
        }
        GroupsByPart { order, ends }
    }

    /// Where some parts lie in the order.
    pub(super) fn range(&self, parts: Range<usize>) -> Range<usize> {
        let start = |part: usize| {
            part.checked_sub(1)
                .map_or(0, |last| self.ends[last] as usize)
        };
        start(parts.start)..start(parts.end)
    }
}

/// The part of each group, by its packed key. Strings that have no code that all workers know count by their bytes.
pub(super) fn parts(
    division: Division,
    packed: &[u64],
    keys: &GroupKeys,
    interners: &[Interner],
    columns: &FragmentColumns,
) -> Vec<u32> {
    let strings: Vec<OwnStrings> = (keys.keys.iter().zip(interners))
        .filter(|(_, interner)| !interner.strings().is_empty())
        .map(|(key, interner)| OwnStrings {
            field: key.field,
            null: key.null,
            known: dictionary(key, columns).map_or(0, |dictionary| dictionary.len()) as i64,
            hashes: interner.strings().iter().map(hash_of_string).collect(),
        })
        .collect();
    let rows = packed.chunks_exact(keys.words);
    if strings.is_empty() {
        return match keys.words {
            1 => packed
                .iter()
                .map(|&word| division.part(hash(&[word])))
                .collect(),
            _ => rows.map(|words| division.part(hash(words))).collect(),
        };
    }
    let mut own = vec![0; keys.words];
    let part = |words: &[u64]| {
        own.copy_from_slice(words);
        let mut bytes = 0;
        for strings in &strings {
            let field = &keys.fields[strings.field];
            let code = field.unpack(words);
            if code >= strings.known && !strings.null.is_set(words) {
                own[field.place.word] &= !field.pack(-1);
                bytes = hash(&[bytes, strings.hashes[(code - strings.known) as usize]]);
            }
        }
        division.part(if bytes == 0 {
            hash(&own)
        } else {
            hash(&[hash(&own), bytes])
        })
    };
    rows.map(part).collect()
}

/// The strings of one key that only this worker has numbered.
struct OwnStrings {
    field: usize,
    null: BitPlace,
    /// The first code of its own.
    known: i64,
    hashes: Box<[u64]>,
}

/// The same for all workers, unlike the hash of an interner.
fn hash_of_string(string: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(string)
}
