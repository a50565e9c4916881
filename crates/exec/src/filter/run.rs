//! Running a filter over one chunk.

use super::classify::{Filter, Test};
use crate::columns::Columns;
use crate::expr::Frame;
use crate::phases::{Left, Tally};
use crate::window::Windows;
use crate::work::Work;
use arrow_buffer::BooleanBuffer;
use eris_column::{ColumnChunk, ColumnPredicate, KeyOrder, Selection};
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
    /// Per test its form for the order of keys by which the last chunk that has one is stored.
    by_order: Vec<Option<Form>>,
    /// Numbers of the tests that the chunk at hand needs.
    order: Vec<usize>,
    scratch: Selection,
    /// The rows that are left of the chunk at hand, once they are few.
    pub(crate) few: Vec<u32>,
    pub(crate) tally: Tally,
}

/// A condition for chunks that are stored by an order of keys. Workers share it, and remember it so that they need not meet for
/// every chunk.
#[derive(Debug)]
struct Form {
    order: Arc<KeyOrder>,
    predicate: Arc<ColumnPredicate>,
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
    /// The rows that are listed; the selection was not made.
    Few,
}

/// A test in the form that one chunk of its column needs.
#[derive(Clone, Copy)]
struct Formed<'a> {
    predicate: &'a ColumnPredicate,
    or_null: bool,
}

impl Test {
    /// The test for a chunk of the column.
    fn form<'a>(&'a self, chunk: &ColumnChunk, known: &'a mut Option<Form>) -> Formed<'a> {
        let predicate = match (&self.plain, chunk.order()) {
            (Some(plain), _) if !chunk.is_coded() => &**plain,
            (_, Some(order)) => {
                known.take_if(|form| !Arc::ptr_eq(&form.order, order));
                let form = known.get_or_insert_with(|| Form {
                    order: order.clone(),
                    predicate: (self.by_order).get(order, |order| self.predicate.by_order(order)),
                });
                &*form.predicate
            }
            _ => &*self.predicate,
        };
        Formed {
            predicate,
            or_null: self.or_null,
        }
    }
}

