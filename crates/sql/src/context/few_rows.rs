//! When it is time to look at tables that rows are written to one by one.

use std::sync::atomic::{AtomicU64, Ordering};

const LOOK_ROWS: u64 = 1024;

/// Rows that are written few at a time. They may call for re-coding. But to look takes longer than to write one. So one
/// looks once in a thousand rows.
#[derive(Debug, Default)]
pub(crate) struct FewRows(AtomicU64);

impl FewRows {
    /// So many more were written; whether it is time to look. Relaxed: who counts orders nothing by it.
    pub fn wrote(&self, rows: u64) -> bool {
        let before = self.0.fetch_add(rows, Ordering::Relaxed);
        before / LOOK_ROWS != (before + rows) / LOOK_ROWS
    }
}
