//! Numbers in no order, but spread over their span: dealt to buckets by their highest bits, then sorted bucket by bucket, each
//! of which is so small that it stays in a core's cache until it is in the tree.
//!
//! ```text
//! number − least   │ bucket │ rest                    │        64 bits and less with the row's place: one word per entry
//! entry            │ bucket │ rest      │ part │ row   │        more: two words
//!
//! counting ─▶ dealing: every entry to where its bucket's next one lies ─▶ bucket 0: sorted, into the tree ─▶ bucket 1 …
//! ```

use super::{Place, SLICE};
use crate::keys::Keys;
use crate::unique::Added;
use eris_column::Home;
use eris_index::{Build, IndexError};
use eris_numa::Buffer;

/// Log2 of the keys that a bucket should have: some tens of kilobytes.
const BUCKET: u32 = 11;
/// Log2 of the most buckets: each has a line of the cache that is being filled.
const MOST_BUCKETS: u32 = 12;
/// A bucket with so many times as many keys as the average one is too large.
const UNEVEN: usize = 16;
/// Keys with equal digits up to which inserting is the quickest way to sort them.
const FEW: u32 = 16;

/// The numbers of one statement.
pub(super) struct Buckets {
    least: u64,
    /// Bits below those that tell the bucket.
    rest: u32,
    row_bits: u32,
    place_bits: u32,
    /// Words of an entry.
    width: usize,
    keys: usize,
    /// The ids of the parts' first rows.
    firsts: Vec<u64>,
    /// By bucket, how many keys it has; from the dealing on, where its next one goes, and at last where it ends.
    ends: Vec<u32>,
    phase: Phase,
    /// For sorting within a bucket.
    spare: Vec<u64>,
    digits: Vec<u32>,
}

enum Phase {
    /// The next part.
    Counting(usize),
    Dealing(Buffer, usize),
    /// The next bucket, and its first entry.
    Ordering(Buffer, Box<Build<u64>>, usize, usize),
    Over,
}

/// What a step has come to.
pub(super) enum Dealt {
    Again,
    /// Too many are in one bucket.
    Uneven,
    NoRoom,
    Duplicate(Place),
    Done(Box<Build<u64>>),
}

impl Buckets {
    /// Of numbers between these two, both included.
    pub fn new(added: &[Added], least: u64, greatest: u64) -> Self {
        let rows = added.iter().map(|part| part.keys.len());
        let keys: usize = rows.clone().sum();
        let row_bits = bits(rows.max().unwrap_or(0) as u64);
        let place_bits = row_bits + bits(added.len() as u64);
        let key_bits = bits(greatest - least);
        let bucket_bits = bits(keys as u64).saturating_sub(BUCKET);
        let bucket_bits = bucket_bits.min(MOST_BUCKETS).min(key_bits);
        Buckets {
            least,
            rest: key_bits - bucket_bits,
            row_bits,
            place_bits,
            // One bit is left, so that no entry looks like `VACANT`.
            width: if key_bits + place_bits < 64 { 1 } else { 2 },
            keys,
            firsts: added.iter().map(|part| part.first.0).collect(),
            ends: vec![0; 1 << bucket_bits],
            phase: Phase::Counting(0),
            spare: Vec::new(),
            digits: Vec::new(),
        }
    }

