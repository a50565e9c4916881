//! Repeated values and sums of differences, eight at a time.

use crate::{MASK_WORDS, VECTOR};
use std::arch::x86_64::*;

/// For each choice among the rows 1 to 7 of eight, row 0 not counting: how many were chosen up to each row, a byte
/// each.
static CHOSEN: [u64; 128] = {
    let mut table = [0; 128];
    let mut chosen = 0;
    while chosen < 128 {
        let (mut row, mut count) = (1, 0);
        while row < 8 {
            count += (chosen >> (row - 1) & 1) as u64;
            table[chosen] |= count << (8 * row);
            row += 1;
        }
        chosen += 1;
    }
    table
};

/// The next value of each of eight rows is one of eight values from that of the first row on.
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(crate) fn repeat_i64(values: &[i64], starts: &[u64; MASK_WORDS], out: &mut [i64; VECTOR]) {
    let mut starts = *starts;
    starts[0] &= !1;
    let mut at = 0;
    for (out, &word) in out.as_chunks_mut::<64>().0.iter_mut().zip(&starts) {
        for (i, out) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let here = (word >> (8 * i)) as u8;
            let rest = &values[at + (here & 1) as usize..];
            let lanes = (1u16 << rest.len().min(8)).wrapping_sub(1) as u8;
            let steps = _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(CHOSEN[here as usize >> 1] as i64));
            // SAFETY: reads no more lanes than there are values, and `out` is 8 values long.
            unsafe {
                let rest = _mm512_maskz_loadu_epi64(lanes, rest.as_ptr());
                _mm512_storeu_epi64(out.as_mut_ptr(), _mm512_permutexvar_epi64(steps, rest));
            }
            at += here.count_ones() as usize;
        }
    }
}

/// Sums within eight lanes in three steps, then across: the chain from eight to eight is one addition.
#[target_feature(enable = "avx512vbmi,avx512vbmi2,avx512vl,gfni,bmi1,bmi2,popcnt")]
pub(crate) fn running_sums(start: i64, values: &mut [i64; VECTOR]) {
    let zero = _mm512_setzero_si512();
    let last = _mm512_set1_epi64(7);
    let mut before = _mm512_set1_epi64(start);
    for values in values.as_chunks_mut::<8>().0 {
        // SAFETY: `values` is 8 values long.
        let mut sums = unsafe { _mm512_loadu_epi64(values.as_ptr()) };
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<7>(sums, zero));
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<6>(sums, zero));
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<4>(sums, zero));
        let total = _mm512_permutexvar_epi64(last, sums);
        // SAFETY: as above.
        unsafe { _mm512_storeu_epi64(values.as_mut_ptr(), _mm512_add_epi64(sums, before)) }
        before = _mm512_add_epi64(before, total);
    }
}
