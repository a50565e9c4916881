//! A fragment, compiled; and a worker's share of its result.

use crate::check::{reject_computing_with_row_ids, reject_conditions_on_lookups};
use crate::columns::FragmentColumns;
use crate::filter::{ChunkInput, Filter, FilterState, Passed};
use crate::first::{BestRanks, FirstRows};
use crate::group::{Division, GroupPlan, GroupState, Groups, Merger};
use crate::lookup::TableMemory;
use crate::phases::{Left, Tally};
use crate::rows::{RowPlan, RowState};
use crate::window::ChunkPosition;
use crate::work::Work;
use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use eris_column::{Dictionary, Selection, Zone};
use eris_fragment::{Fragment, FragmentError, Output, PhaseCounts, PhaseKind, Phases};
use eris_kernels::Isa;
use eris_store::ChunkView;
use eris_types::Timestamp;
use std::sync::Arc;

/// A fragment made ready to run: types resolved, conditions sorted, constants and key sets brought into the form in
/// which column chunks understand them. Made once per statement and shared by all workers.
#[derive(Debug)]
pub struct Program {
    pub(crate) columns: FragmentColumns,
    snapshot: Timestamp,
    pub(crate) filter: Filter,
    /// If only the first rows by an order are wanted.
    first: Option<FirstRows>,
    output: OutputPlan,
    isa: Isa,
    phases: Arc<Phases>,
}

#[derive(Debug)]
enum OutputPlan {
    Rows(RowPlan),
    Groups(GroupPlan),
}

/// What one worker has of a program's result so far: rows that do not fill a batch yet, or its groups; and what it has
/// learnt of the filter's selectivity. Belongs to the program that [started](Program::start) it.
#[derive(Debug)]
pub struct Partial {
    pub(crate) filter: FilterState,
    pub(crate) selection: Selection,
    best: BestRanks,
    output: OutputState,
    rest: Option<UnfinishedChunk>,
}

/// A chunk that is not done with; what passed of it is in the filter's list of few rows, or in the selection.
#[derive(Debug)]
struct UnfinishedChunk {
    view: ChunkView,
    few: bool,
    from: ChunkPosition,
}

#[derive(Debug)]
enum OutputState {
    Rows(RowState),
    Groups(Box<GroupState>),
}

impl Partial {
    /// Bytes of memory that the result so far takes. It only grows within [`Program::run`], by at most what one chunk
    /// adds, so that a caller can account the growth after each chunk.
    pub fn bytes(&self) -> usize {
        match &self.output {
            OutputState::Rows(state) => state.bytes() + self.best.bytes(),
            OutputState::Groups(state) => state.bytes(),
        }
    }

    /// Whether the chunk of the last [`Program::run`] is not done with, since its rows are joined to very many: then
    /// comes [`Program::go_on`], again and again, before anything else.
    pub fn is_midway(&self) -> bool {
        self.rest.is_some()
    }

    /// Groups so far; 0 for a program that yields rows.
    pub fn groups(&self) -> usize {
        match &self.output {
            OutputState::Rows(_) => 0,
            OutputState::Groups(state) => state.groups(),
        }
    }

    /// What each of the program's [phases](Program::phases) did so far, and the bytes of all its columns in the chunks
    /// that it ran over.
    pub fn phases(&self) -> (&[PhaseCounts], u64) {
        let tally = &self.filter.tally;
        (&tally.counts, tally.column_bytes)
    }
}

impl Program {
    /// Compiles a fragment over a table of this schema. `dictionaries` has one entry per column of the table, and each
    /// dictionary all codes of the chunks that the program will run on. Conditions on strings with a dictionary are
    /// evaluated here, once per string.
    ///
    /// # Errors
    /// [`FragmentError::Malformed`] if the fragment contradicts itself or the schema.
    pub fn compile(
        fragment: &Fragment,
        schema: &Schema,
        dictionaries: &[Option<Dictionary>],
    ) -> Result<Program, FragmentError> {
        Self::compile_on(fragment, schema, dictionaries, None)
    }

