//! Running a filter over one chunk.

use super::classify::{Filter, Test};
use crate::columns::Columns;
use crate::expr::Frame;
use crate::phases::Tally;
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

/// By how much the memory of earlier chunks fades with each chunk.
const FADE: f64 = 0.75;

/// What a worker has learnt of each test: how many rows it met and how many of them passed, fading.
#[derive(Debug)]
pub(crate) struct FilterState {
    rates: Vec<Rate>,
    /// Numbers of the tests that the chunk at hand needs.
    order: Vec<usize>,
    scratch: Selection,
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
    fn retain(&self, chunk: &ColumnChunk, rows: &mut Vec<u32>) {
        if !(self.or_null && chunk.nulls() > 0) {
            return chunk.retain(&self.predicate(chunk), rows);
        }
        let mut nulls = rows.clone();
        chunk.retain(&ColumnPredicate::Null, &mut nulls);
        chunk.retain(&self.predicate(chunk), rows);
        rows.extend(nulls);
        rows.sort_unstable();
    }

    /// What a row costs, in units that only compare: packed bits for comparisons, loads for the rest.
    fn cost(&self, chunk: &ColumnChunk) -> f64 {
        match &*self.predicate(chunk) {
            ColumnPredicate::Never | ColumnPredicate::Null | ColumnPredicate::NotNull => 0.2,
            ColumnPredicate::Integers { .. } | ColumnPredicate::NotIntegers { .. } => 1.0,
            // One or a few comparisons, if it was worth to store them so.
            ColumnPredicate::Ordinals { .. } => 1.5,
            ColumnPredicate::Floats { .. } => 2.0,
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
                    tally.reads(number, test.column, view, columns, None);
                    tally.took(number, rows, passed);
                    return Ok(Passed::Counted(passed));
                }
                _ => {}
            }
        }
        // The classic order of independent filters: by cost per row that is got rid of.
        if state.order.len() > 1 {
            let rank = |number: usize| {
                let test = &self.tests[number];
                test.cost(chunk_of(test.column)) / (1.0 - state.rates[number].pass()).max(1e-3)
            };
            let ranks: Vec<f64> = (0..self.tests.len()).map(rank).collect();
            (state.order).sort_by(|&a, &b| ranks[a].total_cmp(&ranks[b]));
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
                        test.retain(chunk_of(test.column), &mut few);
                        tally.reads(number, test.column, view, columns, None);
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
        for &number in &state.order {
            if left == 0 {
                return Ok(Passed::Nothing);
            }
            let test = &self.tests[number];
            tally.reads(number, test.column, view, columns, Some(selection));
            test.filter(chunk_of(test.column), isa, selection, &mut state.scratch);
            let met = left;
            left = selection.count();
            tally.took(number, met, left);
            let rate = &mut state.rates[number];
            rate.met = rate.met * FADE + met as f64;
            rate.passed = rate.passed * FADE + left as f64;
        }
        for (number, condition) in self.residual.iter().enumerate() {
            if left == 0 {
                return Ok(Passed::Nothing);
            }
            let phase = self.tests.len() + number;
            let met = left;
            for &column in &condition.columns {
                tally.reads(phase, column, view, columns, Some(selection));
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
            _ => Passed::Selected,
        })
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
    use super::retain;

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
