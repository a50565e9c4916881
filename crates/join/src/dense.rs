//! Parts in which each place is one code.

use crate::NO_ROW;
use crate::rows::{Entries, Located, Scattered};
use crate::spread::Spread;
use eris_kernels::prefetch;

/// A part.
#[derive(Debug)]
pub(crate) enum Dense {
    /// Each code has one row at most: its number, or [`NO_ROW`].
    Single(Vec<u32>),
    /// Where the rows of each code begin. Behind the last one there is their end.
    Several { starts: Vec<u32>, rows: Vec<u32> },
}

/// A bucket, of all workers.
struct Bucket<'a> {
    places: usize,
    entries: Vec<&'a [(u32, u32)]>,
}

impl Bucket<'_> {
    fn rows(&self) -> usize {
        self.entries.iter().map(|entries| entries.len()).sum()
    }

    /// Places and rows.
    fn entries(&self) -> impl Iterator<Item = (usize, u32)> {
        let entries = self.entries.iter().copied().flatten();
        entries.map(|&(place, row)| (place as usize, row))
    }
}

impl Dense {
    pub fn new(spread: &Spread, part: usize, scattered: &[Scattered]) -> Self {
        let buckets = spread.buckets_of(part).map(|bucket| Bucket {
            places: spread.places(bucket),
            entries: (scattered.iter())
                .filter_map(|scattered| match scattered.buckets.get(bucket) {
                    Some(Entries::Dense(entries)) => Some(entries.as_slice()),
                    _ => None,
                })
                .collect(),
        });
        let buckets: Vec<Bucket> = buckets.collect();
        single(&buckets).unwrap_or_else(|| several(&buckets))
    }

    /// Bytes.
    pub fn size(&self) -> usize {
        match self {
            Dense::Single(rows) => size_of_val(&rows[..]),
            Dense::Several { starts, rows } => size_of_val(&starts[..]) + size_of_val(&rows[..]),
        }
    }

    /// Asks for a place.
    #[inline(always)]
    pub fn ask(&self, place: usize) {
        match self {
            Dense::Single(rows) => rows.get(place).map(prefetch),
            Dense::Several { starts, .. } => starts.get(place).map(prefetch),
        };
    }

    /// Where the rows of a place are. If each has one at most, this is the start itself.
    #[inline(always)]
    pub fn locate(&self, place: usize) -> Located {
        match self {
            Dense::Single(rows) => {
                let row = rows.get(place).copied().unwrap_or(NO_ROW);
                Located {
                    start: row,
                    len: u32::from(row != NO_ROW),
                }
            }
            Dense::Several { starts, rows } => match starts.get(place..place + 2) {
                Some(ends) => {
                    rows.get(ends[0] as usize).map(prefetch);
                    Located {
                        start: ends[0],
                        len: ends[1] - ends[0],
                    }
                }
                None => Located::default(),
            },
        }
    }
}

/// A part in which each place has one row at most, if it is so.
fn single(buckets: &[Bucket]) -> Option<Dense> {
    let all: usize = buckets.iter().map(|bucket| bucket.places).sum();
    let mut rows = vec![NO_ROW; all];
    let mut left = &mut rows[..];
    for bucket in buckets {
        let (own, others) = left.split_at_mut(bucket.places);
        left = others;
        for (place, row) in bucket.entries() {
            if std::mem::replace(&mut own[place], row) != NO_ROW {
                return None;
            }
        }
    }
    Some(Dense::Single(rows))
}

/// A part, bucket by bucket: each within its own range of both arrays.
fn several(buckets: &[Bucket]) -> Dense {
    let places: usize = buckets.iter().map(|bucket| bucket.places).sum();
    let mut starts = vec![0u32; places + 1];
    let mut rows = vec![0; buckets.iter().map(Bucket::rows).sum()];
    let mut first = 0;
    let mut before = 0;
    // Where the rows of each place of a bucket end, as far as they have been put down.
    let mut ends = Vec::new();
    for bucket in buckets {
        let own = &mut starts[first..=first + bucket.places];
        own[0] = 0;
        bucket.entries().for_each(|(place, _)| own[place] += 1);
        for start in own.iter_mut() {
            before += std::mem::replace(start, before);
        }
        ends.clear();
        ends.extend_from_slice(own);
        for (place, row) in bucket.entries() {
            rows[ends[place] as usize] = row;
            ends[place] += 1;
        }
        first += bucket.places;
    }
    Dense::Several { starts, rows }
}
