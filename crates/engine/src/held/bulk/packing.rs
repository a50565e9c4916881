//! Keys that are numbers, together with the places of their rows, in one word or two; and a few thousand of them
//! sorted.
//!
//! ```text
//! number − least   │ bucket │ rest                    │        at most 64 bits with the row: one word per entry
//! entry            │ bucket │ rest      │ part │ row   │        more: two words
//! ```

use super::AddedRow;
use crate::held::unique::Added;

/// Keys with equal digits up to which inserting is the quickest way to sort them.
const FEW: u32 = 16;
/// The last word of no entry.
const VACANT: u64 = u64::MAX;

/// How numbers and places are packed.
#[derive(Clone, Copy)]
pub(super) struct Packing {
    pub least: u64,
    /// Bits below those that tell the bucket.
    pub rest: u32,
    row_bits: u32,
    place_bits: u32,
    /// Words of an entry.
    pub width: usize,
}

impl Packing {
    /// For these rows' numbers, which are at least `least` and differ from it in so many bits at most.
    pub fn new(added: &[Added], least: u64, key_bits: u32, bucket_bits: u32) -> Self {
        let rows = added.iter().map(|part| part.keys.len());
        let row_bits = bits(rows.max().unwrap_or(0) as u64);
        let place_bits = row_bits + bits(added.len() as u64);
        Packing {
            least,
            rest: key_bits - bucket_bits,
            row_bits,
            place_bits,
            // One bit is left, so that no entry looks like `VACANT`.
            width: if key_bits + place_bits < 64 { 1 } else { 2 },
        }
    }

    /// The place of a part's first row, packed; those of the others follow.
    #[inline(always)]
    pub fn first(&self, part: usize) -> u64 {
        (part as u64) << self.row_bits
    }

    /// The entry of a number above the least one.
    #[inline(always)]
    pub fn pack<const WIDTH: usize>(&self, number: u64, place: u64) -> [u64; WIDTH] {
        let mut entry = [number; WIDTH];
        match WIDTH {
            1 => entry[0] = number << self.place_bits | place,
            _ => entry[WIDTH - 1] = place,
        }
        entry
    }

    /// An entry's number above the least one.
    #[inline(always)]
    pub fn number<const WIDTH: usize>(&self, entry: [u64; WIDTH]) -> u64 {
        match WIDTH {
            1 => entry[0] >> self.place_bits,
            _ => entry[0],
        }
    }

    /// An entry's place.
    #[inline(always)]
    pub fn place<const WIDTH: usize>(&self, entry: [u64; WIDTH]) -> AddedRow {
        let place = entry[WIDTH - 1] & ((1 << self.place_bits) - 1);
        let row = place & ((1 << self.row_bits) - 1);
        AddedRow::new((place >> self.row_bits) as usize, row as usize)
    }
}

/// Room to sort the entries of a bucket in.
#[derive(Default)]
pub(super) struct Sorter {
    spare: Vec<u64>,
    digits: Vec<u32>,
}

impl Sorter {
    /// Sorts the entries of a bucket, in place or elsewhere; or finds the least that has the same key as another.
    pub fn sort<'a, const WIDTH: usize>(
        &'a mut self,
        packing: &Packing,
        entries: &'a mut [[u64; WIDTH]],
    ) -> Result<&'a [[u64; WIDTH]], [u64; WIDTH]> {
        // About two digits per entry, so that few entries have the same.
        let digit_bits = packing.rest.min(bits(entries.len() as u64) + 1);
        match digit_bits == packing.rest {
            true => self.place(packing, entries),
            false => self.distribute(packing, digit_bits, entries),
        }
    }

    /// There is a slot for every key that there may be.
    fn place<'a, const WIDTH: usize>(
        &'a mut self,
        packing: &Packing,
        entries: &'a mut [[u64; WIDTH]],
    ) -> Result<&'a [[u64; WIDTH]], [u64; WIDTH]> {
        self.spare.clear();
        self.spare.resize(WIDTH << packing.rest, VACANT);
        let (slots, _) = self.spare.as_chunks_mut::<WIDTH>();
        let mask = (1 << packing.rest) - 1;
        for entry in &*entries {
            let slot = &mut slots[(packing.number(*entry) & mask) as usize];
            if slot[WIDTH - 1] != VACANT {
                entries.sort_unstable();
                return first_twice(packing, entries).map_or(Ok(&*entries), Err);
            }
            *slot = *entry;
        }
        if slots.len() == entries.len() {
            return Ok(slots);
        }
        let mut to = 0;
        for slot in &*slots {
            if let Some(entry) = entries.get_mut(to) {
                *entry = *slot;
            }
            to += usize::from(slot[WIDTH - 1] != VACANT);
        }
        Ok(entries)
    }

    /// The highest bits of the rest bring them nearly into order.
    fn distribute<'a, const WIDTH: usize>(
        &'a mut self,
        packing: &Packing,
        digit_bits: u32,
        entries: &[[u64; WIDTH]],
    ) -> Result<&'a [[u64; WIDTH]], [u64; WIDTH]> {
        if self.spare.len() < WIDTH * entries.len() {
            self.spare.resize(WIDTH * entries.len(), 0);
        }
        let (sorted, _) = self.spare.as_chunks_mut::<WIDTH>();
        let sorted = &mut sorted[..entries.len()];
        self.digits.clear();
        self.digits.resize(1 << digit_bits, 0);
        let (shift, mask) = (packing.rest - digit_bits, (1 << digit_bits) - 1);
        let digit = |entry: [u64; WIDTH]| (packing.number(entry) >> shift & mask) as usize;
        for entry in entries {
            self.digits[digit(*entry)] += 1;
        }
        let (mut sum, mut most) = (0, 0);
        for next in &mut self.digits {
            most = most.max(*next);
            sum += std::mem::replace(next, sum);
        }
        for entry in entries {
            let next = &mut self.digits[digit(*entry)];
            sorted[*next as usize] = *entry;
            *next += 1;
        }
        match most <= FEW {
            true => insertion_sort(sorted),
            false => sorted.sort_unstable(),
        }
        first_twice(packing, sorted).map_or(Ok(&*sorted), Err)
    }
}

/// The least entry that has the same key as the one before it.
fn first_twice<const WIDTH: usize>(
    packing: &Packing,
    sorted: &[[u64; WIDTH]],
) -> Option<[u64; WIDTH]> {
    let number = |entry| packing.number(entry);
    let mut pairs = sorted.windows(2);
    let twice = pairs.find(|pair| number(pair[0]) == number(pair[1]));
    twice.map(|pair| pair[1])
}

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
pub(super) fn bits(greatest: u64) -> u32 {
    u64::BITS - greatest.leading_zeros()
}
