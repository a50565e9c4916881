//! The definition of every kernel in plain code, written for the compiler to vectorise. Arguments are checked by
//! the callers: widths are 1 to 64, slices hold matching numbers of vectors.

use crate::condition::{Bitmap, Range};
use crate::layout::{Lane, by_lane, max_value, one_of, rows, vector_words};
use crate::ranges::{RangeTest, each_vector};
use crate::{MASK_WORDS, VECTOR};

mod positions;

pub(crate) use positions::{positions, runs_of, take_packed, take_packed_with};

/// Unpacks a vector into any type, row after row.
#[inline(always)]
pub(crate) fn unpack_with<T: Lane, O>(width: u8, words: &[u64], out: &mut [O], f: impl Fn(T) -> O) {
    let words = T::view(words);
    let mask = T::from_u64(max_value(width));
    for (r, out) in out.chunks_exact_mut(T::LANES).enumerate() {
        let row = rows(width)[r];
        let low = &words[row.low as usize * T::LANES..][..T::LANES];
        let high = &words[row.high as usize * T::LANES..][..T::LANES];
        for ((out, &low), &high) in out.iter_mut().zip(low).zip(high) {
            *out = f(T::field(low, high, row.right as u32, mask));
        }
    }
}

#[inline(always)]
fn unpack_i64<T: Lane>(width: u8, words: &[u64], base: i64, out: &mut [i64; VECTOR]) {
    unpack_with(width, words, out, |value: T| {
        base.wrapping_add(value.to_u64() as i64)
    });
}

#[inline(always)]
pub(crate) fn unpack(width: u8, words: &[u64], base: i64, out: &mut [i64; VECTOR]) {
    by_lane!(width, unpack_i64(words, base, out));
}

#[inline(always)]
fn unpack_lane_u32<T: Lane>(width: u8, words: &[u64], out: &mut [u32; VECTOR]) {
    unpack_with(width, words, out, |value: T| value.to_u64() as u32);
}

#[inline(always)]
pub(crate) fn unpack_u32(width: u8, words: &[u64], out: &mut [u32; VECTOR]) {
    by_lane!(width, unpack_lane_u32(words, out));
}

/// Eight truths to eight bits, which one multiplication brings together: byte `i` (0 or 1) goes to bit `56 + i`.
#[inline(always)]
fn bits<I: Copy>(values: &[I], f: impl Fn(I) -> bool) -> u64 {
    let mut bits = 0;
    for (i, values) in values.chunks(8).enumerate() {
        let mut truths = [0; 8];
        for (truth, &value) in truths.iter_mut().zip(values) {
            *truth = f(value) as u8;
        }
        let byte = u64::from_le_bytes(truths).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= byte << (8 * i);
    }
    bits
}

/// The mask of one vector.
#[inline(always)]
fn vector_mask<T: Lane>(width: u8, words: &[u64], range: Range) -> [u64; MASK_WORDS] {
    let mut values = [T::default(); VECTOR];
    unpack_with(width, words, &mut values, |value: T| value);
    values_mask(&values, range)
}

/// The mask of the values of one vector.
#[inline(always)]
fn values_mask<T: Lane>(values: &[T; VECTOR], range: Range) -> [u64; MASK_WORDS] {
    let (lo, span) = (T::from_u64(range.lo), T::from_u64(range.span));
    let mut mask = [0; MASK_WORDS];
    for (mask, values) in mask.iter_mut().zip(values.chunks_exact(64)) {
        *mask = bits(values, |value| value.wrapping_sub(lo) <= span);
    }
    mask
}

/// The vectors of packed words beside their masks.
#[inline(always)]
pub(crate) fn vectors<'a>(
    width: u8,
    words: &'a [u64],
    masks: &'a mut [u64],
) -> impl Iterator<Item = (&'a [u64], &'a mut [u64; MASK_WORDS])> {
    words
        .chunks_exact(vector_words(width))
        .zip(masks.as_chunks_mut().0)
}

