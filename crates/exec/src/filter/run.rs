//! Running a filter over one chunk.
//!
//! ```text
//! exclude ─▶ needed tests ─▶ count ─▶ arrange ─▶ wanted rows ─▶ visible rows ─▶ tests ─▶ residual
//!    │                         │                     │               │            │         │
//!    └ Nothing                 └ Counted             └───────────────┴─ no row left: Nothing ┴─▶ Selected, Few
//!
//! come_to_tests ──────────────────────────────────────────────────────▶ │  ▲   │ ─ finish ─▶
//!                                        tests of several filters together └──┘   (see `together`)
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
pub(crate) const FEW_TESTED: usize = VECTOR / 16;

/// What a worker has learnt of each test, and what it needs for the chunk at hand.
#[derive(Debug)]
pub(crate) struct FilterState {
    pub(super) rates: Vec<PassRate>,
    /// Per test its form for the order of keys by which the last chunk that has one is stored.
    pub(super) by_order: Vec<Option<OrderedPredicate>>,
    /// Numbers of the tests that the chunk at hand needs.
    needed: Vec<usize>,
    scratch: Selection,
    /// The rows that are left of the chunk at hand, once they are few.
    pub(crate) few: Vec<u32>,
    pub(crate) tally: Tally,
}

/// A chunk, and how it is read.
#[derive(Clone, Copy)]
pub(crate) struct ChunkInput<'a> {
    pub(crate) view: &'a ChunkView,
    pub(crate) snapshot: Timestamp,
    pub(crate) columns: &'a FragmentColumns,
    pub(crate) isa: Isa,
}

/// What is left of a chunk.
#[derive(Clone, Copy)]
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

impl<'a> ChunkInput<'a> {
    /// The chunk of a column, by the column's position in the fragment.
    pub(super) fn chunk(&self, column: usize) -> &'a ColumnChunk {
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
    /// `more` phases of the program come behind the conditions.
    pub(crate) fn start(&self, more: usize) -> FilterState {
        FilterState {
            rates: vec![PassRate::UNKNOWN; self.tests.len()],
            by_order: self.tests.iter().map(|_| None).collect(),
            needed: Vec::with_capacity(self.tests.len()),
            scratch: Selection::default(),
            few: Vec::new(),
            tally: Tally::new(self.tests.len() + self.residual.len() + more),
        }
    }

    /// Finds the rows of a chunk that are visible and pass. With `only_count` it may report their number alone.
    pub(crate) fn run(
        &self,
        input: ChunkInput<'_>,
        only_count: bool,
        state: &mut FilterState,
        selection: &mut Selection,
        work: &mut Work,
    ) -> Result<Passed, FragmentError> {
        let mut run = self.begin(input, state, selection, work);
        run.come_to_tests(only_count);
        run.finish()
    }

    /// What comes first is [`FilterRun::come_to_tests`].
    #[inline]
    pub(crate) fn begin<'a>(
        &'a self,
        input: ChunkInput<'a>,
        state: &'a mut FilterState,
        selection: &'a mut Selection,
        work: &'a mut Work,
    ) -> FilterRun<'a> {
        let forms = self.tests.iter().zip(&mut state.by_order);
        let forms = forms.map(|(test, known)| test.form(input.chunk(test.column), known));
        FilterRun {
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
            at: 0,
            way: Way::Select,
        }
    }
}

/// A chunk on its way through a filter.
pub(crate) struct FilterRun<'a> {
    filter: &'a Filter,
    pub(super) input: ChunkInput<'a>,
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
    /// How many of the needed tests have been run.
    at: usize,
    pub(super) way: Way,
}

/// What is left to be done with a chunk.
#[derive(Clone, Copy)]
pub(crate) enum Way {
    /// Nothing: no row passes.
    Nothing,
    /// Nothing: so many rows pass.
    Counted(usize),
    /// To count the rows that pass this test.
    Count(usize),
    /// To select the rows that pass the tests.
    Select,
}

impl<'a> FilterRun<'a> {
    /// A test, its form, and the chunk of its column.
    pub(super) fn test(&self, number: usize) -> (&'a Test, ChunkTest<'a>, &'a ColumnChunk) {
        let test = &self.filter.tests[number];
        (test, self.forms[number], self.input.chunk(test.column))
    }

    /// Finds out what is to be done, and which rows there are.
    pub(crate) fn come_to_tests(&mut self, only_count: bool) {
        self.way = self.prepare(only_count);
    }

    fn prepare(&mut self, only_count: bool) -> Way {
        if self.is_excluded() {
            self.work.chunks_skipped += 1;
            return Way::Nothing;
        }
        self.find_needed_tests();
        if only_count && let Some(way) = self.way_to_count() {
            return way;
        }
        self.arrange_tests();
        self.select_wanted();
        if self.left == 0 {
            return Way::Nothing;
        }
        self.select_visible();
        Way::Select
    }

