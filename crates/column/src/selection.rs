//! Which rows of a chunk are still wanted.

use eris_kernels::{Isa, MASK_WORDS, SPARE_POSITIONS, VECTOR};

/// A set of rows of one chunk: bit `row % 64` of word `row / 64`, [`MASK_WORDS`] words for each vector. Bits beyond the
/// rows are 0. Meant to be kept and reused from chunk to chunk.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    words: Vec<u64>,
    rows: usize,
    /// All rows are selected, and nobody had a chance to change that; `false` says nothing. It saves filters from
    /// reading the words they are going to overwrite.
    known_full: bool,
}

/// Equal as sets over the same rows.
impl PartialEq for Selection {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows && self.words == other.words
    }
}

impl Eq for Selection {}

/// Words of a selection over `rows` rows.
pub(crate) fn words_for(rows: usize) -> usize {
    rows.div_ceil(VECTOR) * MASK_WORDS
}

/// The bits of word `word` that stand for rows below `rows`.
pub(crate) fn rows_in_word(rows: usize, word: usize) -> u64 {
    match rows.saturating_sub(word * 64) {
        0 => 0,
        left @ 1..64 => u64::MAX >> (64 - left),
        _ => u64::MAX,
    }
}

/// The words that a range of rows, not empty, lies in: of the first those bits that `head` has, of the last those that
/// `tail` has, of one that is both those that both have.
struct WordRange {
    first: usize,
    last: usize,
    head: u64,
    tail: u64,
}

impl WordRange {
    fn of(start: usize, end: usize) -> Self {
        WordRange {
            first: start / 64,
            last: (end - 1) / 64,
            head: u64::MAX << (start % 64),
            tail: u64::MAX >> (63 - (end - 1) % 64),
        }
    }
}

impl Selection {
    /// All of `rows` rows.
    pub fn all(rows: usize) -> Self {
        let mut selection = Selection::default();
        selection.reset_all(rows);
        selection
    }

    /// None of `rows` rows.
    pub fn none(rows: usize) -> Self {
        let mut selection = Selection::default();
        selection.reset_none(rows);
        selection
    }

    /// Becomes all of `rows` rows, for the next chunk.
    pub fn reset_all(&mut self, rows: usize) {
        self.rows = rows;
        self.words.clear();
        self.words.resize(words_for(rows), u64::MAX);
        self.trim();
        self.known_full = true;
    }

