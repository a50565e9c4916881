//! The physical rule that sends aggregation to the data.
//!
//! ```text
//! AggregateExec Final                    MergeGroupsExec          merges partial states, unless the fragment has
//!   AggregateExec Partial         ──►      FragmentExec groups    one row per group and worker
//!     ProjectionExec                         keys, sum, count, min, max
//!       FragmentExec rows
//! ```
//!
//! Runs after the static filters have moved into the scan and before exchanges are added. The output equals the partial
//! aggregate's, state columns included: AVG is a count and a sum, in this order.

mod computed;
mod early;
mod sets;
mod unions;

use crate::plan::fragment_exec::FragmentExec;
use crate::plan::merge_groups::MergeGroupsExec;
use crate::plan::translate::{Scope, constant};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::projection::ProjectionExec;
use eris_fragment::{Aggregate, AggregateFunction, Expr, Output, Type};
use std::sync::Arc;

/// The rule.
#[derive(Debug)]
pub(crate) struct PushAggregates;

impl PhysicalOptimizerRule for PushAggregates {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let aggregate = node.downcast_ref::<AggregateExec>();
            if let Some(merge) = aggregate.and_then(MergeGroupsExec::in_place_of) {
                return Ok(Transformed::yes(Arc::new(merge) as _));
            }
            let pushed = aggregate.map(|aggregate| pushed(aggregate, &node));
            Ok(match pushed.transpose()?.flatten() {
                Some(pushed) => Transformed::yes(pushed),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "push_aggregates"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What does the same as a partial aggregate, which `node` is, with more of it in the fragment; `None` if nothing does.
fn pushed(
    aggregate: &AggregateExec,
    node: &Arc<dyn ExecutionPlan>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let computed = computed::with_computed(aggregate)?;
    for aggregate_now in computed.iter().chain([aggregate]) {
        if let Some(fragment) = push(aggregate_now) {
            return Ok(Some(Arc::new(fragment.with_joins_below(node)?)));
        }
        if let Some(regrouped) = sets::regrouped(aggregate_now, aggregate)? {
            return Ok(Some(regrouped));
        }
    }
    if let Some(union) = unions::below_union(aggregate)? {
        return Ok(Some(union));
    }
    early::below_join(aggregate)
}

/// The fragment that does what a partial aggregate and all below it do; `None` if none can.
fn push(aggregate: &AggregateExec) -> Option<FragmentExec> {
    if *aggregate.mode() != AggregateMode::Partial || !aggregate.group_expr().is_single() {
        return None;
    }
    let (fragment, inputs) = rows(aggregate.input())?;
    let input_schema = aggregate.input().schema();
    let scope = fragment.scope(&input_schema, &inputs);
    let keys = aggregate
        .group_expr()
        .expr()
        .iter()
        .map(|(key, _)| scope.translate_output(key));
    let keys = keys.collect::<Option<Vec<_>>>()?;
    let is_grouped = |key: &Expr| scope.type_of(key).is_some_and(|of| of.is_grouped());
    if !keys.iter().all(is_grouped) {
        return None;
    }
    let mut aggregates = Vec::new();
    for (function, filter) in aggregate.aggr_expr().iter().zip(aggregate.filter_expr()) {
        let filter = match filter {
            Some(filter) => Some(scope.translate(filter)?),
            None => None,
        };
        aggregates.extend(states(function, filter, &scope)?);
    }
    let schema = aggregate.schema();
    let fits = |(position, field): (usize, &Arc<Field>)| match position.checked_sub(keys.len()) {
        None => true,
        Some(state) => {
            let Aggregate {
                function, state, ..
            } = &aggregates[state];
            let unsigned =
                *function == AggregateFunction::Count && *field.data_type() == DataType::UInt64;
            unsigned || DataType::from(state) == *field.data_type()
        }
    };
    let same = schema.fields().len() == keys.len() + aggregates.len()
        && schema.fields().iter().enumerate().all(fits);
    same.then(|| fragment.with_output(Output::Groups { keys, aggregates }, schema))
}

/// The fragment that yields the rows of a plan, and the expression of each column of the plan.
fn rows(plan: &Arc<dyn ExecutionPlan>) -> Option<(&FragmentExec, Vec<Option<Expr>>)> {
    if let Some(fragment) = plan.downcast_ref::<FragmentExec>() {
        let columns = fragment.open_rows()?.iter().cloned().map(Some).collect();
        return Some((fragment, columns));
    }
    let projection = plan.downcast_ref::<ProjectionExec>()?;
    let (fragment, inputs) = rows(projection.input())?;
    let schema = projection.input().schema();
    let scope = fragment.scope(&schema, &inputs);
    let columns = projection
        .expr()
        .iter()
        .map(|column| scope.translate_output(&column.expr))
        .collect();
    Some((fragment, columns))
}

/// The state columns of an aggregate function.
fn states(
    function: &AggregateFunctionExpr,
    filter: Option<Expr>,
    scope: &Scope<'_>,
) -> Option<Vec<Aggregate>> {
    if function.is_distinct() || function.ignore_nulls() || !function.order_bys().is_empty() {
        return None;
    }
    let arguments = function.expressions();
    let [argument] = &arguments[..] else {
        return None;
    };
    let fields = function.state_fields().ok()?;
    let types = fields
        .iter()
        .map(|field| Type::try_from(field.data_type()).ok());
    let types = types.collect::<Option<Vec<_>>>()?;
    // Fragments count in BIGINT; where DataFusion wants it unsigned, the leaf casts it.
    let count = || {
        let input = if counts_rows(argument, scope.schema) {
            None
        } else {
            Some(without_widening(scope.translate(argument)?, scope))
        };
        let (function, filter) = (AggregateFunction::Count, filter.clone());
        Some(Aggregate {
            function,
            input,
            filter,
            state: Type::Int64,
        })
    };
    let value = |function: AggregateFunction, state: Type| {
        let input = scope.translate_output(argument)?;
        let fits = matches!(function, AggregateFunction::Sum)
            && sums_into(&scope.type_of(&input)?, &state)
            || scope.type_of(&input)? == state;
        let aggregate = Aggregate {
            function,
            input: Some(input),
            filter: filter.clone(),
            state,
        };
        fits.then_some(aggregate)
    };
    match (function.fun().name(), &types[..]) {
        ("count", [Type::Int64]) => Some(vec![count()?]),
        ("sum", [state]) => Some(vec![value(AggregateFunction::Sum, state.clone())?]),
        ("min" | "max", [state]) if !state.is_grouped() => None,
        ("min", [state]) => Some(vec![value(AggregateFunction::Min, state.clone())?]),
        ("max", [state]) => Some(vec![value(AggregateFunction::Max, state.clone())?]),
        ("avg", [Type::Int64 | Type::UInt64, sum]) => {
            Some(vec![count()?, value(AggregateFunction::Sum, sum.clone())?])
        }
        _ => None,
    }
}

/// Whether COUNT of this argument is COUNT(*).
fn counts_rows(argument: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    match constant(argument) {
        Some(constant) => !constant.is_null(),
        None => !argument.nullable(schema).unwrap_or(true),
    }
}

/// The expression without a cast that turns no value into NULL and never fails: it counts as much.
fn without_widening(expr: Expr, scope: &Scope<'_>) -> Expr {
    match expr {
        Expr::Cast {
            operand,
            to: Type::Float64,
        } if scope.type_of(&operand).is_some_and(|from| from.is_number()) => *operand,
        other => other,
    }
}

/// Whether a sum of this type may be kept in a state of that type: decimals get more digits.
fn sums_into(argument: &Type, state: &Type) -> bool {
    match (argument, state) {
        (
            Type::Decimal { precision, scale },
            Type::Decimal {
                precision: digits,
                scale: same,
            },
        ) => scale == same && precision <= digits,
        _ => false,
    }
}
