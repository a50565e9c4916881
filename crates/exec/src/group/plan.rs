//! A compiled grouping, and a worker's state of it.

use super::deal::{Dealing, Groups};
use super::index::Index;
use super::input::{Values, Window, values};
use super::interner::Interner;
use super::keys::{Keys, Source};
use super::output;
use super::seen::Seen;
use super::state::{Numbers, State, overflow};
use crate::columns::Columns;
use crate::expr::Expression;
use crate::expr::ints::Integers;
use crate::filter::value_bounds;
use crate::window::{Position, Turn, Windows};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::{Field, Schema, SchemaRef};
use eris_column::{Domain, FEW_ROWS, Selection};
use eris_fragment::{Aggregate, AggregateFunction, Expr, FragmentError, Type};
use eris_kernels::Isa;
use eris_store::Chunk;
use std::borrow::Cow;
use std::sync::Arc;

/// Rows of a window: what is gathered for it stays in the second-level cache.
const WINDOW_ROWS: usize = 4_096;
/// The same of rows that are joined to several: a few for each are taken in at once.
const JOINED_ROWS: usize = 4 * WINDOW_ROWS;

/// A compiled grouping.
#[derive(Debug)]
pub(crate) struct GroupPlan {
    pub(super) keys: Keys,
    pub(super) aggregates: Vec<AggregatePlan>,
    /// All columns that are read, ascending.
    pub(crate) columns: Vec<usize>,
    pub(crate) schema: SchemaRef,
    /// All it does is count rows, and values of these columns: where none of them is NULL, only the number of rows
    /// matters.
    only_counts: Option<Vec<usize>>,
}

#[derive(Debug)]
pub(super) struct AggregatePlan {
    input: Input,
    filter: Option<Expression>,
    function: AggregateFunction,
    /// The type of the argument.
    argument: Option<Type>,
    state: Type,
    /// For messages.
    pub(super) text: String,
}

/// Where the values of an aggregate come from.
#[derive(Debug)]
enum Input {
    /// No values: rows are counted.
    Rows,
    /// Only whether the column is NULL.
    Validity(usize),
    /// A column of stored integers.
    Stored(usize),
    /// A column of floats.
    Floats(usize),
    /// A column of text.
    Text(usize),
    /// Arithmetic on stored integers; the expression where it might overflow.
    Computed(Integers, Expression),
    /// Anything else.
    General(Expression),
}

/// A worker's groups.
#[derive(Debug)]
pub(crate) struct GroupState {
    pub(super) index: Index,
    pub(super) interners: Vec<Interner>,
    pub(super) states: Vec<State>,
    numbers: Vec<u32>,
    /// The rows of a chunk of which few are left.
    rows: Vec<u32>,
    pub(super) dealing: Option<Dealing>,
}

impl GroupPlan {
    pub(crate) fn compile(
        keys: &[Expr],
        aggregates: &[Aggregate],
        columns: &Columns,
    ) -> Result<Self, FragmentError> {
        let name = |position| columns.name(position);
        let named = |expr: &Expr| expr.named(&name).to_string();
        let texts: Vec<String> = keys.iter().map(named).collect();
        let keys = Keys::compile(keys, columns)?;
        let plans: Result<Vec<_>, _> = aggregates
            .iter()
            .map(|aggregate| AggregatePlan::compile(aggregate, columns))
            .collect();
        let plans = plans?;
        let key_fields = texts
            .into_iter()
            .zip(&keys.parts)
            .map(|(text, &part)| Field::new(text, keys.data_type(part).clone(), true));
        let state_fields = plans.iter().map(|plan| {
            let nullable = plan.function != AggregateFunction::Count;
            Field::new(&plan.text, (&plan.state).into(), nullable)
        });
        let schema = Schema::new(key_fields.chain(state_fields).collect::<Vec<_>>());
        let counted = |plan: &AggregatePlan| match (&plan.input, &plan.filter) {
            (Input::Rows, None) => Some(None),
            (Input::Validity(column), None) if columns.joined(*column).is_none() => {
                Some(Some(*column))
            }
            _ => None,
        };
        let only_counts = match keys.keys[..] {
            [] => plans.iter().map(counted).collect::<Option<Vec<_>>>(),
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
            index: Index::new(&self.keys),
            interners: self.keys.keys.iter().map(|_| Interner::default()).collect(),
            states: self.aggregates.iter().map(AggregatePlan::start).collect(),
            numbers: Vec::new(),
            rows: Vec::new(),
            dealing: None,
        };
        if self.keys.keys.is_empty() {
            state.states.iter_mut().for_each(|state| state.grow(1));
        }
        state
    }