    /// The same, with the large tables of its lookups on a node, as far as that has memory.
    ///
    /// # Errors
    /// As [`Program::compile`].
    pub fn compile_on(
        fragment: &Fragment,
        schema: &Schema,
        dictionaries: &[Option<Dictionary>],
        memory: Option<&TableMemory>,
    ) -> Result<Program, FragmentError> {
        let columns = FragmentColumns::resolve(fragment, schema, dictionaries, memory)?;
        reject_computing_with_row_ids(fragment, &columns)?;
        reject_conditions_on_lookups(fragment)?;
        let mut filter = Filter::compile(fragment, &columns)?;
        let mut kinds = std::mem::take(&mut filter.phases);
        let first = match (&fragment.order, &fragment.output) {
            (Some(order), Output::Rows { .. }) => FirstRows::compile(order, &columns),
            _ => None,
        };
        kinds.extend(first.as_ref().map(FirstRows::phase));
        kinds.extend([PhaseKind::Visible, PhaseKind::Output]);
        let phases = Arc::new(Phases {
            columns: columns.names.clone(),
            kinds,
        });
        let output = match &fragment.output {
            Output::Rows {
                columns: exprs,
                limit,
            } => OutputPlan::Rows(RowPlan::compile(exprs, *limit, &columns)?),
            Output::Groups { keys, aggregates } => {
                OutputPlan::Groups(GroupPlan::compile(keys, aggregates, &columns)?)
            }
        };
        Ok(Program {
            columns,
            snapshot: fragment.snapshot,
            filter,
            first,
            output,
            isa: Isa::best(),
            phases,
        })
    }

    /// What it does with the rows of a chunk.
    pub fn phases(&self) -> &Arc<Phases> {
        &self.phases
    }

    /// Whether no row passes of a part of the table that has these zones. `zone` is given a position in the fragment's
    /// columns; `None` is for a column of which nothing is known.
    pub fn excludes(&self, zone: impl Fn(usize) -> Option<Zone>) -> bool {
        self.filter.excludes(zone)
    }

    /// The stored columns that it reads, by their positions in a chunk.
    pub(crate) fn stored_columns(&self) -> impl Iterator<Item = usize> {
        let columns = 0..self.columns.ids.len();
        let columns = columns.filter(|&column| !self.columns.is_row_id(column));
        columns.map(|column| self.columns.ids[column].index())
    }

    /// The positions of the columns that the output is made of.
    pub(crate) fn output_columns(&self) -> &[usize] {
        match &self.output {
            OutputPlan::Rows(plan) => &plan.columns,
            OutputPlan::Groups(plan) => &plan.columns,
        }
    }

    /// The columns of the output: named like the expressions, of the types of `Fragment::output_types`.
    pub fn output_schema(&self) -> &SchemaRef {
        match &self.output {
            OutputPlan::Rows(plan) => &plan.schema,
            OutputPlan::Groups(plan) => &plan.schema,
        }
    }

    /// An empty share, for one worker.
    pub fn start(&self) -> Partial {
        Partial {
            filter: self.filter.start(usize::from(self.first.is_some())),
            selection: Selection::default(),
            best: BestRanks::default(),
            output: match &self.output {
                OutputPlan::Rows(_) => OutputState::Rows(RowState::default()),
                OutputPlan::Groups(plan) => OutputState::Groups(Box::new(plan.start())),
            },
            rest: None,
        }
    }

    /// Whether the program needs no more chunks from this worker: its limit is reached, or nothing can pass.
    pub fn is_done(&self, partial: &Partial) -> bool {
        self.filter.never
            || match (&self.output, &partial.output) {
                (OutputPlan::Rows(plan), OutputState::Rows(state)) => plan.is_full(state),
                _ => false,
            }
    }

