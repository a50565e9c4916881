//! Kernels over bit-packed vectors: the checks, and the cases that need no look at the words.

use crate::isa::{Isa, dispatch};
use crate::layout::{self, max_value, vector_words};
use crate::{MASK_WORDS, VECTOR};

/// A range of packed values that some but not all possible values lie in: `value - lo <= span`, wrapping.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub lo: u64,
    pub span: u64,
}

enum Bounds {
    None,
    All,
    Some(Range),
}

fn bounds(width: u8, lo: u64, hi: u64) -> Bounds {
    let max = max_value(width);
    match hi.min(max) {
        hi if lo > hi => Bounds::None,
        hi if lo == 0 && hi == max => Bounds::All,
        hi => Bounds::Some(Range { lo, span: hi - lo }),
    }
}

/// Bits that stand for the values from `first` on. Only bits up to `last` count, and `first + last` is a value of
/// the width: a value below `first` wraps to a bit beyond `last` in the lane's arithmetic too.
#[derive(Clone, Copy)]
pub(crate) struct Bitmap<'a> {
    pub words: &'a [u64],
    pub first: u64,
    pub last: u64,
}

impl<'a> Bitmap<'a> {
    /// `None` if no value of the width has a bit.
    fn new(width: u8, words: &'a [u64], first: u64) -> Option<Self> {
        let last = (words.len() as u64 * 64).checked_sub(1)?;
        let last = last.min(max_value(width).checked_sub(first)?);
        Some(Bitmap {
            words: &words[..(last / 64) as usize + 1],
            first,
            last,
        })
    }

    /// Whether the bit of `value` is there and set.
    #[inline(always)]
    pub fn holds(&self, value: u64) -> bool {
        let bit = value.wrapping_sub(self.first);
        self.holds_bit(bit)
    }

    /// The same, without a branch, of `value - first` in the arithmetic of the lane.
    #[inline(always)]
    pub fn holds_bit(&self, bit: u64) -> bool {
        let at = bit.min(self.last);
        (bit <= self.last) & (self.words[(at / 64) as usize] >> (at % 64) & 1 == 1)
    }
}

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
