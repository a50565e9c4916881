//! A compiled grouping, and a worker's state of it.

use super::aggregate::AggregatePlan;
use super::index::GroupIndex;
use super::input::Window;
use super::interner::Interner;
use super::keys::{GroupKeys, KeySource};
use super::output;
use super::repartition::{GroupOverflow, Groups};
use super::state::{AggregateState, GroupNumbers, overflow};
use crate::columns::FragmentColumns;
use crate::window::{ChunkPosition, OutputStep, Windows};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema, SchemaRef};
use eris_column::{FEW_ROWS, Selection};
use eris_fragment::{Aggregate, Expr, FragmentError};
use eris_kernels::Isa;
use eris_store::Chunk;
use std::sync::Arc;

/// Rows of a window: what is gathered for it stays in the second-level cache.
const WINDOW_ROWS: usize = 4_096;
/// The same of rows that are joined to several: a few for each are taken in at once.
const JOINED_ROWS: usize = 4 * WINDOW_ROWS;

/// A compiled grouping.
#[derive(Debug)]
pub(crate) struct GroupPlan {
    pub(super) keys: GroupKeys,
    pub(super) aggregates: Vec<AggregatePlan>,
    /// All columns that are read, ascending.
    pub(crate) columns: Vec<usize>,
    pub(crate) schema: SchemaRef,
    /// All it does is count rows, and values of these columns: where none of them is NULL, only the number of rows
    /// matters.
    only_counts: Option<Vec<usize>>,
}

/// A worker's groups.
#[derive(Debug)]
pub(crate) struct GroupState {
    pub(super) index: GroupIndex,
    pub(super) interners: Vec<Interner>,
    pub(super) states: Vec<AggregateState>,
    numbers: Vec<u32>,
    /// The rows of a chunk of which few are left.
    rows: Vec<u32>,
    pub(super) repartitioning: Option<GroupOverflow>,
}

impl GroupPlan {
    pub(crate) fn compile(
        keys: &[Expr],
        aggregates: &[Aggregate],
        columns: &FragmentColumns,
    ) -> Result<Self, FragmentError> {
        let name = |position| columns.name(position);
        let named = |expr: &Expr| expr.named(&name).to_string();
        let texts: Vec<String> = keys.iter().map(named).collect();
        let keys = GroupKeys::compile(keys, columns)?;
        let plans: Result<Vec<_>, _> = aggregates
            .iter()
            .map(|aggregate| AggregatePlan::compile(aggregate, columns))
            .collect();
        let plans = plans?;
        let key_fields = texts
            .into_iter()
            .zip(&keys.parts)
            .map(|(text, &part)| Field::new(text, keys.data_type(part).clone(), true));
        let state_fields = plans.iter().map(AggregatePlan::schema_field);
        let schema = Schema::new(key_fields.chain(state_fields).collect::<Vec<_>>());
        let only_counts = match keys.keys[..] {
            [] => plans
                .iter()
                .map(|plan| plan.counted(columns))
                .collect::<Option<Vec<_>>>(),
            _ => None,
        };
        Ok(GroupPlan {
            columns: columns_read(&keys, &plans, columns),
            keys,
            aggregates: plans,
            schema: Arc::new(schema),
            only_counts: only_counts.map(|columns| columns.into_iter().flatten().collect()),
        })
    }

    pub(crate) fn start(&self) -> GroupState {
        let mut state = GroupState {
            index: GroupIndex::new(&self.keys),
            interners: self.keys.keys.iter().map(|_| Interner::default()).collect(),
            states: self.aggregates.iter().map(AggregatePlan::start).collect(),
            numbers: Vec::new(),
            rows: Vec::new(),
            repartitioning: None,
        };
        if self.keys.keys.is_empty() {
            state.states.iter_mut().for_each(|state| state.grow(1));
        }
        state
    }

    /// A table for groups to be merged into.
    pub(super) fn table(&self) -> GroupState {
        GroupState {
            index: GroupIndex::of_packed(Vec::new(), &self.keys),
            ..self.start()
        }
    }

    /// A table of these groups, to be finished.
    pub(super) fn table_of(&self, groups: Groups) -> GroupState {
        GroupState {
            index: GroupIndex::of_packed(groups.packed, &self.keys),
            interners: groups
                .strings
                .into_iter()
                .map(Interner::of_strings)
                .collect(),
            states: groups.states,
            numbers: Vec::new(),
            rows: Vec::new(),
            repartitioning: None,
        }
    }

    /// Whether for this chunk only the number of passing rows matters.
    pub(crate) fn only_counts(&self, chunk: &Chunk, columns: &FragmentColumns) -> bool {
        let no_null = |&column: &usize| chunk.column(columns.ids[column]).nulls() == 0;
        matches!(&self.only_counts, Some(counted) if counted.iter().all(no_null))
    }

    /// Takes in a number of rows, after [`GroupPlan::only_counts`].
    ///
    /// # Errors
    /// [`FragmentError::Overflow`] if there are more than can be counted.
    pub(crate) fn add_rows(&self, rows: u64, state: &mut GroupState) -> Result<(), FragmentError> {
        for (plan, state) in self.aggregates.iter().zip(&mut state.states) {
            plan.add_rows(rows, state)?;
        }
        Ok(())
    }

