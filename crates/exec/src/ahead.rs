//! Asking for chunks early.
//!
//! ```text
//! view ──▶ chunk ──▶ places of its columns ──▶ column ──▶ first lines of its data
//!   4th        3rd                       2nd        next            how far ahead each is asked for
//! ```
//!
//! What a chunk is made of lies apart in memory, and each part is found by the one before. Of a chunk of which a few
//! rows are left, waiting for these one after the other takes as long as looking at its data, which comes as a stream.

use crate::program::Program;
use eris_kernels::prefetch;
use eris_store::ChunkView;

impl Program {
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
