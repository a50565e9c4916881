//! A fragment, compiled; and a worker's share of its result.

use crate::columns::Columns;
use crate::filter::{Filter, FilterState, Passed};
use crate::group::{Division, GroupPlan, GroupState, Groups, Merger};
use crate::phases::{Left, Tally};
use crate::rows::{RowPlan, RowState};
use crate::work::Work;
use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use eris_column::{Dictionary, Selection};
use eris_fragment::{Fragment, FragmentError, Output, PhaseCounts, PhaseKind, Phases};
use eris_kernels::Isa;
use eris_store::ChunkView;
use eris_types::Timestamp;
use std::sync::Arc;

/// A fragment made ready to run: types resolved, conditions sorted, constants and key sets brought into the form in which
/// column chunks understand them. Made once per statement and shared by all workers.
#[derive(Debug)]
pub struct Program {
    columns: Columns,
    snapshot: Timestamp,
    filter: Filter,
    output: Plan,
    isa: Isa,
    phases: Arc<Phases>,
}

#[derive(Debug)]
enum Plan {
    Rows(RowPlan),
    Groups(GroupPlan),
}

/// What one worker has of a program's result so far: rows that do not fill a batch yet, or its groups; and what it has
/// learnt of the filter's selectivity. Belongs to the program that [started](Program::start) it.
#[derive(Debug)]
pub struct Partial {
    filter: FilterState,
    selection: Selection,
    output: Gathered,
}

#[derive(Debug)]
enum Gathered {
    Rows(RowState),
    Groups(Box<GroupState>),
}

impl Partial {
    /// Bytes of memory that the result so far takes. It only grows within [`Program::run`], by at most what one chunk
    /// adds, so that a caller can account the growth after each chunk.
    pub fn bytes(&self) -> usize {
        match &self.output {
            Gathered::Rows(state) => state.bytes(),
            Gathered::Groups(state) => state.bytes(),
        }
    }

    /// Groups so far; 0 for a program that yields rows.
    pub fn groups(&self) -> usize {
        match &self.output {
            Gathered::Rows(_) => 0,
            Gathered::Groups(state) => state.groups(),
        }
    }

    /// What each of the program's [phases](Program::phases) did so far, and the bytes of all its columns in the chunks that it
    /// ran over.
    pub fn phases(&self) -> (&[PhaseCounts], u64) {
        let tally = &self.filter.tally;
        (&tally.counts, tally.column_bytes)
    }
}

impl Program {
    /// Compiles a fragment over a table of this schema. `dictionaries` has one entry per column of the table, and each
    /// dictionary all codes of the chunks that the program will run on. Conditions on text with a dictionary are
    /// evaluated here, once per string.
    ///
    /// # Errors
    /// [`FragmentError::Malformed`] if the fragment contradicts itself or the schema.
    pub fn compile(
        fragment: &Fragment,
        schema: &Schema,
        dictionaries: &[Option<Dictionary>],
    ) -> Result<Program, FragmentError> {
        let columns = Columns::resolve(fragment, schema, dictionaries)?;
        refuse_computing_with_row_ids(fragment, &columns)?;
        refuse_conditions_on_lookups(fragment)?;
        let mut filter = Filter::compile(fragment, &columns)?;
        let mut kinds = std::mem::take(&mut filter.phases);
        kinds.extend([PhaseKind::Visible, PhaseKind::Output]);
        let phases = Arc::new(Phases {
            columns: columns.names.clone(),
            kinds,
        });
        let output = match &fragment.output {
            Output::Rows {
                columns: exprs,
                limit,
            } => Plan::Rows(RowPlan::compile(exprs, *limit, &columns)?),
            Output::Groups { keys, aggregates } => {
                Plan::Groups(GroupPlan::compile(keys, aggregates, &columns)?)
            }
        };
        Ok(Program {
            columns,
            snapshot: fragment.snapshot,
            filter,
            output,
            isa: Isa::best(),
            phases,
        })
    }

    /// What it does with the rows of a chunk.
    pub fn phases(&self) -> &Arc<Phases> {
        &self.phases
    }

    /// The stored columns that it reads, by their positions in a chunk.
    pub(crate) fn stored_columns(&self) -> impl Iterator<Item = usize> {
        let columns = 0..self.columns.ids.len();
        let columns = columns.filter(|&column| !self.columns.is_row_id(column));
        columns.map(|column| self.columns.ids[column].index())
    }

    /// The columns of the output: named like the expressions, of the types of `Fragment::output_types`.
    pub fn output_schema(&self) -> &SchemaRef {
        match &self.output {
            Plan::Rows(plan) => &plan.schema,
            Plan::Groups(plan) => &plan.schema,
        }
    }

