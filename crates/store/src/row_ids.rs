//! The ids of a chunk's rows: runs of consecutive numbers, of which a chunk that was never rewritten has few.
//!
//! ```text
//! position   0 ………… 39 │ 40 ……… 65,535        a gap is a row that was deleted and collected, or lies in another chunk
//! id         7 ………… 46 │ 49 ………
//! ```
//!
//! Where rows were left out here and there, runs are many, and to search them misses the caches. Then a bit per number
//! takes less, and a row is found by counting the bits before its own:
//!
//! ```text
//! numbers    1101 0110 … │ 0111 …        a bit is 1 if a row of this chunk has the number
//! rows before            0               345              per block of 512 numbers
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

/// Which numbers rows have, counted from the first.
#[derive(Debug, Default, PartialEq, Eq)]
struct IdBits {
    words: Vec<u64>,
    /// The rows before each block, and behind the last.
    before: Vec<u32>,
}

/// Words of a block, in one cache line.
const BLOCK: usize = 8;

/// The ids of all rows of a chunk, ascending; of one segment.
#[derive(Debug, Default)]
pub struct RowIds {
    first: RowId,
    runs: Vec<IdRun>,
    /// The same, and no runs any more, where these are many.
    bits: Option<IdBits>,
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

    /// Of runs of consecutive ids, which ascend.
    pub(crate) fn of_runs(runs: &[(RowId, usize)], budget: &Budget) -> Self {
        let mut ids = RowIds::default();
        runs.iter()
            .for_each(|(first, rows)| ids.push(*first, *rows));
        ids.shrink(budget);
        ids
    }

    /// The ids as runs of consecutive ones, of which two may be neighbours: the first of each, and how many.
    pub fn runs(&self) -> impl Iterator<Item = (RowId, usize)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let run = (at < self.rows()).then(|| self.consecutive(at))?;
            at += run.1;
            Some(run)
        })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        match &self.bits {
            Some(bits) => bits.rows(),
            None => self.runs.last().map_or(0, |run| run.end as usize),
        }
    }

    /// The greatest id.
    pub fn last(&self) -> Option<RowId> {
        Some(self.get(self.rows().checked_sub(1)?))
    }

    /// The least id.
    pub(crate) fn first(&self) -> Option<RowId> {
        (self.rows() > 0).then_some(self.first)
    }

    /// Adds consecutive ids, greater than those that are there.
    fn push(&mut self, first: RowId, rows: usize) {
        assert!(self.bits.is_none(), "all ids were there");
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
            let (first, rows) = other.consecutive(at);
            let rows = rows.min(end - at);
            self.push(first, rows);
            at += rows;
        }
    }

    /// All ids are there: gives back what is left of its memory, and counts the rest in the budget, also beyond its
    /// limit.
    pub(crate) fn shrink(&mut self, budget: &Budget) {
        let numbers = match self.last() {
            Some(last) => (last.0 - self.first.0) as usize + 1,
            None => 0,
        };
        if IdBits::bytes_of(numbers) < self.bytes() {
            self.bits = Some(IdBits::of(&self.runs, numbers));
            self.runs = Vec::new();
        }
        self.runs.shrink_to_fit();
        let mut reserved = budget.try_reserve(0).expect("nothing is always granted");
        reserved.grow(self.bytes() as u64);
        self._reserved = Some(reserved);
    }

    /// The id of the row at a position.
    pub fn get(&self, position: usize) -> RowId {
        self.consecutive(position).0
    }

    /// The id of the row at a position, and how many rows from it on have consecutive ids at least.
    fn consecutive(&self, position: usize) -> (RowId, usize) {
        if let Some(bits) = &self.bits {
            let number = bits.select(position);
            return (self.first.plus(number), bits.consecutive(number));
        }
        let run = (self.runs).partition_point(|run| run.end as usize <= position);
        let first = self.first.plus(self.runs[run].first as usize);
        (
            first.plus(position - self.start(run)),
            self.runs[run].end as usize - position,
        )
    }

    /// The position of the row with this id, if it is here.
    pub fn position(&self, id: RowId) -> Option<usize> {
        let distance = u32::try_from(id.0.checked_sub(self.first.0)?).ok()?;
        if let Some(bits) = &self.bits {
            return bits.rank(distance as usize);
        }
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
        let bits = self.bits.as_ref();
        size_of_val(&*self.runs) + bits.map_or(0, |bits| IdBits::bytes_of(bits.words.len() * 64))
    }
}

