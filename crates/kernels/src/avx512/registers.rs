//! Registers of 512 bits: load, store, and what is done to all lanes, whatever their type.

use crate::layout::{Lane, PlainWord, RowBits, max_value, vector_words};
use std::arch::x86_64::*;

/// The same number in each lane.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(super) fn splat<T: Lane>(value: u64) -> __m512i {
    match T::BITS {
        8 => _mm512_set1_epi8(value as i8),
        16 => _mm512_set1_epi16(value as i16),
        32 => _mm512_set1_epi32(value as i32),
        _ => _mm512_set1_epi64(value as i64),
    }
}

/// Half (0 or 1) of a row of a vector: a row is two registers.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(super) fn field<T: Lane>(width: u8, vector: &[u64], row: &RowBits, half: usize) -> __m512i {
    debug_assert!(half < 2 && vector.len() == vector_words(width));
    let load = |word: u32| {
        // SAFETY: the words of a number take 128 bytes whatever the lane, and `word` is below `width`, so that
        // the load ends within the `128 * width` bytes of the vector.
        unsafe {
            _mm512_loadu_si512(
                vector
                    .as_ptr()
                    .byte_add(word as usize * 128 + half * 64)
                    .cast(),
            )
        }
    };
    let (low, high) = (load(row.low), load(row.high));
    let (right, mask) = (splat::<T>(row.right), splat::<T>(max_value(width)));
    match T::BITS {
        8 => {
            // Bytes cannot be shifted, but multiplied by 8 x 8 bits: the matrix of a shift is the identity moved
            // by as many rows, one for each bit of the result, here without the rows beyond the width.
            const IDENTITY: u64 = 0x0102_0408_1020_4080;
            let rows = u64::MAX << (64 - 8 * width as u32);
            let right = (IDENTITY << (8 * row.right as u32)) & rows;
            let left = IDENTITY.checked_shr(64 - 8 * row.right as u32).unwrap_or(0) & rows;
            _mm512_xor_si512(
                _mm512_gf2p8affine_epi64_epi8::<0>(low, _mm512_set1_epi64(right as i64)),
                _mm512_gf2p8affine_epi64_epi8::<0>(high, _mm512_set1_epi64(left as i64)),
            )
        }
        16 => _mm512_and_si512(_mm512_shrdv_epi16(low, high, right), mask),
        32 => _mm512_and_si512(_mm512_shrdv_epi32(low, high, right), mask),
        _ => _mm512_and_si512(_mm512_shrdv_epi64(low, high, right), mask),
    }
}

#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(super) fn subtract<T: Lane>(a: __m512i, b: __m512i) -> __m512i {
    match T::BITS {
        8 => _mm512_sub_epi8(a, b),
        16 => _mm512_sub_epi16(a, b),
        32 => _mm512_sub_epi32(a, b),
        _ => _mm512_sub_epi64(a, b),
    }
}

/// Unsigned `a <= b`, a bit for each lane.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(super) fn at_most<T: Lane>(a: __m512i, b: __m512i) -> u64 {
    match T::BITS {
        8 => _mm512_cmple_epu8_mask(a, b),
        16 => _mm512_cmple_epu16_mask(a, b) as u64,
        32 => _mm512_cmple_epu32_mask(a, b) as u64,
        _ => _mm512_cmple_epu64_mask(a, b) as u64,
    }
}

/// The first 64 bytes of `values`.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(super) fn load<V: PlainWord>(values: &[V]) -> __m512i {
    assert!(size_of_val(values) >= 64);
    // SAFETY: `values` has 64 bytes, without padding.
    unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
}

/// To the first 64 bytes of `out`.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(super) fn store<V: PlainWord>(out: &mut [V], value: __m512i) {
    assert!(size_of_val(out) >= 64);
    // SAFETY: `out` has 64 bytes, and any bits are a value of a plain type.
    unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), value) }
}

/// The part `i` of the lanes of a register, as many as 64-bit lanes, zero-extended to these.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(super) fn widen_u64<T: Lane>(value: __m512i, i: usize) -> __m512i {
    let first = _mm512_set1_epi64(i as i64 * 8);
    let at = _mm512_add_epi64(_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0), first);
    match T::BITS {
        8 => _mm512_maskz_permutexvar_epi8(0x0101_0101_0101_0101, at, value),
        16 => _mm512_maskz_permutexvar_epi16(0x1111_1111, at, value),
        32 => _mm512_maskz_permutexvar_epi32(0x5555, at, value),
        _ => value,
    }
}

/// The part `i` of the lanes of a register, as many as 32-bit lanes, zero-extended to these.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(super) fn widen_u32<T: Lane>(value: __m512i, i: usize) -> __m512i {
    let first = _mm512_set1_epi32(i as i32 * 16);
    let at = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    let at = _mm512_add_epi32(at, first);
    match T::BITS {
        8 => _mm512_maskz_permutexvar_epi8(0x1111_1111_1111_1111, at, value),
        16 => _mm512_maskz_permutexvar_epi16(0x5555_5555, at, value),
        _ => value,
    }
}