impl Formed<'_> {
    fn excludes(&self, chunk: &ColumnChunk) -> bool {
        chunk.excludes(self.predicate) && !(self.or_null && chunk.nulls() > 0)
    }

    fn covers(&self, chunk: &ColumnChunk) -> bool {
        if self.or_null && chunk.nulls() > 0 {
            return chunk.nulls() == chunk.rows();
        }
        chunk.covers(self.predicate)
    }

    fn filter(
        &self,
        chunk: &ColumnChunk,
        isa: Isa,
        selection: &mut Selection,
        scratch: &mut Selection,
    ) {
        if !(self.or_null && chunk.nulls() > 0) {
            return chunk.filter(isa, self.predicate, selection);
        }
        scratch.clone_from(selection);
        chunk.filter(isa, self.predicate, selection);
        chunk.filter(isa, &ColumnPredicate::Null, scratch);
        eris_kernels::or(selection.words_mut(), scratch.words());
    }

    /// The same of a few rows, which ascend.
    fn retain(&self, chunk: &ColumnChunk, isa: Isa, rows: &mut Vec<u32>) {
        if !(self.or_null && chunk.nulls() > 0) {
            return chunk.retain(isa, self.predicate, rows);
        }
        let mut nulls = rows.clone();
        chunk.retain(isa, &ColumnPredicate::Null, &mut nulls);
        chunk.retain(isa, self.predicate, rows);
        rows.extend(nulls);
        rows.sort_unstable();
    }

    /// What a row costs, in units that only compare: the bytes that are read, and loads.
    fn cost(&self, chunk: &ColumnChunk) -> f64 {
        let bytes = chunk.bytes() as f64 / chunk.rows() as f64;
        bytes
            + match self.predicate {
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
            by_order: self.tests.iter().map(|_| None).collect(),
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
        let FilterState {
            rates,
            by_order,
            order,
            scratch,
            few,
            tally,
        } = state;
        let forms = self.tests.iter().zip(by_order.iter_mut());
        let forms: Vec<Formed<'_>> = forms
            .map(|(test, known)| test.form(chunk_of(test.column), known))
            .collect();
        let excluded =
            |number: &usize| forms[*number].excludes(chunk_of(self.tests[*number].column));
        let excluding = (0..forms.len()).find(excluded);
        excluding.into_iter().for_each(|test| tally.excluded(test));
        if self.never || view.chunk.rows() == 0 || excluding.is_some() {
            work.chunks_skipped += 1;
            return Ok(Passed::Nothing);
        }
        let rows = view.chunk.rows();
        let wanted = view.rows.as_deref();
        work.chunks += 1;
        work.rows_scanned += wanted.map_or(rows, <[u32]>::len) as u64;
        order.clear();
        for (number, test) in self.tests.iter().enumerate() {
            if !forms[number].covers(chunk_of(test.column)) {
                order.push(number);
                work.bytes += view.touched(chunk_of(test.column).bytes());
            } else {
                tally.held(number);
            }
        }
        let all_visible = view.all_visible(snapshot);
        if only_count && self.residual.is_empty() && wanted.is_none() {
            match order[..] {
                [] => {
                    if let Some(visible) = view.count_visible(snapshot) {
                        tally.took(tally.visible(), rows, visible);
                        return Ok(Passed::Counted(visible));
                    }
                }
                [number] if all_visible && !self.tests[number].or_null => {
                    let test = &self.tests[number];
                    let chunk = chunk_of(test.column);
                    let passed = chunk.count(isa, forms[number].predicate);
                    tally.reads(number, test.column, view, columns, Left::All);
                    tally.took(number, rows, passed);
                    return Ok(Passed::Counted(passed));
                }
                _ => {}
            }
        }
        if order.len() > 1 {
            let cost = |&number: &usize| {
                let cost = forms[number].cost(chunk_of(self.tests[number].column));
                (number, cost, rates[number].pass())
            };
            let mut tests: Vec<_> = order.iter().map(cost).collect();
            arrange(&mut tests);
            order.clear();
            order.extend(tests.iter().map(|&(number, ..)| number));
        }
        let mut left = wanted.map_or(rows, <[u32]>::len);
        match wanted {
            None => selection.reset_all(rows),
            Some(wanted) => {
                let mut found;
                let mut wanted = wanted;
                if wanted.len() <= rows / FEW {
                    found = wanted.to_vec();
                    for number in order.drain(..) {
                        let test = &self.tests[number];
                        let met = found.len();
                        forms[number].retain(chunk_of(test.column), isa, &mut found);
                        tally.reads(number, test.column, view, columns, Left::All);
                        tally.took(number, met, found.len());
                    }
                    if found.is_empty() {
                        return Ok(Passed::Nothing);
                    }
                    left = found.len();
                    wanted = &found;
                }
                selection.reset_to(rows, wanted);
            }
        }
        if !all_visible {
            view.visible(snapshot, selection);
            let met = left;
            left = selection.count();
            tally.took(tally.visible(), met, left);
        }
        let mut listed = false;
        for &number in order.iter() {
            if left == 0 {
                return Ok(Passed::Nothing);
            }
            let test = &self.tests[number];
            let met = left;
            if !listed && left <= rows / FEW_TESTED {
                selection.positions(isa, left, few);
                listed = true;
            }
            let remaining = match listed {
                true => Left::Listed(few, rows),
                false => Left::Selected(selection),
            };
            tally.reads(number, test.column, view, columns, remaining);
            if listed {
                forms[number].retain(chunk_of(test.column), isa, few);
                left = few.len();
            } else {
                forms[number].filter(chunk_of(test.column), isa, selection, scratch);
                left = selection.count();
            }
            tally.took(number, met, left);
            let rate = &mut rates[number];
            rate.met = rate.met * FADE + met as f64;
            rate.passed = rate.passed * FADE + left as f64;
        }
        if listed && self.residual.is_empty() {
            return Ok(match left {
                0 => Passed::Nothing,
                _ => Passed::Few,
            });
        }
        if listed {
            selection.reset_to(rows, few);
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
