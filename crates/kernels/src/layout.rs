//! Where a packed value lies (drawn at the top of the crate): the lane types, the plan of a vector's rows,
//! packing, and random access.

use crate::{MASK_WORDS, VECTOR};

/// Words of the mask of starts in which the runs of rows are found, at most.
pub(crate) const RUNS_WORDS: usize = 64 * MASK_WORDS;

/// A type of which any bits are a value, and that has no padding.
pub(crate) trait PlainWord: Copy {}
impl PlainWord for i64 {}
impl PlainWord for f64 {}
impl PlainWord for f32 {}

/// The type of a lane's words: the smallest unsigned integer that holds a value.
pub(crate) trait Lane: PlainWord + Default + PartialOrd + Sized + 'static {
    /// `T`, which is also the number of rows of a vector.
    const BITS: usize;
    /// `L`, the values of a row.
    const LANES: usize = VECTOR / Self::BITS;
    fn from_u64(value: u64) -> Self;
    fn to_u64(self) -> u64;
    /// `((low >> right) | (high << left)) & mask` where `left = T - right`, which may be `T`.
    fn field(low: Self, high: Self, right: u32, mask: Self) -> Self;
    fn wrapping_sub(self, other: Self) -> Self;
    /// The packed words as words of lanes.
    fn view(words: &[u64]) -> &[Self];
    /// The same, to write.
    fn view_mut(words: &mut [u64]) -> &mut [Self];
}

macro_rules! lane {
    ($($t:ty),*) => {$(
        impl PlainWord for $t {}
        impl Lane for $t {
            const BITS: usize = <$t>::BITS as usize;
            #[inline(always)]
            fn from_u64(value: u64) -> Self {
                value as $t
            }
            #[inline(always)]
            fn to_u64(self) -> u64 {
                self as u64
            }
            #[inline(always)]
            fn field(low: Self, high: Self, right: u32, mask: Self) -> Self {
                ((low >> right) | ((high << 1) << (<$t>::BITS - 1 - right))) & mask
            }
            #[inline(always)]
            fn wrapping_sub(self, other: Self) -> Self {
                <$t>::wrapping_sub(self, other)
            }
            #[inline(always)]
            fn view(words: &[u64]) -> &[Self] {
                // SAFETY: the alignment of u64 suffices for a narrower integer, the length in bytes is the
                // same, and any bit pattern is a value of it.
                unsafe {
                    std::slice::from_raw_parts(
                        words.as_ptr().cast(),
                        words.len() * (u64::BITS / <$t>::BITS) as usize,
                    )
                }
            }
            #[inline(always)]
            fn view_mut(words: &mut [u64]) -> &mut [Self] {
                // SAFETY: as in `view`, and the exclusive borrow is carried over.
                unsafe {
                    std::slice::from_raw_parts_mut(
                        words.as_mut_ptr().cast(),
                        words.len() * (u64::BITS / <$t>::BITS) as usize,
                    )
                }
            }
        }
    )*};
}
lane!(u8, u16, u32, u64);

/// Starts a cache line, so that a register's worth never lies across two.
#[cfg(target_arch = "x86_64")]
#[repr(align(64))]
pub(crate) struct CacheLine<T>(pub T);

/// `T` for values of `width` bits.
#[inline(always)]
pub(crate) const fn lane_bits(width: u8) -> usize {
    match width {
        0..=8 => 8,
        9..=16 => 16,
        17..=32 => 32,
        _ => 64,
    }
}

/// Calls a function that is generic over the lane.
macro_rules! by_lane {
    ($width:expr, $function:ident($($argument:expr),*)) => {
        match $crate::layout::lane_bits($width) {
            8 => $function::<u8>($width, $($argument),*),
            16 => $function::<u16>($width, $($argument),*),
            32 => $function::<u32>($width, $($argument),*),
            _ => $function::<u64>($width, $($argument),*),
        }
    };
}

pub(crate) use by_lane;

/// The largest value of `width` bits.
#[inline(always)]
pub(crate) const fn max_value(width: u8) -> u64 {
    if width == 0 {
        0
    } else {
        u64::MAX >> (64 - width as u32)
    }
}

