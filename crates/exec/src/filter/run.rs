//! Running a filter over one chunk.

use super::classify::{Filter, Test};
use crate::columns::Columns;
use crate::expr::Frame;
use crate::phases::{Left, Tally};
use crate::window::Windows;
use crate::work::Work;
use arrow_buffer::BooleanBuffer;
use eris_column::{ColumnChunk, ColumnPredicate, Selection};
use eris_fragment::FragmentError;
use eris_kernels::{Isa, MASK_WORDS, VECTOR};
use eris_store::ChunkView;
use eris_types::Timestamp;
use std::sync::Arc;

/// Rows that residual conditions are evaluated on at a time.
const RESIDUAL_ROWS: usize = 4_096;

/// Of one row in so many, or fewer, each is read alone: on average that is less than eight of a vector.
const FEW: usize = VECTOR / 8;

/// Of one row in so many, or fewer, further tests look at each alone: that is less than reading vectors as a whole.
const FEW_TESTED: usize = VECTOR / 16;

/// A row that is left has so many others read with it: those of its vector, unless they are left, too.
const READ_WITH: f64 = 8.0;

/// By how much the memory of earlier chunks fades with each chunk.
const FADE: f64 = 0.75;

/// What a worker has learnt of each test: how many rows it met and how many of them passed, fading.
#[derive(Debug)]
pub(crate) struct FilterState {
    rates: Vec<Rate>,
    /// Numbers of the tests that the chunk at hand needs.
    order: Vec<usize>,
    scratch: Selection,
    /// The rows that are left of the chunk at hand, once they are few.
    pub(crate) few: Vec<u32>,
    pub(crate) tally: Tally,
}

#[derive(Clone, Copy, Debug)]
struct Rate {
    met: f64,
    passed: f64,
}

impl Rate {
    /// The share of the rows that pass.
    fn pass(&self) -> f64 {
        self.passed / self.met
    }
}

/// What is left of a chunk.
pub(crate) enum Passed {
    /// No row.
    Nothing,
    /// This many rows; the selection was not made.
    Counted(usize),
    /// The rows of the selection.
    Selected,
    /// The same, and they are listed beside it.
    Few,
}

impl Test {
    /// The predicate in the form that a chunk of the column needs.
    fn predicate(&self, chunk: &ColumnChunk) -> Arc<ColumnPredicate> {
        match (&self.plain, chunk.order()) {
            (Some(plain), _) if !chunk.is_coded() => plain.clone(),
            (_, Some(order)) => self
                .by_order
                .get(order, |order| self.predicate.by_order(order)),
            _ => self.predicate.clone(),
        }
    }

    fn excludes(&self, chunk: &ColumnChunk) -> bool {
        chunk.excludes(&self.predicate(chunk)) && !(self.or_null && chunk.nulls() > 0)
    }

    fn covers(&self, chunk: &ColumnChunk) -> bool {
        if self.or_null && chunk.nulls() > 0 {
            return chunk.nulls() == chunk.rows();
        }
        chunk.covers(&self.predicate(chunk))
    }

    fn filter(
        &self,
        chunk: &ColumnChunk,
        isa: Isa,
        selection: &mut Selection,
        scratch: &mut Selection,
    ) {
        if !(self.or_null && chunk.nulls() > 0) {
            return chunk.filter(isa, &self.predicate(chunk), selection);
        }
        scratch.clone_from(selection);
        chunk.filter(isa, &self.predicate(chunk), selection);
        chunk.filter(isa, &ColumnPredicate::Null, scratch);
        eris_kernels::or(selection.words_mut(), scratch.words());
    }

    /// The same of a few rows, which ascend.
    fn retain(&self, chunk: &ColumnChunk, isa: Isa, rows: &mut Vec<u32>) {
        if !(self.or_null && chunk.nulls() > 0) {
            return chunk.retain(isa, &self.predicate(chunk), rows);
        }
        let mut nulls = rows.clone();
        chunk.retain(isa, &ColumnPredicate::Null, &mut nulls);
        chunk.retain(isa, &self.predicate(chunk), rows);
        rows.extend(nulls);
        rows.sort_unstable();
    }

    /// What a row costs, in units that only compare: the bytes that are read, and loads.
    fn cost(&self, chunk: &ColumnChunk) -> f64 {
        let bytes = chunk.bytes() as f64 / chunk.rows() as f64;
        bytes
            + match &*self.predicate(chunk) {
                ColumnPredicate::Never | ColumnPredicate::Null | ColumnPredicate::NotNull => 0.2,
                ColumnPredicate::Integers { .. } | ColumnPredicate::NotIntegers { .. } => 0.3,
                // One or a few comparisons, if it was worth to store them so.
                ColumnPredicate::Ordinals { .. } => 0.4,
                ColumnPredicate::Floats { .. } => 1.0,
                // One load, from the nearest cache that holds the bits.
                ColumnPredicate::Codes(words) | ColumnPredicate::IntegerBitmap { words, .. } => {
                    match words.len() {
                        0..4_096 => 2.0,
                        4_096..65_536 => 4.0,
                        _ => 10.0,
                    }
                }
                ColumnPredicate::IntegerSet(values) => 4.0 + values.len().ilog2() as f64 * 2.0,
                ColumnPredicate::TextSet(_) => 30.0,
                ColumnPredicate::Text(_) => 100.0,
            }
    }
}

