//! One aggregate of a grouping, compiled: where its values come from, and what state they go to.

use super::input::Window;
use super::seen::SeenGroups;
use super::state::{AggregateState, GroupNumbers, overflow};
use crate::bounds::value_bounds;
use crate::columns::FragmentColumns;
use crate::expr::Expression;
use crate::expr::ints::Integers;
use crate::values::{Values, values};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use arrow_schema::Field;
use eris_column::Domain;
use eris_fragment::{Aggregate, AggregateFunction, Expr, FragmentError, Type};
use std::borrow::Cow;
use std::ops::Range;

/// A compiled aggregate.
#[derive(Debug)]
pub(super) struct AggregatePlan {
    input: AggregateInput,
    filter: Option<Expression>,
    function: AggregateFunction,
    /// The type of the argument.
    argument: Option<Type>,
    state: Type,
    /// For messages.
    text: String,
}

/// Where the values of an aggregate come from.
#[derive(Debug)]
enum AggregateInput {
    /// No values: rows are counted.
    Rows,
    /// Only whether the column is NULL.
    Validity(usize),
    /// A column of stored integers.
    Stored(usize),
    /// A column of floats.
    Floats(usize),
    /// A column of strings.
    Strings(usize),
    /// Arithmetic on stored integers; the expression where it might overflow.
    Computed(Integers, Expression),
    /// Anything else.
    General(Expression),
}

impl AggregatePlan {
    pub(super) fn compile(
        aggregate: &Aggregate,
        columns: &FragmentColumns,
    ) -> Result<Self, FragmentError> {
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
            (_, Some(argument)) if !argument.is_grouped() => {
                return malformed("a MIN or MAX of values of a type that is not grouped");
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
                None => AggregateInput::Rows,
                Some(expr) => AggregateInput::compile(expr, *function, columns)?,
            },
            filter: filter.transpose()?,
            function: *function,
            argument,
            state: state.clone(),
            text,
        })
    }

    pub(super) fn start(&self) -> AggregateState {
        let seen = SeenGroups::default();
        let max = self.function == AggregateFunction::Max;
        let domain = self
            .argument
            .as_ref()
            .map(|data_type| Domain::of(&data_type.into()).expect("a type of the language"));
        match (self.function, domain) {
            (AggregateFunction::Count, _) | (_, None) => AggregateState::Count(Vec::new()),
            (AggregateFunction::Sum, Some(Domain::Float32 | Domain::Float64)) => {
                let sums = Vec::new();
                AggregateState::SumFloats { sums, seen }
            }
            (AggregateFunction::Sum, _) => AggregateState::SumIntegers {
                sums: Vec::new(),
                rest: Vec::new(),
                seen,
                // Stored with the top bit flipped.
                offset: match self.argument {
                    Some(Type::UInt64) => 1 << 63,
                    _ => 0,
                },
            },
            (_, Some(Domain::Wide)) => AggregateState::ExtremeWide {
                best: Vec::new(),
                seen,
                max,
            },
            (_, Some(Domain::String)) => AggregateState::ExtremeString {
                ranks: Vec::new(),
                strings: Vec::new(),
                dictionary: None,
                max,
            },
            (_, Some(_)) => AggregateState::Extreme {
                best: Vec::new(),
                seen,
                max,
            },
        }
    }

    /// The field of the state in the output.
    pub(super) fn schema_field(&self) -> Field {
        let nullable = self.function != AggregateFunction::Count;
        Field::new(&self.text, (&self.state).into(), nullable)
    }

    /// What an aggregate needs that only counts rows, or values of a column: the column whose NULLs do not count, if
    /// there is one. `None`: it needs more.
    pub(super) fn counted(&self, columns: &FragmentColumns) -> Option<Option<usize>> {
        match (&self.input, &self.filter) {
            (AggregateInput::Rows, None) => Some(None),
            (AggregateInput::Validity(column), None) if columns.joined(*column).is_none() => {
                Some(Some(*column))
            }
            _ => None,
        }
    }

    /// Adds the columns that are read.
    pub(super) fn add_columns(&self, columns: &mut Vec<usize>) {
        match &self.input {
            AggregateInput::Rows => {}
            AggregateInput::Validity(column)
            | AggregateInput::Stored(column)
            | AggregateInput::Floats(column)
            | AggregateInput::Strings(column) => columns.push(*column),
            AggregateInput::Computed(_, general) | AggregateInput::General(general) => {
                columns.extend(&general.columns);
            }
        }
        columns.extend(self.filter.iter().flat_map(|filter| &filter.columns));
    }

    /// Takes in a number of rows, where it only counts.
    ///
    /// # Errors
    /// [`FragmentError::Overflow`] if there are more than can be counted.
    pub(super) fn add_rows(
        &self,
        rows: u64,
        state: &mut AggregateState,
    ) -> Result<(), FragmentError> {
        state.count_more(rows).ok_or_else(|| self.overflow())
    }

    /// Merges some groups' states of another worker: see [`AggregateState::merge`].
    ///
    /// # Errors
    /// [`FragmentError::Overflow`] if a sum leaves 128 bits.
    pub(super) fn merge(
        &self,
        ours: &mut AggregateState,
        theirs: &AggregateState,
        groups: Range<usize>,
        numbers: &[u32],
    ) -> Result<(), FragmentError> {
        let merged = ours.merge(theirs, groups, numbers);
        merged.ok_or_else(|| self.overflow())
    }

    fn overflow(&self) -> FragmentError {
        overflow(&self.text)
    }

    /// The state column.
    ///
    /// # Errors
    /// [`FragmentError::Overflow`] if a sum does not fit its type.
    pub(super) fn finish(&self, state: AggregateState) -> Result<ArrayRef, FragmentError> {
        let array = state.finish(&self.state);
        array.ok_or_else(|| self.overflow())
    }

    /// Takes in the rows of a window.
    pub(super) fn add(
        &self,
        window: &mut Window<'_>,
        numbers: GroupNumbers<'_>,
        state: &mut AggregateState,
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
        let isa = window.isa;
        let (values, nulls) = self.values(window, filter.as_ref(), state)?;
        let counts = both(filter, nulls.filter(|nulls| nulls.null_count() > 0));
        match values {
            Some(values) => state
                .update(isa, numbers, &values, counts.as_ref())
                .ok_or_else(|| self.overflow()),
            None => {
                state.count(numbers, counts.as_ref());
                Ok(())
            }
        }
    }

    /// The values of the rows of a window, unless rows are only counted; and which are not NULL. `filter` says which
    /// rows count.
    fn values<'a>(
        &self,
        window: &'a mut Window<'_>,
        filter: Option<&BooleanBuffer>,
        state: &mut AggregateState,
    ) -> Result<LoadedValues<'a>, FragmentError> {
        Ok(match &self.input {
            AggregateInput::Rows => (None, None),
            AggregateInput::Validity(column) => (None, window.validity(*column)),
            AggregateInput::Stored(column) => {
                let (values, nulls) = stored(window, *column);
                (Some(Values::Integers(values)), nulls)
            }
            AggregateInput::Floats(column) => {
                let values = Values::Floats(window.floats(*column));
                (Some(values), window.validity(*column))
            }
            AggregateInput::Strings(column) if window.is_coded(*column) => {
                if let AggregateState::ExtremeString { dictionary, .. } = state {
                    let of_column = &window.columns.dictionaries[*column];
                    dictionary.get_or_insert_with(|| {
                        of_column
                            .clone()
                            .expect("a chunk of codes comes with its dictionary")
                    });
                }
                let (codes, nulls) = stored(window, *column);
                (Some(Values::Codes(codes)), nulls)
            }
            AggregateInput::Strings(column) => array_values(window.array(*column)),
            AggregateInput::Computed(integers, general) => {
                let range = integers.range(&|column| window.range(column));
                match range {
                    Some(_) => computed(window, integers, &general.columns),
                    None => array_values(&general.evaluate_where(&window.frame(general), filter)?),
                }
            }
            AggregateInput::General(expression) => {
                let array = expression.evaluate_where(&window.frame(expression), filter)?;
                match self.function {
                    AggregateFunction::Count => (None, array.logical_nulls()),
                    _ => array_values(&array),
                }
            }
        })
    }
}

