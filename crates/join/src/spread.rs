//! How codes are spread over buckets and places.
//!
//! ```text
//! dense      distance from the first code    │ part │ bucket │ place │
//! hashed     hash of the code                │ part │ bucket │ fraction of the bucket's slots │
//! ```

use crate::NO_KEY;
use crate::rows::{Entries, Scattered};
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// Rows of a bucket: its places, codes and rows stay in a core's cache while they are made.
const ROWS_PER_BUCKET: usize = 32 << 10;
/// The most buckets: as many places are written to at once while rows are scattered.
const MOST_BUCKETS: usize = 256;
/// Parts for each worker: some more, for they are not of one size.
const PARTS_PER_WORKER: usize = 4;
/// A dense table has at most so many places per row …
const PLACES_PER_ROW: u64 = 4;
/// … or so many in all.
const FEW_PLACES: u64 = 1 << 16;

/// Where codes belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    kind: SpreadKind,
    rows: usize,
    /// The bits of a distance.
    bits: u32,
    /// Lower bits of a distance, which say its place within its bucket.
    bucket_bits: u32,
    /// Lower bits of a distance, which say its place within its part.
    part_bits: u32,
    /// The greatest distance.
    last: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpreadKind {
    /// A code's place is its distance from the first.
    Dense { first: u64 },
    /// A code's bucket is the upper bits of its hash, which is another one in each process: nobody can choose keys of
    /// which all are in one line.
    Hashed { seed: u64 },
}

impl Spread {
    /// For so many rows, whose codes lie in a range, [`NO_KEY`] aside. The table is made by so many workers.
    pub fn new(rows: usize, least: u64, greatest: u64, workers: usize) -> Self {
        let buckets = (rows / ROWS_PER_BUCKET + 1).next_power_of_two();
        let buckets = buckets.min(MOST_BUCKETS);
        let parts = (PARTS_PER_WORKER * workers).next_power_of_two();
        let (buckets, parts) = (
            buckets.trailing_zeros(),
            parts.min(buckets).trailing_zeros(),
        );
        let width = greatest.saturating_sub(least);
        let is_dense = width < FEW_PLACES.max(PLACES_PER_ROW * rows as u64);
        let bits = match is_dense {
            true => u64::BITS - width.leading_zeros(),
            false => buckets,
        };
        Spread {
            kind: match is_dense {
                true => SpreadKind::Dense { first: least },
                false => SpreadKind::Hashed { seed: *SEED },
            },
            rows,
            bits,
            bucket_bits: bits.saturating_sub(buckets),
            part_bits: bits.saturating_sub(parts),
            last: if is_dense { width } else { (1 << bits) - 1 },
        }
    }

    /// The number of parts, which are [gathered](Spread::gather) one by one.
    pub fn parts(&self) -> usize {
        (self.last >> self.part_bits) as usize + 1
    }

    fn buckets(&self) -> usize {
        (self.last >> self.bucket_bits) as usize + 1
    }

    /// The buckets of a part.
    pub(crate) fn buckets_of(&self, part: usize) -> std::ops::Range<usize> {
        let each = 1 << (self.part_bits - self.bucket_bits);
        let first = part * each;
        first..self.buckets().min(first + each)
    }

    /// Whether a place is one code.
    pub fn is_dense(&self) -> bool {
        matches!(self.kind, SpreadKind::Dense { .. })
    }

    /// Places of a dense table's bucket.
    pub(crate) fn places(&self, bucket: usize) -> usize {
        let before = (bucket as u64) << self.bucket_bits;
        (self.last + 1 - before).min(1 << self.bucket_bits) as usize
    }

    /// The distance of a code from the first one.
    #[inline(always)]
    fn distance(&self, code: u64) -> u64 {
        match self.kind {
            SpreadKind::Dense { first } => code.wrapping_sub(first),
            SpreadKind::Hashed { .. } => 0,
        }
    }

    /// Of a dense table, the part of a code and its place there. Of a code that no row may have, one of both is not
    /// there.
    #[inline(always)]
    pub(crate) fn in_part(&self, code: u64) -> (usize, usize) {
        let distance = self.distance(code);
        let place = distance & ((1 << self.part_bits) - 1);
        ((distance >> self.part_bits) as usize, place as usize)
    }

    /// Of a hashed one, the bucket of a code, and at which fraction of it the code belongs.
    #[inline(always)]
    pub(crate) fn in_hashed_bucket(&self, code: u64) -> (usize, u32) {
        let seed = match self.kind {
            SpreadKind::Dense { .. } => 0,
            SpreadKind::Hashed { seed } => seed,
        };
        let hash = hash(code, seed);
        // Twice, for a number cannot be shifted by all its bits.
        let bucket = hash >> 1 >> (u64::BITS - 1 - self.bits);
        (bucket as usize, (hash << self.bits >> 32) as u32)
    }

    /// Of a hashed one, the part of a bucket, and which of its buckets it is.
    #[inline(always)]
    pub(crate) fn part_of(&self, bucket: usize) -> (usize, usize) {
        let within = bucket & ((1 << self.part_bits) - 1);
        (bucket >> self.part_bits, within)
    }

    /// Adds rows to those of their buckets: `codes` are those of the rows from `first_row` on. A worker scatters
    /// about so many rows in all.
    ///
    /// # Panics
    /// If a code is not in the range.
    pub fn scatter(&self, codes: &[u64], first_row: u32, workers: usize, into: &mut Scattered) {
        if into.buckets.is_empty() {
            // An eighth more, so that hardly one of them has to grow.
            let each = self.rows / workers.max(1) / self.buckets();
            let room = each + each / 8 + 16;
            let entries = || match self.is_dense() {
                true => Entries::Dense(Vec::with_capacity(room)),
                false => Entries::Hashed(Vec::with_capacity(room)),
            };
            into.buckets.resize_with(self.buckets(), entries);
        }
        for (&code, row) in codes
            .iter()
            .zip(first_row..)
            .filter(|(code, _)| **code != NO_KEY)
        {
            match self.kind {
                SpreadKind::Dense { .. } => {
                    let distance = self.distance(code);
                    let place = distance & ((1 << self.bucket_bits) - 1);
                    let bucket = (distance >> self.bucket_bits) as usize;
                    if let Entries::Dense(entries) = &mut into.buckets[bucket] {
                        entries.push((place as u32, row));
                    }
                }
                SpreadKind::Hashed { .. } => {
                    let (bucket, _) = self.in_hashed_bucket(code);
                    if let Entries::Hashed(entries) = &mut into.buckets[bucket] {
                        entries.push(((code >> 32) as u32, code as u32, row));
                    }
                }
            }
        }
    }
}

/// What tells the hashes of processes apart.
static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));

/// A number whose upper bits depend on all bits of a code.
#[inline(always)]
fn hash(code: u64, seed: u64) -> u64 {
    let product = u128::from(code ^ seed) * 0xa076_1d64_78bd_642f;
    (product >> 64) as u64 ^ product as u64
}
