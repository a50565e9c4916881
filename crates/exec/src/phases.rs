//! What each phase of a program did, for `EXPLAIN ANALYZE`.
//!
//! A chunk's rows go through the phases one after the other, the tests in whatever order is best for the chunk:
//!
//! ```text
//! rows of the chunk ─▶ visible ─▶ test ─▶ test ─▶ … ─▶ residual ─▶ first ─▶ output
//!                          each phase: rows met, rows that passed, bytes of columns that were read for it
//! ```
//!
//! All is counted per chunk, a few additions each. Bytes are those of vectors in which rows are left, whose share is
//! taken from a sample of the chunks. Phases are called by their number: tests in the order in which they were
//! compiled, other conditions, the first rows, visibility, output.

use crate::columns::FragmentColumns;
use eris_column::Selection;
use eris_fragment::PhaseCounts;
use eris_kernels::{MASK_WORDS, VECTOR};
use eris_store::ChunkView;

/// A worker's counts.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: Vec<PhaseCounts>,
    /// Bytes of all columns of the fragment in the chunks that were looked at.
    pub(crate) column_bytes: u64,
    /// Columns of the chunk at hand that were read already.
    read: Vec<usize>,
    /// Per phase, how often it has read a column, and the share of the vectors that it touched when that was last
    /// looked at.
    shares: Vec<(u32, f64)>,
}

/// The vectors that are touched are counted for one read in so many.
const SAMPLED: u32 = 8;

impl Tally {
    /// For so many conditions.
    pub(crate) fn new(conditions: usize) -> Self {
        Tally {
            counts: vec![PhaseCounts::default(); conditions + 2],
            shares: vec![(0, 1.0); conditions + 2],
            ..Tally::default()
        }
    }

    /// The phase that leaves out rows that cannot be among the first, of a program that has one.
    pub(crate) fn first(&self) -> usize {
        self.counts.len() - 3
    }

    /// The phase that leaves out rows that are not visible.
    pub(crate) fn visible(&self) -> usize {
        self.counts.len() - 2
    }

    /// The last one.
    pub(crate) fn output(&self) -> usize {
        self.counts.len() - 1
    }

    /// A chunk comes.
    pub(crate) fn begin(&mut self, view: &ChunkView, columns: &FragmentColumns) {
        self.read.clear();
        let stored = (0..columns.ids.len()).filter(|&column| !columns.is_row_id(column));
        let bytes = stored.map(|column| view.chunk.column(columns.ids[column]).bytes() as u64);
        self.column_bytes += bytes.sum::<u64>();
    }

    /// The columns of the chunk at hand that were read, by their positions in the fragment.
    pub(crate) fn columns_read(&self) -> &[usize] {
        &self.read
    }

    /// The zones show that no row of the chunk passes this test.
    pub(crate) fn excluded(&mut self, phase: usize) {
        self.counts[phase].chunks_excluded += 1;
    }

    /// The zones show that every row passes it.
    pub(crate) fn held(&mut self, phase: usize) {
        self.counts[phase].chunks_held += 1;
    }

    /// It was taken with so many rows, of which so many are left.
    pub(crate) fn took(&mut self, phase: usize, rows_in: usize, rows_out: usize) {
        let counts = &mut self.counts[phase];
        counts.chunks += 1;
        counts.rows_in += rows_in as u64;
        counts.rows_out += rows_out as u64;
    }

    /// So many rows are left of those that it was taken with before.
    pub(crate) fn took_more(&mut self, phase: usize, rows_out: usize) {
        self.counts[phase].rows_out += rows_out as u64;
    }

    /// It is about to read a column for the rows that are left.
    pub(crate) fn reads(
        &mut self,
        phase: usize,
        column: usize,
        view: &ChunkView,
        columns: &FragmentColumns,
        left: Left<'_>,
    ) {
        if columns.is_row_id(column) || self.read.contains(&column) {
            return;
        }
        self.read.push(column);
        let bytes = view.chunk.column(columns.ids[column]).bytes();
        if matches!(left, Left::All) || view.rows.is_some() {
            self.counts[phase].bytes += view.touched(bytes);
            return;
        }
        let (reads, share) = &mut self.shares[phase];
        if reads.is_multiple_of(SAMPLED) {
            *share = left.touched();
        }
        *reads += 1;
        self.counts[phase].bytes += (bytes as f64 * *share) as u64;
    }
}

/// The rows of a chunk that a phase meets.
pub(crate) enum Left<'a> {
    /// All, or those that are wanted.
    All,
    Selected(&'a Selection),
    /// Their positions, ascending, and how many rows the chunk has.
    Listed(&'a [u32], usize),
}

impl Left<'_> {
    /// The share of the vectors in which there is one.
    fn touched(&self) -> f64 {
        match self {
            Left::All => 1.0,
            Left::Selected(selection) => {
                let (vectors, _) = selection.words().as_chunks::<MASK_WORDS>();
                let any = |vector: &&[u64; MASK_WORDS]| {
                    vector.iter().fold(0, |any, word| any | word) != 0
                };
                vectors.iter().filter(any).count() as f64 / vectors.len().max(1) as f64
            }
            Left::Listed(rows, all) => {
                let same = |a: &u32, b: &u32| *a as usize / VECTOR == *b as usize / VECTOR;
                let vectors = rows.chunk_by(same).count();
                vectors as f64 / all.div_ceil(VECTOR).max(1) as f64
            }
        }
    }
}
