//! What each step of a program did, for `EXPLAIN ANALYZE`.
//!
//! A chunk's rows go through the steps one after the other, the tests in whatever order is best for the chunk:
//!
//! ```text
//! rows of the chunk ─▶ visible ─▶ test ─▶ test ─▶ … ─▶ residual ─▶ output
//!                          each step: rows met, rows that passed, bytes of columns that were read for it
//! ```
//!
//! All is counted per chunk: a few additions, and one look at every vector's mask for the bytes. Steps are called by their
//! number: tests in the order in which they were compiled, other conditions, visibility, output.

use crate::columns::Columns;
use eris_column::Selection;
use eris_fragment::StepCounts;
use eris_kernels::MASK_WORDS;
use eris_store::ChunkView;

/// A worker's counts.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) counts: Vec<StepCounts>,
    /// Bytes of all columns of the fragment in the chunks that were looked at.
    pub(crate) column_bytes: u64,
    /// Columns of the chunk at hand that were read already.
    read: Vec<usize>,
}

impl Tally {
    /// For so many conditions.
    pub(crate) fn new(conditions: usize) -> Self {
        Tally {
            counts: vec![StepCounts::default(); conditions + 2],
            ..Tally::default()
        }
    }

    /// The step that leaves out rows that are not visible.
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
        let stored = (0..columns.ids.len()).filter(|&column| !columns.is_row_id(column));
        let bytes = stored.map(|column| view.chunk.column(columns.ids[column]).bytes() as u64);
        self.column_bytes += bytes.sum::<u64>();
    }

    /// The zones show that no row of the chunk passes this test.
    pub(crate) fn excluded(&mut self, step: usize) {
        self.counts[step].chunks_excluded += 1;
    }

    /// The zones show that every row passes it.
    pub(crate) fn held(&mut self, step: usize) {
        self.counts[step].chunks_held += 1;
    }

    /// It was taken with so many rows, of which so many are left.
    pub(crate) fn took(&mut self, step: usize, rows_in: usize, rows_out: usize) {
        let counts = &mut self.counts[step];
        counts.chunks += 1;
        counts.rows_in += rows_in as u64;
        counts.rows_out += rows_out as u64;
    }

    /// It is about to read a column for the rows that are still selected; all if there is no selection yet.
    pub(crate) fn reads(
        &mut self,
        step: usize,
        column: usize,
        view: &ChunkView,
        columns: &Columns,
        selection: Option<&Selection>,
    ) {
        if columns.is_row_id(column) || self.read.contains(&column) {
            return;
        }
        self.read.push(column);
        let bytes = view.chunk.column(columns.ids[column]).bytes();
        let bytes = match selection {
            Some(selection) if view.rows.is_none() => (bytes as f64 * share(selection)) as u64,
            _ => view.touched(bytes),
        };
        self.counts[step].bytes += bytes;
    }
}

/// The share of the vectors in which a row is selected.
fn share(selection: &Selection) -> f64 {
    let vectors = selection.words().chunks(MASK_WORDS);
    let all = vectors.len().max(1);
    let touched = vectors.filter(|vector| vector.iter().any(|&word| word != 0));
    touched.count() as f64 / all as f64
}
