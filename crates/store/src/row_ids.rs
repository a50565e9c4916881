//! The ids of a chunk's rows: runs of consecutive numbers, of which a chunk that was never rewritten has few.
//!
//! ```text
//! position   0 ………… 39 │ 40 ……… 65,535        a gap is a row that was deleted and collected, or lies in another chunk
//! id         7 ………… 46 │ 49 ………
//! ```

use eris_numa::{Budget, Reservation};
use eris_types::RowId;

/// Consecutive ids of consecutive rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IdRun {
    /// The distance of its first id from that of the chunk.
    first: u32,
    /// One past the position of the run's last row.
    end: u32,
}

/// The ids of all rows of a chunk, ascending; of one segment.
#[derive(Debug, Default)]
pub struct RowIds {
    first: RowId,
    runs: Vec<IdRun>,
    /// For the runs, where there are many.
    _reserved: Option<Reservation>,
}

impl RowIds {
    /// So many ids from `first` on.
    pub fn from(first: RowId, rows: usize) -> Self {
        let mut ids = RowIds::default();
        ids.push(first, rows);
        ids
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.runs.last().map_or(0, |run| run.end as usize)
    }

    /// The greatest id.
    pub(crate) fn last(&self) -> Option<RowId> {
        Some(self.get(self.rows().checked_sub(1)?))
    }

    /// The least id.
    pub(crate) fn first(&self) -> Option<RowId> {
        (!self.runs.is_empty()).then_some(self.first)
    }

    /// Adds consecutive ids, greater than those that are there.
    fn push(&mut self, first: RowId, rows: usize) {
        let (start, end) = (self.rows(), (self.rows() + rows) as u32);
        debug_assert!(self.last().is_none_or(|last| last < first));
        if rows == 0 {
            return;
        }
        if self.runs.is_empty() {
            self.first = first;
        }
        let distance = (first.0 - self.first.0) as u32;
        let before = match &self.runs[..] {
            [.., run, _] => run.end,
            _ => 0,
        };
        match self.runs.last_mut() {
            Some(last) if last.first + (start as u32 - before) == distance => last.end = end,
            _ => self.runs.push(IdRun {
                first: distance,
                end,
            }),
        }
    }

    /// Adds the ids of the rows `start..end` of another chunk.
    pub(crate) fn push_part(&mut self, other: &RowIds, start: usize, end: usize) {
        let mut at = start;
        while at < end {
            let run = other.runs.partition_point(|run| run.end as usize <= at);
            let until = end.min(other.runs[run].end as usize);
            self.push(other.get(at), until - at);
            at = until;
        }
    }

    /// Gives back what is left of its memory, and counts the rest in the budget, also beyond its limit.
    pub(crate) fn shrink(&mut self, budget: &Budget) {
        self.runs.shrink_to_fit();
        let mut reserved = budget.try_reserve(0).expect("nothing is always granted");
        reserved.grow(self.bytes() as u64);
        self._reserved = Some(reserved);
    }

    /// The id of the row at a position.
    pub fn get(&self, position: usize) -> RowId {
        let run = (self.runs).partition_point(|run| run.end as usize <= position);
        let first = self.first.plus(self.runs[run].first as usize);
        first.plus(position - self.start(run))
    }

    /// The position of the row with this id, if it is here.
    pub fn position(&self, id: RowId) -> Option<usize> {
        let distance = u32::try_from(id.0.checked_sub(self.first.0)?).ok()?;
        let run = self.runs.partition_point(|run| run.first <= distance);
        let run = run.checked_sub(1)?;
        let position = self.start(run) + (distance - self.runs[run].first) as usize;
        (position < self.runs[run].end as usize).then_some(position)
    }

    fn start(&self, run: usize) -> usize {
        run.checked_sub(1)
            .map_or(0, |before| self.runs[before].end as usize)
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ids_are_found_at_their_positions(gaps in prop::collection::vec(1u64..4, 1..200), cut in 0usize..200) {
            let ids: Vec<RowId> = gaps
                .iter()
                .scan(5, |next, gap| { *next += gap; Some(RowId(*next)) })
                .collect();
            let mut all = RowIds::default();
            ids.iter().for_each(|&id| all.push(id, 1));
            let cut = cut.min(ids.len());
            let mut pieces = RowIds::default();
            pieces.push_part(&all, 0, cut);
            pieces.push_part(&all, cut, ids.len());
            prop_assert_eq!(pieces.first, all.first);
            prop_assert_eq!(&pieces.runs, &all.runs);
            for id in (0..1_000).map(RowId) {
                prop_assert_eq!(all.position(id), ids.iter().position(|&other| other == id));
            }
            for (position, id) in ids.iter().enumerate() {
                prop_assert_eq!(all.get(position), *id);
            }
        }
    }
}
