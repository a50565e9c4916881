//! Which rows of a chunk were deleted, and when: copy-on-write bitmaps, newest first.
//!
//! ```text
//! newest ─▶ ┌ t12 ┬ 0110… ┐ ─▶ ┌ t9 ┬ 0100… ┐ ─▶ (no rows deleted before t9)
//!           └─────┴───────┘    └────┴───────┘
//! ```
//!
//! A reader at `t10` takes the bitmap of `t9`. Bitmaps only ever gain bits.

use eris_types::Timestamp;
use std::sync::Arc;

/// A version of the deleted rows of one chunk; immutable.
#[derive(Debug)]
pub struct DeleteVector {
    at: Timestamp,
    deleted: Box<[u64]>,
    older: Option<Arc<DeleteVector>>,
}

impl DeleteVector {
    /// The version after deleting `rows` (positions in a chunk of `chunk_rows` rows) at `at`.
    ///
    /// # Panics
    /// If `at` is older than the newest version, or a row is outside the chunk.
    pub fn after(
        older: Option<Arc<DeleteVector>>,
        chunk_rows: usize,
        rows: &[usize],
        at: Timestamp,
    ) -> Arc<Self> {
        let mut deleted = match &older {
            Some(older) => {
                assert!(at >= older.at, "versions are made in commit order");
                older.deleted.clone()
            }
            None => vec![0; chunk_rows.div_ceil(64)].into(),
        };
        for &row in rows {
            assert!(row < chunk_rows);
            deleted[row / 64] |= 1 << (row % 64);
        }
        Arc::new(DeleteVector { at, deleted, older })
    }

    /// The bitmap of the rows deleted up to `snapshot`; `None` if there were none.
    pub fn at(&self, snapshot: Timestamp) -> Option<&[u64]> {
        let mut version = self;
        while version.at > snapshot {
            version = version.older.as_deref()?;
        }
        Some(&version.deleted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_the_deletions_of_its_snapshot() {
        let first = DeleteVector::after(None, 100, &[3], Timestamp(9));
        let second = DeleteVector::after(Some(first.clone()), 100, &[70, 99], Timestamp(12));
        assert_eq!(second.at(Timestamp(8)), None);
        assert_eq!(second.at(Timestamp(9)), Some(&[1 << 3, 0][..]));
        assert_eq!(second.at(Timestamp(11)), Some(&[1 << 3, 0][..]));
        assert_eq!(
            second.at(Timestamp(12)),
            Some(&[1 << 3, 1 << 6 | 1 << 35][..])
        );
        assert_eq!(first.at(Timestamp(12)), Some(&[1 << 3, 0][..]));
    }
}
