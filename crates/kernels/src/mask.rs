//! Masks as sets of rows. These loops are bound by memory whatever the instruction set.

/// Keeps the bits that `other` has too.
///
/// # Panics
/// If the lengths differ (as do all functions of two masks).
pub fn and(masks: &mut [u64], other: &[u64]) {
    combine(masks, other, |a, b| a & b);
}

/// Adds the bits of `other`.
pub fn or(masks: &mut [u64], other: &[u64]) {
    combine(masks, other, |a, b| a | b);
}

/// Removes the bits of `other`.
pub fn and_not(masks: &mut [u64], other: &[u64]) {
    combine(masks, other, |a, b| a & !b);
}

/// Inverts every bit, those beyond the last row of a ragged end included.
pub fn not(masks: &mut [u64]) {
    for word in masks {
        *word = !*word;
    }
}

#[inline(always)]
fn combine(masks: &mut [u64], other: &[u64], f: impl Fn(u64, u64) -> u64) {
    assert_eq!(masks.len(), other.len(), "masks of different lengths");
    for (word, &other) in masks.iter_mut().zip(other) {
        *word = f(*word, other);
    }
}
