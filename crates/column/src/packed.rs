//! Frame of reference: integers as distances from a base, bit-packed in vectors of 1,024.

use crate::copier::Copier;
use crate::object_memory::ObjectMemory;
use crate::predicate::Reduced;
use eris_kernels::{Isa, MASK_WORDS, VECTOR, pack, prefetch};
use eris_numa::{Buffer, Extent, OutOfMemory};
use std::borrow::Cow;

/// Integers, `base + d` with each distance `d` in `width` bits, in the kernels' layout. The last vector is padded with
/// distance 0.
#[derive(Debug)]
pub(crate) struct Packed {
    base: i64,
    width: u8,
    len: usize,
    words: Buffer,
}

/// Bytes of `len` values packed at `width` bits.
pub(crate) fn packed_bytes(len: usize, width: u8) -> usize {
    len.div_ceil(VECTOR) * VECTOR / 8 * width as usize
}

/// Bits for distances within `min..=max`.
pub(crate) fn width_of(min: i64, max: i64) -> u8 {
    (64 - (max.wrapping_sub(min) as u64).leading_zeros()) as u8
}

impl Packed {
    /// Packs `len` values from `min..=max`; `next` writes each vector of them, at most 1,024, in turn.
    pub(crate) fn encode(
        len: usize,
        min: i64,
        max: i64,
        home: ObjectMemory<'_>,
        mut next: impl FnMut(&mut [i64]),
    ) -> Result<Self, OutOfMemory> {
        let width = width_of(min, max);
        // A base of full words spares bitmap probes from shifting the bitmap.
        let aligned = min & !63;
        let base = if width_of(aligned, max) == width {
            aligned
        } else {
            min
        };
        let mut words = home.allocate::<u64>(packed_bytes(len, width) / 8)?;
        let mut values = [0; VECTOR];
        let mut distances = [0; VECTOR];
        let vectors = words
            .as_mut_slice::<u64>()
            // Of no words there are no chunks, whatever their size.
            .chunks_exact_mut((MASK_WORDS * width as usize).max(1));
        for (vector, out) in vectors.enumerate() {
            let here = (len - vector * VECTOR).min(VECTOR);
            next(&mut values[..here]);
            for (distance, value) in distances.iter_mut().zip(&values[..here]) {
                *distance = value.wrapping_sub(base) as u64;
            }
            distances[here..].fill(0);
            pack(&distances, width, out);
        }
        Ok(Packed {
            base,
            width,
            len,
            words,
        })
    }

    /// Of words in the kernels' layout, of as many vectors as `len` values need.
    pub(crate) fn of_words(base: i64, width: u8, len: usize, words: Buffer) -> Self {
        debug_assert_eq!(words.len(), packed_bytes(len, width));
        Packed {
            base,
            width,
            len,
            words,
        }
    }

    /// The range of the values, read one by one.
    pub(crate) fn range(&self, isa: Isa) -> Option<(i64, i64)> {
        let mut values = [0; VECTOR];
        let mut range = None;
        for vector in 0..self.vectors() {
            self.unpack(isa, vector, &mut values);
            let here = &values[..(self.len - vector * VECTOR).min(VECTOR)];
            let (least, greatest) = isa.min_max_i64(here)?;
            let (min, max) = range.unwrap_or((least, greatest));
            range = Some((least.min(min), greatest.max(max)));
        }
        range
    }