#[inline(always)]
fn between_lane<T: Lane>(width: u8, words: &[u64], range: Range, masks: &mut [u64]) {
    for (words, mask) in vectors(width, words, masks) {
        *mask = vector_mask::<T>(width, words, range);
    }
}

#[inline(always)]
pub(crate) fn between(width: u8, words: &[u64], range: Range, masks: &mut [u64]) {
    by_lane!(width, between_lane(words, range, masks));
}

#[inline(always)]
fn between_and_lane<T: Lane>(width: u8, words: &[u64], range: Range, masks: &mut [u64]) {
    for (words, mask) in vectors(width, words, masks) {
        if mask.iter().any(|&word| word != 0) {
            crate::mask::and(mask, &vector_mask::<T>(width, words, range));
        }
    }
}

#[inline(always)]
pub(crate) fn between_and(width: u8, words: &[u64], range: Range, masks: &mut [u64]) {
    by_lane!(width, between_and_lane(words, range, masks));
}

#[inline(always)]
fn count_lane<T: Lane>(width: u8, words: &[u64], range: Range) -> u64 {
    let vectors = words.chunks_exact(vector_words(width));
    vectors
        .map(|words| popcount(&vector_mask::<T>(width, words, range)))
        .sum()
}

#[inline(always)]
pub(crate) fn count_between(width: u8, words: &[u64], range: Range) -> u64 {
    by_lane!(width, count_lane(words, range))
}

#[inline(always)]
fn between_each_lane<T: Lane>(width: u8, words: &[u64], tests: &mut [RangeTest<'_>]) {
    each_vector(width, words, tests, |words, ranges, masks| {
        let mut values = [T::default(); VECTOR];
        unpack_with(width, words, &mut values, |value: T| value);
        for (mask, &range) in masks.iter_mut().zip(ranges) {
            *mask = values_mask(&values, range);
        }
    });
}

#[inline(always)]
pub(crate) fn between_each(width: u8, words: &[u64], tests: &mut [RangeTest<'_>]) {
    by_lane!(width, between_each_lane(words, tests))
}

/// Calls `f` with the number of each set bit, in order.
#[inline(always)]
pub(crate) fn for_each_set(mask: &[u64; MASK_WORDS], mut f: impl FnMut(usize)) {
    for (i, &word) in mask.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            f(i * 64 + rest.trailing_zeros() as usize);
            rest &= rest - 1;
        }
    }
}

/// Looks at the rows left, one by one.
#[inline(always)]
pub(crate) fn probe_vector<T: Lane>(
    width: u8,
    words: &[u64],
    bitmap: Bitmap<'_>,
    mask: &mut [u64; MASK_WORDS],
) {
    for (i, word) in mask.iter_mut().enumerate() {
        let mut rest = *word;
        while rest != 0 {
            let bit = rest.trailing_zeros() as usize;
            let held = bitmap.holds(one_of::<T>(width, words, i * 64 + bit));
            *word ^= (!held as u64) << bit;
            rest &= rest - 1;
        }
    }
}

/// Rows left in a vector from which on all its rows are probed, which needs no branch.
const PROBE_DENSE: u64 = 256;

#[inline(always)]
fn probe_lane<T: Lane>(width: u8, words: &[u64], bitmap: Bitmap<'_>, masks: &mut [u64]) {
    let first = T::from_u64(bitmap.first);
    let mut values = [T::default(); VECTOR];
    for (words, mask) in vectors(width, words, masks) {
        if popcount(mask) < PROBE_DENSE {
            probe_vector::<T>(width, words, bitmap, mask);
            continue;
        }
        unpack_with(width, words, &mut values, |value: T| {
            value.wrapping_sub(first)
        });
        for (mask, values) in mask.iter_mut().zip(values.chunks_exact(64)) {
            *mask &= bits(values, |bit| bitmap.holds_bit(bit.to_u64()));
        }
    }
}

#[inline(always)]
pub(crate) fn probe_and(width: u8, words: &[u64], bitmap: Bitmap<'_>, masks: &mut [u64]) {
    by_lane!(width, probe_lane(words, bitmap, masks));
}

