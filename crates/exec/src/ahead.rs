//! Asking for chunks early.
//!
//! ```text
//! view ──▶ chunk ──▶ places of its columns ──▶ column ──▶ first lines of its data
//!   4th        3rd                       2nd        next            how far ahead each is asked for
//! ```
//!
//! What a chunk is made of lies apart in memory, and each part is found by the one before. Of a chunk of which a few
//! rows are left, waiting for these one after the other takes as long as looking at its data, which comes as a stream.

use crate::program::{Partial, Program};
use eris_kernels::prefetch;
use eris_store::ChunkView;
use eris_types::ColumnId;

impl Program {
    /// The stored columns that the program will read from end to end in a chunk, as far as the share's rows so far
    /// tell; none if an index leads to its rows. `None`: the zones show that no row passes.
    pub fn streamed_columns(
        &self,
        view: &ChunkView,
        partial: &mut Partial,
    ) -> Option<Vec<ColumnId>> {
        let filter = &mut partial.filter;
        let (mut columns, all) = self.filter.streamed(&view.chunk, &self.columns, filter)?;
        if view.rows.is_some() {
            return Some(Vec::new());
        }
        if all {
            columns.extend(self.output_columns());
        }
        columns.retain(|&column| !self.columns.is_row_id(column));
        columns.sort_unstable();
        columns.dedup();
        Some(
            columns
                .iter()
                .map(|&column| self.columns.ids[column])
                .collect(),
        )
    }

    /// Asks for what is needed of chunks that come: `coming(1)` is the next one, and so on.
    pub fn fetch_ahead<'a>(&self, coming: impl Fn(usize) -> Option<&'a ChunkView>) {
        if let Some(view) = coming(4) {
            prefetch(&*view.chunk);
        }
        let columns = || self.stored_columns();
        if let Some(view) = coming(3) {
            columns().for_each(|column| prefetch(&view.chunk.columns()[column]));
        }
        if let Some(view) = coming(2) {
            columns().for_each(|column| prefetch(&*view.chunk.columns()[column]));
        }
        if let Some(view) = coming(1) {
            columns().for_each(|column| view.chunk.columns()[column].prefetch());
        }
    }
}
