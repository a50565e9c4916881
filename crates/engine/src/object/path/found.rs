//! Rows that a path leads to, found before their owners are asked.

use crate::object::coding::{ByteRange, ByteRanges};
use crate::object::indexes::Index;
use crate::object::shared_index::SharedIndex;
use eris_types::{AeuId, RowId};

/// An owner may pass so many rows of others for each of its own.
const PASSED: usize = 8;

/// Some may be of rows that are gone, of which one owner has not taken out its own yet.
const MOST_PASSED: usize = 2_048;

/// Rows of all owners.
#[derive(Debug)]
pub(crate) struct FoundRows {
    /// By owner.
    rows: Vec<(AeuId, RowId)>,
    /// Owners that have other rows, too, and have to look at all of theirs; ascending.
    scanned: Vec<AeuId>,
}

impl FoundRows {
    /// The rows of ranges of a tree that all owners share. `None`: they are more than so many, or there is no tree.
    ///
    /// Whatever a snapshot sees that was taken before is among them: its entries are older than its commit.
    pub fn of(index: &Index, ranges: &ByteRanges, most: usize) -> Option<Self> {
        let tree = index.tree()?;
        // Before the tree: what is entered meanwhile is found in either way.
        let scanned = index.incomplete();
        let mut rows = tree.find(ranges, most)?;
        rows.sort_unstable();
        Some(FoundRows { rows, scanned })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether nobody has to look at all rows.
    pub fn is_all(&self) -> bool {
        self.scanned.is_empty()
    }

    /// Who has to be asked, ascending.
    pub fn owners(&self) -> Vec<AeuId> {
        let mut owners: Vec<AeuId> = self.rows.iter().map(|(owner, _)| *owner).collect();
        owners.extend(&self.scanned);
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// The rows of an owner, ascending; `None`: it has to look at all of its own.
    pub fn rows_of(&self, owner: AeuId) -> Option<Vec<RowId>> {
        if self.scanned.contains(&owner) {
            return None;
        }
        let begin = self.rows.partition_point(|(other, _)| *other < owner);
        let own = self.rows[begin..].iter();
        let own = own.take_while(|(other, _)| *other == owner);
        Some(own.map(|(_, row)| *row).collect())
    }
}

/// Whether each owner soon meets so many rows of its own on a walk along ranges of a tree that all share, on which it
/// passes those of all others. It does not where owners have the rows of different values. `most` is how many entries
/// it may look at.
pub(super) fn are_mixed<'r>(
    tree: &SharedIndex,
    mut ranges: impl Iterator<Item = &'r ByteRange>,
    descending: bool,
    (rows, most): (usize, usize),
    owners: &[AeuId],
) -> bool {
    let mut left = (PASSED * rows * owners.len()).max(most.min(MOST_PASSED));
    let mut met = vec![0; owners.len()];
    let mut waiting = owners.len();
    let is_all = ranges.all(|range| {
        tree.walk(range, descending, |_, owner, _| {
            if let Ok(at) = owners.binary_search(&owner) {
                met[at] += 1;
                waiting -= usize::from(met[at] == rows);
            }
            left = left.saturating_sub(1);
            waiting > 0 && left > 0
        })
    });
    is_all || waiting == 0
}