    /// Runs over one chunk. Yields batches when enough rows have come together (a full chunk's rows make one batch, or
    /// several if they are wide); groups only come from [`Program::finish`]. The share may be
    /// [midway](Partial::is_midway) in the chunk then. After an error it is lost.
    ///
    /// # Errors
    /// [`FragmentError::Overflow`] and [`FragmentError::Evaluation`] from expressions.
    ///
    /// # Panics
    /// If the share is midway in another chunk.
    pub fn run(
        &self,
        view: &ChunkView,
        partial: &mut Partial,
        work: &mut Work,
    ) -> Result<Vec<RecordBatch>, FragmentError> {
        let Some(only_count) = self.begin(view, partial, work) else {
            return Ok(Vec::new());
        };
        let passed = self.filter.run(
            self.input(view),
            self.lets_filter_count(only_count),
            &mut partial.filter,
            &mut partial.selection,
            work,
        )?;
        self.take_in(view, only_count, passed, partial, work)
    }

    /// Begins with a chunk: whether only the number of passing rows matters; `None` if nothing is needed of it.
    pub(crate) fn begin(
        &self,
        view: &ChunkView,
        partial: &mut Partial,
        work: &mut Work,
    ) -> Option<bool> {
        assert!(!partial.is_midway(), "one chunk after the other");
        partial.filter.tally.begin(view, &self.columns);
        if self.is_done(partial) {
            work.chunks_skipped += 1;
            return None;
        }
        if let Some(first) = &self.first
            && first.excludes(view, &self.columns)
        {
            let tally = &mut partial.filter.tally;
            tally.excluded(tally.first());
            work.chunks_skipped += 1;
            return None;
        }
        Some(match &self.output {
            OutputPlan::Rows(_) => false,
            OutputPlan::Groups(plan) => plan.only_counts(&view.chunk, &self.columns),
        })
    }

    pub(crate) fn input<'a>(&'a self, view: &'a ChunkView) -> ChunkInput<'a> {
        ChunkInput {
            view,
            snapshot: self.snapshot,
            columns: &self.columns,
            isa: self.isa,
        }
    }

    /// Whether the filter may tell the number of rows alone, if that is all that matters.
    pub(crate) fn lets_filter_count(&self, only_count: bool) -> bool {
        only_count && !self.columns.lookups.have_several_matches()
    }

    /// Takes in the rows that passed the filter.
    pub(crate) fn take_in(
        &self,
        view: &ChunkView,
        only_count: bool,
        passed: Passed,
        partial: &mut Partial,
        work: &mut Work,
    ) -> Result<Vec<RecordBatch>, FragmentError> {
        let chunk = &*view.chunk;
        let passed = match (&self.first, passed) {
            (Some(first), Passed::Selected | Passed::Few) => {
                let (state, selection) = (&mut partial.filter, &mut partial.selection);
                first.keep(
                    self.input(view),
                    passed,
                    state,
                    selection,
                    &mut partial.best,
                    work,
                )
            }
            (_, passed) => passed,
        };
        let few = match passed {
            Passed::Nothing => return Ok(Vec::new()),
            Passed::Counted(rows) => {
                work.rows_passed += rows as u64;
                let tally = &mut partial.filter.tally;
                tally.took(tally.output(), rows, rows);
                self.count_rows(rows as u64, partial)?;
                return Ok(Vec::new());
            }
            Passed::Selected => false,
            Passed::Few => true,
        };
        let selection = &mut partial.selection;
        let FilterState {
            few: listed, tally, ..
        } = &mut partial.filter;
        if few && only_count {
            selection.reset_to(chunk.rows(), listed);
        }
        let rows = match few {
            true => listed.len(),
            false => selection.count(),
        };
        work.rows_passed += rows as u64;
        tally.took(tally.output(), rows, 0);
        if only_count {
            let joined = match (&self.output, self.columns.lookups.have_several_matches()) {
                (OutputPlan::Groups(plan), true) => {
                    plan.count(chunk, &self.columns, self.isa, selection)?
                }
                _ => rows as u64,
            };
            self.count_rows(joined, partial)?;
            let tally = &mut partial.filter.tally;
            tally.took_more(tally.output(), joined as usize);
            return Ok(Vec::new());
        }
        let left = || match few {
            true => Left::Listed(listed, chunk.rows()),
            false => Left::Selected(selection),
        };
        self.touch(self.output_columns(), view, left, tally, work);
        self.put_out(view, few, ChunkPosition::default(), partial)
    }

