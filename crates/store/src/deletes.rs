//! Which rows of a chunk were deleted, and when: bitmaps that are copied on write, one for each commit that a snapshot may
//! still tell apart.
//!
//! ```text
//!                 oldest snapshot in use
//!                           │
//! versions   ┌ t9 ┬ 0100… ┐ ▼ ┌ t12 ┬ 0110… ┐
//!            └────┴───────┘   └─────┴───────┘
//! ```
//!
//! A reader at `t10` takes the bitmap of `t9`. Bitmaps only ever gain bits. Once the oldest snapshot in use is beyond `t12`,
//! nobody can ask for what was before, and only the last bitmap is left; its rows are then garbage.

use eris_numa::{Budget, Reservation};
use eris_types::Timestamp;
use std::sync::Arc;

/// A bitmap of rows of one chunk; immutable.
#[derive(Debug)]
pub struct DeletedRows {
    words: Box<[u64]>,
    count: usize,
    _reserved: Reservation,
}

impl DeletedRows {
    /// The bits, row 0 first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// How many rows it has.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether it has the row.
    pub fn contains(&self, row: usize) -> bool {
        self.words[row / 64] >> (row % 64) & 1 == 1
    }
}

#[derive(Debug)]
struct Version {
    at: Timestamp,
    rows: Arc<DeletedRows>,
}

/// The deleted rows of one chunk at all snapshots in use. Belongs to the chunk's owner; readers get the rows of theirs.
#[derive(Debug, Default)]
pub struct DeleteVector {
    /// In commit order.
    versions: Vec<Version>,
}

/// What a bitmap over so many rows takes.
pub(crate) const fn bitmap_bytes(rows: usize) -> usize {
    rows.div_ceil(64) * 8
}

impl DeleteVector {
    /// Deletes `rows`, positions in a chunk of `chunk_rows` rows, from `at` on. What it takes is counted in the budget,
    /// also beyond its limit: a commit cannot fail.
    ///
    /// # Panics
    /// If `at` is older than the newest version, or a row is outside the chunk.
    pub fn delete(
        &mut self,
        chunk_rows: usize,
        rows: impl IntoIterator<Item = usize>,
        at: Timestamp,
        budget: &Budget,
    ) {
        let mut words: Box<[u64]> = match self.versions.last() {
            Some(newest) => {
                assert!(at >= newest.at, "versions are made in commit order");
                newest.rows.words.clone()
            }
            None => vec![0; chunk_rows.div_ceil(64)].into(),
        };
        let mut count = self.count();
        for row in rows {
            assert!(row < chunk_rows);
            let (word, bit) = (&mut words[row / 64], 1 << (row % 64));
            count += usize::from(*word & bit == 0);
            *word |= bit;
        }
        if self.newest().is_some_and(|newest| newest == at) {
            self.versions.pop();
        }
        self.push(at, words, count, budget);
    }

    /// Adds a version: a bitmap with so many rows.
    pub(crate) fn push(&mut self, at: Timestamp, words: Box<[u64]>, count: usize, budget: &Budget) {
        let mut reserved = budget.try_reserve(0).expect("nothing is always granted");
        reserved.grow(size_of_val(&*words) as u64);
        let rows = Arc::new(DeletedRows {
            words,
            count,
            _reserved: reserved,
        });
        self.versions.push(Version { at, rows });
    }

    /// The rows deleted up to `snapshot`; `None` if there were none.
    pub fn at(&self, snapshot: Timestamp) -> Option<&Arc<DeletedRows>> {
        let older = |version: &&Version| version.at <= snapshot;
        let version = self.versions.iter().rev().find(older)?;
        Some(&version.rows)
    }

    /// The newest version.
    pub(crate) fn newest(&self) -> Option<Timestamp> {
        Some(self.versions.last()?.at)
    }

    /// Rows deleted by now, seen by some snapshot or not.
    pub(crate) fn count(&self) -> usize {
        self.versions.last().map_or(0, |version| version.rows.count)
    }

    /// The versions that only snapshots beyond `horizon` see.
    pub(crate) fn after(
        &self,
        horizon: Timestamp,
    ) -> impl Iterator<Item = (Timestamp, &DeletedRows)> {
        let newer = self.versions.iter().filter(move |each| each.at > horizon);
        newer.map(|version| (version.at, &*version.rows))
    }

    /// Forgets versions that no snapshot from `horizon` on takes.
    pub fn forget(&mut self, horizon: Timestamp) {
        let older = self.versions.partition_point(|each| each.at <= horizon);
        self.versions.drain(..older.saturating_sub(1));
    }

    /// What the bitmaps take.
    pub(crate) fn bytes(&self) -> usize {
        let versions = self.versions.iter();
        versions.map(|each| size_of_val(&*each.rows.words)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_the_deletions_of_its_snapshot() {
        let budget = Budget::new(1 << 20);
        let mut deletes = DeleteVector::default();
        deletes.delete(100, [3], Timestamp(9), &budget);
        deletes.delete(100, [70, 99], Timestamp(12), &budget);
        let words = |deletes: &DeleteVector, at| {
            let rows = deletes.at(Timestamp(at))?;
            Some(rows.words().to_vec())
        };
        assert_eq!(words(&deletes, 8), None);
        assert_eq!(words(&deletes, 9), Some(vec![1 << 3, 0]));
        assert_eq!(words(&deletes, 11), Some(vec![1 << 3, 0]));
        assert_eq!(words(&deletes, 12), Some(vec![1 << 3, 1 << 6 | 1 << 35]));
        deletes.forget(Timestamp(11));
        assert_eq!(words(&deletes, 11), Some(vec![1 << 3, 0]));
        assert_eq!(budget.used(), 32);
        deletes.forget(Timestamp(12));
        assert_eq!(words(&deletes, 12), Some(vec![1 << 3, 1 << 6 | 1 << 35]));
        assert_eq!(budget.used(), 16);
    }

    #[test]
    fn a_commit_that_deletes_twice_makes_one_version() {
        let budget = Budget::new(0);
        let mut deletes = DeleteVector::default();
        deletes.delete(10, [1], Timestamp(4), &budget);
        deletes.delete(10, [2, 1], Timestamp(4), &budget);
        assert_eq!(deletes.count(), 2);
        assert_eq!(deletes.at(Timestamp(3)).map(|rows| rows.count()), None);
    }
}
