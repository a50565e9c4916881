//! Several ranges looked for in the same packed vectors: each vector is read and unpacked once for all of them.
//!
//! ```text
//! packed vector ─▶ register of values ─▶ compared with range 0 ─▶ mask 0
//!                                     └▶ compared with range 1 ─▶ mask 1 …
//! ```
//!
//! Eight ranges cost about half of eight comparisons one after the other, two ranges three quarters. One range costs
//! more than it does alone (docs/decisions/0028).

use crate::MASK_WORDS;
use crate::condition::{Bounds, Range, bounds};
use crate::layout::{max_value, vector_words};

/// Ranges that a vector is compared with at a time: their bounds fit into registers.
pub(crate) const TOGETHER: usize = 8;

/// The tests that are looked at, if none skips a vector.
const NUMBERS: [usize; TOGETHER] = [0, 1, 2, 3, 4, 5, 6, 7];

/// One of several ranges that are looked for in the same vectors.
#[derive(Debug)]
pub struct RangeTest<'a> {
    /// Least value of the range.
    pub lo: u64,
    /// Greatest value of the range, which is empty if this is below `lo`.
    pub hi: u64,
    /// The values outside the range pass, instead of those inside.
    pub outside: bool,
    /// What is done with those that pass.
    pub passed: PassedValues<'a>,
}

/// What a [`RangeTest`] does with the values that pass.
#[derive(Debug)]
pub enum PassedValues<'a> {
    /// Clears the bits of all others. 16 words for each vector.
    Kept(&'a mut [u64]),
    /// Adds their number.
    Counted(&'a mut u64),
}

impl RangeTest<'_> {
    /// Whether the test needs no look at a vector.
    #[inline(always)]
    pub(crate) fn skips(&self, vector: usize) -> bool {
        match &self.passed {
            PassedValues::Kept(masks) => {
                let mask = &masks.as_chunks::<MASK_WORDS>().0[vector];
                mask.iter().fold(0, |all, word| all | word) == 0
            }
            PassedValues::Counted(_) => false,
        }
    }

    /// Where it counts, if it does.
    #[inline(always)]
    pub(crate) fn count(&mut self) -> Option<&mut u64> {
        match &mut self.passed {
            PassedValues::Kept(_) => None,
            PassedValues::Counted(count) => Some(count),
        }
    }

    /// The range in the form that is compared, and whether the values outside pass. Outside of all values there are
    /// none: so no range is empty.
    #[inline(always)]
    pub(crate) fn range(&self, width: u8) -> (Range, bool) {
        let all = Range {
            lo: 0,
            span: max_value(width),
        };
        match bounds(width, self.lo, self.hi) {
            Bounds::None => (all, !self.outside),
            Bounds::All => (all, self.outside),
            Bounds::Some(range) => (range, self.outside),
        }
    }

    /// Takes in which values of a vector pass.
    #[inline(always)]
    pub(crate) fn take(&mut self, vector: usize, inside: &[u64; MASK_WORDS], outside: bool) {
        let flip = if outside { u64::MAX } else { 0 };
        match &mut self.passed {
            PassedValues::Kept(masks) => {
                let mask = &mut masks.as_chunks_mut::<MASK_WORDS>().0[vector];
                for (word, inside) in mask.iter_mut().zip(inside) {
                    *word &= inside ^ flip;
                }
            }
            PassedValues::Counted(count) => {
                let ones = inside.iter().map(|word| (word ^ flip).count_ones() as u64);
                **count += ones.sum::<u64>();
            }
        }
    }
}

/// Shows each vector that a test wants to see to some tests at a time: `compare` writes the mask of each of their
/// ranges.
#[inline(always)]
pub(crate) fn each_vector(
    width: u8,
    words: &[u64],
    tests: &mut [RangeTest<'_>],
    compare: impl Fn(&[u64], &[Range], &mut [[u64; MASK_WORDS]; TOGETHER]),
) {
    let mut inside = [[0; MASK_WORDS]; TOGETHER];
    // More tests than that read the words again, from the second-level cache.
    for tests in tests.chunks_mut(TOGETHER) {
        let mut ranges = [Range { lo: 0, span: 0 }; TOGETHER];
        let mut outside = [false; TOGETHER];
        for (i, test) in tests.iter().enumerate() {
            (ranges[i], outside[i]) = test.range(width);
        }
        for (vector, words) in words.chunks_exact(vector_words(width)).enumerate() {
            let (mut wanted, mut of, mut count) = (ranges, NUMBERS, tests.len());
            if tests.iter().any(|test| test.skips(vector)) {
                count = 0;
                for (i, test) in tests.iter().enumerate() {
                    (wanted[count], of[count]) = (ranges[i], i);
                    count += usize::from(!test.skips(vector));
                }
            }
            if count > 0 {
                compare(words, &wanted[..count], &mut inside);
            }
            for (&i, inside) in of[..count].iter().zip(&inside) {
                tests[i].take(vector, inside, outside[i]);
            }
        }
    }
}