/// Words of a vector packed at `width` bits.
#[inline(always)]
pub(crate) const fn vector_words(width: u8) -> usize {
    width as usize * (VECTOR / 64)
}

/// How to get a row: from the word `low` of each lane shifted right, and the word `high` shifted left by
/// `T - right`. A row within one word has `high == low`; what comes from there is masked away.
#[derive(Clone, Copy)]
pub(crate) struct RowBits {
    /// To be broadcast from here to lanes of any size, hence as wide as the widest.
    pub right: u64,
    /// Numbers of words within a lane, below the width.
    pub low: u32,
    pub high: u32,
}

/// The rows of each width. Computed, a row costs as much as the rest of a kernel.
static ROWS: [[RowBits; 64]; 65] = {
    let mut rows = [[RowBits {
        right: 0,
        low: 0,
        high: 0,
    }; 64]; 65];
    let mut width = 1;
    while width <= 64 {
        let bits = lane_bits(width as u8);
        let mut r = 0;
        while r < bits {
            let (low, right) = (r * width / bits, r * width % bits);
            let crosses = right + width > bits;
            let (right, low, high) = (right as u64, low as u32, (low + crosses as usize) as u32);
            rows[width][r] = RowBits { right, low, high };
            r += 1;
        }
        width += 1;
    }
    rows
};

/// The rows of a width, of which those below `T` are used.
#[inline(always)]
pub(crate) fn rows(width: u8) -> &'static [RowBits; 64] {
    &ROWS[width as usize]
}

/// Packs a vector at `width` bits, 0 to 64, into `out`, which takes `16 * width` words.
///
/// # Panics
/// If a value does not fit in `width` bits, the width is above 64 or `out` has another length.
pub fn pack(values: &[u64; VECTOR], width: u8, out: &mut [u64]) {
    assert!(width <= 64, "width {width} is above 64 bits");
    assert_eq!(
        out.len(),
        vector_words(width),
        "words of a vector at {width} bits"
    );
    let all = values.iter().fold(0, |all, value| all | value);
    assert!(
        all <= max_value(width),
        "a value of the vector is wider than {width} bits"
    );
    if width == 0 {
        return;
    }
    match lane_bits(width) {
        8 => pack_lanes::<u8>(values, width, out),
        16 => pack_lanes::<u16>(values, width, out),
        32 => pack_lanes::<u32>(values, width, out),
        _ => pack_lanes::<u64>(values, width, out),
    }
}

fn pack_lanes<T: Lane>(values: &[u64; VECTOR], width: u8, out: &mut [u64]) {
    out.fill(0);
    let out = T::view_mut(out);
    for (r, values) in values.chunks_exact(T::LANES).enumerate() {
        let row = rows(width)[r];
        let low = &mut out[row.low as usize * T::LANES..][..T::LANES];
        for (word, &value) in low.iter_mut().zip(values) {
            *word = T::from_u64(word.to_u64() | value << row.right);
        }
        if row.high != row.low {
            let high = &mut out[row.high as usize * T::LANES..][..T::LANES];
            for (word, &value) in high.iter_mut().zip(values) {
                *word = T::from_u64(value >> (T::BITS as u64 - row.right));
            }
        }
    }
}

/// Value `index` of the vectors in `words`; `width` is 1 to 64.
#[inline(always)]
pub(crate) fn one(width: u8, words: &[u64], index: usize) -> u64 {
    let (vector, index) = (index / VECTOR, index % VECTOR);
    let vector = &words[vector * vector_words(width)..][..vector_words(width)];
    match lane_bits(width) {
        8 => one_of::<u8>(width, vector, index),
        16 => one_of::<u16>(width, vector, index),
        32 => one_of::<u32>(width, vector, index),
        _ => one_of::<u64>(width, vector, index),
    }
}

/// Value `index` of a vector.
#[inline(always)]
pub(crate) fn one_of<T: Lane>(width: u8, vector: &[u64], index: usize) -> u64 {
    let row = &rows(width)[index / T::LANES % T::BITS];
    let words = T::view(vector);
    let at = |word: u32| words[word as usize * T::LANES + index % T::LANES];
    let mask = T::from_u64(max_value(width));
    T::field(at(row.low), at(row.high), row.right as u32, mask).to_u64()
}
