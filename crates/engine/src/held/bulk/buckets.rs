//! For unordered keys spread over their range. The highest bits choose a bucket. Each bucket fits into a core's cache
//! and is sorted there.
//!
//! ```text
//! counting ─▶ distributing: every entry to its bucket's next place ─▶ bucket 0: sorted, into the tree ─▶ bucket 1 …
//! ```

use super::packing::{Packing, Sorter, bits};
use super::{AddedRow, SLICE, words};
use crate::held::unique::Added;
use eris_column::ObjectMemory;
use eris_index::{Build, IndexError};
use eris_numa::Buffer;

/// Log2 of the keys that a bucket should have: some tens of kilobytes.
const BUCKET: u32 = 11;
/// Log2 of the most buckets: each has a line of the cache that is being filled.
const MOST_BUCKETS: u32 = 12;
/// A bucket with so many times as many keys as the average one is too large.
const UNEVEN: usize = 16;

/// The numbers of one statement.
pub(super) struct Buckets {
    packing: Packing,
    keys: usize,
    /// The ids of the parts' first rows.
    firsts: Vec<u64>,
    /// By bucket, how many keys it has; from then on, where its next one goes, and at last where it ends.
    ends: Vec<u32>,
    phase: BucketPhase,
    sorter: Sorter,
}

enum BucketPhase {
    /// The next part.
    Counting(usize),
    Distributing(Buffer, usize),
    /// The next bucket, and its first entry.
    Ordering(Buffer, Box<Build<u64>>, usize, usize),
    Over,
}

/// What a step has come to.
pub(super) enum Distributed {
    Again,
    /// Too many are in one bucket.
    Uneven,
    NoRoom,
    Duplicate(AddedRow),
    Done(Box<Build<u64>>),
}

impl Buckets {
    /// Of numbers between these two, both included.
    pub fn new(added: &[Added], least: u64, greatest: u64) -> Self {
        let keys: usize = added.iter().map(|part| part.keys.len()).sum();
        let key_bits = bits(greatest - least);
        let bucket_bits = bits(keys as u64).saturating_sub(BUCKET);
        let bucket_bits = bucket_bits.min(MOST_BUCKETS).min(key_bits);
        Buckets {
            packing: Packing::new(added, least, key_bits, bucket_bits),
            keys,
            firsts: added.iter().map(|part| part.first.0).collect(),
            ends: vec![0; 1 << bucket_bits],
            phase: BucketPhase::Counting(0),
            sorter: Sorter::default(),
        }
    }

    /// Does some more work.
    pub fn step(
        &mut self,
        added: &[Added],
        home: ObjectMemory<'_>,
    ) -> Result<Distributed, IndexError> {
        self.phase = match std::mem::replace(&mut self.phase, BucketPhase::Over) {
            BucketPhase::Counting(part) => match added.get(part) {
                Some(rows) => {
                    let Packing { least, rest, .. } = self.packing;
                    for word in words(&rows.keys) {
                        self.ends[((word - least) >> rest) as usize] += 1;
                    }
                    BucketPhase::Counting(part + 1)
                }
                None => {
                    let average = (self.keys / self.ends.len()).max(SLICE / UNEVEN);
                    let most = self.ends.iter().copied().max().unwrap_or(0);
                    if most as usize > UNEVEN * average || self.keys > u32::MAX as usize {
                        return Ok(Distributed::Uneven);
                    }
                    let bytes = self.keys * self.packing.width * size_of::<u64>();
                    let Ok(entries) = home.memory.allocate(home.object, bytes) else {
                        return Ok(Distributed::NoRoom);
                    };
                    let mut sum = 0;
                    for end in &mut self.ends {
                        sum += std::mem::replace(end, sum);
                    }
                    BucketPhase::Distributing(entries, 0)
                }
            },
            BucketPhase::Distributing(mut entries, part) => match added.get(part) {
                Some(rows) => {
                    let all = entries.as_mut_slice();
                    match self.packing.width {
                        1 => self.distribute::<1>(part, words(&rows.keys), all),
                        _ => self.distribute::<2>(part, words(&rows.keys), all),
                    }
                    BucketPhase::Distributing(entries, part + 1)
                }
                None => {
                    let build = Build::new(home.memory.clone(), home.object);
                    BucketPhase::Ordering(entries, Box::new(build), 0, 0)
                }
            },
            BucketPhase::Ordering(_, build, bucket, _) if bucket == self.ends.len() => {
                return Ok(Distributed::Done(build));
            }
            BucketPhase::Ordering(mut entries, mut build, mut bucket, mut start) => {
                let most = self.ends.len().min(bucket + SLICE);
                let until = start + SLICE;
                while bucket < most && start < until {
                    let end = self.ends[bucket] as usize;
                    let within = start * self.packing.width..end * self.packing.width;
                    let within = &mut entries.as_mut_slice()[within];
                    let duplicate = match self.packing.width {
                        _ if within.is_empty() => None,
                        1 => self.order::<1>(within, &mut build)?,
                        _ => self.order::<2>(within, &mut build)?,
                    };
                    if let Some(place) = duplicate {
                        return Ok(Distributed::Duplicate(place));
                    }
                    (bucket, start) = (bucket + 1, end);
                }
                BucketPhase::Ordering(entries, build, bucket, start)
            }
            BucketPhase::Over => unreachable!("a step after the last one"),
        };
        Ok(Distributed::Again)
    }

    fn distribute<const WIDTH: usize>(&mut self, part: usize, words: &[u64], all: &mut [u64]) {
        let (all, _) = all.as_chunks_mut::<WIDTH>();
        let packing = self.packing;
        for (place, word) in (packing.first(part)..).zip(words) {
            let number = word - packing.least;
            let next = &mut self.ends[(number >> packing.rest) as usize];
            all[*next as usize] = packing.pack(number, place);
            *next += 1;
        }
    }

    /// Puts the entries of a bucket, of which there are some, into the tree; finds two with the same key.
    fn order<const WIDTH: usize>(
        &mut self,
        entries: &mut [u64],
        build: &mut Build<u64>,
    ) -> Result<Option<AddedRow>, IndexError> {
        let (entries, _) = entries.as_chunks_mut::<WIDTH>();
        let packing = &self.packing;
        match self.sorter.sort(packing, entries) {
            Err(entry) => Ok(Some(packing.place(entry))),
            Ok(sorted) => {
                let entries = sorted.iter().map(|entry| {
                    let place = packing.place(*entry);
                    let id = self.firsts[place.part()] + place.row() as u64;
                    (packing.least + packing.number(*entry), id)
                });
                build.extend(entries).map(|()| None)
            }
        }
    }
}
