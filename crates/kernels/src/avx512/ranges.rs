//! Several ranges: a register is compared with all of them before the next is unpacked.

use super::registers::{at_most, field, subtract};
use super::{Within, count_lane, tables, within};
use crate::condition::Range;
use crate::layout::{Lane, rows, vector_words};
use crate::ranges::{RangeTest, TOGETHER, each_vector};
use crate::{MASK_WORDS, VECTOR};

#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(super) fn between_each_lane<T: Lane>(width: u8, words: &[u64], tests: &mut [RangeTest<'_>]) {
    if T::BITS == 8 && tests.len() >= tables::FEWEST {
        return tables::between_each_by_table(width, words, tests);
    }
    if T::BITS == 8 && tests.iter_mut().all(|test| test.count().is_some()) {
        return count_one_by_one::<T>(width, words, tests);
    }
    each_vector(width, words, tests, |words, ranges, masks| {
        match ranges.len() {
            0..=2 => compare::<T, 2>(width, words, ranges, masks),
            3..=4 => compare::<T, 4>(width, words, ranges, masks),
            _ => compare::<T, TOGETHER>(width, words, ranges, masks),
        }
    });
}

/// Two counts of narrow values are cheaper so.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn count_one_by_one<T: Lane>(width: u8, words: &[u64], tests: &mut [RangeTest<'_>]) {
    let all = (words.len() / vector_words(width) * VECTOR) as u64;
    for test in tests {
        let (range, outside) = test.range(width);
        let inside = count_lane::<T>(width, words, range);
        let count = test.count().expect("a test that counts");
        *count += if outside { all - inside } else { inside };
    }
}

/// At most `N` ranges, whose bounds stay in registers.
#[inline]
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
fn compare<T: Lane, const N: usize>(
    width: u8,
    vector: &[u64],
    ranges: &[Range],
    masks: &mut [[u64; MASK_WORDS]; TOGETHER],
) {
    let ranges: [Within; N] = std::array::from_fn(|i| within::<T>(ranges[i.min(ranges.len() - 1)]));
    let step = 64 / T::BITS;
    for (r, row) in rows(width)[..T::BITS].iter().enumerate() {
        for half in 0..2 {
            let value = field::<T>(width, vector, row, half);
            for (mask, range) in masks.iter_mut().zip(&ranges) {
                let bits = at_most::<T>(subtract::<T>(value, range.lo), range.span);
                let bytes = &mut u8::view_mut(mask)[(2 * r + half) * step..][..step];
                bytes.copy_from_slice(&bits.to_le_bytes()[..step]);
            }
        }
    }
}