    /// A table for groups to be merged into.
    pub(super) fn table(&self) -> GroupState {
        GroupState {
            index: Index::of_packed(Vec::new(), &self.keys),
            ..self.start()
        }
    }

    /// A table of these groups, to be finished.
    pub(super) fn table_of(&self, groups: Groups) -> GroupState {
        GroupState {
            index: Index::of_packed(groups.packed, &self.keys),
            interners: groups.texts.into_iter().map(Interner::of_texts).collect(),
            states: groups.states,
            numbers: Vec::new(),
            rows: Vec::new(),
            dealing: None,
        }
    }

    /// Whether for this chunk only the number of passing rows matters.
    pub(crate) fn only_counts(&self, chunk: &Chunk, columns: &Columns) -> bool {
        let no_null = |&column: &usize| chunk.column(columns.ids[column]).nulls() == 0;
        matches!(&self.only_counts, Some(counted) if counted.iter().all(no_null))
    }

    /// Takes in a number of rows, after [`GroupPlan::only_counts`].
    ///
    /// # Errors
    /// [`FragmentError::Overflow`] if there are more than can be counted.
    pub(crate) fn add_rows(&self, rows: u64, state: &mut GroupState) -> Result<(), FragmentError> {
        for (plan, state) in self.aggregates.iter().zip(&mut state.states) {
            state.count_more(rows).ok_or_else(|| overflow(&plan.text))?;
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
        columns: &Columns,
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
        columns: &Columns,
        isa: Isa,
        selection: &Selection,
        from: Position,
        state: &mut GroupState,
    ) -> Result<Turn, FragmentError> {
        let count = selection.count();
        if count <= selection.rows() / FEW_ROWS {
            let mut rows = std::mem::take(&mut state.rows);
            selection.positions(isa, count, &mut rows);
            let turn = self.add_few(chunk, columns, isa, &rows, from, state)?;
            state.rows = rows;
            return Ok(turn);
        }
        let mut windows = Windows::starting(WINDOW_ROWS, from.word);
        let mut from = from;
        let mut turn = Turn::default();
        while let Some(selection) = windows.next(selection) {
            let window = Window::new(chunk, columns, isa, selection);
            if self.add_window(window, from, &mut turn, state)? {
                break;
            }
            from = Position::window(windows.end());
        }
        Ok(turn)
    }

    /// Takes in a few rows of a chunk, which ascend.
    pub(crate) fn add_few(
        &self,
        chunk: &Chunk,
        columns: &Columns,
        isa: Isa,
        rows: &[u32],
        from: Position,
        state: &mut GroupState,
    ) -> Result<Turn, FragmentError> {
        let mut turn = Turn::default();
        let window = Window::of_few(chunk, columns, isa, rows);
        self.add_window(window, from, &mut turn, state)?;
        Ok(turn)
    }

    /// Takes in a window's rows; whether the turn ends in it.
    fn add_window(
        &self,
        mut window: Window<'_>,
        from: Position,
        turn: &mut Turn,
        state: &mut GroupState,
    ) -> Result<bool, FragmentError> {
        window.skip_to(from.row);
        while window.advance(JOINED_ROWS) {
            self.add_at_hand(&mut window, state)?;
            let next = window.next().map(|row| Position { row, ..from });
            if turn.took(window.rows, next) {
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
            let (lanes, nulls) = self.keys.load(window, &mut state.interners)?;
            let lanes: Vec<&[i64]> = lanes.iter().map(|lane| lane.of(window)).collect();
            state
                .index
                .assign(window.isa, &self.keys, &lanes, &nulls, &mut state.numbers);
        }
        let numbers = match grouped {
            true => Numbers::Each(&state.numbers),
            false => Numbers::One(window.rows),
        };
        for (plan, entries) in self.aggregates.iter().zip(&mut state.states) {
            if grouped {
                entries.grow(state.index.groups());
            }
            plan.add(window, numbers, entries)?;
        }
        self.deal_if_many(window.rows, state, window.columns);
        Ok(())
    }

    /// Whether there may be more than one group.
    pub(crate) fn has_keys(&self) -> bool {
        !self.keys.keys.is_empty()
    }

    pub(crate) fn finish(
        &self,
        state: GroupState,
        columns: &Columns,
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
            let array = entries.finish(&plan.state);
            arrays.push(array.ok_or_else(|| overflow(&plan.text))?);
        }
        output::batches(&self.schema, arrays, groups)
    }
}

impl GroupState {
    /// Memory taken.
    pub(crate) fn bytes(&self) -> usize {
        self.index.bytes()
            + self.interners.iter().map(Interner::bytes).sum::<usize>()
            + self.states.iter().map(State::bytes).sum::<usize>()
            + (self.numbers.capacity() + self.rows.capacity()) * size_of::<u32>()
            + self.dealing.as_ref().map_or(0, Dealing::bytes)
    }