    /// Does all that is left.
    pub(crate) fn finish(&mut self) -> Result<Passed, FragmentError> {
        match self.way {
            Way::Nothing => return Ok(Passed::Nothing),
            Way::Counted(rows) => return Ok(Passed::Counted(rows)),
            Way::Count(number) => return Ok(Passed::Counted(self.count_alone(number))),
            Way::Select => {}
        }
        while let Some(number) = self.next_test() {
            self.run_test(number);
        }
        if !self.filter.residual.is_empty() {
            self.run_residual()?;
        }
        Ok(match self.left {
            0 => Passed::Nothing,
            _ if self.listed => Passed::Few,
            _ => Passed::Selected,
        })
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

    /// How to get the number of rows that are visible and pass, if it can be had without a selection.
    fn way_to_count(&mut self) -> Option<Way> {
        let ChunkInput { view, snapshot, .. } = self.input;
        if !self.filter.residual.is_empty() || view.rows.is_some() {
            return None;
        }
        match self.needed[..] {
            [] => {
                let visible = view.count_visible(snapshot)?;
                let rows = self.input.rows();
                self.tally.took(self.tally.visible(), rows, visible);
                Some(Way::Counted(visible))
            }
            [number] if view.all_visible(snapshot) && !self.filter.tests[number].or_null => {
                Some(Way::Count(number))
            }
            _ => None,
        }
    }

    /// Counts the rows that pass a test.
    pub(super) fn count_alone(&mut self, number: usize) -> usize {
        let (_, form, chunk) = self.test(number);
        let passed = chunk.count(self.input.isa, form.predicate);
        self.counted(number, passed)
    }

    /// Takes in how many of all rows pass a test.
    pub(super) fn counted(&mut self, number: usize, passed: usize) -> usize {
        let input = self.input;
        let column = self.filter.tests[number].column;
        self.tally
            .reads(number, column, input.view, input.columns, Left::All);
        self.tally.took(number, input.rows(), passed);
        passed
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
        self.few.clear();
        self.few.extend_from_slice(wanted);
        for &number in self.needed.iter() {
            let met = self.few.len();
            let (test, form) = (&self.filter.tests[number], self.forms[number]);
            form.retain(input.chunk(test.column), input.isa, self.few);
            self.tally
                .reads(number, test.column, input.view, input.columns, Left::All);
            self.tally.took(number, met, self.few.len());
        }
        self.needed.clear();
        self.left = self.few.len();
        self.listed = true;
    }

    /// Leaves out rows that are not visible.
    fn select_visible(&mut self) {
        let ChunkInput { view, snapshot, .. } = self.input;
        if view.all_visible(snapshot) {
            return;
        }
        let met = self.left;
        self.left = match self.listed {
            true => {
                view.retain_visible(snapshot, self.few);
                self.few.len()
            }
            false => {
                view.visible(snapshot, self.selection);
                self.selection.count()
            }
        };
        self.tally.took(self.tally.visible(), met, self.left);
    }

    /// The test that comes next, unless no row is left. Once few rows are left, they are in the list.
    pub(super) fn next_test(&mut self) -> Option<usize> {
        let number = *self.needed.get(self.at).filter(|_| self.left > 0)?;
        if !self.listed && self.left <= self.input.rows() / FEW_TESTED {
            self.selection
                .positions(self.input.isa, self.left, self.few);
            self.listed = true;
        }
        Some(number)
    }

    /// Runs the test that comes next, on the selection or on the list.
    pub(super) fn run_test(&mut self, number: usize) {
        let isa = self.input.isa;
        let (_, form, chunk) = self.test(number);
        self.reads(number);
        match self.listed {
            true => form.retain(chunk, isa, self.few),
            false => form.filter(chunk, isa, self.selection, self.scratch),
        }
        self.tested(number);
    }

    /// The selection, to be given to a test that reads the column's chunk for others, too; `None` if it has to be run
    /// alone.
    pub(super) fn lend(&mut self, number: usize) -> Option<&mut Selection> {
        let (_, form, chunk) = self.test(number);
        let alone = self.listed || form.looks_for_nulls(chunk);
        (!alone).then_some(&mut *self.selection)
    }

    /// A test is about to read its column.
    pub(super) fn reads(&mut self, number: usize) {
        let input = self.input;
        let column = self.filter.tests[number].column;
        let left = match self.listed {
            true => Left::Listed(self.few, input.rows()),
            false => Left::Selected(self.selection),
        };
        self.tally
            .reads(number, column, input.view, input.columns, left);
    }

    /// A test has been run.
    pub(super) fn tested(&mut self, number: usize) {
        let left = match self.listed {
            true => self.few.len(),
            false => self.selection.count(),
        };
        let met = std::mem::replace(&mut self.left, left);
        self.tally.took(number, met, left);
        self.rates[number].note(met, left);
        self.at += 1;
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
            residual::filter(condition, &input, self.selection)?;
            let met = std::mem::replace(&mut self.left, self.selection.count());
            self.tally.took(phase, met, self.left);
        }
        Ok(())
    }
}
