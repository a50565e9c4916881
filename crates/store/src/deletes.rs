//! Which rows of a chunk were deleted, and when: bitmaps that are copied on write, one for each commit that a snapshot
//! may still tell apart.
//!
//! ```text
//!                 oldest snapshot in use
//!                           │
//! versions   ┌ t9 ┬ 0100… ┐ ▼ ┌ t12 ┬ 0110… ┐
//!            └────┴───────┘   └─────┴───────┘
//! ```
//!
//! A reader at `t10` takes the bitmap of `t9`. Bitmaps only ever gain bits. Once the oldest snapshot in use is beyond
//! `t12`, nobody can ask for what was before, and only the last bitmap is left; its rows are then garbage.
//!
//! A bitmap of a full chunk is 8 KiB, and single rows are deleted often. So the next version is written into the last
//! one that nobody can ask for any more: only the words of the few rows that have been deleted since are touched.

use eris_numa::{Budget, Reservation};
use eris_types::Timestamp;
use std::sync::Arc;

/// A bitmap of rows of one chunk; immutable while anybody else holds it.
#[derive(Debug)]
pub struct DeletedRows {
    words: Box<[u64]>,
    count: usize,
    _reserved: Reservation,
}

/// A version with more new rows than this is copied: that is as fast.
const FEW_ROWS: usize = 64;

impl DeletedRows {
    fn insert(&mut self, row: usize) {
        let (word, bit) = (&mut self.words[row / 64], 1 << (row % 64));
        self.count += usize::from(*word & bit == 0);
        *word |= bit;
    }

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
struct DeletedVersion {
    at: Timestamp,
    rows: Arc<DeletedRows>,
    /// The rows that the version before does not have, if they are few.
    new: Option<Vec<usize>>,
}

/// The deleted rows of one chunk at all snapshots in use. Belongs to the chunk's owner; readers get the rows of theirs.
#[derive(Debug, Default)]
pub struct DeleteVector {
    /// In commit order.
    versions: Vec<DeletedVersion>,
}

/// What a bitmap over so many rows takes.
pub(crate) const fn bitmap_bytes(rows: usize) -> usize {
    rows.div_ceil(64) * 8
}

impl DeleteVector {
    /// Deletes `rows`, positions in a chunk of `chunk_rows` rows, from `at` on. No snapshot older than `horizon` is in
    /// use. What it takes is counted in the budget, also beyond its limit: a commit cannot fail.
    ///
    /// # Panics
    /// If `at` is older than the newest version, or a row is outside the chunk.
    pub fn delete(
        &mut self,
        chunk_rows: usize,
        rows: Vec<usize>,
        at: Timestamp,
        horizon: Timestamp,
        budget: &Budget,
    ) {
        assert!(
            self.newest().is_none_or(|newest| at >= newest),
            "versions are made in commit order"
        );
        assert!(rows.iter().all(|&row| row < chunk_rows));
        let mut next = self.recycle(horizon).unwrap_or_else(|| {
            let words = match self.versions.last() {
                Some(newest) => newest.rows.words.clone(),
                None => vec![0; chunk_rows.div_ceil(64)].into(),
            };
            accounted(words, self.count(), budget)
        });
        rows.iter().for_each(|&row| next.insert(row));
        let mut new = (rows.len() <= FEW_ROWS).then_some(rows);
        // A commit makes one version.
        if let Some(same) = self.versions.pop_if(|newest| newest.at == at) {
            new = new.zip(same.new).map(|(mut new, more)| {
                new.extend(more);
                new
            });
        }
        let rows = Arc::new(next);
        self.versions.push(DeletedVersion { at, rows, new });
    }

    /// Deletes all rows of a bitmap from `at` on; says how many of them were not deleted yet. What it takes is counted
    /// as by [`DeleteVector::delete`].
    pub(crate) fn delete_all(&mut self, words: &[u64], at: Timestamp, budget: &Budget) -> usize {
        let before = self.count();
        let mut all: Box<[u64]> = words.into();
        if let Some(newest) = self.versions.last() {
            assert!(at >= newest.at, "versions are made in commit order");
            let both = all.iter_mut().zip(&newest.rows.words);
            both.for_each(|(word, older)| *word |= older);
        }
        let count = all.iter().map(|word| word.count_ones() as usize).sum();
        // A commit makes one version.
        self.versions.pop_if(|newest| newest.at == at);
        self.push(at, all, count, budget);
        count - before
    }

    /// Forgets what no snapshot from `horizon` on takes, and makes the last of these versions the same as the newest,
    /// if that needs few words and no reader holds it.
    fn recycle(&mut self, horizon: Timestamp) -> Option<DeletedRows> {
        let forgotten = self.forgotten(horizon);
        let last = self.versions.drain(..forgotten).next_back()?;
        let mut rows = Arc::try_unwrap(last.rows).ok()?;
        for since in &self.versions {
            let new = since.new.as_ref()?;
            new.iter().for_each(|&row| rows.insert(row));
        }
        Some(rows)
    }