    /// Does some more work.
    pub fn step(&mut self, added: &[Added], home: Home<'_>) -> Result<Dealt, IndexError> {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Counting(part) => match added.get(part) {
                Some(rows) => {
                    for word in words(&rows.keys) {
                        self.ends[((word - self.least) >> self.rest) as usize] += 1;
                    }
                    Phase::Counting(part + 1)
                }
                None => {
                    let average = (self.keys / self.ends.len()).max(SLICE / UNEVEN);
                    let most = self.ends.iter().copied().max().unwrap_or(0);
                    if most as usize > UNEVEN * average || self.keys > u32::MAX as usize {
                        return Ok(Dealt::Uneven);
                    }
                    let bytes = self.keys * self.width * size_of::<u64>();
                    let Ok(entries) = home.memory.allocate(home.object, bytes) else {
                        return Ok(Dealt::NoRoom);
                    };
                    let mut sum = 0;
                    for end in &mut self.ends {
                        sum += std::mem::replace(end, sum);
                    }
                    Phase::Dealing(entries, 0)
                }
            },
            Phase::Dealing(mut entries, part) => match added.get(part) {
                Some(rows) => {
                    let all = entries.as_mut_slice();
                    match self.width {
                        1 => self.deal::<1>(part, words(&rows.keys), all),
                        _ => self.deal::<2>(part, words(&rows.keys), all),
                    }
                    Phase::Dealing(entries, part + 1)
                }
                None => {
                    let build = Build::new(home.memory.clone(), home.object);
                    Phase::Ordering(entries, Box::new(build), 0, 0)
                }
            },
            Phase::Ordering(_, build, bucket, _) if bucket == self.ends.len() => {
                return Ok(Dealt::Done(build));
            }
            Phase::Ordering(mut entries, mut build, mut bucket, mut start) => {
                let most = self.ends.len().min(bucket + SLICE);
                let until = start + SLICE;
                while bucket < most && start < until {
                    let end = self.ends[bucket] as usize;
                    let within = start * self.width..end * self.width;
                    let within = &mut entries.as_mut_slice()[within];
                    let duplicate = match self.width {
                        _ if within.is_empty() => None,
                        1 => self.order::<1>(within, &mut build)?,
                        _ => self.order::<2>(within, &mut build)?,
                    };
                    if let Some(place) = duplicate {
                        return Ok(Dealt::Duplicate(place));
                    }
                    (bucket, start) = (bucket + 1, end);
                }
                Phase::Ordering(entries, build, bucket, start)
            }
            Phase::Over => unreachable!("a step after the last one"),
        };
        Ok(Dealt::Again)
    }

    fn deal<const WIDTH: usize>(&mut self, part: usize, words: &[u64], all: &mut [u64]) {
        let (all, _) = all.as_chunks_mut::<WIDTH>();
        let (least, rest, place_bits) = (self.least, self.rest, self.place_bits);
        let place = (part as u64) << self.row_bits;
        for (place, word) in (place..).zip(words) {
            let number = word - least;
            let next = &mut self.ends[(number >> rest) as usize];
            let entry = &mut all[*next as usize];
            entry[0] = number;
            match WIDTH {
                1 => entry[0] = number << place_bits | place,
                _ => entry[WIDTH - 1] = place,
            }
            *next += 1;
        }
    }

    /// Puts the entries of a bucket, of which there are some, into the tree; finds two with the same key.
    fn order<const WIDTH: usize>(
        &mut self,
        entries: &mut [u64],
        build: &mut Build<u64>,
    ) -> Result<Option<Place>, IndexError> {
        let (entries, _) = entries.as_chunks_mut::<WIDTH>();
        let mut spare = std::mem::take(&mut self.spare);
        let sorted = self.sort(entries, &mut spare);
        let added = match sorted {
            Err(entry) => Ok(Some(self.place(entry))),
            Ok(sorted) => {
                let entries = sorted.iter().map(|entry| {
                    let place = self.place(*entry);
                    (
                        self.least + self.number(*entry),
                        self.firsts[place.part()] + place.row() as u64,
                    )
                });
                build.extend(entries).map(|()| None)
            }
        };
        self.spare = spare;
        added
    }

    /// Sorts the entries of a bucket, in place or elsewhere; or finds one that has the same key as another.
    fn sort<'a, const WIDTH: usize>(
        &mut self,
        entries: &'a mut [[u64; WIDTH]],
        spare: &'a mut Vec<u64>,
    ) -> Result<&'a [[u64; WIDTH]], [u64; WIDTH]> {
        let count = entries.len();
        let digit_bits = self.rest.min(bits(count as u64) + 1);
        if digit_bits == self.rest {
            // A slot for every key that there may be.
            spare.clear();
            spare.resize(WIDTH << self.rest, VACANT);
            let (slots, _) = spare.as_chunks_mut::<WIDTH>();
            let mask = (1 << self.rest) - 1;
            for entry in &*entries {
                let slot = &mut slots[(self.number(*entry) & mask) as usize];
                if slot[WIDTH - 1] != VACANT {
                    return Err(*entry);
                }
                *slot = *entry;
            }
            if slots.len() == count {
                return Ok(slots);
            }
            let mut to = 0;
            for slot in &*slots {
                if let Some(entry) = entries.get_mut(to) {
                    *entry = *slot;
                }
                to += usize::from(slot[WIDTH - 1] != VACANT);
            }
            return Ok(entries);
        }
        if spare.len() < WIDTH * count {
            spare.resize(WIDTH * count, 0);
        }
        let (sorted, _) = spare.as_chunks_mut::<WIDTH>();
        let sorted = &mut sorted[..count];
        let shift = self.rest - digit_bits;
        let mask = (1 << digit_bits) - 1;
        let mut digits = std::mem::take(&mut self.digits);
        digits.clear();
        digits.resize(1 << digit_bits, 0);
        let digit = |entry: [u64; WIDTH]| (self.number(entry) >> shift & mask) as usize;
        for entry in &*entries {
            digits[digit(*entry)] += 1;
        }
        let (mut sum, mut most) = (0, 0);
        for next in &mut digits {
            most = most.max(*next);
            sum += std::mem::replace(next, sum);
        }
        for entry in &*entries {
            let next = &mut digits[digit(*entry)];
            sorted[*next as usize] = *entry;
            *next += 1;
        }
        match most <= FEW {
            true => insertion_sort(sorted),
            false => sorted.sort_unstable(),
        }
        self.digits = digits;
        let mut pairs = sorted.windows(2);
        match pairs.find(|pair| self.number(pair[0]) == self.number(pair[1])) {
            Some(pair) => Err(pair[1]),
            None => Ok(sorted),
        }
    }

    /// An entry's number above the least one.
    fn number<const WIDTH: usize>(&self, entry: [u64; WIDTH]) -> u64 {
        match WIDTH {
            1 => entry[0] >> self.place_bits,
            _ => entry[0],
        }
    }

    fn place<const WIDTH: usize>(&self, entry: [u64; WIDTH]) -> Place {
        let place = entry[WIDTH - 1] & ((1 << self.place_bits) - 1);
        let row = place & ((1 << self.row_bits) - 1);
        Place::new((place >> self.row_bits) as usize, row as usize)
    }
}

/// The last word of no entry.
const VACANT: u64 = u64::MAX;

/// For entries that are nearly sorted.
fn insertion_sort<const WIDTH: usize>(entries: &mut [[u64; WIDTH]]) {
    for at in 1..entries.len() {
        let entry = entries[at];
        let mut to = at;
        while to > 0 && entry < entries[to - 1] {
            entries[to] = entries[to - 1];
            to -= 1;
        }
        entries[to] = entry;
    }
}

/// How many bits numbers up to this one have.
fn bits(greatest: u64) -> u32 {
    u64::BITS - greatest.leading_zeros()
}

fn words(keys: &Keys) -> &[u64] {
    match keys {
        Keys::Words(words) => words,
        Keys::Bytes(..) => unreachable!("keys of other columns"),
    }
}
