//! Kernels over values that repeat or rise: rows beside the bits where runs start, and sums of differences.
//!
//! ```text
//! rows     7 7 7 9 9 5 5 5        one value per run    7 9 5
//! starts   1 0 0 1 0 1 0 0        passed, per run      1 0 1    ─▶ per row  1 1 1 0 0 1 1 1
//! ```
//!
//! From runs to rows 64 at a time, without a loop over the runs: deposit the answers at the starts, deposit them again
//! one start later, and subtract. A run that passed, from bit `d` up to the next start at bit `n`, is `2^n - 2^d`, and
//! runs do not overlap. So one subtraction makes all of them. What has no next start in the word overflows away.

use crate::isa::{Isa, dispatch};
use crate::{MASK_WORDS, VECTOR};

impl Isa {
    /// Clears the bits of the rows whose run has no bit in `runs`. A set bit in `starts` is a row with which a run
    /// starts; the runs are numbered from 0 in order of their rows, and the first starts with row 0.
    ///
    /// # Panics
    /// If `masks` is not as long as `starts`, the first bit is not set, or there are fewer bits in `runs` than runs.
    pub fn runs_and(self, starts: &[u64], runs: &[u64], masks: &mut [u64]) {
        assert_eq!(masks.len(), starts.len(), "masks of other rows");
        let Some(first) = starts.first() else { return };
        assert!(first & 1 == 1, "the first run starts with the first row");
        let count = dispatch!(self, runs_and(starts, runs, masks));
        assert!(count <= runs.len() * 64, "bits of {count} runs");
    }

    /// Repeats values row by row: row 0 gets `values[0]`, and every row whose bit is set goes on to the next value. Bit
    /// 0 has no meaning.
    ///
    /// # Panics
    /// If there are not enough values.
    pub fn repeat_i64(self, values: &[i64], starts: &[u64; MASK_WORDS], out: &mut [i64; VECTOR]) {
        let needed = self.popcount(starts) as usize + 1 - (starts[0] & 1) as usize;
        assert!(values.len() >= needed, "{needed} values");
        dispatch!(self, repeat_i64(&values[..needed], starts, out));
    }

    /// Each value becomes the sum of `start`, itself and all before it, wrapping: from differences to values.
    pub fn running_sums(self, start: i64, values: &mut [i64; VECTOR]) {
        dispatch!(self, running_sums(start, values));
    }
}
