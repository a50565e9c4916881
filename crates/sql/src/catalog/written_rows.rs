//! When it is time to look at a table that rows are written to.

use std::sync::atomic::{AtomicU64, Ordering};

const LOOK_ROWS: u64 = 1024;

/// Rows that statements of few rows have written to a data object. They may call for re-coding. But to look takes
/// longer than to write one. So one looks once in a thousand rows.
///
/// All writers add. Relaxed: who counts orders nothing by it.
#[derive(Debug, Default)]
pub(crate) struct WrittenRows(AtomicU64);

impl WrittenRows {
    /// So many more were written; whether it is time to look.
    pub fn add(&self, rows: u64) -> bool {
        let before = self.0.fetch_add(rows, Ordering::Relaxed);
        before / LOOK_ROWS != before.wrapping_add(rows) / LOOK_ROWS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_looks_once_in_a_thousand_rows_or_for_more_at_once() {
        let written = WrittenRows::default();
        let looks = (0..10 * LOOK_ROWS).filter(|_| written.add(1));
        assert_eq!(looks.count(), 10);
        assert!(!written.add(LOOK_ROWS - 1) && written.add(1));
        assert!(written.add(LOOK_ROWS) && written.add(1_000_000) && !written.add(0));
    }
}
