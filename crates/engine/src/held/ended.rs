//! Rows with a key that have ended lately: what the index of the newest rows does not know, and older snapshots see.

use eris_types::{RowId, Timestamp};
use std::collections::VecDeque;

/// So many are remembered at most; 256 KiB.
const MOST: usize = 1 << 14;

/// The rows that ended behind some moment.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// Snapshots from here on are told of all.
    since: Timestamp,
    rows: VecDeque<(Timestamp, RowId)>,
}

impl Ended {
    /// Rows have ended; no snapshot before `horizon` is in use.
    pub fn add(&mut self, ids: &[RowId], at: Timestamp, horizon: Timestamp) {
        while self
            .rows
            .front()
            .is_some_and(|(ended, _)| *ended <= horizon)
        {
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

    /// The rows that have ended behind a snapshot; `None` if some may be forgotten.
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
        let mut ended = Ended::default();
        let behind = |ended: &Ended, at| ended.behind(Timestamp(at)).map(Iterator::count);
        ended.add(&[RowId(1), RowId(2)], Timestamp(5), Timestamp(3));
        ended.add(&[RowId(3)], Timestamp(8), Timestamp(3));
        assert_eq!(
            [behind(&ended, 3), behind(&ended, 5), behind(&ended, 9)],
            [Some(3), Some(1), Some(0)]
        );
        assert_eq!(behind(&ended, 2), None);
        ended.add(&vec![RowId(4); MOST], Timestamp(9), Timestamp(3));
        assert_eq!([behind(&ended, 8), behind(&ended, 9)], [None, Some(0)]);
    }
}
