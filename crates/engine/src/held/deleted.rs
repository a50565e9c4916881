//! Rows with a key that were deleted lately. The index of the newest rows does not know them; older snapshots see them.

use eris_types::{RowId, Timestamp};
use std::collections::VecDeque;

/// So many are remembered at most; 256 KiB.
const MOST: usize = 1 << 14;

/// The rows that were deleted after some timestamp.
#[derive(Debug, Default)]
pub(crate) struct DeletedRows {
    /// Snapshots from here on are told of all.
    since: Timestamp,
    rows: VecDeque<(Timestamp, RowId)>,
}

impl DeletedRows {
    /// Rows were deleted; no snapshot before `horizon` is in use.
    pub fn add(&mut self, ids: &[RowId], at: Timestamp, horizon: Timestamp) {
        while self.rows.front().is_some_and(|(at, _)| *at <= horizon) {
            self.rows.pop_front();
        }
        self.since = self.since.max(horizon.min(at));
        if self.rows.len() + ids.len() > MOST {
            self.rows.clear();
            self.since = at;
            return;
        }
        self.rows.extend(ids.iter().map(|id| (at, *id)));
    }

    /// Nobody remembers what was deleted up to `at`.
    pub fn forget(&mut self, at: Timestamp) {
        self.rows.clear();
        self.since = self.since.max(at);
    }

    /// The rows that were deleted behind a snapshot; `None` if some may be forgotten.
    pub fn behind(&self, snapshot: Timestamp) -> Option<impl Iterator<Item = RowId>> {
        let newer = self
            .rows
            .iter()
            .rev()
            .take_while(move |(at, _)| *at > snapshot);
        (self.since <= snapshot).then(|| newer.map(|(_, id)| *id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_told_what_ended_behind_it() {
        let mut deleted = DeletedRows::default();
        let behind = |deleted: &DeletedRows, at| deleted.behind(Timestamp(at)).map(Iterator::count);
        deleted.add(&[RowId(1), RowId(2)], Timestamp(5), Timestamp(3));
        deleted.add(&[RowId(3)], Timestamp(8), Timestamp(3));
        assert_eq!(
            [
                behind(&deleted, 3),
                behind(&deleted, 5),
                behind(&deleted, 9)
            ],
            [Some(3), Some(1), Some(0)]
        );
        assert_eq!(behind(&deleted, 2), None);
        deleted.add(&vec![RowId(4); MOST], Timestamp(9), Timestamp(3));
        assert_eq!([behind(&deleted, 8), behind(&deleted, 9)], [None, Some(0)]);
    }
}