/// Values, unless rows are only counted; and which of them are not NULL.
type LoadedValues<'a> = (Option<Values<'a>>, Option<NullBuffer>);

/// Stored integers or codes of a column.
fn stored<'a>(window: &'a mut Window<'_>, column: usize) -> (Cow<'a, [i64]>, Option<NullBuffer>) {
    window.load_integers(column);
    let nulls = window.validity(column);
    (Cow::Borrowed(window.integers(column)), nulls)
}

/// Arithmetic on the stored integers of some columns, which cannot overflow.
fn computed<'a>(
    window: &'a mut Window<'_>,
    integers: &Integers,
    columns: &[usize],
) -> LoadedValues<'a> {
    for &column in columns {
        window.load_integers(column);
    }
    let nulls = columns
        .iter()
        .fold(None, |nulls: Option<NullBuffer>, &column| {
            NullBuffer::union(nulls.as_ref(), window.validity(column).as_ref())
        });
    let values = integers.evaluate(window.rows, &|column| window.integers(column));
    (Some(Values::Integers(values)), nulls)
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

impl AggregateInput {
    fn compile(
        expr: &Expr,
        function: AggregateFunction,
        columns: &FragmentColumns,
    ) -> Result<Self, FragmentError> {
        let general = Expression::compile(expr, columns)?;
        if let Expr::Column(column) = expr {
            return Ok(match columns.domains[*column] {
                _ if function == AggregateFunction::Count => AggregateInput::Validity(*column),
                Domain::Integer => AggregateInput::Stored(*column),
                Domain::Float32 | Domain::Float64 => AggregateInput::Floats(*column),
                Domain::String => AggregateInput::Strings(*column),
                Domain::Wide | Domain::Bytes => AggregateInput::General(general),
            });
        }
        let counted = function == AggregateFunction::Count;
        if counted && matches!(expr, Expr::Literal(scalar) if !scalar.is_null()) {
            return Ok(AggregateInput::Rows);
        }
        let integers = Integers::compile(expr, columns).filter(|_| !counted);
        Ok(match integers {
            Some(integers) => AggregateInput::Computed(integers, general),
            None => AggregateInput::General(general),
        })
    }
}
