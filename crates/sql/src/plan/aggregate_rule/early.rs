//! Aggregates of one side of a join, grouped by columns of the other one: the side is grouped before the join.
//!
//! ```text
//! AggregateExec Partial, gby=[c], count(o)       ProjectionExec c, count or 0
//!   HashJoinExec left, c = k               ──►     HashJoinExec left, c = k
//!     customer: c                                    customer: c
//!     FragmentExec orders: k, o                      FragmentExec orders: groups=[k], count(o)
//! ```
//!
//! What is joined are the groups' partial states, and the final aggregate merges them as those of any rows. So it does
//! not matter how often a key is on either side. Yan and Larson call this eager aggregation (VLDB 1995).
//! Why: docs/decisions/0043.
//!
//! Values of rows that no other row matches are aggregated, too. So only functions are moved that fail for none.

use super::push;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinSide, JoinType, ScalarValue};
use datafusion::error::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::{CaseExpr, CastExpr, Column, IsNullExpr, Literal};
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use std::sync::Arc;

/// Rows of the side for each of its keys that make it worth grouping them.
const ROWS_PER_KEY: f64 = 4.0;

/// The longest decimals whose sums cannot overflow.
const DIGITS: u8 = 18;

/// What does the same as a partial aggregate above a join; `None` if that cannot be, or is not worth it.
pub(super) fn below_join(aggregate: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(above) = AboveJoin::of(aggregate) else {
        return Ok(None);
    };
    let Some(side) = above.grouped_by()? else {
        return Ok(None);
    };
    let Some(functions) = above.functions_of(other(side))? else {
        return Ok(None);
    };
    above.moved(side, functions)
}

/// A partial aggregate, the join below it, and what may lie between them.
struct AboveJoin<'a> {
    aggregate: &'a AggregateExec,
    projection: Option<&'a ProjectionExec>,
    join: &'a HashJoinExec,
}

/// A function over a side's columns, and what its first state is for a row without a match.
struct Moved {
    function: Arc<AggregateFunctionExpr>,
    unmatched: Option<i64>,
}

impl<'a> AboveJoin<'a> {
    fn of(aggregate: &'a AggregateExec) -> Option<Self> {
        let by = aggregate.group_expr();
        let is_plain = by.is_single() && !by.expr().is_empty();
        let is_all = aggregate.limit_options().is_none();
        if *aggregate.mode() != AggregateMode::Partial || !is_plain || !is_all {
            return None;
        }
        let (input, projection) = match aggregate.input().downcast_ref::<ProjectionExec>() {
            None => (aggregate.input(), None),
            Some(projection) => (projection.input(), Some(projection)),
        };
        let join = input.downcast_ref::<HashJoinExec>()?;
        let fits = matches!(
            join.join_type(),
            JoinType::Inner | JoinType::Left | JoinType::Right
        );
        let is_whole = join.filter().is_none() && join.fetch().is_none();
        (fits && is_whole && !join.null_aware).then_some(AboveJoin {
            aggregate,
            projection,
            join,
        })
    }

    /// The side that all keys come from. Of an outer join it has to be the one whose rows all stay.
    fn grouped_by(&self) -> Result<Option<JoinSide>> {
        let mut sides = Vec::new();
        for (key, _) in self.aggregate.group_expr().expr() {
            let Some(of_key) = self.sides(key)? else {
                return Ok(None);
            };
            sides.extend(of_key);
        }
        let first = sides.first().copied();
        let is_one = sides.iter().all(|side| Some(*side) == first);
        let stays = match self.join.join_type() {
            JoinType::Left => first == Some(JoinSide::Left),
            JoinType::Right => first == Some(JoinSide::Right),
            _ => true,
        };
        Ok(first.filter(|_| is_one && stays))
    }

    /// The functions over the columns of a side; `None` if one has others, or may fail.
    fn functions_of(&self, side: JoinSide) -> Result<Option<Vec<Moved>>> {
        let schema = self.plan(side).schema();
        let has_filter = self.aggregate.filter_expr().iter().any(Option::is_some);
        let mut all = Vec::new();
        for function in self.aggregate.aggr_expr() {
            let is_plain = !function.is_distinct() && !function.ignore_nulls();
            let arguments = function.expressions();
            let ([argument], true) = (&arguments[..], is_plain && function.order_bys().is_empty())
            else {
                return Ok(None);
            };
            let argument = self.inlined(argument)?;
            let name = function.fun().name();
            let (argument, unmatched) = if let Some(literal) = argument.downcast_ref::<Literal>() {
                let counts_rows = name == "count" && !literal.value().is_null();
                (counts_rows.then_some(argument), Some(1))
            } else {
                let argument = self.argument(&argument, side)?;
                let is_safe = |argument: &PhysicalExprRef| match name {
                    "count" | "min" | "max" => true,
                    "sum" | "avg" => sums_safely(argument, &schema),
                    _ => false,
                };
                // Where averages count in UBIGINT, they take NULL for no values.
                let counts = function.state_fields()?[0].data_type() == &DataType::Int64;
                let is_count = matches!(name, "count" | "avg") && counts;
                (argument.filter(is_safe), is_count.then_some(0))
            };
            let moved = argument
                .and_then(|argument| function.with_new_expressions(vec![argument], Vec::new()));
            let Some(function) = moved.filter(|_| !has_filter) else {
                return Ok(None);
            };
            all.push(Moved {
                function: Arc::new(function),
                unmatched,
            });
        }
        Ok(Some(all))
    }

