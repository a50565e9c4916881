//! When a table's groups are too many for it.
//!
//! ```text
//! rows per group        with 16 Ki groups     with 64 Ki groups
//!   few groups in all     a little above 1      clearly above 1      the table may grow: most rows find their group
//!   many groups in all    1                     hardly above 1       repartition: nearly each row makes a group anyway
//!   rows of a group       many                  many                 repartition: a small table finds as much
//!   lie together
//! ```
//!
//! A table that does not fit into a core's cache takes several times as long for a row (docs/decisions/0021 has the
//! figures).

use super::index::GroupIndex;

/// Groups of a table that fits into a core's cache with all that is read beside it.
const SMALL: usize = 16 << 10;

/// Groups with which it does not.
const LARGE: usize = 64 << 10;

/// Groups with which it is too large in any case.
const LARGEST: usize = 256 << 10;

/// The number of groups with which these leave the table.
#[derive(Debug)]
pub(super) struct Most {
    groups: usize,
    rows: usize,
    /// Rows that made the first groups, as many as a small table has.
    first: Option<usize>,
}

impl Default for Most {
    fn default() -> Self {
        Most {
            groups: LARGE,
            rows: 0,
            first: None,
        }
    }
}

impl Most {
    /// No number is too large.
    pub(super) fn never() -> Self {
        Most {
            groups: usize::MAX,
            ..Most::default()
        }
    }

    /// Whether they shall leave now, behind so many more rows.
    pub(super) fn is_exceeded(&mut self, rows: usize, index: &GroupIndex) -> bool {
        let groups = index.groups();
        self.rows = self.rows.saturating_add(rows);
        if self.first.is_none() && groups >= SMALL {
            self.first = Some(self.rows);
        }
        if groups < self.groups || !index.is_hashed() {
            return false;
        }
        let lie_together = self.first.is_some_and(|rows| rows > 3 * SMALL);
        let are_many = self.rows < groups + groups / 4;
        if self.groups >= LARGE && groups < LARGEST && !lie_together && !are_many {
            self.groups = (2 * groups).min(LARGEST);
            return false;
        }
        self.groups = SMALL;
        true
    }
}