    /// Groups so far.
    pub(crate) fn groups(&self) -> usize {
        self.index.groups()
    }
}

impl AggregatePlan {
    fn compile(aggregate: &Aggregate, columns: &Columns) -> Result<Self, FragmentError> {
        let malformed = |reason| Err(FragmentError::Malformed { reason });
        let Aggregate {
            function,
            input,
            filter,
            state,
        } = aggregate;
        let name = |position| columns.name(position);
        let argument = match input {
            Some(expr) => Some(expr.data_type(&columns.types)?),
            None => None,
        };
        match (function, &argument) {
            (AggregateFunction::Count, _) if *state != Type::Int64 => {
                return malformed("a COUNT whose state is not BIGINT");
            }
            (AggregateFunction::Count, _) => {}
            (_, None) => return malformed("an aggregate without an argument"),
            (AggregateFunction::Sum, Some(argument)) if sums_to(argument, state) => {}
            (AggregateFunction::Sum, _) => {
                return malformed("a SUM whose state is not of the argument's kind");
            }
            (_, Some(argument)) if argument != state => {
                return malformed("a MIN or MAX whose state is not of the argument's type");
            }
            _ => {}
        }
        let text = match input {
            Some(expr) => format!("{function}({})", expr.named(&name)),
            None => format!("{function}(*)"),
        };
        let filter = filter
            .as_ref()
            .map(|filter| Expression::condition(filter, columns));
        Ok(AggregatePlan {
            input: match input {
                None => Input::Rows,
                Some(expr) => Input::compile(expr, *function, columns)?,
            },
            filter: filter.transpose()?,
            function: *function,
            argument,
            state: state.clone(),
            text,
        })
    }

    fn start(&self) -> State {
        let seen = Seen::default();
        let max = self.function == AggregateFunction::Max;
        let domain = self
            .argument
            .as_ref()
            .map(|data_type| Domain::of(&data_type.into()).expect("a type of the language"));
        match (self.function, domain) {
            (AggregateFunction::Count, _) | (_, None) => State::Count(Vec::new()),
            (AggregateFunction::Sum, Some(Domain::Float32 | Domain::Float64)) => {
                let sums = Vec::new();
                State::SumFloats { sums, seen }
            }
            (AggregateFunction::Sum, _) => State::SumIntegers {
                sums: Vec::new(),
                rest: Vec::new(),
                seen,
                // Stored with the top bit flipped.
                offset: match self.argument {
                    Some(Type::UInt64) => 1 << 63,
                    _ => 0,
                },
            },
            (_, Some(Domain::Wide)) => State::ExtremeWide {
                best: Vec::new(),
                seen,
                max,
            },
            (_, Some(Domain::Text)) => State::ExtremeText {
                ranks: Vec::new(),
                texts: Vec::new(),
                dictionary: None,
                max,
            },
            (_, Some(_)) => State::Extreme {
                best: Vec::new(),
                seen,
                max,
            },
        }
    }

