//! Membership in a bitmap, in one of three ways by its size. Each tests a bit by rotating its word to it, or by a
//! byte with that bit set.

use super::registers::{at_most, field, load, splat, store, subtract, widen_u32};
use crate::condition::Bitmap;
use crate::layout::{CacheLine, Lane, PlainWord, RowBits, rows};
use crate::{MASK_WORDS, VECTOR, portable};
use std::arch::x86_64::*;

/// Bits of a bitmap up to which its words are looked up by permutation (about 0.05 cycles a row for each 1,024
/// bits); beyond, they are loaded (about one).
const REGISTER_BITS: u64 = 16 << 10;

/// Rows left in a vector below which they are probed one by one, by way.
const SPARSE_IN_BYTES: u64 = 16;
const SPARSE_IN_REGISTERS: u64 = 64;
const SPARSE_IN_MEMORY: u64 = 48;

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(super) fn probe_lane<T: Lane>(width: u8, words: &[u64], bitmap: Bitmap<'_>, masks: &mut [u64]) {
    let sparse = if T::BITS == 8 {
        SPARSE_IN_BYTES
    } else if bitmap.last < REGISTER_BITS {
        SPARSE_IN_REGISTERS
    } else if bitmap.last < u32::MAX as u64 {
        SPARSE_IN_MEMORY
    } else {
        // The number of a bit does not fit in 32 bits.
        u64::MAX
    };
    let mut narrow = CacheLine([0; VECTOR]);
    let mut wide = CacheLine([[0; VECTOR]; 2]);
    for (vector, mask) in portable::vectors(width, words, masks) {
        if portable::popcount(mask) < sparse {
            portable::probe_vector::<T>(width, vector, bitmap, mask);
        } else if T::BITS == 8 {
            probe_bytes(width, vector, bitmap, mask);
        } else if bitmap.last < REGISTER_BITS {
            probe_registers::<T>(width, vector, bitmap, &mut narrow.0, mask);
        } else {
            probe_memory::<T>(width, vector, bitmap, &mut wide.0, mask);
        }
    }
}

/// Up to 256 bits for values of a byte: byte `bit / 8` of the bitmap by permutation, and in it bit `bit % 8`.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn probe_bytes(width: u8, vector: &[u64], bitmap: Bitmap<'_>, mask: &mut [u64; MASK_WORDS]) {
    let mut table = [0; 8];
    table[..bitmap.words.len()].copy_from_slice(bitmap.words);
    let table = load(&table);
    let (first, last) = (splat::<u8>(bitmap.first), splat::<u8>(bitmap.last));
    let single = _mm512_set1_epi64(0x8040_2010_0804_0201u64 as i64);
    // As in `field`, the matrix of a shift right by 3.
    let shift = _mm512_set1_epi64(0x0102_0408_1020_4080 << 24);
    for (row, mask) in rows(width).iter().zip(mask.as_chunks_mut::<2>().0) {
        for (half, mask) in mask.iter_mut().enumerate() {
            let bit = subtract::<u8>(field::<u8>(width, vector, row, half), first);
            let byte =
                _mm512_permutexvar_epi8(_mm512_gf2p8affine_epi64_epi8::<0>(bit, shift), table);
            let in_byte = _mm512_and_si512(bit, _mm512_set1_epi8(7));
            let in_byte = _mm512_shuffle_epi8(single, in_byte);
            let inside = *mask & at_most::<u8>(bit, last);
            *mask = _mm512_mask_test_epi8_mask(inside, byte, in_byte);
        }
    }
}

/// The bit numbers of a vector, saturated to 16 bits.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn bits_u16<T: Lane>(width: u8, vector: &[u64], first: u64, out: &mut [u16; VECTOR]) {
    let first = splat::<T>(first);
    for (row, out) in rows(width).iter().zip(out.chunks_exact_mut(T::LANES)) {
        for (half, out) in out.chunks_exact_mut(T::LANES / 2).enumerate() {
            let bits = subtract::<T>(field::<T>(width, vector, row, half), first);
            match T::BITS {
                16 => store(out, bits),
                32 => store_256(out, _mm512_cvtusepi32_epi16(bits)),
                _ => store_128(out, _mm512_cvtusepi64_epi16(bits)),
            }
        }
    }
}

