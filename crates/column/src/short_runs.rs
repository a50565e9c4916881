//! Run-length encoding for short runs, such as the lines of an order that repeat its date: a bit per row for where runs
//! start, a packed value per run.
//!
//! ```text
//! rows     7 7 7 7 9 9 5          values  7 9 5           (packed)
//!                                 starts  1 0 0 0 1 0 1   (a bit per row, in whole vectors)
//!                                 first   0 …             (u16: the run that the first row of each vector lies in)
//! ```
//!
//! Any row is found by counting bits. A filter compares the values once per run, and a kernel spreads the answers over
//! the rows, 64 at a time: with runs of four rows it takes less time than comparing every row.

use crate::copier::Copier;
use crate::object_memory::ObjectMemory;
use crate::packed::{Packed, packed_bytes};
use crate::predicate::Reduced;
use crate::selection::{Selection, rows_in_word};
use eris_kernels::{Isa, MASK_WORDS, VECTOR, prefetch};
use eris_numa::{Buffer, Extent, OutOfMemory};

#[derive(Debug)]
pub(crate) struct ShortRuns {
    values: Packed,
    starts: Buffer,
    first: Buffer,
}

/// Bytes of `rows` rows in `runs` runs whose values take `width` bits.
pub(crate) fn short_runs_bytes(rows: usize, runs: usize, width: u8) -> usize {
    let vectors = rows.div_ceil(VECTOR);
    packed_bytes(runs, width) + vectors * (VECTOR / 8 + size_of::<u16>())
}

impl ShortRuns {
    /// Encodes `rows` values, at least one, from `min..=max` that form `runs` runs; `next` as in [`Packed::encode`].
    pub(crate) fn encode(
        rows: usize,
        runs: usize,
        min: i64,
        max: i64,
        home: ObjectMemory<'_>,
        mut next: impl FnMut(&mut [i64]),
    ) -> Result<Self, OutOfMemory> {
        let isa = Isa::best();
        let vectors = rows.div_ceil(VECTOR);
        let mut starts = home.allocate::<u64>(vectors * MASK_WORDS)?;
        let mut first = home.allocate::<u16>(vectors)?;
        let (masks, _) = starts.as_mut_slice::<u64>().as_chunks_mut::<MASK_WORDS>();
        let firsts = first.as_mut_slice::<u16>();
        // A vector more than there are runs: a kernel writes whole vectors.
        let mut values = vec![0; runs + VECTOR];
        let mut count = 0;
        let mut block = [0; VECTOR];
        // Any value but that of the first row, with which a run starts.
        let mut last = None;
        for (vector, mask) in masks.iter_mut().enumerate() {
            let here = (rows - vector * VECTOR).min(VECTOR);
            next(&mut block[..here]);
            // What is beyond the rows continues the last run.
            let end = block[here - 1];
            block[here..].fill(end);
            for (word, values) in mask.iter_mut().zip(block.as_chunks::<64>().0) {
                let mut before = last.unwrap_or(!values[0]);
                for (bit, &value) in values.iter().enumerate() {
                    *word |= ((value != before) as u64) << bit;
                    before = value;
                }
                last = Some(before);
            }
            firsts[vector] = (count - (mask[0] & 1 == 0) as usize) as u16;
            let out = values[count..].first_chunk_mut().expect("a vector more");
            count += isa.select_i64(&block, mask, out);
        }
        debug_assert_eq!(count, runs);
        let mut rest = &values[..runs];
        let values = Packed::encode(runs, min, max, home, |out| {
            let (here, after) = rest.split_at(out.len());
            out.copy_from_slice(here);
            rest = after;
        })?;
        Ok(ShortRuns {
            values,
            starts,
            first,
        })
    }

    /// Of the values of the runs and where these start, of which `first`, still empty, follows. `None` if these are not
    /// the starts of so many runs of so many rows.
    pub(crate) fn of_parts(
        values: Packed,
        starts: Buffer,
        mut first: Buffer,
        rows: usize,
    ) -> Option<Self> {
        let words = starts.as_slice::<u64>();
        let beyond = |(word, bits): (usize, &u64)| bits & !rows_in_word(rows, word) != 0;
        if words.first()? & 1 == 0 || words.iter().enumerate().any(beyond) {
            return None;
        }
        let isa = Isa::best();
        let mut count = 0;
        let (masks, _) = words.as_chunks::<MASK_WORDS>();
        for (first, mask) in first.as_mut_slice::<u16>().iter_mut().zip(masks) {
            *first = (count - (mask[0] & 1 == 0) as usize) as u16;
            count += isa.popcount(mask) as usize;
        }
        (count == values.len()).then_some(ShortRuns {
            values,
            starts,
            first,
        })
    }

    pub(crate) fn values(&self) -> &Packed {
        &self.values
    }

    /// A bit per row for where runs start.
    pub(crate) fn start_words(&self) -> &Buffer {
        &self.starts
    }

    pub(crate) fn width(&self) -> u8 {
        self.values.width()
    }