    /// Becomes these of `rows` rows.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn reset_to(&mut self, rows: usize, selected: &[u32]) {
        self.reset_none(rows);
        selected.iter().for_each(|&row| self.insert(row as usize));
    }

    /// Becomes none of `rows` rows.
    pub fn reset_none(&mut self, rows: usize) {
        self.rows = rows;
        self.words.clear();
        self.words.resize(words_for(rows), 0);
        self.known_full = false;
    }

    /// Rows of the chunk, selected or not.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of selected rows.
    pub fn count(&self) -> usize {
        if self.known_full {
            self.rows
        } else {
            eris_kernels::popcount(&self.words) as usize
        }
    }

    /// Whether no row is selected.
    pub fn is_empty(&self) -> bool {
        !self.words.iter().any(|&word| word != 0)
    }

    /// Whether every row is selected.
    pub fn is_all(&self) -> bool {
        self.known_full || self.count() == self.rows
    }

    /// Whether every row is selected, as far as that is known without looking.
    pub(crate) fn known_full(&self) -> bool {
        self.known_full
    }

    /// Whether `row` is selected.
    pub fn contains(&self, row: usize) -> bool {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// Adds `row`.
    pub fn insert(&mut self, row: usize) {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        self.words[row / 64] |= 1 << (row % 64);
    }

    /// Takes `row` away.
    pub fn remove(&mut self, row: usize) {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        self.words[row / 64] &= !(1 << (row % 64));
        self.known_full = false;
    }

    /// Takes all rows from `start` up to, not including, `end` away.
    pub fn remove_range(&mut self, start: usize, end: usize) {
        assert!(
            start <= end && end <= self.rows,
            "rows {start}..{end} of {}",
            self.rows
        );
        if start == end {
            return;
        }
        self.known_full = false;
        let range = WordRange::of(start, end);
        if range.first == range.last {
            self.words[range.first] &= !(range.head & range.tail);
        } else {
            self.words[range.first] &= !range.head;
            self.words[range.first + 1..range.last].fill(0);
            self.words[range.last] &= !range.tail;
        }
    }

    /// Number of selected rows from `start` up to, not including, `end`.
    pub fn count_range(&self, start: usize, end: usize) -> usize {
        assert!(
            start <= end && end <= self.rows,
            "rows {start}..{end} of {}",
            self.rows
        );
        if start == end || self.known_full {
            return end - start;
        }
        let range = WordRange::of(start, end);
        let count = if range.first == range.last {
            (self.words[range.first] & range.head & range.tail).count_ones()
        } else {
            let between = &self.words[range.first + 1..range.last];
            let between: u32 = between.iter().map(|word| word.count_ones()).sum();
            let ends = self.words[range.first] & range.head;
            between + ends.count_ones() + (self.words[range.last] & range.tail).count_ones()
        };
        count as usize
    }

    /// Takes all rows away.
    pub fn clear(&mut self) {
        self.words.fill(0);
        self.known_full = false;
    }

    /// The bits.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The bits, to be changed; those beyond the rows have to stay 0.
    pub fn words_mut(&mut self) -> &mut [u64] {
        self.known_full = false;
        &mut self.words
    }

    /// Sets the bits beyond the rows to 0, after a kernel has written whole vectors.
    pub(crate) fn trim(&mut self) {
        let first = self.rows / 64;
        for word in first..self.words.len() {
            self.words[word] &= rows_in_word(self.rows, word);
        }
    }

    /// Keeps the rows that are also in `other`.
    pub fn and(&mut self, other: &Selection) {
        assert_eq!(self.rows, other.rows, "selections of different chunks");
        if !other.known_full {
            eris_kernels::and(self.words_mut(), &other.words);
        }
    }

    /// Adds the rows of another selection of the same rows.
    pub fn or(&mut self, other: &Selection) {
        assert_eq!(self.rows, other.rows, "selections of different chunks");
        let words = self.words.iter_mut().zip(&other.words);
        words.for_each(|(word, other)| *word |= other);
    }

    /// Keeps the rows that are not in `other`.
    pub fn and_not(&mut self, other: &Selection) {
        assert_eq!(self.rows, other.rows, "selections of different chunks");
        eris_kernels::and_not(self.words_mut(), &other.words);
    }

    /// Replaces `positions` by the selected rows, ascending. Whoever asks has counted them.
    ///
    /// # Panics
    /// If there are more than `count`.
    pub fn positions(&self, isa: Isa, count: usize, positions: &mut Vec<u32>) {
        positions.resize(count + SPARE_POSITIONS, 0);
        let found = isa.positions(&self.words, positions);
        positions.truncate(found);
    }

    /// The selected rows, ascending.
    pub fn iter_ones(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(word, &bits)| {
            std::iter::successors((bits != 0).then_some(bits), |bits| {
                let rest = bits & (bits - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |bits| word * 64 + bits.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn is_a_set_of_rows(rows in 1usize..3000, full in any::<bool>(), steps in prop::collection::vec((0u8..6, any::<u32>(), any::<u32>()), 0..20)) {
            let mut model: BTreeSet<usize> = if full { (0..rows).collect() } else { BTreeSet::new() };
            let mut selection = if full { Selection::all(rows) } else { Selection::none(rows) };
            for (step, a, b) in steps {
                let (a, b) = (a as usize % rows, b as usize % rows);
                let (low, high) = (a.min(b), a.max(b) + (step as usize % 2));
                let mut other = Selection::all(rows);
                other.remove_range(low, high);
                match step {
                    0 => {
                        model.insert(a);
                        selection.insert(a);
                    }
                    1 => {
                        model.remove(&a);
                        selection.remove(a);
                    }
                    2 => {
                        model.retain(|row| !(low..high).contains(row));
                        selection.remove_range(low, high);
                    }
                    3 => {
                        model.retain(|row| !(low..high).contains(row));
                        selection.and(&other);
                    }
                    4 => {
                        model.retain(|row| (low..high).contains(row));
                        selection.and_not(&other);
                    }
                    _ => prop_assert_eq!(
                        selection.count_range(low, high),
                        model.range(low..high).count()
                    ),
                }
                prop_assert_eq!(selection.contains(b), model.contains(&b));
                prop_assert_eq!(selection.count(), model.len());
                prop_assert_eq!(selection.is_empty(), model.is_empty());
                prop_assert_eq!(selection.is_all(), model.len() == rows);
                prop_assert!(selection.iter_ones().eq(model.iter().copied()));
                prop_assert_eq!(selection.words().len(), words_for(rows));
            }
        }
    }
}
