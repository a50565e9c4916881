//! Kernels over a few rows, by their numbers: what is left when filters have passed one row in twenty or fewer.
//!
//! ```text
//! masks    0 0 1 0 … 1 …      positions   2 70 …      the same rows, counted out once for all columns
//! packed   word `low` and word `low + 1` of the lane, two loads for each position, whatever the width
//! runs     positions 2 70 …  ─▶  0 17 …               the run that each row lies in: bits of `starts` up to it
//! ```
//!
//! Reading some lines here and there, a processor finds no stream to run ahead of. If positions are dense, the lines of
//! later vectors are prefetched in order. That reaches memory speed; waiting for each took three times as long.

use crate::isa::{Isa, dispatch};
use crate::layout::{RUNS_WORDS, vector_words};
use crate::packed::check;

/// Entries of the output of [`Isa::positions`] behind the last position that may be written.
pub const SPARE_POSITIONS: usize = 64;

/// The number of set bits.
pub fn popcount(masks: &[u64]) -> u64 {
    Isa::best().popcount(masks)
}

impl Isa {
    /// The number of set bits.
    pub fn popcount(self, masks: &[u64]) -> u64 {
        dispatch!(self, popcount(masks))
    }

    /// Writes the numbers of the set bits, ascending. Returns how many they are; what follows them is undefined.
    ///
    /// # Panics
    /// If `out` has no room for [`SPARE_POSITIONS`] more than there are set bits, or there are more than 2^32 bits.
    pub fn positions(self, masks: &[u64], out: &mut [u32]) -> usize {
        assert!(masks.len() <= 1 << 26, "positions have 32 bits");
        let count = self.popcount(masks) as usize;
        assert!(
            count + SPARE_POSITIONS <= out.len(),
            "room for {count} positions"
        );
        dispatch!(self, positions(masks, out));
        count
    }

    /// The values at some positions of the vectors in `words`: `base + value`, wrapping. It is fastest for positions
    /// that ascend.
    ///
    /// # Panics
    /// If the width is above 64, `words` has not as many vectors as it is told, one of the positions is not in them, or
    /// the slices are of different lengths.
    pub fn take_packed(
        self,
        width: u8,
        words: &[u64],
        base: i64,
        positions: &[u32],
        out: &mut [i64],
    ) {
        assert_eq!(positions.len(), out.len(), "a value for each position");
        if width == 0 {
            return out.fill(base);
        }
        check(width, words, words.len() / vector_words(width));
        dispatch!(self, take_packed(width, words, base, positions, out));
    }

    /// For each row the number of its run. A set bit in `starts` is a row with which a run starts; they are numbered
    /// from 0, and the first starts with row 0.
    ///
    /// # Panics
    /// If the first bit is not set, `starts` has more than 1,024 words or not all of the rows, or the slices are of
    /// different lengths.
    pub fn runs_of(self, starts: &[u64], rows: &[u32], runs: &mut [u32]) {
        assert_eq!(rows.len(), runs.len(), "a run for each row");
        assert!(starts.len() <= RUNS_WORDS, "rows of one chunk");
        let Some(first) = starts.first() else {
            return assert!(rows.is_empty(), "rows without starts");
        };
        assert!(first & 1 == 1, "the first run starts with the first row");
        dispatch!(self, runs_of(starts, rows, runs));
    }
}
