//! Running a filter over one chunk.
//!
//! ```text
//! exclude ─▶ needed tests ─▶ count ─▶ arrange ─▶ wanted rows ─▶ visible rows ─▶ tests ─▶ residual
//!    │                         │                     │               │            │         │
//!    └ Nothing                 └ Counted             └───────────────┴─ no row left: Nothing ┴─▶ Selected, Few
//! ```

use super::classify::{Filter, Test};
use super::form::{ChunkTest, OrderedPredicate};
use super::order::{PassRate, arrange};
use super::residual;
use crate::columns::FragmentColumns;
use crate::phases::{Left, Tally};
use crate::work::Work;
use eris_column::{ColumnChunk, Selection};
use eris_fragment::FragmentError;
use eris_kernels::{Isa, VECTOR};
use eris_store::ChunkView;
use eris_types::Timestamp;

/// Of one row in so many, or fewer, each is read alone: on average that is less than eight of a vector.
const FEW: usize = VECTOR / 8;

/// Of one row in so many, or fewer, further tests look at each alone: that is less than reading vectors as a whole.
const FEW_TESTED: usize = VECTOR / 16;

/// What a worker has learnt of each test, and what it needs for the chunk at hand.
#[derive(Debug)]
pub(crate) struct FilterState {
    rates: Vec<PassRate>,
    /// Per test its form for the order of keys by which the last chunk that has one is stored.
    by_order: Vec<Option<OrderedPredicate>>,
    /// Numbers of the tests that the chunk at hand needs.
    needed: Vec<usize>,
    scratch: Selection,
    /// The rows that are left of the chunk at hand, once they are few.
    pub(crate) few: Vec<u32>,
    pub(crate) tally: Tally,
}

/// A chunk, and how it is read.
pub(crate) struct ChunkInput<'a> {
    pub(crate) view: &'a ChunkView,
    pub(crate) snapshot: Timestamp,
    pub(crate) columns: &'a FragmentColumns,
    pub(crate) isa: Isa,
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

impl ChunkInput<'_> {
    /// The chunk of a column, by the column's position in the fragment.
    pub(super) fn chunk(&self, column: usize) -> &ColumnChunk {
        self.view.chunk.column(self.columns.ids[column])
    }

    fn rows(&self) -> usize {
        self.view.chunk.rows()
    }

    /// How many rows are looked at: all, or those that an index has led to.
    fn rows_wanted(&self) -> usize {
        let wanted = self.view.rows.as_deref();
        wanted.map_or(self.rows(), <[u32]>::len)
    }
}

impl Filter {
    pub(crate) fn start(&self) -> FilterState {
        FilterState {
            rates: vec![PassRate::UNKNOWN; self.tests.len()],
            by_order: self.tests.iter().map(|_| None).collect(),
            needed: Vec::with_capacity(self.tests.len()),
            scratch: Selection::default(),
            few: Vec::new(),
            tally: Tally::new(self.tests.len() + self.residual.len()),
        }
    }

    /// Finds the rows of a chunk that are visible and pass. With `only_count` it may report their number alone.
    pub(crate) fn run(
        &self,
        input: &ChunkInput<'_>,
        only_count: bool,
        state: &mut FilterState,
        selection: &mut Selection,
        work: &mut Work,
    ) -> Result<Passed, FragmentError> {
        let forms = self.tests.iter().zip(&mut state.by_order);
        let forms = forms.map(|(test, known)| test.form(input.chunk(test.column), known));
        let mut run = FilterRun {
            filter: self,
            input,
            forms: forms.collect(),
            rates: &mut state.rates,
            needed: &mut state.needed,
            scratch: &mut state.scratch,
            few: &mut state.few,
            tally: &mut state.tally,
            selection,
            work,
            left: input.rows_wanted(),
            listed: false,
        };
        if run.is_excluded() {
            run.work.chunks_skipped += 1;
            return Ok(Passed::Nothing);
        }
        run.find_needed_tests();
        if only_count && let Some(passed) = run.count() {
            return Ok(Passed::Counted(passed));
        }
        run.arrange_tests();
        run.select_wanted();
        if run.left == 0 {
            return Ok(Passed::Nothing);
        }
        run.select_visible();
        run.run_tests();
        if !self.residual.is_empty() {
            run.run_residual()?;
        }
        Ok(match run.left {
            0 => Passed::Nothing,
            _ if run.listed => Passed::Few,
            _ => Passed::Selected,
        })
    }
}

/// A chunk on its way through a filter.
struct FilterRun<'a> {
    filter: &'a Filter,
    input: &'a ChunkInput<'a>,
    /// Per test, its form for the chunk.
    forms: Vec<ChunkTest<'a>>,
    rates: &'a mut [PassRate],
    /// Numbers of the tests that are still to be run, in their order.
    needed: &'a mut Vec<usize>,
    scratch: &'a mut Selection,
    few: &'a mut Vec<u32>,
    tally: &'a mut Tally,
    selection: &'a mut Selection,
    work: &'a mut Work,
    /// How many rows are left.
    left: usize,
    /// They are in the list of few rows; if not, in the selection.
    listed: bool,
}

impl<'a> FilterRun<'a> {
    /// A test, its form, and the chunk of its column.
    fn test(&self, number: usize) -> (&'a Test, ChunkTest<'a>, &'a ColumnChunk) {
        let test = &self.filter.tests[number];
        (test, self.forms[number], self.input.chunk(test.column))
    }