#[inline(always)]
fn gather_lane<T: Lane>(
    width: u8,
    words: &[u64],
    base: i64,
    mask: &[u64; MASK_WORDS],
    out: &mut [i64; VECTOR],
) {
    let mut n = 0;
    for_each_set(mask, |i| {
        out[n % VECTOR] = base.wrapping_add(one_of::<T>(width, words, i) as i64);
        n += 1;
    });
}

#[inline(always)]
pub(crate) fn gather_packed(
    width: u8,
    words: &[u64],
    base: i64,
    mask: &[u64; MASK_WORDS],
    out: &mut [i64; VECTOR],
) {
    by_lane!(width, gather_lane(words, base, mask, out));
}

macro_rules! between_plain {
    ($name:ident, $t:ty) => {
        #[inline(always)]
        pub(crate) fn $name(values: &[$t], lo: $t, hi: $t, masks: &mut [u64]) {
            for (mask, values) in masks.iter_mut().zip(values.chunks(64)) {
                *mask = bits(values, |value| (lo <= value) & (value <= hi));
            }
        }
    };
}
between_plain!(between_i64, i64);
between_plain!(between_f64, f64);
between_plain!(between_f32, f32);

/// Writes every value, and moves on if it is selected: no branch to predict.
#[inline(always)]
fn select<V: Copy>(values: &[V; VECTOR], mask: &[u64; MASK_WORDS], out: &mut [V; VECTOR]) -> usize {
    let mut n = 0;
    for (values, &word) in values.chunks_exact(64).zip(mask) {
        for (i, &value) in values.iter().enumerate() {
            out[n % VECTOR] = value;
            n += (word >> i & 1) as usize;
        }
    }
    n
}

#[inline(always)]
pub(crate) fn select_i64(
    values: &[i64; VECTOR],
    mask: &[u64; MASK_WORDS],
    out: &mut [i64; VECTOR],
) -> usize {
    select(values, mask, out)
}

#[inline(always)]
pub(crate) fn select_u32(
    values: &[u32; VECTOR],
    mask: &[u64; MASK_WORDS],
    out: &mut [u32; VECTOR],
) -> usize {
    select(values, mask, out)
}

/// Appends the bits that `extract(bits, mask)` brings together in the low end of a word.
#[inline(always)]
pub(crate) fn select_bits_with(
    bits: &[u64; MASK_WORDS],
    mask: &[u64; MASK_WORDS],
    out: &mut [u64; MASK_WORDS],
    extract: impl Fn(u64, u64) -> u64,
) -> usize {
    out.fill(0);
    let mut n = 0;
    for (&bits, &mask) in bits.iter().zip(mask) {
        let selected = extract(bits, mask);
        let count = mask.count_ones() as usize;
        if count > 0 {
            out[n / 64] |= selected << (n % 64);
            if n % 64 + count > 64 {
                out[n / 64 + 1] = selected >> (64 - n % 64);
            }
            n += count;
        }
    }
    n
}

#[inline(always)]
pub(crate) fn select_bits(
    bits: &[u64; MASK_WORDS],
    mask: &[u64; MASK_WORDS],
    out: &mut [u64; MASK_WORDS],
) -> usize {
    select_bits_with(bits, mask, out, |bits, mask| {
        let (mut selected, mut rest, mut n) = (0, mask, 0);
        while rest != 0 {
            selected |= (bits >> rest.trailing_zeros() & 1) << n;
            n += 1;
            rest &= rest - 1;
        }
        selected
    })
}

#[inline(always)]
pub(crate) fn expand_i64(
    values: &[i64],
    mask: &[u64; MASK_WORDS],
    fill: i64,
    out: &mut [i64; VECTOR],
) {
    let mut n = 0;
    for (out, &word) in out.chunks_exact_mut(64).zip(mask) {
        for (i, out) in out.iter_mut().enumerate() {
            let set = word >> i & 1 == 1;
            let value = values.get(n).copied().unwrap_or(fill);
            *out = if set { value } else { fill };
            n += set as usize;
        }
    }
}

