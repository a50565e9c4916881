//! Keys that shall have another owner, and the table of owners once they have.

use super::layout::PartitionTable;
use eris_types::AeuId;
use std::collections::{BTreeMap, BTreeSet};

/// Ranges per owner beyond which those side by side become one.
const MOST_RANGES: usize = 8;

/// Keys that shall have another owner: from `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    /// The first key.
    pub low: u64,
    /// The last one.
    pub high: u64,
    /// The owner that they shall have.
    pub to: AeuId,
}

/// The table after keys have changed their owners.
pub(crate) fn changed(
    table: &PartitionTable,
    given: impl IntoIterator<Item = Shift>,
) -> Vec<(u64, AeuId)> {
    let mut bounds: BTreeMap<u64, AeuId> = BTreeMap::new();
    bounds.extend(table.owners(0, u64::MAX).map(|(low, _, aeu)| (low, aeu)));
    for Shift { low, high, to } in given {
        if let Some(next) = high.checked_add(1) {
            let (_, &behind) = bounds
                .range(..=next)
                .next_back()
                .expect("all keys have an owner");
            bounds.insert(next, behind);
        }
        bounds.retain(|bound, _| !(low..=high).contains(bound));
        bounds.insert(low, to);
    }
    let owners = bounds.values().collect::<BTreeSet<_>>().len();
    let mut bounds: Vec<_> = bounds.into_iter().collect();
    // Ranges side by side that have one owner could be one. But they are mostly a segment each.
    if bounds.len() > MOST_RANGES * owners {
        bounds.dedup_by_key(|(_, aeu)| *aeu);
    }
    bounds
}

#[cfg(test)]
mod tests {
    use super::super::layout::NewestTable;
    use super::*;

    #[test]
    fn ranges_that_were_given_have_their_new_owner() {
        let layout = NewestTable::new([(0, AeuId(0)), (100, AeuId(1))]);
        let shift = |low, high, to| Shift {
            low,
            high,
            to: AeuId(to),
        };
        let after = |shifts: &[Shift]| {
            let table = changed(&layout.newest(), shifts.iter().copied());
            table
                .into_iter()
                .map(|(low, aeu)| (low, aeu.0))
                .collect::<Vec<_>>()
        };
        assert_eq!(after(&[shift(50, 99, 1)]), [(0, 0), (50, 1), (100, 1)]);
        assert_eq!(after(&[shift(50, 149, 2)]), [(0, 0), (50, 2), (150, 1)]);
        let both = [shift(0, 9, 2), shift(200, u64::MAX, 0)];
        assert_eq!(after(&both), [(0, 2), (10, 0), (100, 1), (200, 0)]);
        assert_eq!(after(&[shift(0, u64::MAX, 7)]), [(0, 7)]);
        // Ranges that have been cut again and again become one.
        let cuts: Vec<Shift> = (0..99).map(|low| shift(low, low, 0)).collect();
        assert_eq!(after(&cuts), [(0, 0), (100, 1)]);
    }
}