    /// Whether the zones show that no row passes.
    fn is_excluded(&mut self) -> bool {
        let excludes = |&number: &usize| {
            let (_, form, chunk) = self.test(number);
            form.excludes(chunk)
        };
        let excluding = (0..self.forms.len()).find(excludes);
        if let Some(number) = excluding {
            self.tally.excluded(number);
        }
        self.filter.never || self.input.rows() == 0 || excluding.is_some()
    }

    /// Leaves out the tests that all rows pass, as the zones show.
    fn find_needed_tests(&mut self) {
        self.work.chunks += 1;
        self.work.rows_scanned += self.left as u64;
        self.needed.clear();
        for number in 0..self.forms.len() {
            let (_, form, chunk) = self.test(number);
            if form.covers(chunk) {
                self.tally.held(number);
            } else {
                self.work.bytes += self.input.view.touched(chunk.bytes());
                self.needed.push(number);
            }
        }
    }

    /// The number of rows that are visible and pass, if that can be had without a selection.
    fn count(&mut self) -> Option<usize> {
        let ChunkInput {
            view,
            snapshot,
            columns,
            isa,
        } = *self.input;
        if !self.filter.residual.is_empty() || view.rows.is_some() {
            return None;
        }
        let rows = self.input.rows();
        match self.needed[..] {
            [] => {
                let visible = view.count_visible(snapshot)?;
                self.tally.took(self.tally.visible(), rows, visible);
                Some(visible)
            }
            [number] if view.all_visible(snapshot) => {
                let (test, form, chunk) = self.test(number);
                if test.or_null {
                    return None;
                }
                let passed = chunk.count(isa, form.predicate);
                self.tally
                    .reads(number, test.column, view, columns, Left::All);
                self.tally.took(number, rows, passed);
                Some(passed)
            }
            _ => None,
        }
    }

    /// Puts the tests into the order in which all together cost least.
    fn arrange_tests(&mut self) {
        if self.needed.len() < 2 {
            return;
        }
        let cost = |&number: &usize| {
            let (_, form, chunk) = self.test(number);
            (number, form.cost(chunk), self.rates[number].share())
        };
        let mut tests: Vec<_> = self.needed.iter().map(cost).collect();
        arrange(&mut tests);
        self.needed.clear();
        self.needed.extend(tests.iter().map(|&(number, ..)| number));
    }

    /// Selects all rows, or those that are wanted. If these are few, all tests are run on each of them alone at once.
    fn select_wanted(&mut self) {
        let input = self.input;
        let rows = input.rows();
        let Some(wanted) = input.view.rows.as_deref() else {
            self.selection.reset_all(rows);
            return;
        };
        if wanted.len() > rows / FEW {
            self.selection.reset_to(rows, wanted);
            return;
        }
        let mut found = wanted.to_vec();
        for &number in self.needed.iter() {
            let met = found.len();
            let (test, form, chunk) = self.test(number);
            form.retain(chunk, input.isa, &mut found);
            self.tally
                .reads(number, test.column, input.view, input.columns, Left::All);
            self.tally.took(number, met, found.len());
        }
        self.needed.clear();
        self.left = found.len();
        if self.left > 0 {
            self.selection.reset_to(rows, &found);
        }
    }

    /// Leaves out rows that are not visible.
    fn select_visible(&mut self) {
        let ChunkInput { view, snapshot, .. } = *self.input;
        if view.all_visible(snapshot) {
            return;
        }
        view.visible(snapshot, self.selection);
        let met = self.left;
        self.left = self.selection.count();
        self.tally.took(self.tally.visible(), met, self.left);
    }

    /// Runs tests on the selection, and on a list of rows once few are left.
    fn run_tests(&mut self) {
        let input = self.input;
        let rows = input.rows();
        for at in 0..self.needed.len() {
            if self.left == 0 {
                return;
            }
            let number = self.needed[at];
            let (test, form, chunk) = self.test(number);
            let met = self.left;
            if !self.listed && met <= rows / FEW_TESTED {
                self.selection.positions(input.isa, met, self.few);
                self.listed = true;
            }
            let left = match self.listed {
                true => Left::Listed(self.few, rows),
                false => Left::Selected(self.selection),
            };
            self.tally
                .reads(number, test.column, input.view, input.columns, left);
            if self.listed {
                form.retain(chunk, input.isa, self.few);
                self.left = self.few.len();
            } else {
                form.filter(chunk, input.isa, self.selection, self.scratch);
                self.left = self.selection.count();
            }
            self.tally.took(number, met, self.left);
            self.rates[number].note(met, self.left);
        }
    }

    /// Evaluates all other conditions on the rows that are left.
    fn run_residual(&mut self) -> Result<(), FragmentError> {
        let input = self.input;
        if self.listed {
            self.selection.reset_to(input.rows(), self.few);
            self.listed = false;
        }
        for (number, condition) in self.filter.residual.iter().enumerate() {
            if self.left == 0 {
                return Ok(());
            }
            let phase = self.filter.tests.len() + number;
            for &column in &condition.columns {
                let left = Left::Selected(self.selection);
                self.tally
                    .reads(phase, column, input.view, input.columns, left);
                self.work.bytes += input.view.touched(input.chunk(column).bytes());
            }
            residual::filter(condition, input, self.selection)?;
            let met = std::mem::replace(&mut self.left, self.selection.count());
            self.tally.took(phase, met, self.left);
        }
        Ok(())
    }
}