impl Filter {
    pub(crate) fn start(&self) -> FilterState {
        FilterState {
            // One row in two, until something better is known.
            rates: vec![
                Rate {
                    met: 2.0,
                    passed: 1.0
                };
                self.tests.len()
            ],
            order: Vec::with_capacity(self.tests.len()),
            scratch: Selection::default(),
            few: Vec::new(),
            tally: Tally::new(self.tests.len() + self.residual.len()),
        }
    }

    /// Finds the rows of a chunk that are visible and pass. With `only_count` it may report their number alone.
    #[expect(
        clippy::too_many_arguments,
        reason = "the chunk, the worker's state, and where results go"
    )]
    pub(crate) fn run(
        &self,
        view: &ChunkView,
        snapshot: Timestamp,
        columns: &Columns,
        isa: Isa,
        only_count: bool,
        state: &mut FilterState,
        selection: &mut Selection,
        work: &mut Work,
    ) -> Result<Passed, FragmentError> {
        let chunk_of = |column: usize| view.chunk.column(columns.ids[column]);
        let excluded = |test: &Test| test.excludes(chunk_of(test.column));
        let tally = &mut state.tally;
        let excluding = self.tests.iter().position(excluded);
        excluding.into_iter().for_each(|test| tally.excluded(test));
        if self.never || view.chunk.rows() == 0 || excluding.is_some() {
            work.chunks_skipped += 1;
            return Ok(Passed::Nothing);
        }
        let rows = view.chunk.rows();
        let wanted = view.rows.as_deref();
        work.chunks += 1;
        work.rows_scanned += wanted.map_or(rows, <[u32]>::len) as u64;
        state.order.clear();
        for (number, test) in self.tests.iter().enumerate() {
            if !test.covers(chunk_of(test.column)) {
                state.order.push(number);
                work.bytes += view.touched(chunk_of(test.column).bytes());
            } else {
                tally.held(number);
            }
        }
        let all_visible = view.all_visible(snapshot);
        if only_count && all_visible && self.residual.is_empty() && wanted.is_none() {
            match state.order[..] {
                [] => return Ok(Passed::Counted(rows)),
                [number] if !self.tests[number].or_null => {
                    let test = &self.tests[number];
                    let chunk = chunk_of(test.column);
                    let passed = chunk.count(isa, &test.predicate(chunk));
                    tally.reads(number, test.column, view, columns, Left::All);
                    tally.took(number, rows, passed);
                    return Ok(Passed::Counted(passed));
                }
                _ => {}
            }
        }
        if state.order.len() > 1 {
            let cost = |&number: &usize| {
                let test = &self.tests[number];
                let cost = test.cost(chunk_of(test.column));
                (number, cost, state.rates[number].pass())
            };
            let mut tests: Vec<_> = state.order.iter().map(cost).collect();
            arrange(&mut tests);
            state.order.clear();
            state.order.extend(tests.iter().map(|&(number, ..)| number));
        }
        let mut left = wanted.map_or(rows, <[u32]>::len);
        match wanted {
            None => selection.reset_all(rows),
            Some(wanted) => {
                let mut few;
                let mut wanted = wanted;
                if wanted.len() <= rows / FEW {
                    few = wanted.to_vec();
                    for number in state.order.drain(..) {
                        let test = &self.tests[number];
                        let met = few.len();
                        test.retain(chunk_of(test.column), isa, &mut few);
                        tally.reads(number, test.column, view, columns, Left::All);
                        tally.took(number, met, few.len());
                    }
                    if few.is_empty() {
                        return Ok(Passed::Nothing);
                    }
                    left = few.len();
                    wanted = &few;
                }
                selection.reset_none(rows);
                wanted
                    .iter()
                    .for_each(|&row| selection.insert(row as usize));
            }
        }
        if !all_visible {
            view.visible(snapshot, selection);
            let met = left;
            left = selection.count();
            tally.took(tally.visible(), met, left);
        }
        let mut listed = false;
        for &number in &state.order {
            if left == 0 {
                return Ok(Passed::Nothing);
            }
            let test = &self.tests[number];
            let met = left;
            if !listed && left <= rows / FEW_TESTED {
                selection.positions(isa, &mut state.few);
                listed = true;
            }
            let remaining = match listed {
                true => Left::Listed(&state.few, rows),
                false => Left::Selected(selection),
            };
            tally.reads(number, test.column, view, columns, remaining);
            if listed {
                test.retain(chunk_of(test.column), isa, &mut state.few);
                left = state.few.len();
            } else {
                test.filter(chunk_of(test.column), isa, selection, &mut state.scratch);
                left = selection.count();
            }
            tally.took(number, met, left);
            let rate = &mut state.rates[number];
            rate.met = rate.met * FADE + met as f64;
            rate.passed = rate.passed * FADE + left as f64;
        }
        if listed {
            selection.reset_none(rows);
            let few = state.few.iter();
            few.for_each(|&row| selection.insert(row as usize));
        }
        for (number, condition) in self.residual.iter().enumerate() {
            if left == 0 {
                return Ok(Passed::Nothing);
            }
            let phase = self.tests.len() + number;
            let met = left;
            for &column in &condition.columns {
                tally.reads(phase, column, view, columns, Left::Selected(selection));
                work.bytes += view.touched(chunk_of(column).bytes());
            }
            let mut windows = Windows::new(RESIDUAL_ROWS);
            let mut from = 0;
            while let Some(window) = windows.next(selection) {
                let mut gathered = vec![None; columns.ids.len()];
                for &column in &condition.columns {
                    gathered[column] = Some(chunk_of(column).gather(
                        isa,
                        window,
                        &columns.data_types[column],
                        columns.dictionaries[column].as_ref(),
                    ));
                }
                let frame = Frame {
                    rows: window.count(),
                    columns: gathered,
                };
                let holds = condition.holds(&frame)?;
                let until = windows.end();
                retain(&mut selection.words_mut()[from..until], &holds);
                from = until;
            }
            left = selection.count();
            tally.took(phase, met, left);
        }
        Ok(match left {
            0 => Passed::Nothing,
            _ if listed && self.residual.is_empty() => Passed::Few,
            _ => Passed::Selected,
        })
    }
}