impl IdBits {
    /// Of runs that span so many numbers.
    fn of(runs: &[IdRun], numbers: usize) -> Self {
        let mut words = vec![0u64; numbers.div_ceil(64)];
        let mut start = 0;
        for run in runs {
            for number in run.first..run.first + (run.end - start) {
                words[number as usize / 64] |= 1 << (number % 64);
            }
            start = run.end;
        }
        let mut before = vec![0];
        before.extend(words.chunks(BLOCK).scan(0, |rows, block| {
            *rows += block.iter().map(|word| word.count_ones()).sum::<u32>();
            Some(*rows)
        }));
        IdBits { words, before }
    }

    fn bytes_of(numbers: usize) -> usize {
        numbers.div_ceil(64) * size_of::<u64>()
            + (numbers.div_ceil(64 * BLOCK) + 1) * size_of::<u32>()
    }

    fn rows(&self) -> usize {
        self.before.last().map_or(0, |rows| *rows as usize)
    }

    /// The row that has a number, if one has.
    fn rank(&self, number: usize) -> Option<usize> {
        let (at, bit) = (number / 64, 1 << (number % 64));
        let word = *self.words.get(at)?;
        if word & bit == 0 {
            return None;
        }
        let block = at / BLOCK;
        let words = self.words[block * BLOCK..at].iter();
        let before = words.map(|word| word.count_ones()).sum::<u32>();
        let rows = self.before[block] + before + (word & (bit - 1)).count_ones();
        Some(rows as usize)
    }

    /// The number that a row has.
    fn select(&self, row: usize) -> usize {
        let block = self.before.partition_point(|rows| *rows as usize <= row) - 1;
        let mut left = row as u32 - self.before[block];
        let mut at = block * BLOCK;
        while left >= self.words[at].count_ones() {
            left -= self.words[at].count_ones();
            at += 1;
        }
        let mut word = self.words[at];
        (0..left).for_each(|_| word &= word - 1);
        at * 64 + word.trailing_zeros() as usize
    }

    /// How many rows from this number on, of those in the same word, have consecutive ones.
    fn consecutive(&self, number: usize) -> usize {
        (self.words[number / 64] >> (number % 64)).trailing_ones() as usize
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
            let has_all = |all: &RowIds| {
                prop_assert_eq!(all.rows(), ids.len());
                prop_assert_eq!((all.first(), all.last()), (ids.first().copied(), ids.last().copied()));
                for id in (0..1_000).map(RowId) {
                    prop_assert_eq!(all.position(id), ids.iter().position(|&other| other == id));
                }
                for (position, id) in ids.iter().enumerate() {
                    prop_assert_eq!(all.get(position), *id);
                }
                Ok(())
            };
            has_all(&all)?;
            all.shrink(&Budget::new(1 << 20));
            has_all(&all)?;
            let mut pieces_of_bits = RowIds::default();
            pieces_of_bits.push_part(&all, 0, cut);
            pieces_of_bits.push_part(&all, cut, ids.len());
            prop_assert_eq!(&pieces_of_bits.runs, &pieces.runs);
            let runs: Vec<(RowId, usize)> = all.runs().collect();
            has_all(&RowIds::of_runs(&runs, &Budget::new(1 << 20)))?;
        }

        #[test]
        fn a_bit_for_each_number_takes_less_where_runs_are_many(gap in 2u64..40, rows in 600usize..2_000) {
            let mut ids = RowIds::default();
            (0..rows as u64).for_each(|row| ids.push(RowId(7 + row * gap), 1));
            let runs = ids.bytes();
            ids.shrink(&Budget::new(1 << 20));
            prop_assert!(ids.bits.is_some() && ids.bytes() < runs);
            prop_assert_eq!(ids.rows(), rows);
            for row in 0..rows {
                prop_assert_eq!(ids.get(row), RowId(7 + row as u64 * gap));
                prop_assert_eq!(ids.position(RowId(7 + row as u64 * gap)), Some(row));
                prop_assert_eq!(ids.position(RowId(8 + row as u64 * gap)), None);
            }
        }
    }
}
