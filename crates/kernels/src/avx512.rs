//! AVX-512 as of Ice Lake and Zen 4: masks from comparisons, funnel shifts (VBMI2), matrix products of bits (GFNI).
//!
//! One function serves all widths of a lane type, with shift counts from a table. A comparison on Zen 4:
//!
//! | bits of a lane | cycles a row |
//! |---|---|
//! | 8 | 0.06 |
//! | 16 | 0.1 |
//! | 32 | 0.2 |
//! | 64 | 0.4 |
//!
//! Above 8 bits that is faster than memory. Unrolling for one width gains only in cache, so it is not done. A field
//! that lies across two words takes one funnel shift, in bytes two bit matrices, so no row needs a branch.
//!
//! Compression goes to a register and is stored from there, whole: to memory it is microcode on Zen 4.

mod positions;
mod probe;
mod ranges;
mod registers;
mod runs;
mod tables;

use crate::condition::{Bitmap, Range};
use crate::layout::{CacheLine, Lane, RowBits, by_lane, lane_bits, rows, vector_words};
use crate::ranges::RangeTest;
use crate::x86::{between_plain, kernels_by_lane, one_instruction_kernels, plain_code};
use crate::{MASK_WORDS, VECTOR, portable};
pub(crate) use positions::positions;
use probe::probe_lane;
use ranges::between_each_lane;
use registers::{at_most, field, load, splat, store, subtract, widen_u32, widen_u64};
pub(crate) use runs::{repeat_i64, running_sums};
use std::arch::x86_64::*;

plain_code! {
    "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt":
    fn runs_of(starts: &[u64], rows: &[u32], runs: &mut [u32]);
    fn sum_i64(values: &[i64]) -> i128;
    fn min_max_i64(values: &[i64]) -> (i64, i64);
    fn sum_f64(values: &[f64]) -> f64;
}

one_instruction_kernels!("avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt");

