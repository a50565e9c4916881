//! Several ranges of values of at most 8 bits: a table says of each value in which of eight ranges it lies.
//!
//! ```text
//! 64 values ─look up─▶ 64 bytes, a bit for each range ─transpose the bits of every eight bytes─▶
//!           ─bring the bytes of each range together─▶ 8 masks of 64 rows
//! ```
//!
//! It takes as long for eight ranges as for one.

use super::registers::{field, load, splat, store};
use crate::MASK_WORDS;
use crate::condition::Range;
use crate::layout::{RowBits, rows, vector_words};
use crate::ranges::{RangeTest, TOGETHER};
use std::arch::x86_64::*;

/// Ranges from which on a table is faster than comparing.
pub(super) const FEWEST: usize = 3;

/// Bit `i` of the byte of each value: whether it lies in range `i`.
#[derive(Clone, Copy)]
struct Table {
    width: u8,
    parts: [__m512i; 4],
}

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(super) fn between_each_by_table(width: u8, words: &[u64], tests: &mut [RangeTest<'_>]) {
    for tests in tests.chunks_mut(TOGETHER) {
        let mut ranges = [(Range { lo: 0, span: 0 }, false); TOGETHER];
        for (range, test) in ranges.iter_mut().zip(tests.iter()) {
            *range = test.range(width);
        }
        let table = table(width, ranges);
        if tests.iter_mut().all(|test| test.count().is_some()) {
            // SAFETY: a processor of this level counts bits in registers, too (see `Level::detected`).
            unsafe { count(table, words, tests) }
        } else {
            keep(table, words, tests);
        }
    }
}

/// What lies outside of a range passes if so said.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn table(width: u8, ranges: [(Range, bool); TOGETHER]) -> Table {
    let first: [u8; 64] = std::array::from_fn(|value| value as u8);
    let first = load(&first);
    let mut parts = [_mm512_setzero_si512(); 4];
    for (part, bits) in parts.iter_mut().enumerate() {
        let values = _mm512_add_epi8(first, splat::<u8>(part as u64 * 64));
        for (i, (range, outside)) in ranges.iter().enumerate() {
            let distances = _mm512_sub_epi8(values, splat::<u8>(range.lo));
            let inside = _mm512_cmple_epu8_mask(distances, splat::<u8>(range.span));
            let passes = if *outside { !inside } else { inside };
            *bits = _mm512_or_si512(*bits, _mm512_maskz_mov_epi8(passes, splat::<u8>(1 << i)));
        }
    }
    Table { width, parts }
}

/// The masks of 64 rows for each test, one in each lane of 64 bits.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn masks(table: Table, vector: &[u64], row: &RowBits, half: usize) -> __m512i {
    let values = field::<u8>(table.width, vector, row, half);
    let [a, b, c, d] = table.parts;
    let bytes = match table.width {
        ..=6 => _mm512_permutexvar_epi8(values, a),
        7 => _mm512_permutex2var_epi8(a, values, b),
        _ => {
            let low = _mm512_permutex2var_epi8(a, values, b);
            let high = _mm512_permutex2var_epi8(c, values, d);
            _mm512_mask_blend_epi8(_mm512_movepi8_mask(values), low, high)
        }
    };
    // A product of bit matrices counts the rows of one of them from the end.
    const REVERSED: [u8; 64] = {
        let mut places = [0; 64];
        let mut i = 0;
        while i < 64 {
            places[i] = (i ^ 7) as u8;
            i += 1;
        }
        places
    };
    // Byte `i` of row group `g` goes to byte `g` of test `i`.
    const BY_TEST: [u8; 64] = {
        let mut places = [0; 64];
        let mut i = 0;
        while i < 64 {
            places[i] = (i % 8 * 8 + i / 8) as u8;
            i += 1;
        }
        places
    };
    let identity = _mm512_set1_epi64(0x8040_2010_0804_0201u64 as i64);
    let reversed = _mm512_shuffle_epi8(bytes, load(&REVERSED));
    let transposed = _mm512_gf2p8affine_epi64_epi8::<0>(identity, reversed);
    _mm512_permutexvar_epi8(load(&BY_TEST), transposed)
}

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,avx512vpopcntdq,gfni,bmi1,bmi2,popcnt")]
fn count(table: Table, words: &[u64], tests: &mut [RangeTest<'_>]) {
    let mut counts = _mm512_setzero_si512();
    for vector in words.chunks_exact(vector_words(table.width)) {
        for row in &rows(table.width)[..8] {
            for half in 0..2 {
                let ones = _mm512_popcnt_epi64(masks(table, vector, row, half));
                counts = _mm512_add_epi64(counts, ones);
            }
        }
    }
    let mut all = [0u64; TOGETHER];
    store(&mut all, counts);
    for (test, passed) in tests.iter_mut().zip(all) {
        *test.count().expect("a test that counts") += passed;
    }
}

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn keep(table: Table, words: &[u64], tests: &mut [RangeTest<'_>]) {
    let vectors = words.chunks_exact(vector_words(table.width));
    for (number, vector) in vectors.enumerate() {
        if tests.iter().all(|test| test.skips(number)) {
            continue;
        }
        let mut passed = [[0; MASK_WORDS]; TOGETHER];
        for (eight, rows) in rows(table.width)[..8].as_chunks::<4>().0.iter().enumerate() {
            let of = |word: usize| masks(table, vector, &rows[word / 2], word % 2);
            let by_test = transpose(std::array::from_fn(of));
            for (passed, words) in passed.iter_mut().zip(by_test) {
                store(&mut passed[eight * 8..], words);
            }
        }
        for (test, passed) in tests.iter_mut().zip(&passed) {
            test.take(number, passed, false);
        }
    }
}

/// Word `i` of register `j` goes to word `j` of register `i`.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn transpose(by_word: [__m512i; 8]) -> [__m512i; 8] {
    let [a, b, c, d, e, f, g, h] = by_word;
    let low = [(a, b), (c, d), (e, f), (g, h)].map(|(a, b)| _mm512_unpacklo_epi64(a, b));
    let high = [(a, b), (c, d), (e, f), (g, h)].map(|(a, b)| _mm512_unpackhi_epi64(a, b));
    let quarters = |[a, b, c, d]: [__m512i; 4]| {
        let (even, odd) = (
            _mm512_shuffle_i64x2::<0x88>(a, b),
            _mm512_shuffle_i64x2::<0xdd>(a, b),
        );
        let (more_even, more_odd) = (
            _mm512_shuffle_i64x2::<0x88>(c, d),
            _mm512_shuffle_i64x2::<0xdd>(c, d),
        );
        [
            _mm512_shuffle_i64x2::<0x88>(even, more_even),
            _mm512_shuffle_i64x2::<0x88>(odd, more_odd),
            _mm512_shuffle_i64x2::<0xdd>(even, more_even),
            _mm512_shuffle_i64x2::<0xdd>(odd, more_odd),
        ]
    };
    let ([p0, p2, p4, p6], [p1, p3, p5, p7]) = (quarters(low), quarters(high));
    [p0, p1, p2, p3, p4, p5, p6, p7]
}