#[inline(always)]
pub(crate) fn popcount(masks: &[u64]) -> u64 {
    masks.iter().map(|word| word.count_ones() as u64).sum()
}

/// Values whose halves can be summed in 64 bits each.
const SUM_BLOCK: usize = 1 << 30;

/// The high halves, signed, and the low halves, unsigned, are summed apart: no step can overflow, none branches.
#[inline(always)]
pub(crate) fn sum_i64(values: &[i64]) -> i128 {
    let block = |values: &[i64]| {
        let (mut high, mut low) = (0i64, 0u64);
        for &value in values {
            // Biased to unsigned: a logical shift is at hand everywhere, an arithmetic one of 64 bits is not.
            let biased = value as u64 ^ 1 << 63;
            high += (biased >> 32) as i64;
            low += biased & 0xffff_ffff;
        }
        ((high as i128) << 32) + low as i128 - ((values.len() as i128) << 63)
    };
    values.chunks(SUM_BLOCK).map(block).sum()
}

#[inline(always)]
pub(crate) fn min_max_i64(values: &[i64]) -> (i64, i64) {
    values
        .iter()
        .fold((i64::MAX, i64::MIN), |(min, max), &value| {
            (min.min(value), max.max(value))
        })
}

#[inline(always)]
pub(crate) fn sum_f64(values: &[f64]) -> f64 {
    let mut sums = [0.0; 32];
    for values in values.chunks(32) {
        for (sum, &value) in sums.iter_mut().zip(values) {
            *sum += value;
        }
    }
    for half in [16, 8, 4, 2, 1] {
        for i in 0..half {
            sums[i] += sums[i + half];
        }
    }
    sums[0]
}

/// The number of runs. `deposit` moves the low bits of its first argument, in order, to the set bits of its second.
#[inline(always)]
pub(crate) fn runs_and_with(
    starts: &[u64],
    runs: &[u64],
    masks: &mut [u64],
    deposit: impl Fn(u64, u64) -> u64,
) -> usize {
    // Runs that have started before the word.
    let mut before = 0;
    for (mask, &starts) in masks.iter_mut().zip(starts) {
        let count = starts.count_ones() as usize;
        if *mask != 0 {
            // The word begins in the run before, unless with a start.
            let first = before - (starts & 1 == 0) as usize;
            let passed = bits_from(runs, first);
            let starts = starts | 1;
            *mask &= deposit(passed << 1, starts).wrapping_sub(deposit(passed, starts));
        }
        before += count;
    }
    before
}

/// 64 bits from bit `first` on; those beyond the end are 0.
#[inline(always)]
fn bits_from(words: &[u64], first: usize) -> u64 {
    let (word, shift) = (first / 64, first % 64);
    let next = words.get(word + 1).copied().unwrap_or(0);
    words[word] >> shift | (next << 1) << (63 - shift)
}

pub(crate) fn runs_and(starts: &[u64], runs: &[u64], masks: &mut [u64]) -> usize {
    runs_and_with(starts, runs, masks, |bits, places| {
        let (mut deposited, mut rest, mut bits) = (0, places, bits);
        while rest != 0 {
            deposited |= (rest & rest.wrapping_neg()) * (bits & 1);
            (rest, bits) = (rest & (rest - 1), bits >> 1);
        }
        deposited
    })
}

pub(crate) fn repeat_i64(values: &[i64], starts: &[u64; MASK_WORDS], out: &mut [i64; VECTOR]) {
    let mut at = 0;
    let first = starts[0] & !1;
    for (w, out) in out.as_chunks_mut::<64>().0.iter_mut().enumerate() {
        let word = if w == 0 { first } else { starts[w] };
        for (bit, out) in out.iter_mut().enumerate() {
            at += (word >> bit & 1) as usize;
            *out = values[at];
        }
    }
}

#[inline(always)]
pub(crate) fn running_sums(start: i64, values: &mut [i64; VECTOR]) {
    let mut sum = start;
    for value in values {
        sum = sum.wrapping_add(*value);
        *value = sum;
    }
}
