//! What each phase of a program did, for `EXPLAIN ANALYZE`.
//!
//! A chunk's rows go through the phases one after the other, the tests in whatever order is best for the chunk:
//!
//! ```text
//! rows of the chunk ─▶ visible ─▶ test ─▶ test ─▶ … ─▶ residual ─▶ output
//!                          each phase: rows met, rows that passed, bytes of columns that were read for it
//! ```
//!
//! All is counted per chunk, a few additions each; the vectors in which rows are left are counted with the rows. Phases are called by their
//! number: tests in the order in which they were compiled, other conditions, visibility, output.

use crate::columns::Columns;
use eris_column::Selection;
use eris_fragment::PhaseCounts;
use eris_kernels::VECTOR;
use eris_store::ChunkView;

/// A worker's counts.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: Vec<PhaseCounts>,
    /// Bytes of all columns of the fragment in the chunks that were looked at.
    pub(crate) column_bytes: u64,
    /// Columns of the chunk at hand that were read already.
    read: Vec<usize>,
    /// Its vectors in which rows are left, as far as is known.
    vectors: usize,
}

impl Tally {
    /// For so many conditions.
    pub(crate) fn new(conditions: usize) -> Self {
        Tally {
            counts: vec![PhaseCounts::default(); conditions + 2],
            ..Tally::default()
        }
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
    pub(crate) fn begin(&mut self, view: &ChunkView, columns: &Columns) {
        self.read.clear();
        self.vectors = view.chunk.rows().div_ceil(VECTOR);
        let stored = (0..columns.ids.len()).filter(|&column| !columns.is_row_id(column));
        let bytes = stored.map(|column| view.chunk.column(columns.ids[column]).bytes() as u64);
        self.column_bytes += bytes.sum::<u64>();
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

    /// How many rows are left.
    pub(crate) fn count(&mut self, selection: &Selection) -> usize {
        let (rows, vectors) = selection.count_vectors();
        self.vectors = vectors;
        rows
    }

    /// It is about to read a column for the rows that are left.
    pub(crate) fn reads(
        &mut self,
        phase: usize,
        column: usize,
        view: &ChunkView,
        columns: &Columns,
    ) {
        if columns.is_row_id(column) || self.read.contains(&column) {
            return;
        }
        self.read.push(column);
        let bytes = view.chunk.column(columns.ids[column]).bytes();
        self.counts[phase].bytes += match view.rows {
            None => (bytes * self.vectors / view.chunk.rows().div_ceil(VECTOR).max(1)) as u64,
            Some(_) => view.touched(bytes),
        };
    }
}