    /// The join of one side with the groups of the other one.
    fn moved(
        &self,
        side: JoinSide,
        functions: Vec<Moved>,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let grouped = self.plan(other(side));
        let mut keys = Vec::new();
        let mut on = Vec::new();
        for (left, right) in self.join.on() {
            let (own, key) = match side {
                JoinSide::Left => (left, right),
                _ => (right, left),
            };
            let Some(key) = key.downcast_ref::<Column>() else {
                return Ok(None);
            };
            let place: PhysicalExprRef = Arc::new(Column::new(key.name(), keys.len()));
            on.push(match side {
                JoinSide::Left => (Arc::clone(own), place),
                _ => (place, Arc::clone(own)),
            });
            keys.push((Arc::new(key.clone()) as _, key.name().to_owned()));
        }
        let by = PhysicalGroupBy::new_single(keys);
        let states = functions.iter().map(|moved| Arc::clone(&moved.function));
        let groups = AggregateExec::try_new(
            AggregateMode::Partial,
            by,
            states.collect(),
            vec![None; functions.len()],
            Arc::clone(grouped),
            grouped.schema(),
        )?;
        let Some(fragment) = push(&groups) else {
            return Ok(None);
        };
        let is_few = |groups| groups * ROWS_PER_KEY <= fragment.expected_rows();
        if !fragment.expected_groups().is_some_and(is_few) {
            return Ok(None);
        }
        let planned: Arc<dyn ExecutionPlan> = Arc::new(groups);
        let groups: Arc<dyn ExecutionPlan> = Arc::new(fragment.with_joins_below(&planned)?);
        let own = Arc::clone(self.plan(side));
        let width = own.schema().fields().len();
        let (left, right, first_own, first_group) = match side {
            JoinSide::Left => (own, groups, 0, width),
            _ => {
                let first = groups.schema().fields().len();
                (groups, own, first, 0)
            }
        };
        let join = HashJoinExec::try_new(
            left,
            right,
            on,
            None,
            self.join.join_type(),
            None,
            *self.join.partition_mode(),
            self.join.null_equality(),
            false,
        )?;
        let first_state = first_group + self.join.on().len();
        self.projected(join, side, first_own, first_state, &functions)
    }

    /// What the partial aggregate had as columns; `None` if the types are others.
    fn projected(
        &self,
        join: HashJoinExec,
        side: JoinSide,
        first_own: usize,
        mut state: usize,
        functions: &[Moved],
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let schema = self.aggregate.schema();
        let joined = join.schema();
        let mut columns = Vec::new();
        for (key, _) in self.aggregate.group_expr().expr() {
            columns.push(self.moved_key(key, side, first_own)?);
        }
        let is_outer = *self.join.join_type() != JoinType::Inner;
        for Moved {
            function,
            unmatched,
        } in functions
        {
            for number in 0..function.state_fields()?.len() {
                let column: PhysicalExprRef = column_at(&joined, state);
                let unmatched = unmatched.filter(|_| is_outer && number == 0);
                columns.push(match unmatched {
                    Some(value) => instead_of_null(column, value, &joined)?,
                    None => column,
                });
                state += 1;
            }
        }
        for (column, field) in columns.iter().zip(schema.fields()) {
            if column.data_type(&joined)? != *field.data_type() {
                return Ok(None);
            }
        }
        let named = columns.into_iter().zip(schema.fields());
        let named = named.map(|(column, field)| ProjectionExpr::new(column, field.name().clone()));
        let named: Vec<_> = named.collect();
        Ok(Some(Arc::new(ProjectionExec::try_new(
            named,
            Arc::new(join),
        )?)))
    }

    fn plan(&self, side: JoinSide) -> &Arc<dyn ExecutionPlan> {
        match side {
            JoinSide::Left => self.join.left(),
            _ => self.join.right(),
        }
    }

