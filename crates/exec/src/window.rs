//! A selection in pieces, so that what is gathered for one piece stays in the cache.

use crate::pairs::Pair;
use eris_column::{CHUNK_ROWS, Selection};
use eris_kernels::MASK_WORDS;

/// Once more rows than this have been put out of a chunk, the rest of it waits for another step. Only rows that are
/// joined to several make so many.
const STEP_ROWS: u64 = CHUNK_ROWS as u64;

/// What came of a chunk in one step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OutputStep {
    /// Rows that were put out.
    pub(crate) rows: u64,
    /// Where to go on; `None`: the chunk is done with.
    pub(crate) rest: Option<ChunkPosition>,
}

/// A place in a chunk's selection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkPosition {
    /// The word with which the window begins.
    pub(crate) word: usize,
    /// The next row in it.
    pub(crate) row: Pair,
}

impl ChunkPosition {
    /// The beginning of a window.
    pub(crate) fn window(word: usize) -> Self {
        let row = Pair::default();
        ChunkPosition { word, row }
    }
}

impl OutputStep {
    /// Notes rows that were put out; whether it ends here, before `next` if there is more to come.
    pub(crate) fn took(&mut self, rows: usize, next: Option<ChunkPosition>) -> bool {
        self.rows += rows as u64;
        self.rest = next.filter(|_| self.rows > STEP_ROWS);
        self.rest.is_some()
    }
}

/// Hands out a selection vector by vector, as many at a time as hold a number of rows.
pub(crate) struct Windows {
    /// A window ends with the vector that reaches this number of rows.
    rows: usize,
    /// One past the last word of the window at hand.
    end: usize,
    window: Selection,
}

impl Windows {
    pub(crate) fn new(rows: usize) -> Self {
        Windows::starting(rows, 0)
    }

    /// The same from a word on at which a window begins.
    pub(crate) fn starting(rows: usize, word: usize) -> Self {
        Windows {
            rows,
            end: word,
            window: Selection::default(),
        }
    }

    /// The next window of `selection` that is not empty: a selection over all rows of the chunk, of which only those in
    /// the window are left. Bits before [`Windows::end`] may have changed since the last call.
    pub(crate) fn next(&mut self, selection: &Selection) -> Option<&Selection> {
        let words = selection.words();
        let start = self.end;
        let mut count = 0;
        while self.end < words.len() && count < self.rows {
            let vector = &words[self.end..self.end + MASK_WORDS];
            count += eris_kernels::popcount(vector) as usize;
            self.end += MASK_WORDS;
        }
        if count == 0 {
            return None;
        }
        self.window.reset_none(selection.rows());
        self.window.words_mut()[start..self.end].copy_from_slice(&words[start..self.end]);
        Some(&self.window)
    }

    /// One past the last word of the window at hand; the next one begins there.
    pub(crate) fn end(&self) -> usize {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn windows_are_the_selection_in_pieces(
            rows in 1..9_000usize, sparse in 1..3_000usize, size in 1..5_000usize,
        ) {
            let mut selection = Selection::none(rows);
            (0..rows).filter(|row| row % sparse == 0).for_each(|row| selection.insert(row));
            let mut windows = Windows::new(size);
            let mut seen = Vec::new();
            let mut begin = 0;
            while let Some(window) = windows.next(&selection) {
                prop_assert!(!window.is_empty() && window.count() < size + 1_024);
                prop_assert!(window.iter_ones().all(|row| row / 64 >= begin));
                seen.extend(window.iter_ones());
                begin = windows.end();
                prop_assert!(seen.last().is_some_and(|last| last / 64 < begin));
            }
            prop_assert_eq!(seen, selection.iter_ones().collect::<Vec<_>>());
        }
    }
}