    pub(crate) fn runs(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn extents(&self, all: &mut Vec<Extent>) {
        self.values.extents(all);
        all.extend([self.starts.extent(), self.first.extent()]);
    }

    pub(crate) fn copied(&self, copier: &mut Copier<'_>) -> Option<Self> {
        Some(ShortRuns {
            values: self.values.copied(copier)?,
            starts: copier.copy(&self.starts)?,
            first: copier.copy(&self.first)?,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.values.bytes() + self.starts.len() + self.first.len()
    }

    /// Asks for the first lines of the values and of the starts.
    pub(crate) fn prefetch(&self) {
        self.values.prefetch();
        prefetch(&self.starts()[0]);
    }

    fn starts(&self) -> &[[u64; MASK_WORDS]] {
        self.starts.as_slice::<u64>().as_chunks().0
    }

    /// The run that the first row of a vector lies in; that of the vector after the last is the last.
    fn first(&self, vector: usize) -> usize {
        let first = self.first.as_slice::<u16>().get(vector);
        first.map_or(self.runs() - 1, |&first| first as usize)
    }

    pub(crate) fn get(&self, row: usize) -> i64 {
        let vector = row / VECTOR;
        self.values
            .get(self.first(vector) + runs_before(&self.starts()[vector], row % VECTOR))
    }

    /// Calls `f` with the selected values, in order, in slices of at most 1,024.
    pub(crate) fn for_each(&self, isa: Isa, selection: &Selection, mut f: impl FnMut(&[i64])) {
        /// From so many selected rows of a vector on, decoding all of it is faster.
        const DENSE: u64 = 64;
        let mut decoded = Decoded::new(isa, &self.values);
        let (mut values, mut selected) = ([0; VECTOR], [0; VECTOR]);
        let masks = selection.words().as_chunks::<MASK_WORDS>().0;
        for (vector, (mask, starts)) in masks.iter().zip(self.starts()).enumerate() {
            let first = self.first(vector);
            let count = isa.popcount(mask);
            if count == VECTOR as u64 {
                let runs = decoded.range(first, self.first(vector + 1));
                isa.repeat_i64(runs, starts, &mut values);
                f(&values);
            } else if count >= DENSE {
                let runs = decoded.range(first, self.first(vector + 1));
                isa.repeat_i64(runs, starts, &mut values);
                let count = isa.select_i64(&values, mask, &mut selected);
                f(&selected[..count]);
            } else if count > 0 {
                let mut at = 0;
                // Runs that start before the word, but for that of the vector's first row.
                let mut run = first.wrapping_sub((starts[0] & 1) as usize);
                for (&bits, &starts) in mask.iter().zip(starts) {
                    let mut rest = bits;
                    while rest != 0 {
                        let up_to = u64::MAX >> (63 - rest.trailing_zeros());
                        let here = (starts & up_to).count_ones() as usize;
                        values[at] = self.values.get(run.wrapping_add(here));
                        (at, rest) = (at + 1, rest & (rest - 1));
                    }
                    run = run.wrapping_add(starts.count_ones() as usize);
                }
                f(&values[..at]);
            }
        }
    }

    /// The values of these rows.
    pub(crate) fn take(&self, isa: Isa, rows: &[u32], out: &mut [i64]) {
        let mut runs = vec![0; rows.len()];
        isa.runs_of(self.starts.as_slice(), rows, &mut runs);
        self.values.take(isa, &runs, out);
    }

    /// Keeps the rows that pass: the condition is evaluated once for each run, unless no row of a whole vector is
    /// selected.
    pub(crate) fn filter(&self, isa: Isa, condition: Reduced<'_>, selection: &mut Selection) {
        let full = selection.known_full();
        let first = if full { u64::MAX } else { 0 };
        let mut passed = vec![first; self.runs().div_ceil(VECTOR) * MASK_WORDS];
        if !full {
            let (masks, _) = selection.words().as_chunks::<MASK_WORDS>();
            for (vector, mask) in masks.iter().enumerate() {
                if mask.iter().any(|&word| word != 0) {
                    let (first, last) = (self.first(vector), self.first(vector + 1));
                    passed[first / 64..=last / 64].fill(u64::MAX);
                }
            }
        }
        self.values.filter(isa, condition, full, &mut passed);
        isa.runs_and(self.starts.as_slice(), &passed, selection.words_mut());
    }
}

/// How many runs start in rows 1 to `row` of a vector.
fn runs_before(starts: &[u64; MASK_WORDS], row: usize) -> usize {
    let (word, bit) = (row / 64, row % 64);
    let whole: u32 = starts[..word].iter().map(|word| word.count_ones()).sum();
    let part = (starts[word] & (u64::MAX >> (63 - bit))).count_ones();
    (whole + part) as usize - (starts[0] & 1) as usize
}

/// A window of two decoded vectors over the runs' values: the rows of one vector lie in no more than 1,024 runs.
struct Decoded<'a> {
    isa: Isa,
    packed: &'a Packed,
    values: Box<[i64; 2 * VECTOR]>,
    /// Which vectors are decoded.
    held: [Option<usize>; 2],
}

impl<'a> Decoded<'a> {
    fn new(isa: Isa, packed: &'a Packed) -> Self {
        Decoded {
            isa,
            packed,
            values: Box::new([0; 2 * VECTOR]),
            held: [None; 2],
        }
    }

    /// The values of the runs `first..=last`.
    fn range(&mut self, first: usize, last: usize) -> &[i64] {
        let (vector, end) = (first / VECTOR, last / VECTOR);
        debug_assert!(end <= vector + 1, "runs {first} to {last} of one vector");
        let (low, high) = self.values.split_at_mut(VECTOR);
        let low: &mut [i64; VECTOR] = low.try_into().expect("a vector");
        let high: &mut [i64; VECTOR] = high.try_into().expect("a vector");
        if self.held[0] != Some(vector) {
            if self.held[1] == Some(vector) {
                *low = *high;
            } else {
                self.packed.unpack(self.isa, vector, low);
            }
            self.held[0] = Some(vector);
        }
        if end > vector && self.held[1] != Some(end) {
            self.packed.unpack(self.isa, end, high);
            self.held[1] = Some(end);
        }
        let start = vector * VECTOR;
        &self.values[first - start..=last - start]
    }
}