    /// An empty share, for one worker.
    pub fn start(&self) -> Partial {
        Partial {
            filter: self.filter.start(),
            selection: Selection::default(),
            output: match &self.output {
                Plan::Rows(_) => Gathered::Rows(RowState::default()),
                Plan::Groups(plan) => Gathered::Groups(Box::new(plan.start())),
            },
        }
    }

    /// Whether the program needs no more chunks from this worker: its limit is reached, or nothing can pass.
    pub fn is_done(&self, partial: &Partial) -> bool {
        self.filter.never
            || match (&self.output, &partial.output) {
                (Plan::Rows(plan), Gathered::Rows(state)) => plan.is_full(state),
                _ => false,
            }
    }

    /// Runs over one chunk. Yields batches when enough rows have come together (a full chunk's rows make one batch, or
    /// several if they are wide); groups only come from [`Program::finish`]. After an error the share is lost.
    ///
    /// # Errors
    /// [`FragmentError::Overflow`] and [`FragmentError::Evaluation`] from expressions.
    pub fn run(
        &self,
        view: &ChunkView,
        partial: &mut Partial,
        work: &mut Work,
    ) -> Result<Vec<RecordBatch>, FragmentError> {
        partial.filter.tally.begin(view, &self.columns);
        if self.is_done(partial) {
            work.chunks_skipped += 1;
            return Ok(Vec::new());
        }
        let chunk = &*view.chunk;
        let only_count = match &self.output {
            Plan::Rows(_) => false,
            Plan::Groups(plan) => plan.only_counts(chunk, &self.columns),
        };
        let passed = self.filter.run(
            view,
            self.snapshot,
            &self.columns,
            self.isa,
            only_count,
            &mut partial.filter,
            &mut partial.selection,
            work,
        )?;
        let selection = &mut partial.selection;
        let FilterState { few, tally, .. } = &mut partial.filter;
        let few = matches!(passed, Passed::Few).then_some(&few[..]);
        match (passed, &self.output, &mut partial.output) {
            (Passed::Nothing, ..) => Ok(Vec::new()),
            (Passed::Counted(rows), Plan::Groups(plan), Gathered::Groups(state)) => {
                work.rows_passed += rows as u64;
                tally.took(tally.output(), rows, rows);
                plan.add_rows(rows, state);
                Ok(Vec::new())
            }
            (Passed::Selected | Passed::Few, Plan::Groups(plan), Gathered::Groups(state)) => {
                let rows = few.map_or_else(|| selection.count(), <[u32]>::len);
                work.rows_passed += rows as u64;
                tally.took(tally.output(), rows, rows);
                if only_count {
                    plan.add_rows(rows, state);
                    return Ok(Vec::new());
                }
                let left = || match few {
                    Some(few) => Left::Listed(few, chunk.rows()),
                    None => Left::Selected(selection),
                };
                self.touch(&plan.columns, view, left, tally, work);
                match few {
                    Some(few) => plan.add_few(chunk, &self.columns, self.isa, few, state)?,
                    None => plan.add(chunk, &self.columns, self.isa, selection, state)?,
                }
                Ok(Vec::new())
            }
            (Passed::Selected | Passed::Few, Plan::Rows(plan), Gathered::Rows(state)) => {
                if let Some(few) = few {
                    selection.reset_to(chunk.rows(), few);
                }
                let rows = selection.count();
                work.rows_passed += rows as u64;
                tally.took(tally.output(), rows, rows);
                let left = || Left::Selected(selection);
                self.touch(&plan.columns, view, left, tally, work);
                plan.add(chunk, &self.columns, self.isa, selection, state)
            }
            _ => unreachable!("a share of another program"),
        }
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

    /// Has groups leave the share from now on when they are too many for a cache; [`Program::take_dealt`] has them then.
    pub fn start_dealing(&self, division: Division, partial: &mut Partial) {
        if let (Plan::Groups(plan), Gathered::Groups(state)) = (&self.output, &mut partial.output) {
            plan.start_dealing(division, state);
        }
    }

    /// Has groups stay in the share again.
    pub fn stop_dealing(&self, partial: &mut Partial) {
        if let Gathered::Groups(state) = &mut partial.output {
            state.stop_dealing();
        }
    }

    /// Groups that have left the share, each with the worker to which their keys belong. More than one partial aggregate of a
    /// group may leave it.
    pub fn take_dealt(&self, partial: &mut Partial) -> Vec<(u32, Groups)> {
        match (&self.output, &mut partial.output) {
            (Plan::Groups(plan), Gathered::Groups(state)) => plan.take_dealt(state),
            _ => Vec::new(),
        }
    }

    /// All groups of the share, each with the worker to which their keys belong.
    pub fn deal(&self, division: Division, partial: &mut Partial) -> Vec<(u32, Groups)> {
        match (&self.output, &mut partial.output) {
            (Plan::Groups(plan), Gathered::Groups(state)) => {
                plan.deal(division, state, &self.columns)
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

    /// Takes groups out of a merger, about a batch of them, each of them once; none once all have been taken. Nothing may be
    /// pushed in between.
    ///
    /// # Errors
    /// [`FragmentError::Overflow`] if a sum does not fit its state.
    pub fn take_merged(&self, merger: &mut Merger) -> Result<Vec<RecordBatch>, FragmentError> {
        self.grouping().take_next(merger, &self.columns)
    }

    /// Groups that were dealt, as batches.
    ///
    /// # Errors
    /// As [`Program::take_merged`].
    pub fn batches(&self, groups: Groups) -> Result<Vec<RecordBatch>, FragmentError> {
        self.grouping().batches(groups, &self.columns)
    }

    fn grouping(&self) -> &GroupPlan {
        match &self.output {
            Plan::Groups(plan) => plan,
            Plan::Rows(_) => unreachable!("groups of a program that has none"),
        }
    }

    /// Whether it yields groups by keys: any number of them.
    pub fn has_keys(&self) -> bool {
        matches!(&self.output, Plan::Groups(plan) if plan.has_keys())
    }

    /// The rows that do not fill a batch yet, or the groups so far, if there are any keys, with the worker among so many to
    /// which the keys belong; rows and keyless groups with 0. More than one partial aggregate of a group may then be on its
    /// way to whoever merges them, as there is one of each worker anyway.
    ///
    /// # Errors
    /// As [`Program::finish`].
    pub fn flush(
        &self,
        partial: &mut Partial,
        workers: u32,
    ) -> Result<Vec<(u32, RecordBatch)>, FragmentError> {
        match (&self.output, &mut partial.output) {
            (Plan::Groups(plan), Gathered::Groups(state)) if plan.has_keys() => {
                let state = std::mem::replace(&mut **state, plan.start());
                plan.finish_by_worker(state, workers, &self.columns)
            }
            (Plan::Rows(plan), Gathered::Rows(state)) => Ok(plan
                .flush(state)?
                .into_iter()
                .map(|batch| (0, batch))
                .collect()),
            _ => Ok(Vec::new()),
        }
    }

    /// The rest of the rows, or the groups, with the worker among so many to which the keys belong; rows and keyless groups
    /// with 0.
    ///
    /// # Errors
    /// [`FragmentError::Overflow`] if a sum does not fit its state.
    pub fn finish(
        &self,
        partial: Partial,
        workers: u32,
    ) -> Result<Vec<(u32, RecordBatch)>, FragmentError> {
        match (&self.output, partial.output) {
            (Plan::Rows(plan), Gathered::Rows(mut state)) => {
                let rest = plan.flush(&mut state)?.into_iter();
                Ok(rest.map(|batch| (0, batch)).collect())
            }
            (Plan::Groups(plan), Gathered::Groups(state)) => {
                plan.finish_by_worker(*state, workers, &self.columns)
            }
            _ => unreachable!("a share of another program"),
        }
    }
}

/// What is joined is known of rows that passed.
fn refuse_conditions_on_lookups(fragment: &Fragment) -> Result<(), FragmentError> {
    let mut joined = false;
    let mut note = |position| joined |= position >= fragment.columns.len();
    let filter = fragment.filter.iter();
    filter.for_each(|expr| expr.for_each_column(&mut note));
    match joined {
        false => Ok(()),
        true => Err(FragmentError::Malformed {
            reason: "a condition on a column that the fragment does not read",
        }),
    }
}

/// Row ids are there to be handed out with rows, and to come back with what is to be done to them.
fn refuse_computing_with_row_ids(
    fragment: &Fragment,
    columns: &Columns,
) -> Result<(), FragmentError> {
    let mut computed = fragment
        .probes
        .iter()
        .any(|probe| columns.is_row_id(probe.column));
    let mut note = |position| computed |= columns.is_row_id(position);
    let filter = fragment.filter.iter();
    filter.for_each(|expr| expr.for_each_column(&mut note));
    match &fragment.output {
        Output::Rows { .. } => {}
        Output::Groups { keys, aggregates } => {
            let inputs = aggregates.iter().flat_map(|aggregate| {
                let input = aggregate.input.iter();
                input.chain(&aggregate.filter)
            });
            let exprs = keys.iter().chain(inputs);
            exprs.for_each(|expr| expr.for_each_column(&mut note));
        }
    }
    match computed {
        false => Ok(()),
        true => Err(FragmentError::Malformed {
            reason: "row ids in a condition or an aggregate",
        }),
    }
}
