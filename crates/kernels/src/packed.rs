//! Kernels over bit-packed vectors: the checks, and the cases that need no look at the words.

use crate::condition::{Bitmap, Bounds, bounds};
use crate::isa::{Isa, dispatch};
use crate::layout::{self, vector_words};
use crate::ranges::{PassedValues, RangeTest};
use crate::{MASK_WORDS, VECTOR};

pub(crate) fn check(width: u8, words: &[u64], vectors: usize) {
    assert!(width <= 64, "width {width} is above 64 bits");
    assert_eq!(
        words.len(),
        vectors * vector_words(width),
        "words of {vectors} vectors at {width} bits"
    );
}

fn check_masks(width: u8, words: &[u64], masks: &[u64]) {
    assert_eq!(masks.len() % MASK_WORDS, 0, "masks of whole vectors");
    check(width, words, masks.len() / MASK_WORDS);
}

/// Over packed words: whole vectors, `16 * width` words each (see the layout at the top of the crate); a width
/// of 0 takes no words and stands for zeros. Masks have 16 words for each vector.
///
/// # Panics
/// Each method panics if the width is above 64, or a slice does not hold as many vectors as the others.
impl Isa {
    /// Unpacks one vector: `base + value`, wrapping.
    #[inline]
    pub fn unpack(self, width: u8, words: &[u64], base: i64, out: &mut [i64; VECTOR]) {
        check(width, words, 1);
        match width {
            0 => out.fill(base),
            _ => dispatch!(self, unpack(width, words, base, out)),
        }
    }

    /// Unpacks one vector of at most 32 bits.
    ///
    /// # Panics
    /// Also if the width is above 32.
    #[inline]
    pub fn unpack_u32(self, width: u8, words: &[u64], out: &mut [u32; VECTOR]) {
        assert!(width <= 32, "width {width} is above 32 bits");
        check(width, words, 1);
        match width {
            0 => out.fill(0),
            _ => dispatch!(self, unpack_u32(width, words, out)),
        }
    }

    /// Value `index` of the vectors in `words`.
    ///
    /// # Panics
    /// If `words` has no such value, which at a width of 0 is never so.
    #[inline]
    pub fn unpack_one(width: u8, words: &[u64], index: usize) -> u64 {
        match width {
            0 => 0,
            _ => layout::one(width, words, index),
        }
    }

    /// Sets the bits of the values in `lo..=hi` and clears all others. `lo > hi` is an empty range.
    pub fn between(self, width: u8, words: &[u64], lo: u64, hi: u64, masks: &mut [u64]) {
        check_masks(width, words, masks);
        match bounds(width, lo, hi) {
            Bounds::None => masks.fill(0),
            Bounds::All => masks.fill(u64::MAX),
            Bounds::Some(range) => dispatch!(self, between(width, words, range, masks)),
        }
    }

    /// Clears the bits of the values outside `lo..=hi`. Does not read vectors whose mask is empty already.
    pub fn between_and(self, width: u8, words: &[u64], lo: u64, hi: u64, masks: &mut [u64]) {
        check_masks(width, words, masks);
        match bounds(width, lo, hi) {
            Bounds::None => masks.fill(0),
            Bounds::All => {}
            Bounds::Some(range) => dispatch!(self, between_and(width, words, range, masks)),
        }
    }

    /// The number of values in `lo..=hi`.
    ///
    /// # Panics
    /// Also if the width is 0, where `words` cannot tell how many values there are.
    pub fn count_between(self, width: u8, words: &[u64], lo: u64, hi: u64) -> u64 {
        assert_ne!(width, 0, "values of 0 bits cannot be counted");
        let vectors = words.len() / vector_words(width).max(1);
        check(width, words, vectors);
        match bounds(width, lo, hi) {
            Bounds::None => 0,
            Bounds::All => (vectors * VECTOR) as u64,
            Bounds::Some(range) => dispatch!(self, count_between(width, words, range)),
        }
    }

    /// Does what each test wants. Vectors of which no test has a bit left are not read.
    ///
    /// # Panics
    /// If the width is above 64, or `words`, or the masks of a test, are not of so many vectors.
    pub fn between_each(
        self,
        width: u8,
        words: &[u64],
        vectors: usize,
        tests: &mut [RangeTest<'_>],
    ) {
        check(width, words, vectors);
        for test in tests.iter() {
            if let PassedValues::Kept(masks) = &test.passed {
                assert_eq!(masks.len(), vectors * MASK_WORDS, "masks of other vectors");
            }
        }
        match width {
            0 => {
                for test in tests {
                    let inside = [if test.lo == 0 { u64::MAX } else { 0 }; MASK_WORDS];
                    let outside = test.outside;
                    (0..vectors).for_each(|vector| test.take(vector, &inside, outside));
                }
            }
            _ => dispatch!(self, between_each(width, words, tests)),
        }
    }

    /// Clears the bits of the values that are not members of a set: `value` is one if bit `value - first` of
    /// `bitmap` is set (bit `i % 64` of word `i / 64`); no bit outside the bitmap is. Does not read vectors
    /// whose mask is empty already.
    pub fn probe_and(
        self,
        width: u8,
        words: &[u64],
        bitmap: &[u64],
        first: u64,
        masks: &mut [u64],
    ) {
        check_masks(width, words, masks);
        match Bitmap::new(width, bitmap, first) {
            None => masks.fill(0),
            Some(bitmap) if width == 0 => {
                if !bitmap.holds(0) {
                    masks.fill(0);
                }
            }
            Some(bitmap) => dispatch!(self, probe_and(width, words, bitmap, masks)),
        }
    }

    /// Unpacks the selected values of one vector, in order and without gaps: `base + value`, wrapping. Returns
    /// their number; what follows them in `out` is undefined.
    pub fn gather_packed(
        self,
        width: u8,
        words: &[u64],
        base: i64,
        mask: &[u64; MASK_WORDS],
        out: &mut [i64; VECTOR],
    ) -> usize {
        check(width, words, 1);
        let selected = self.popcount(mask) as usize;
        match width {
            0 => out[..selected].fill(base),
            _ => dispatch!(self, gather_packed(width, words, base, mask, out)),
        }
        selected
    }
}