/// Orders tests, each with what it costs and the share of the rows that pass it: again and again the one that, with all others
/// behind it, costs least.
fn arrange(tests: &mut [(usize, f64, f64)]) {
    // Almost all is read of many rows, and little more than themselves of few.
    let read = |share: f64| share * READ_WITH / (1.0 + share * (READ_WITH - 1.0));
    let mut share = 1.0;
    for at in 0..tests.len() {
        let rest = &mut tests[at..];
        let all: f64 = rest.iter().map(|(_, cost, _)| cost).sum();
        let total = |&(_, cost, pass): &(usize, f64, f64)| {
            cost * read(share) + (all - cost) * read(share * pass)
        };
        let totals = rest.iter().map(total).enumerate();
        let first = totals.min_by(|(_, a), (_, b)| a.total_cmp(b));
        rest.swap(0, first.map_or(0, |(first, _)| first));
        share *= rest[0].2;
    }
}

/// Keeps the `n`-th set bit of `words` only if the `n`-th bit of `keep` is set.
fn retain(words: &mut [u64], keep: &BooleanBuffer) {
    let mut next = 0;
    for word in words {
        let mut left = *word;
        while left != 0 {
            let bit = left & left.wrapping_neg();
            if !keep.value(next) {
                *word &= !bit;
            }
            next += 1;
            left ^= bit;
        }
    }
    debug_assert_eq!(next, keep.len());
}

const _: () = assert!(RESIDUAL_ROWS.is_multiple_of(VECTOR) && VECTOR == MASK_WORDS * 64);

#[cfg(test)]
mod tests {
    use super::{arrange, retain};

    #[test]
    fn what_leaves_few_rows_goes_before_what_is_cheap() {
        let order = |mut tests: Vec<(usize, f64, f64)>| {
            arrange(&mut tests);
            tests.iter().map(|test| test.0).collect::<Vec<_>>()
        };
        assert_eq!(order(vec![(0, 2.3, 0.2), (1, 2.9, 0.001)]), [1, 0]);
        assert_eq!(order(vec![(0, 2.9, 0.5), (1, 2.3, 0.5)]), [1, 0]);
        assert_eq!(
            order(vec![(0, 1.0, 1.0), (1, 2.0, 0.01), (2, 1.0, 0.05)]),
            [2, 1, 0]
        );
        assert!(order(vec![]).is_empty());
    }

    #[test]
    fn bits_are_kept_by_their_number() {
        let mut words = [0b1011_0000, 0, 1 << 63 | 1];
        retain(
            &mut words,
            &[true, false, true, false, true].into_iter().collect(),
        );
        assert_eq!(words, [0b1001_0000, 0, 1 << 63]);
    }
}