    /// Goes on with the chunk that [`Program::run`] was not done with; see [`Partial::is_midway`].
    ///
    /// # Errors
    /// Those of [`Program::run`].
    pub fn go_on(&self, partial: &mut Partial) -> Result<Vec<RecordBatch>, FragmentError> {
        match partial.rest.take() {
            Some(UnfinishedChunk { view, few, from }) => self.put_out(&view, few, from, partial),
            None => Ok(Vec::new()),
        }
    }

    fn count_rows(&self, rows: u64, partial: &mut Partial) -> Result<(), FragmentError> {
        match (&self.output, &mut partial.output) {
            (OutputPlan::Groups(plan), OutputState::Groups(state)) => plan.add_rows(rows, state),
            _ => unreachable!("only groups are counted"),
        }
    }

    /// One step with the rows of a chunk that passed.
    fn put_out(
        &self,
        view: &ChunkView,
        few: bool,
        from: ChunkPosition,
        partial: &mut Partial,
    ) -> Result<Vec<RecordBatch>, FragmentError> {
        let (chunk, columns, isa) = (&*view.chunk, &self.columns, self.isa);
        let selection = &mut partial.selection;
        let listed = &partial.filter.few;
        let (batches, step) = match (&self.output, &mut partial.output) {
            (OutputPlan::Groups(plan), OutputState::Groups(state)) => {
                let step = match few {
                    true => plan.add_few(chunk, columns, isa, listed, from, state)?,
                    false => plan.add(chunk, columns, isa, selection, from, state)?,
                };
                (Vec::new(), step)
            }
            (OutputPlan::Rows(plan), OutputState::Rows(state)) => match few {
                true => plan.add_few(chunk, columns, isa, listed, from, state)?,
                false => plan.add(chunk, columns, isa, selection, from, state)?,
            },
            _ => unreachable!("a share of another program"),
        };
        let tally = &mut partial.filter.tally;
        tally.took_more(tally.output(), step.rows as usize);
        partial.rest = step.rest.map(|from| UnfinishedChunk {
            view: view.clone(),
            few,
            from,
        });
        Ok(batches)
    }