/// Up to [`REGISTER_BITS`]: the bitmap's 16-bit words by permutation of two registers at a time, so 1,024 bits.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn probe_registers<T: Lane>(
    width: u8,
    vector: &[u64],
    bitmap: Bitmap<'_>,
    bits: &mut [u16; VECTOR],
    mask: &mut [u64; MASK_WORDS],
) {
    bits_u16::<T>(width, vector, bitmap.first, bits);
    let (whole, rest) = bitmap.words.as_chunks::<16>();
    let mut end = [0; 16];
    end[..rest.len()].copy_from_slice(rest);
    let pairs = bitmap.words.len().div_ceil(16);
    let last = splat::<u16>(bitmap.last);
    let one = _mm512_set1_epi16(1);
    for (mask, bits) in mask
        .as_chunks_mut::<2>()
        .0
        .iter_mut()
        .zip(bits.as_chunks::<128>().0)
    {
        let bit: [__m512i; 4] = std::array::from_fn(|n| load(&bits[n * 32..]));
        let at = bit.map(|bit| _mm512_srli_epi16::<4>(bit));
        let mut words = [_mm512_setzero_si512(); 4];
        let mut pair = _mm512_setzero_si512();
        for table in whole.iter().chain([&end]).take(pairs) {
            let (a, b) = (load(table), load(&table[8..]));
            for n in 0..4 {
                let here = _mm512_cmpeq_epi16_mask(_mm512_srli_epi16::<6>(at[n]), pair);
                let word = _mm512_permutex2var_epi16(a, at[n], b);
                words[n] = _mm512_mask_mov_epi16(words[n], here, word);
            }
            pair = _mm512_add_epi16(pair, one);
        }
        for n in 0..4 {
            // Rotated by the bit's number in its word.
            let turned = _mm512_shrdv_epi16(words[n], words[n], bit[n]);
            let inside = _mm512_cmple_epu16_mask(bit[n], last);
            u32::view_mut(mask)[n] &= _mm512_mask_test_epi16_mask(inside, turned, one);
        }
    }
}

/// Part `i` of the bit numbers of a row: 16, saturated to 32 bits.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn bits_u32<T: Lane>(
    width: u8,
    vector: &[u64],
    row: &RowBits,
    i: usize,
    first: __m512i,
) -> __m512i {
    let bits = |half| subtract::<T>(field::<T>(width, vector, row, half), first);
    match T::BITS {
        16 => widen_u32::<T>(bits(i / 2), i % 2),
        32 => bits(i),
        _ => {
            let (a, b) = (
                _mm512_cvtusepi64_epi32(bits(0)),
                _mm512_cvtusepi64_epi32(bits(1)),
            );
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b)
        }
    }
}

/// Any bitmap of less than 2^32 bits: only the rows left and in range are looked up, moved together first, their
/// 32-bit words loaded one by one (here faster than a gather), and the bits moved apart again.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn probe_memory<T: Lane>(
    width: u8,
    vector: &[u64],
    bitmap: Bitmap<'_>,
    [bits, found]: &mut [[u32; VECTOR]; 2],
    mask: &mut [u64; MASK_WORDS],
) {
    let (first, last) = (splat::<T>(bitmap.first), splat::<u32>(bitmap.last));
    let mut count = 0;
    let masks = u16::view_mut(mask).chunks_exact_mut(T::LANES / 16);
    for (row, masks) in rows(width).iter().zip(masks) {
        for (i, mask) in masks.iter_mut().enumerate() {
            let bit = bits_u32::<T>(width, vector, row, i, first);
            *mask = _mm512_mask_cmple_epu32_mask(*mask, bit, last);
            // No more than rows so far: a whole register is still to come.
            store(&mut bits[count..], _mm512_maskz_compress_epi32(*mask, bit));
            count += mask.count_ones() as usize;
        }
    }
    let words = u32::view(bitmap.words);
    let pairs = found
        .as_chunks_mut::<2>()
        .0
        .iter_mut()
        .zip(bits.as_chunks::<2>().0);
    for (found, bits) in pairs.take(count.div_ceil(2)) {
        // SAFETY: reads the two bits at once, volatile so that the loop stays scalar. All that was ever stored in
        // `bits` is zero or at most `last`, the number of a bit in the last of the words.
        *found = unsafe {
            let bits = bits.as_ptr().cast::<u64>().read_volatile();
            [
                *words.get_unchecked(bits as u32 as usize / 32),
                *words.get_unchecked((bits >> 37) as usize),
            ]
        };
    }
    let mut held = [0; MASK_WORDS + 1];
    let parts = found
        .as_chunks::<16>()
        .0
        .iter()
        .zip(bits.as_chunks::<16>().0);
    for (held, (found, bits)) in u16::view_mut(&mut held)
        .iter_mut()
        .zip(parts)
        .take(count.div_ceil(16))
    {
        // Rotated by the bit's number in its word.
        let turned = _mm512_rorv_epi32(load(found), load(bits));
        *held = _mm512_test_epi32_mask(turned, _mm512_set1_epi32(1));
    }
    let mut at = 0;
    for mask in mask {
        let (low, high) = (
            held[at / 64] >> (at % 64),
            held[at / 64 + 1] << 1 << (63 - at % 64),
        );
        at += mask.count_ones() as usize;
        *mask = _pdep_u64(low | high, *mask);
    }
}

/// To the first 32 bytes of `out`.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn store_256<V: PlainWord>(out: &mut [V], value: __m256i) {
    assert!(size_of_val(out) >= 32);
    // SAFETY: `out` has 32 bytes, and any bits are a value of a plain type.
    unsafe { _mm256_storeu_si256(out.as_mut_ptr().cast(), value) }
}

/// To the first 16 bytes of `out`.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn store_128<V: PlainWord>(out: &mut [V], value: __m128i) {
    assert!(size_of_val(out) >= 16);
    // SAFETY: `out` has 16 bytes, and any bits are a value of a plain type.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), value) }
}