kernels_by_lane! {
    "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt":
    fn unpack(words: &[u64], base: i64, out: &mut [i64; VECTOR]) = unpack_lane;
    fn unpack_u32(words: &[u64], out: &mut [u32; VECTOR]) = unpack_lane_u32;
    fn between(words: &[u64], range: Range, masks: &mut [u64]) = between_lane;
    fn between_and(words: &[u64], range: Range, masks: &mut [u64]) = between_and_lane;
    fn count_between(words: &[u64], range: Range) -> u64 = count_lane;
    fn between_each(words: &[u64], tests: &mut [RangeTest<'_>]) = between_each_lane;
    fn probe_and(words: &[u64], bitmap: Bitmap<'_>, masks: &mut [u64]) = probe_lane;
}

/// A range in registers.
#[derive(Clone, Copy)]
struct Within {
    lo: __m512i,
    span: __m512i,
}

#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn within<T: Lane>(range: Range) -> Within {
    Within {
        lo: splat::<T>(range.lo),
        span: splat::<T>(range.span),
    }
}

/// The bits of half a row.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn bits_within<T: Lane>(
    width: u8,
    vector: &[u64],
    row: &RowBits,
    half: usize,
    range: Within,
) -> u64 {
    let value = field::<T>(width, vector, row, half);
    at_most::<T>(subtract::<T>(value, range.lo), range.span)
}

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn between_lane<T: Lane>(width: u8, words: &[u64], range: Range, masks: &mut [u64]) {
    let range = within::<T>(range);
    for (vector, mask) in portable::vectors(width, words, masks) {
        for (row, bytes) in mask_rows::<T>(width, mask) {
            for (half, bytes) in bytes.chunks_exact_mut(64 / T::BITS).enumerate() {
                let bits = bits_within::<T>(width, vector, row, half, range);
                bytes.copy_from_slice(&bits.to_le_bytes()[..64 / T::BITS]);
            }
        }
    }
}

/// The rows of a vector, each with its bytes of the mask: bits that are stored as they come need no assembly.
#[inline(always)]
fn mask_rows<T: Lane>(width: u8, mask: &mut [u64]) -> impl Iterator<Item = (&RowBits, &mut [u8])> {
    rows(width)[..T::BITS]
        .iter()
        .zip(u8::view_mut(mask).chunks_exact_mut(T::LANES / 8))
}

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn between_and_lane<T: Lane>(width: u8, words: &[u64], range: Range, masks: &mut [u64]) {
    let range = within::<T>(range);
    for (vector, mask) in portable::vectors(width, words, masks) {
        if mask.iter().all(|&word| word == 0) {
            continue;
        }
        for (row, bytes) in mask_rows::<T>(width, mask) {
            for (half, bytes) in bytes.chunks_exact_mut(64 / T::BITS).enumerate() {
                let bits = bits_within::<T>(width, vector, row, half, range);
                let mut before = [0; 8];
                before[..64 / T::BITS].copy_from_slice(bytes);
                let both = bits & u64::from_le_bytes(before);
                bytes.copy_from_slice(&both.to_le_bytes()[..64 / T::BITS]);
            }
        }
    }
}

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn count_lane<T: Lane>(width: u8, words: &[u64], range: Range) -> u64 {
    let range = within::<T>(range);
    let mut count = 0;
    for vector in words.chunks_exact(vector_words(width)) {
        for row in &rows(width)[..T::BITS] {
            for half in 0..2 {
                count += bits_within::<T>(width, vector, row, half, range).count_ones() as u64;
            }
        }
    }
    count
}

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn unpack_lane<T: Lane>(width: u8, words: &[u64], base: i64, out: &mut [i64; VECTOR]) {
    let base = _mm512_set1_epi64(base);
    for (row, out) in rows(width).iter().zip(out.chunks_exact_mut(T::LANES)) {
        for (half, out) in out.chunks_exact_mut(T::LANES / 2).enumerate() {
            let value = field::<T>(width, words, row, half);
            for (i, out) in out.chunks_exact_mut(8).enumerate() {
                store(out, _mm512_add_epi64(widen_u64::<T>(value, i), base));
            }
        }
    }
}

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn unpack_lane_u32<T: Lane>(width: u8, words: &[u64], out: &mut [u32; VECTOR]) {
    for (row, out) in rows(width).iter().zip(out.chunks_exact_mut(T::LANES)) {
        for (half, out) in out.chunks_exact_mut(T::LANES / 2).enumerate() {
            let value = field::<T>(width, words, row, half);
            for (i, out) in out.chunks_exact_mut(16).enumerate() {
                store(out, widen_u32::<T>(value, i));
            }
        }
    }
}

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn gather_lane<T: Lane>(
    width: u8,
    words: &[u64],
    base: i64,
    mask: &[u64; MASK_WORDS],
    out: &mut [i64; VECTOR],
) {
    let base = _mm512_set1_epi64(base);
    let lanes = 512 / T::BITS;
    let mut count = 0;
    let mut narrow = CacheLine([T::default(); VECTOR]);
    let narrow = &mut narrow.0;
    for (r, row) in rows(width)[..T::BITS].iter().enumerate() {
        for half in 0..2 {
            let first = r * T::LANES + half * lanes;
            let mask = mask[first / 64] >> (first % 64) & (u64::MAX >> (64 - lanes));
            let value = field::<T>(width, words, row, half);
            // `count` is at most `first`, the number of rows so far: there is room for a whole register.
            match T::BITS {
                8 => store(
                    &mut narrow[count..],
                    _mm512_maskz_compress_epi8(mask, value),
                ),
                16 => store(
                    &mut narrow[count..],
                    _mm512_maskz_compress_epi16(mask as u32, value),
                ),
                32 => {
                    let value = _mm512_maskz_compress_epi32(mask as u16, value);
                    for i in 0..2 {
                        let wide = _mm512_add_epi64(widen_u64::<T>(value, i), base);
                        store(&mut out[count + 8 * i..], wide);
                    }
                }
                _ => {
                    let value = _mm512_add_epi64(value, base);
                    store(
                        &mut out[count..],
                        _mm512_maskz_compress_epi64(mask as u8, value),
                    );
                }
            }
            count += mask.count_ones() as usize;
        }
    }
    if T::BITS <= 16 {
        let (out, narrow) = (out.chunks_exact_mut(lanes), narrow.chunks_exact(lanes));
        for (out, narrow) in out.zip(narrow).take(count.div_ceil(lanes)) {
            let value = load(narrow);
            for (i, out) in out.chunks_exact_mut(8).enumerate() {
                store(out, _mm512_add_epi64(widen_u64::<T>(value, i), base));
            }
        }
    }
}

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(crate) fn gather_packed(
    width: u8,
    words: &[u64],
    base: i64,
    mask: &[u64; MASK_WORDS],
    out: &mut [i64; VECTOR],
) {
    // Rows at which one by one costs as much as all in registers: by the bench about 24, 32, 55 and 95 by lane.
    let sparse = 16 + lane_bits(width) as u64;
    if portable::popcount(mask) < sparse {
        portable::gather_packed(width, words, base, mask, out)
    } else {
        by_lane!(width, gather_lane(words, base, mask, out))
    }
}

between_plain! {
    "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt", 64:
    fn between_i64(i64) = _mm512_set1_epi64, |v, lo, hi| {
        _mm512_mask_cmple_epi64_mask(_mm512_cmple_epi64_mask(lo, v), v, hi)
    };
    fn between_f64(f64) = _mm512_set1_pd, |v, lo, hi| {
        let v = _mm512_castsi512_pd(v);
        _mm512_mask_cmp_pd_mask::<_CMP_LE_OQ>(_mm512_cmp_pd_mask::<_CMP_LE_OQ>(lo, v), v, hi)
    };
    fn between_f32(f32) = _mm512_set1_ps, |v, lo, hi| {
        let v = _mm512_castsi512_ps(v);
        _mm512_mask_cmp_ps_mask::<_CMP_LE_OQ>(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(lo, v), v, hi)
    };
}

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(crate) fn select_i64(
    values: &[i64; VECTOR],
    mask: &[u64; MASK_WORDS],
    out: &mut [i64; VECTOR],
) -> usize {
    let mut count = 0;
    for (values, &word) in values.as_chunks::<64>().0.iter().zip(mask) {
        for (i, values) in values.as_chunks::<8>().0.iter().enumerate() {
            let mask = (word >> (i * 8)) as u8;
            let out = &mut out[count..count + 8];
            // SAFETY: `values` and `out` are 8 values long.
            unsafe {
                let selected =
                    _mm512_maskz_compress_epi64(mask, _mm512_loadu_epi64(values.as_ptr()));
                _mm512_storeu_epi64(out.as_mut_ptr(), selected);
            }
            count += mask.count_ones() as usize;
        }
    }
    count
}

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(crate) fn select_u32(
    values: &[u32; VECTOR],
    mask: &[u64; MASK_WORDS],
    out: &mut [u32; VECTOR],
) -> usize {
    let mut count = 0;
    for (values, &word) in values.as_chunks::<64>().0.iter().zip(mask) {
        for (i, values) in values.as_chunks::<16>().0.iter().enumerate() {
            let mask = (word >> (i * 16)) as u16;
            let out = &mut out[count..count + 16];
            // SAFETY: `values` and `out` are 16 values long.
            unsafe {
                let values = _mm512_loadu_si512(values.as_ptr().cast());
                let selected = _mm512_maskz_compress_epi32(mask, values);
                _mm512_storeu_si512(out.as_mut_ptr().cast(), selected);
            }
            count += mask.count_ones() as usize;
        }
    }
    count
}

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(crate) fn expand_i64(
    values: &[i64],
    mask: &[u64; MASK_WORDS],
    fill: i64,
    out: &mut [i64; VECTOR],
) {
    let fill = _mm512_set1_epi64(fill);
    let mut values = values;
    for (out, &word) in out.as_chunks_mut::<64>().0.iter_mut().zip(mask) {
        for (i, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let mask = (word >> (i * 8)) as u8;
            let (taken, rest) = values.split_at(mask.count_ones() as usize);
            // SAFETY: reads the `taken` values, which are as many as the mask has bits, and `out` is 8 values long.
            unsafe {
                let packed = _mm512_maskz_loadu_epi64(
                    (1u16 << taken.len()).wrapping_sub(1) as u8,
                    taken.as_ptr(),
                );
                _mm512_storeu_epi64(
                    out.as_mut_ptr(),
                    _mm512_mask_expand_epi64(fill, mask, packed),
                );
            }
            values = rest;
        }
    }
}

#[target_feature(enable = "avx512vpopcntdq,popcnt")]
pub(crate) fn popcount(masks: &[u64]) -> u64 {
    let (whole, rest) = masks.as_chunks::<8>();
    let mut counts = _mm512_setzero_si512();
    for words in whole {
        // SAFETY: `words` has 64 bytes.
        let words = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
        counts = _mm512_add_epi64(counts, _mm512_popcnt_epi64(words));
    }
    _mm512_reduce_add_epi64(counts) as u64 + portable::popcount(rest)
}
