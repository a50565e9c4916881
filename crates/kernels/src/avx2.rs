//! AVX2: intrinsics for comparison to masks and for selection, which the compiler does not find; all else is the
//! plain code compiled for these registers, where intrinsics measured no better.

use crate::condition::{Bitmap, Range};
use crate::layout::{CacheLine, Lane, PlainWord, vector_words};
use crate::ranges::{RangeTest, each_vector};
use crate::x86::{between_plain, kernels_by_lane, one_instruction_kernels, plain_code};
use crate::{MASK_WORDS, VECTOR, portable};
use std::arch::x86_64::*;

plain_code! {
    "avx2,bmi1,bmi2,popcnt":
    fn unpack(width: u8, words: &[u64], base: i64, out: &mut [i64; VECTOR]);
    fn unpack_u32(width: u8, words: &[u64], out: &mut [u32; VECTOR]);
    fn positions(masks: &[u64], out: &mut [u32]);
    fn runs_of(starts: &[u64], rows: &[u32], runs: &mut [u32]);
    fn expand_i64(values: &[i64], mask: &[u64; MASK_WORDS], fill: i64, out: &mut [i64; VECTOR]);
    fn popcount(masks: &[u64]) -> u64;
    fn sum_i64(values: &[i64]) -> i128;
    fn min_max_i64(values: &[i64]) -> (i64, i64);
    fn sum_f64(values: &[f64]) -> f64;
    fn repeat_i64(values: &[i64], starts: &[u64; MASK_WORDS], out: &mut [i64; VECTOR]);
    fn running_sums(start: i64, values: &mut [i64; VECTOR]);
}

one_instruction_kernels!("avx2,bmi1,bmi2,popcnt");

kernels_by_lane! {
    "avx2,bmi1,bmi2,popcnt":
    fn between(words: &[u64], range: Range, masks: &mut [u64]) = between_lane;
    fn between_and(words: &[u64], range: Range, masks: &mut [u64]) = between_and_lane;
    fn count_between(words: &[u64], range: Range) -> u64 = count_lane;
    fn between_each(words: &[u64], tests: &mut [RangeTest<'_>]) = between_each_lane;
    fn probe_and(words: &[u64], bitmap: Bitmap<'_>, masks: &mut [u64]) = probe_lane;
}

/// The first 32 bytes of `values`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn load<V: PlainWord>(values: &[V]) -> __m256i {
    let values = &values[..32 / size_of::<V>()];
    // SAFETY: `values` has 32 bytes, without padding.
    unsafe { _mm256_loadu_si256(values.as_ptr().cast()) }
}

/// Register `i` of `values`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn load_at<V: PlainWord>(values: &[V], i: usize) -> __m256i {
    load(&values[i * (32 / size_of::<V>())..])
}

/// The bits of 64 values of `value - lo <= span`, in which unsigned `a <= b` is `min(a, b) == a`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn bits_within<T: Lane>(values: &[T; 64], range: Range) -> u64 {
    match T::BITS {
        8 => {
            let (lo, span) = (
                _mm256_set1_epi8(range.lo as i8),
                _mm256_set1_epi8(range.span as i8),
            );
            let half = |i: usize| {
                let value = _mm256_sub_epi8(load_at(values, i), lo);
                let inside = _mm256_cmpeq_epi8(_mm256_min_epu8(value, span), value);
                _mm256_movemask_epi8(inside) as u32 as u64
            };
            half(0) | half(1) << 32
        }
        16 => {
            let (lo, span) = (
                _mm256_set1_epi16(range.lo as i16),
                _mm256_set1_epi16(range.span as i16),
            );
            let quarter = |i| {
                let value = _mm256_sub_epi16(load_at(values, i), lo);
                _mm256_cmpeq_epi16(_mm256_min_epu16(value, span), value)
            };
            let half = |i: usize| {
                // Packing works on halves of registers: the middle quarters change places again.
                let bytes = _mm256_packs_epi16(quarter(2 * i), quarter(2 * i + 1));
                let bytes = _mm256_permute4x64_epi64::<0b11_01_10_00>(bytes);
                _mm256_movemask_epi8(bytes) as u32 as u64
            };
            half(0) | half(1) << 32
        }
        32 => {
            let (lo, span) = (
                _mm256_set1_epi32(range.lo as i32),
                _mm256_set1_epi32(range.span as i32),
            );
            let mut bits = 0;
            for i in (0..8).rev() {
                let value = _mm256_sub_epi32(load_at(values, i), lo);
                let inside = _mm256_cmpeq_epi32(_mm256_min_epu32(value, span), value);
                bits = bits << 8 | _mm256_movemask_ps(_mm256_castsi256_ps(inside)) as u64;
            }
            bits
        }
        _ => {
            // There is only the signed comparison: both sides change the sign, the left one with `lo`.
            let lo = _mm256_set1_epi64x((range.lo ^ 1 << 63) as i64);
            let span = _mm256_set1_epi64x((range.span ^ 1 << 63) as i64);
            let mut outside = 0;
            for i in (0..16).rev() {
                let above = _mm256_cmpgt_epi64(_mm256_sub_epi64(load_at(values, i), lo), span);
                outside = outside << 4 | _mm256_movemask_pd(_mm256_castsi256_pd(above)) as u64;
            }
            !outside
        }
    }
}