    fn touch<'a>(
        &self,
        columns: &[usize],
        view: &ChunkView,
        left: impl Fn() -> Left<'a>,
        tally: &mut Tally,
        work: &mut Work,
    ) {
        let phase = tally.output();
        for &column in columns {
            tally.reads(phase, column, view, &self.columns, left());
            if !self.columns.is_row_id(column) {
                let bytes = view.chunk.column(self.columns.ids[column]).bytes();
                work.bytes += view.touched(bytes);
            }
        }
    }

    /// Has groups leave the share from now on when they are too many for a cache; [`Program::take_repartitioned`] has
    /// them then.
    pub fn start_repartitioning(&self, division: Division, partial: &mut Partial) {
        if let (OutputPlan::Groups(plan), OutputState::Groups(state)) =
            (&self.output, &mut partial.output)
        {
            plan.start_repartitioning(division, state);
        }
    }

    /// Has groups stay in the share again.
    pub fn stop_repartitioning(&self, partial: &mut Partial) {
        if let OutputState::Groups(state) = &mut partial.output {
            state.stop_repartitioning();
        }
    }

    /// Groups that have left the share, each with the worker to which their keys belong. More than one partial
    /// aggregate of a group may leave it.
    pub fn take_repartitioned(&self, partial: &mut Partial) -> Vec<(u32, Groups)> {
        match (&self.output, &mut partial.output) {
            (OutputPlan::Groups(plan), OutputState::Groups(state)) => {
                plan.take_repartitioned(state)
            }
            _ => Vec::new(),
        }
    }

    /// All groups of the share, each with the worker to which their keys belong.
    pub fn repartition(&self, division: Division, partial: &mut Partial) -> Vec<(u32, Groups)> {
        match (&self.output, &mut partial.output) {
            (OutputPlan::Groups(plan), OutputState::Groups(state)) => {
                plan.repartition(division, state, &self.columns)
            }
            _ => Vec::new(),
        }
    }

    /// Nothing yet of what a worker merges, in so many buckets.
    pub fn merger(&self, division: Division) -> Merger {
        Merger::new(division.buckets)
    }

    /// Merges a bucket of what the merger has begun a round with; says whether that was the last one.
    ///
    /// # Errors
    /// [`FragmentError::Overflow`] if a sum leaves 128 bits.
    pub fn merge_next(&self, merger: &mut Merger) -> Result<bool, FragmentError> {
        self.grouping().merge_next(merger, &self.columns)
    }

    /// Takes groups out of a merger, about a batch of them, each of them once; none once all have been taken. Nothing
    /// may be pushed in between.
    ///
    /// # Errors
    /// [`FragmentError::Overflow`] if a sum does not fit its state.
    pub fn take_merged(&self, merger: &mut Merger) -> Result<Vec<RecordBatch>, FragmentError> {
        self.grouping().take_next(merger, &self.columns)
    }

    /// Groups that were repartitioned, as batches.
    ///
    /// # Errors
    /// As [`Program::take_merged`].
    pub fn batches(&self, groups: Groups) -> Result<Vec<RecordBatch>, FragmentError> {
        self.grouping().batches(groups, &self.columns)
    }

    fn grouping(&self) -> &GroupPlan {
        match &self.output {
            OutputPlan::Groups(plan) => plan,
            OutputPlan::Rows(_) => unreachable!("groups of a program that has none"),
        }
    }

    /// Whether a row may be put out many times.
    pub fn has_several_matches(&self) -> bool {
        self.columns.lookups.have_several_matches()
    }

    /// Whether it yields groups by keys: any number of them.
    pub fn has_keys(&self) -> bool {
        matches!(&self.output, OutputPlan::Groups(plan) if plan.has_keys())
    }

    /// The rows that do not fill a batch yet, or the groups so far, if there are any keys, with the worker among so
    /// many to which the keys belong; rows and keyless groups with 0. More than one partial aggregate of a group may
    /// then be on its way to whoever merges them, as there is one of each worker anyway.
    ///
    /// # Errors
    /// As [`Program::finish`].
    pub fn flush(
        &self,
        partial: &mut Partial,
        workers: u32,
    ) -> Result<Vec<(u32, RecordBatch)>, FragmentError> {
        match (&self.output, &mut partial.output) {
            (OutputPlan::Groups(plan), OutputState::Groups(state)) if plan.has_keys() => {
                let state = std::mem::replace(&mut **state, plan.start());
                plan.finish_by_worker(state, workers, &self.columns)
            }
            (OutputPlan::Rows(plan), OutputState::Rows(state)) => Ok(plan
                .flush(state)?
                .into_iter()
                .map(|batch| (0, batch))
                .collect()),
            _ => Ok(Vec::new()),
        }
    }

    /// The rest of the rows, or the groups, with the worker among so many to which the keys belong; rows and keyless
    /// groups with 0. What is left of a chunk is not wanted any more.
    ///
    /// # Errors
    /// [`FragmentError::Overflow`] if a sum does not fit its state.
    ///
    /// # Panics
    /// If the share is midway in a chunk, and there is no limit.
    pub fn finish(
        &self,
        partial: Partial,
        workers: u32,
    ) -> Result<Vec<(u32, RecordBatch)>, FragmentError> {
        let limited = matches!(&self.output, OutputPlan::Rows(plan) if plan.is_limited());
        assert!(limited || !partial.is_midway(), "a chunk is not done with");
        match (&self.output, partial.output) {
            (OutputPlan::Rows(plan), OutputState::Rows(mut state)) => {
                let rest = plan.flush(&mut state)?.into_iter();
                Ok(rest.map(|batch| (0, batch)).collect())
            }
            (OutputPlan::Groups(plan), OutputState::Groups(state)) => {
                plan.finish_by_worker(*state, workers, &self.columns)
            }
            _ => unreachable!("a share of another program"),
        }
    }
}