    /// Adds a version: a bitmap with so many rows.
    pub(crate) fn push(&mut self, at: Timestamp, words: Box<[u64]>, count: usize, budget: &Budget) {
        let rows = Arc::new(accounted(words, count, budget));
        let new = None;
        self.versions.push(DeletedVersion { at, rows, new });
    }

    /// The rows deleted up to `snapshot`; `None` if there were none.
    pub fn at(&self, snapshot: Timestamp) -> Option<&Arc<DeletedRows>> {
        let older = |version: &&DeletedVersion| version.at <= snapshot;
        let version = self.versions.iter().rev().find(older)?;
        Some(&version.rows)
    }

    /// The newest version.
    pub(crate) fn newest(&self) -> Option<Timestamp> {
        Some(self.versions.last()?.at)
    }

    /// Whether a row is deleted by now, seen by some snapshot or not.
    pub(crate) fn has(&self, row: usize) -> bool {
        let newest = self.versions.last();
        newest.is_some_and(|version| version.rows.contains(row))
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
        let forgotten = self.forgotten(horizon);
        self.versions.drain(..forgotten);
    }

    /// How many versions no snapshot from `horizon` on takes.
    fn forgotten(&self, horizon: Timestamp) -> usize {
        let older = self.versions.partition_point(|each| each.at <= horizon);
        older.saturating_sub(1)
    }

    /// What the bitmaps take.
    pub(crate) fn bytes(&self) -> usize {
        let versions = self.versions.iter();
        versions.map(|each| size_of_val(&*each.rows.words)).sum()
    }
}

/// Deleted rows, counted in the budget.
fn accounted(words: Box<[u64]>, count: usize, budget: &Budget) -> DeletedRows {
    let mut reserved = budget.try_reserve(0).expect("nothing is always granted");
    reserved.grow(size_of_val(&*words) as u64);
    DeletedRows {
        words,
        count,
        _reserved: reserved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn a_reader_sees_the_deletions_of_its_snapshot() {
        let budget = Budget::new(1 << 20);
        let mut deletes = DeleteVector::default();
        deletes.delete(100, vec![3], Timestamp(9), Timestamp::ZERO, &budget);
        deletes.delete(100, vec![70, 99], Timestamp(12), Timestamp::ZERO, &budget);
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
        deletes.delete(10, vec![1], Timestamp(4), Timestamp::ZERO, &budget);
        deletes.delete(10, vec![2, 1], Timestamp(4), Timestamp::ZERO, &budget);
        assert_eq!(deletes.count(), 2);
        assert_eq!(deletes.at(Timestamp(3)).map(|rows| rows.count()), None);
    }

    proptest! {
        /// Every snapshot from the horizon on sees what a set of all deletions up to it has, whoever holds what; and
        /// nothing is lost in the budget.
        #[test]
        fn recycled_bitmaps_are_as_copied_ones(
            steps in prop::collection::vec((prop::collection::vec(0_usize..300, 0..90), 0_u64..3, 0_u64..6, any::<bool>()), 1..40),
        ) {
            let budget = Budget::new(1 << 20);
            let mut deletes = DeleteVector::default();
            let (mut at, mut horizon) = (1, 0);
            let mut all = BTreeSet::new();
            let mut model = BTreeMap::from([(0, all.clone())]);
            let mut held = Vec::new();
            for (rows, later, lag, holds) in steps {
                at += later;
                horizon = horizon.max(at.saturating_sub(1 + lag));
                all.extend(rows.iter().copied());
                model.insert(at, all.clone());
                deletes.delete(300, rows, Timestamp(at), Timestamp(horizon), &budget);
                prop_assert_eq!(deletes.count(), all.len());
                for snapshot in horizon..=at {
                    let (_, expected) = model.range(..=snapshot).next_back().expect("there is one at 0");
                    let seen = deletes.at(Timestamp(snapshot));
                    let seen: BTreeSet<usize> = seen.map_or_else(BTreeSet::new, |seen| (0..300).filter(|&row| seen.contains(row)).collect());
                    prop_assert_eq!(&seen, expected, "at {} of {}, from {} on", snapshot, at, horizon);
                }
                if holds && let Some(rows) = deletes.at(Timestamp(at)) {
                    held.push((Arc::clone(rows), all.clone()));
                }
            }
            for (rows, expected) in held.drain(..) {
                prop_assert_eq!((0..300).filter(|&row| rows.contains(row)).collect::<BTreeSet<_>>(), expected);
            }
            prop_assert_eq!(budget.used(), deletes.bytes() as u64);
        }
    }
}