    /// Takes in the rows of a window.
    fn add(
        &self,
        window: &mut Window<'_>,
        numbers: Numbers<'_>,
        state: &mut State,
    ) -> Result<(), FragmentError> {
        let filter = match &self.filter {
            Some(filter) => {
                let frame = window.frame(filter);
                let counts = filter.holds(&frame)?;
                if counts.count_set_bits() == 0 {
                    return Ok(());
                }
                Some(counts)
            }
            None => None,
        };
        let counting = matches!(self.function, AggregateFunction::Count);
        let (values, nulls) = match &self.input {
            Input::Rows => (None, None),
            Input::Validity(column) => (None, window.validity(*column)),
            Input::Stored(column) => {
                window.load_integers(*column);
                let nulls = window.validity(*column);
                let values = Cow::Borrowed(window.integers(*column));
                (Some(Values::Integers(values)), nulls)
            }
            Input::Floats(column) => {
                let values = Values::Floats(window.floats(*column));
                (Some(values), window.validity(*column))
            }
            Input::Text(column) if window.is_coded(*column) => {
                if let State::ExtremeText { dictionary, .. } = state {
                    let of_column = &window.columns.dictionaries[*column];
                    dictionary.get_or_insert_with(|| {
                        of_column
                            .clone()
                            .expect("a chunk of codes comes with its dictionary")
                    });
                }
                window.load_integers(*column);
                let nulls = window.validity(*column);
                let codes = Cow::Borrowed(window.integers(*column));
                (Some(Values::Codes(codes)), nulls)
            }
            Input::Text(column) => array_values(window.array(*column)),
            Input::Computed(integers, general) => match integers
                .range(&|column| window.range(column))
            {
                Some(_) => {
                    let columns = &general.columns;
                    columns
                        .iter()
                        .for_each(|&column| window.load_integers(column));
                    let nulls = columns
                        .iter()
                        .fold(None, |nulls: Option<NullBuffer>, &column| {
                            NullBuffer::union(nulls.as_ref(), window.validity(column).as_ref())
                        });
                    let values = integers.evaluate(window.rows, &|column| window.integers(column));
                    (Some(Values::Integers(values)), nulls)
                }
                None => {
                    array_values(&general.evaluate_where(&window.frame(general), filter.as_ref())?)
                }
            },
            Input::General(expression) => {
                let frame = window.frame(expression);
                let array = expression.evaluate_where(&frame, filter.as_ref())?;
                match counting {
                    true => (None, array.logical_nulls()),
                    false => array_values(&array),
                }
            }
        };
        let counts = both(filter, nulls.filter(|nulls| nulls.null_count() > 0));
        match values {
            Some(values) => state
                .update(window.isa, numbers, &values, counts.as_ref())
                .ok_or_else(|| overflow(&self.text)),
            None => {
                state.count(numbers, counts.as_ref());
                Ok(())
            }
        }
    }
}

/// The fragment's columns that a grouping reads, ascending, each once.
fn columns_read(keys: &Keys, aggregates: &[AggregatePlan], of: &Columns) -> Vec<usize> {
    let mut columns = Vec::new();
    for key in &keys.keys {
        match &key.source {
            Source::Expression(expression) => columns.extend(&expression.columns),
            Source::Joined(combinations) => columns.push(combinations.column),
        }
    }
    for plan in aggregates {
        match &plan.input {
            Input::Rows => {}
            Input::Validity(column)
            | Input::Stored(column)
            | Input::Floats(column)
            | Input::Text(column) => columns.push(*column),
            Input::Computed(_, general) | Input::General(general) => {
                columns.extend(&general.columns);
            }
        }
        columns.extend(plan.filter.iter().flat_map(|filter| &filter.columns));
    }
    of.sources(columns)
}

fn array_values(array: &ArrayRef) -> (Option<Values<'static>>, Option<NullBuffer>) {
    (Some(values(array)), array.logical_nulls())
}

/// The rows that pass a filter and are not NULL; `None` for all.
fn both(filter: Option<BooleanBuffer>, nulls: Option<NullBuffer>) -> Option<BooleanBuffer> {
    match (filter, nulls) {
        (Some(filter), Some(nulls)) => Some(&filter & nulls.inner()),
        (Some(filter), None) => Some(filter),
        (None, Some(nulls)) => Some(nulls.into_inner()),
        (None, None) => None,
    }
}

/// Whether a SUM over the one type can have a state of the other.
fn sums_to(argument: &Type, state: &Type) -> bool {
    let is_integer = |data_type: &Type| {
        matches!(
            data_type,
            Type::Int8
                | Type::Int16
                | Type::Int32
                | Type::Int64
                | Type::UInt8
                | Type::UInt16
                | Type::UInt32
                | Type::UInt64
        )
    };
    match (argument, state) {
        (Type::Decimal { scale: from, .. }, Type::Decimal { scale: to, .. }) => from == to,
        (Type::Float32 | Type::Float64, Type::Float32 | Type::Float64) => true,
        _ => is_integer(argument) && is_integer(state) && value_bounds(state).is_some(),
    }
}

impl Input {
    fn compile(
        expr: &Expr,
        function: AggregateFunction,
        columns: &Columns,
    ) -> Result<Self, FragmentError> {
        let general = Expression::compile(expr, columns)?;
        if let Expr::Column(column) = expr {
            return Ok(match columns.domains[*column] {
                _ if function == AggregateFunction::Count => Input::Validity(*column),
                Domain::Integer => Input::Stored(*column),
                Domain::Float32 | Domain::Float64 => Input::Floats(*column),
                Domain::Text => Input::Text(*column),
                Domain::Wide => Input::General(general),
            });
        }
        let counted = function == AggregateFunction::Count;
        if counted && matches!(expr, Expr::Literal(scalar) if !scalar.is_null()) {
            return Ok(Input::Rows);
        }
        let integers = Integers::compile(expr, columns).filter(|_| !counted);
        Ok(match integers {
            Some(integers) => Input::Computed(integers, general),
            None => Input::General(general),
        })
    }
}