    /// Whether this is the range of the values, and what is behind the last one is distance 0.
    pub(crate) fn has_range(&self, isa: Isa, least: i64, greatest: i64) -> bool {
        /// Up to this width nothing is decoded: it takes a count of all values, and one of a few vectors for each end.
        const NARROW: u8 = 16;
        if self.len == 0 || least < self.base || greatest < least {
            return false;
        }
        if self.width == 0 {
            return (least, greatest) == (self.base, self.base);
        }
        let mut values = [0; VECTOR];
        isa.unpack(self.width, self.vector(self.vectors() - 1), 0, &mut values);
        let beyond = &values[VECTOR - self.padding()..];
        if beyond.iter().any(|&distance| distance != 0) {
            return false;
        }
        if self.width > NARROW {
            return self.range(isa) == Some((least, greatest));
        }
        // Padding counts as a least value, so that it is not the one that is looked for.
        let occurs = |value: i64| {
            let distance = self.distance(value);
            (0..self.vectors()).any(|vector| {
                let words = self.vector(vector);
                let count = isa.count_between(self.width, words, distance, distance) as usize;
                let is_last = vector + 1 == self.vectors();
                count
                    > if is_last && distance == 0 {
                        self.padding()
                    } else {
                        0
                    }
            })
        };
        self.count_between(isa, least, greatest) == self.len && occurs(least) && occurs(greatest)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn width(&self) -> u8 {
        self.width
    }

    pub(crate) fn extents(&self, all: &mut Vec<Extent>) {
        all.push(self.words.extent());
    }

    pub(crate) fn copied(&self, copier: &mut Copier<'_>) -> Option<Self> {
        Some(Packed {
            words: copier.copy(&self.words)?,
            ..*self
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.words.len()
    }

    pub(crate) fn get(&self, index: usize) -> i64 {
        debug_assert!(index < self.len);
        let distance = Isa::unpack_one(self.width, self.words(), index);
        self.base.wrapping_add(distance as i64)
    }

    /// Asks for the first lines: what follows them comes as a stream.
    pub(crate) fn prefetch(&self) {
        const FIRST: usize = 32;
        let words = self.words();
        prefetch(&words[..FIRST.min(words.len())]);
    }

    pub(crate) fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    pub(crate) fn bytes_of_words(&self) -> &[u8] {
        self.words.as_slice()
    }

    fn vector(&self, vector: usize) -> &[u64] {
        let words = MASK_WORDS * self.width as usize;
        &self.words()[vector * words..][..words]
    }

    /// All values of one vector, padding included.
    pub(crate) fn unpack(&self, isa: Isa, vector: usize, out: &mut [i64; VECTOR]) {
        isa.unpack(self.width, self.vector(vector), self.base, out);
    }

    /// The selected values of one vector without gaps; returns their number.
    pub(crate) fn gather(
        &self,
        isa: Isa,
        vector: usize,
        mask: &[u64; MASK_WORDS],
        out: &mut [i64; VECTOR],
    ) -> usize {
        isa.gather_packed(self.width, self.vector(vector), self.base, mask, out)
    }

    /// The values at these positions.
    pub(crate) fn take(&self, isa: Isa, positions: &[u32], out: &mut [i64]) {
        isa.take_packed(self.width, self.words(), self.base, positions, out);
    }

    /// Keeps the bits of the values that pass; with `full` all bits are known to be set. Bits beyond the last value
    /// become undefined. The condition has been reduced to the range of the values.
    pub(crate) fn filter(&self, isa: Isa, condition: Reduced<'_>, full: bool, masks: &mut [u64]) {
        let (width, words) = (self.width, self.words());
        match condition {
            Reduced::None => masks.fill(0),
            Reduced::All => {}
            Reduced::Between(low, high) => {
                let (low, high) = (self.distance(low), self.distance(high));
                if full {
                    isa.between(width, words, low, high, masks);
                } else {
                    isa.between_and(width, words, low, high, masks);
                }
            }
            Reduced::NotBetween(low, high) => {
                let mut inside = masks.to_vec();
                let (low, high) = (self.distance(low), self.distance(high));
                if full {
                    isa.between(width, words, low, high, &mut inside);
                } else {
                    isa.between_and(width, words, low, high, &mut inside);
                }
                eris_kernels::and_not(masks, &inside);
            }
            Reduced::Ranges(ranges) => {
                let mut passed = vec![0; masks.len()];
                let mut inside = vec![0; masks.len()];
                for &(low, high) in ranges {
                    // The first and the last one may reach beyond the values.
                    let (low, high) = (self.distance(low.max(self.base)), self.distance(high));
                    if full {
                        isa.between(width, words, low, high, &mut inside);
                    } else {
                        inside.copy_from_slice(masks);
                        isa.between_and(width, words, low, high, &mut inside);
                    }
                    eris_kernels::or(&mut passed, &inside);
                }
                masks.copy_from_slice(&passed);
            }
            Reduced::Bitmap { first, words: bits } => {
                let (bits, first) = self.bitmap(first, bits);
                isa.probe_and(width, words, &bits, first, masks);
            }
            Reduced::Set(values) => self.filter_set(isa, values, masks),
        }
    }

    /// How many of the values lie within `low..=high`, which lies in their range.
    pub(crate) fn count_between(&self, isa: Isa, low: i64, high: i64) -> usize {
        let (low, high) = (self.distance(low), self.distance(high));
        let counted = isa.count_between(self.width, self.words(), low, high) as usize;
        counted - if low == 0 { self.padding() } else { 0 }
    }

    pub(crate) fn vectors(&self) -> usize {
        self.len.div_ceil(VECTOR)
    }

    /// Values behind the last one, up to whole vectors.
    pub(crate) fn padding(&self) -> usize {
        self.vectors() * VECTOR - self.len
    }

    pub(crate) fn distance(&self, value: i64) -> u64 {
        value.wrapping_sub(self.base) as u64
    }

    /// A bitmap of values as one of distances, with the distance of its bit 0. What lies below the base is cut off;
    /// the rest is shifted if the base is not at the start of a word.
    fn bitmap<'a>(&self, first: i64, bits: &'a [u64]) -> (Cow<'a, [u64]>, u64) {
        if first >= self.base {
            return (Cow::Borrowed(bits), self.distance(first));
        }
        let skipped = first.abs_diff(self.base);
        let word = usize::try_from(skipped / 64).map_or(bits.len(), |word| word.min(bits.len()));
        let (bits, shift) = (&bits[word..], skipped % 64);
        if shift == 0 {
            return (Cow::Borrowed(bits), 0);
        }
        let reach = match self.width {
            64 => usize::MAX,
            width => (1usize << width).div_ceil(64),
        };
        let next = bits.iter().skip(1).copied().chain([0]);
        let shifted = bits.iter().zip(next).take(reach);
        let shifted = shifted.map(|(low, high)| low >> shift | high << (64 - shift));
        (shifted.collect(), 0)
    }

    /// Binary search for each value: for sets too wide for a bitmap.
    fn filter_set(&self, isa: Isa, set: &[i64], masks: &mut [u64]) {
        let mut values = [0; VECTOR];
        for (vector, mask) in masks.as_chunks_mut::<MASK_WORDS>().0.iter_mut().enumerate() {
            if mask.iter().all(|&word| word == 0) {
                continue;
            }
            self.unpack(isa, vector, &mut values);
            for (word, values) in mask.iter_mut().zip(values.as_chunks::<64>().0) {
                let mut rest = *word;
                while rest != 0 {
                    let bit = rest.trailing_zeros() as usize;
                    let member = set.binary_search(&values[bit]).is_ok();
                    *word ^= (!member as u64) << bit;
                    rest &= rest - 1;
                }
            }
        }
    }
}