    /// The expression over the join's output.
    fn inlined(&self, expr: &PhysicalExprRef) -> Result<PhysicalExprRef> {
        let Some(projection) = self.projection else {
            return Ok(Arc::clone(expr));
        };
        let replaced = Arc::clone(expr).transform_down(|part| {
            Ok(match part.downcast_ref::<Column>() {
                Some(column) => {
                    let expr = Arc::clone(&projection.expr()[column.index()].expr);
                    Transformed::new(expr, true, TreeNodeRecursion::Jump)
                }
                None => Transformed::no(part),
            })
        });
        replaced.data()
    }

    /// Of which sides the columns of an expression are; `None` if it has another value each time.
    fn sides(&self, expr: &PhysicalExprRef) -> Result<Option<Vec<JoinSide>>> {
        let (mut sides, mut is_volatile) = (Vec::new(), false);
        self.inlined(expr)?.apply(|part| {
            let column = part.downcast_ref::<Column>();
            sides.extend(column.map(|column| self.place(column.index()).0));
            is_volatile |= part.is_volatile_node();
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok((!is_volatile).then_some(sides))
    }

    /// Where a column of the join's output comes from.
    fn place(&self, column: usize) -> (JoinSide, usize) {
        let column = match &self.join.projection {
            Some(projection) => projection[column],
            None => column,
        };
        let left = self.join.left().schema().fields().len();
        match column.checked_sub(left) {
            None => (JoinSide::Left, column),
            Some(column) => (JoinSide::Right, column),
        }
    }

    /// An expression over the join's output as one over this side; `None` unless it is a column of it, or a cast of an
    /// integer that never fails.
    fn argument(&self, expr: &PhysicalExprRef, side: JoinSide) -> Result<Option<PhysicalExprRef>> {
        let cast = expr.downcast_ref::<CastExpr>();
        let column = cast.map_or(expr, |cast| cast.expr());
        let Some(column) = column.downcast_ref::<Column>() else {
            return Ok(None);
        };
        let (of, column) = self.place(column.index());
        let schema = self.plan(side).schema();
        if of != side {
            return Ok(None);
        }
        let field = schema.field(column);
        let column: PhysicalExprRef = Arc::new(Column::new(field.name(), column));
        let Some(cast) = cast else {
            return Ok(Some(column));
        };
        let is_short = is_short(field.data_type());
        let never_fails = match cast.cast_type() {
            DataType::Int64 => is_short,
            DataType::Float64 => field.data_type().is_integer(),
            _ => false,
        };
        match never_fails {
            true => Ok(Some(
                Arc::new(cast.clone()).with_new_children(vec![column])?,
            )),
            false => Ok(None),
        }
    }

    /// A key over a join's output in which its side begins at this column.
    fn moved_key(
        &self,
        key: &PhysicalExprRef,
        side: JoinSide,
        first: usize,
    ) -> Result<PhysicalExprRef> {
        let schema = self.plan(side).schema();
        let moved = self.inlined(key)?.transform_up(|part| {
            let Some(column) = part.downcast_ref::<Column>() else {
                return Ok(Transformed::no(part));
            };
            let (_, column) = self.place(column.index());
            let name = schema.field(column).name();
            Ok(Transformed::yes(
                Arc::new(Column::new(name, first + column)) as _,
            ))
        });
        moved.data()
    }
}

fn other(side: JoinSide) -> JoinSide {
    match side {
        JoinSide::Left => JoinSide::Right,
        _ => JoinSide::Left,
    }
}

fn column_at(schema: &SchemaRef, place: usize) -> PhysicalExprRef {
    Arc::new(Column::new(schema.field(place).name(), place))
}

/// A count, and this number instead of NULL.
fn instead_of_null(
    count: PhysicalExprRef,
    value: i64,
    schema: &SchemaRef,
) -> Result<PhysicalExprRef> {
    let value = ScalarValue::Int64(Some(value)).cast_to(&count.data_type(schema)?)?;
    let is_null = Arc::new(IsNullExpr::new(Arc::clone(&count)));
    let value = Arc::new(Literal::new(value));
    let case = CaseExpr::try_new(None, vec![(is_null, value)], Some(count))?;
    Ok(Arc::new(case))
}

/// Whether no sum of an argument's values overflows, of 2^31 rows at most.
fn sums_safely(argument: &PhysicalExprRef, schema: &SchemaRef) -> bool {
    if let Some(cast) = argument.downcast_ref::<CastExpr>() {
        let operand = cast.expr().data_type(schema);
        return *cast.cast_type() == DataType::Float64 || operand.is_ok_and(|of| is_short(&of));
    }
    match argument.data_type(schema) {
        Ok(DataType::Decimal128(digits, _)) => digits <= DIGITS,
        Ok(other) => other.is_floating(),
        Err(_) => false,
    }
}

/// An integer of 32 bits at most.
fn is_short(data_type: &DataType) -> bool {
    use DataType::{Int8, Int16, Int32, UInt8, UInt16, UInt32};
    matches!(data_type, Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32)
}
