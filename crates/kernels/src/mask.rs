//! Masks as sets of rows. These loops are bound by memory whatever the instruction set.

use crate::isa::{Isa, dispatch};

impl Isa {
    /// The number of set bits.
    pub fn popcount(self, masks: &[u64]) -> u64 {
        dispatch!(self, popcount(masks))
    }
}

/// The number of set bits.
pub fn popcount(masks: &[u64]) -> u64 {
    Isa::best().popcount(masks)
}

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
