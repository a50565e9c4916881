//! What packed values are compared with: a range, a bitmap. Both in the numbers of the packed values.

use crate::layout::max_value;

/// A range of packed values that some but not all possible values lie in: `value - lo <= span`, wrapping.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub lo: u64,
    pub span: u64,
}

/// The values of a width that lie between two bounds.
pub(crate) enum Bounds {
    None,
    All,
    Some(Range),
}

/// The values of a width from `lo` to `hi`.
pub(crate) fn bounds(width: u8, lo: u64, hi: u64) -> Bounds {
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
    pub(crate) fn new(width: u8, words: &'a [u64], first: u64) -> Option<Self> {
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