    /// How many rows there are with what is joined to the selected rows of a chunk.
    ///
    /// # Errors
    /// [`FragmentError::Overflow`] if there are more than can be counted.
    pub(crate) fn count(
        &self,
        chunk: &Chunk,
        columns: &FragmentColumns,
        isa: Isa,
        selection: &Selection,
    ) -> Result<u64, FragmentError> {
        let mut windows = Windows::new(WINDOW_ROWS);
        let mut rows = 0u64;
        while let Some(selection) = windows.next(selection) {
            let window = Window::new(chunk, columns, isa, selection).count();
            let all = window.and_then(|window| rows.checked_add(window));
            rows = all.ok_or_else(|| overflow("the number of joined rows"))?;
        }
        Ok(rows)
    }

    /// Takes in the selected rows of a chunk, from a position on.
    pub(crate) fn add(
        &self,
        chunk: &Chunk,
        columns: &FragmentColumns,
        isa: Isa,
        selection: &Selection,
        from: ChunkPosition,
        state: &mut GroupState,
    ) -> Result<OutputStep, FragmentError> {
        let count = selection.count();
        if count <= selection.rows() / FEW_ROWS {
            let mut rows = std::mem::take(&mut state.rows);
            selection.positions(isa, count, &mut rows);
            let step = self.add_few(chunk, columns, isa, &rows, from, state)?;
            state.rows = rows;
            return Ok(step);
        }
        let mut windows = Windows::starting(WINDOW_ROWS, from.word);
        let mut from = from;
        let mut step = OutputStep::default();
        while let Some(selection) = windows.next(selection) {
            let window = Window::new(chunk, columns, isa, selection);
            if self.add_window(window, from, &mut step, state)? {
                break;
            }
            from = ChunkPosition::window(windows.end());
        }
        Ok(step)
    }

    /// Takes in a few rows of a chunk, which ascend.
    pub(crate) fn add_few(
        &self,
        chunk: &Chunk,
        columns: &FragmentColumns,
        isa: Isa,
        rows: &[u32],
        from: ChunkPosition,
        state: &mut GroupState,
    ) -> Result<OutputStep, FragmentError> {
        let mut step = OutputStep::default();
        let window = Window::of_few(chunk, columns, isa, rows);
        self.add_window(window, from, &mut step, state)?;
        Ok(step)
    }

    /// Takes in a window's rows; whether the step ends in it.
    fn add_window(
        &self,
        mut window: Window<'_>,
        from: ChunkPosition,
        step: &mut OutputStep,
        state: &mut GroupState,
    ) -> Result<bool, FragmentError> {
        window.skip_to(from.row);
        while window.advance(JOINED_ROWS) {
            self.add_at_hand(&mut window, state)?;
            let next = window.next().map(|row| ChunkPosition { row, ..from });
            if step.took(window.rows, next) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn add_at_hand(
        &self,
        window: &mut Window<'_>,
        state: &mut GroupState,
    ) -> Result<(), FragmentError> {
        let grouped = !self.keys.keys.is_empty();
        if grouped {
            let (fields, nulls) = self.keys.load(window, &mut state.interners)?;
            let fields: Vec<&[i64]> = fields.iter().map(|field| field.of(window)).collect();
            state
                .index
                .assign(window.isa, &self.keys, &fields, &nulls, &mut state.numbers);
        }
        let numbers = match grouped {
            true => GroupNumbers::Each(&state.numbers),
            false => GroupNumbers::One(window.rows),
        };
        for (plan, entries) in self.aggregates.iter().zip(&mut state.states) {
            if grouped {
                entries.grow(state.index.groups());
            }
            plan.add(window, numbers, entries)?;
        }
        self.repartition_if_many(window.rows, state, window.columns);
        Ok(())
    }

    /// Whether there may be more than one group.
    pub(crate) fn has_keys(&self) -> bool {
        !self.keys.keys.is_empty()
    }

    pub(crate) fn finish(
        &self,
        state: GroupState,
        columns: &FragmentColumns,
    ) -> Result<Vec<RecordBatch>, FragmentError> {
        let groups = if self.keys.keys.is_empty() {
            1
        } else {
            state.index.groups()
        };
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        for &part in &self.keys.parts {
            let (index, interners) = (&state.index, &state.interners);
            let array = output::key_array(part, &self.keys, index, interners, columns);
            arrays.push(array);
        }
        for (plan, entries) in self.aggregates.iter().zip(state.states) {
            arrays.push(plan.finish(entries)?);
        }
        output::batches(&self.schema, arrays, groups)
    }
}

impl GroupState {
    /// Memory taken.
    pub(crate) fn bytes(&self) -> usize {
        self.index.bytes()
            + self.interners.iter().map(Interner::bytes).sum::<usize>()
            + self.states.iter().map(AggregateState::bytes).sum::<usize>()
            + (self.numbers.capacity() + self.rows.capacity()) * size_of::<u32>()
            + self.repartitioning.as_ref().map_or(0, GroupOverflow::bytes)
    }

    /// Groups so far.
    pub(crate) fn groups(&self) -> usize {
        self.index.groups()
    }
}

/// The fragment's columns that a grouping reads, ascending, each once.
fn columns_read(
    keys: &GroupKeys,
    aggregates: &[AggregatePlan],
    of: &FragmentColumns,
) -> Vec<usize> {
    let mut columns = Vec::new();
    for key in &keys.keys {
        match &key.source {
            KeySource::Expression(expression) => columns.extend(&expression.columns),
            KeySource::Joined(combinations) => columns.push(combinations.column),
        }
    }
    for plan in aggregates {
        plan.add_columns(&mut columns);
    }
    of.sources(columns)
}