/// The mask of one vector.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn vector_mask<T: Lane>(width: u8, words: &[u64], range: Range) -> [u64; MASK_WORDS] {
    let mut values = CacheLine([T::default(); VECTOR]);
    portable::unpack_with(width, words, &mut values.0, |value: T| value);
    values_mask(&values.0, range)
}

/// The mask of the values of one vector.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn values_mask<T: Lane>(values: &[T; VECTOR], range: Range) -> [u64; MASK_WORDS] {
    let mut mask = [0; MASK_WORDS];
    for (mask, values) in mask.iter_mut().zip(values.as_chunks().0) {
        *mask = bits_within(values, range);
    }
    mask
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn between_each_lane<T: Lane>(width: u8, words: &[u64], tests: &mut [RangeTest<'_>]) {
    each_vector(width, words, tests, |words, ranges, masks| {
        let mut values = CacheLine([T::default(); VECTOR]);
        portable::unpack_with(width, words, &mut values.0, |value: T| value);
        for (mask, &range) in masks.iter_mut().zip(ranges) {
            *mask = values_mask(&values.0, range);
        }
    });
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn between_lane<T: Lane>(width: u8, words: &[u64], range: Range, masks: &mut [u64]) {
    for (words, mask) in portable::vectors(width, words, masks) {
        *mask = vector_mask::<T>(width, words, range);
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn between_and_lane<T: Lane>(width: u8, words: &[u64], range: Range, masks: &mut [u64]) {
    for (words, mask) in portable::vectors(width, words, masks) {
        if mask.iter().any(|&word| word != 0) {
            crate::mask::and(mask, &vector_mask::<T>(width, words, range));
        }
    }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn count_lane<T: Lane>(width: u8, words: &[u64], range: Range) -> u64 {
    let mut count = 0;
    for words in words.chunks_exact(vector_words(width)) {
        count += portable::popcount(&vector_mask::<T>(width, words, range));
    }
    count
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn probe_lane<T: Lane>(width: u8, words: &[u64], bitmap: Bitmap<'_>, masks: &mut [u64]) {
    // Rows left in a vector from which on it is faster to probe all of them.
    const DENSE: u64 = 256;
    let mut scratch = CacheLine(([T::default(); VECTOR], [0; VECTOR]));
    let (values, bits) = (&mut scratch.0.0, &mut scratch.0.1);
    for (words, mask) in portable::vectors(width, words, masks) {
        if portable::popcount(mask) < DENSE || bitmap.last > u32::MAX as u64 {
            portable::probe_vector::<T>(width, words, bitmap, mask);
            continue;
        }
        let (first, last) = (T::from_u64(bitmap.first), T::from_u64(bitmap.last));
        portable::unpack_with(width, words, values, |value: T| value.wrapping_sub(first));
        for (bit, &value) in bits.iter_mut().zip(values.iter()) {
            *bit = if value < last { value } else { last }.to_u64() as u32;
        }
        let inside = Range {
            lo: 0,
            span: bitmap.last,
        };
        let parts = values.as_chunks().0.iter().zip(bits.as_chunks().0);
        for (mask, (values, bits)) in mask.iter_mut().zip(parts) {
            *mask &= bits_within(values, inside) & bits_held(bits, bitmap);
        }
    }
}

/// Whether the bits of these numbers, none above `bitmap.last`, are set.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn bits_held(bits: &[u32; 64], bitmap: Bitmap<'_>) -> u64 {
    let words = u32::view(bitmap.words);
    let mut found = [0; 64];
    for (found, &bit) in found.iter_mut().zip(bits) {
        *found = words[bit as usize / 32];
    }
    let mut held = 0;
    for i in (0..8).rev() {
        // The bit goes to the sign: left by 31 less its number in the word.
        let left = _mm256_andnot_si256(load_at(bits, i), _mm256_set1_epi32(31));
        let sign = _mm256_sllv_epi32(load_at(&found, i), left);
        held = held << 8 | _mm256_movemask_ps(_mm256_castsi256_ps(sign)) as u64;
    }
    held
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(crate) fn gather_packed(
    width: u8,
    words: &[u64],
    base: i64,
    mask: &[u64; MASK_WORDS],
    out: &mut [i64; VECTOR],
) {
    // Rows from which on unpacking all of them is faster: by the bench 175 to 270, by lane.
    const DENSE: u64 = 200;
    if portable::popcount(mask) < DENSE {
        return portable::gather_packed(width, words, base, mask, out);
    }
    let mut values = CacheLine([0; VECTOR]);
    unpack(width, words, base, &mut values.0);
    select_i64(&values.0, mask, out);
}

between_plain! {
    "avx2,bmi1,bmi2,popcnt", 32:
    fn between_i64(i64) = _mm256_set1_epi64x, |v, lo, hi| {
        let outside = _mm256_or_si256(_mm256_cmpgt_epi64(lo, v), _mm256_cmpgt_epi64(v, hi));
        _mm256_movemask_pd(_mm256_castsi256_pd(outside)) ^ 0b1111
    };
    fn between_f64(f64) = _mm256_set1_pd, |v, lo, hi| {
        let v = _mm256_castsi256_pd(v);
        let above = _mm256_cmp_pd::<_CMP_LE_OQ>(lo, v);
        let below = _mm256_cmp_pd::<_CMP_LE_OQ>(v, hi);
        _mm256_movemask_pd(_mm256_and_pd(above, below))
    };
    fn between_f32(f32) = _mm256_set1_ps, |v, lo, hi| {
        let v = _mm256_castsi256_ps(v);
        let above = _mm256_cmp_ps::<_CMP_LE_OQ>(lo, v);
        let below = _mm256_cmp_ps::<_CMP_LE_OQ>(v, hi);
        _mm256_movemask_ps(_mm256_and_ps(above, below))
    };
}

/// For each of 256 selections among 8 lanes: the numbers of the lanes selected, in order, a byte each.
static SELECTED: [u64; 256] = {
    let mut table = [0; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut n) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                table[mask] |= (lane as u64) << (8 * n);
                n += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    table
};

/// For each of 16 selections among 4 lanes of 64 bits: the same with pairs of lanes of 32.
static SELECTED_PAIRS: [u64; 16] = {
    let mut table = [0; 16];
    let mut mask = 0;
    while mask < 16 {
        // Bit i of the four goes to bits 2 * i and 2 * i + 1 of the eight.
        let spread = (mask & 1) | (mask & 2) << 1 | (mask & 4) << 2 | (mask & 8) << 3;
        table[mask] = SELECTED[spread * 3];
        mask += 1;
    }
    table
};

/// Moves lanes of 32 bits together by the numbers in `lanes`, to the first 32 bytes of `out`.
#[inline]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn store_selected<V: PlainWord>(value: __m256i, lanes: u64, out: &mut [V]) {
    let lanes = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(lanes as i64));
    let selected = _mm256_permutevar8x32_epi32(value, lanes);
    let out = &mut out[..32 / size_of::<V>()];
    // SAFETY: `out` has 32 bytes, and any bits are a value of a plain type.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), selected) }
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(crate) fn select_i64(
    values: &[i64; VECTOR],
    mask: &[u64; MASK_WORDS],
    out: &mut [i64; VECTOR],
) -> usize {
    let mut count = 0;
    for (values, &word) in values.as_chunks::<64>().0.iter().zip(mask) {
        for i in 0..16 {
            let mask = (word >> (i * 4)) as usize & 15;
            // No more values than rows so far: a whole register is still to come.
            store_selected(load_at(values, i), SELECTED_PAIRS[mask], &mut out[count..]);
            count += mask.count_ones() as usize;
        }
    }
    count
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
pub(crate) fn select_u32(
    values: &[u32; VECTOR],
    mask: &[u64; MASK_WORDS],
    out: &mut [u32; VECTOR],
) -> usize {
    let mut count = 0;
    for (values, &word) in values.as_chunks::<64>().0.iter().zip(mask) {
        for i in 0..8 {
            let mask = (word >> (i * 8)) as usize & 255;
            store_selected(load_at(values, i), SELECTED[mask], &mut out[count..]);
            count += mask.count_ones() as usize;
        }
    }
    count
}
