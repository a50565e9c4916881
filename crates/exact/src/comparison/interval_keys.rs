//! Intervals as keys: they sort, group and join by [how long they are](super::interval).
//!
//! **Stands for** DataFusion's sorts, groups, joins, MIN and MAX of intervals, which go by their parts: months before
//! days before nanoseconds.
//!
//! ```text
//!  ORDER BY i                 ORDER BY nanoseconds(i)               also in windows and aggregates
//!  GROUP BY i                 GROUP BY nanoseconds(i)               with first_value(i) for i
//!  SELECT DISTINCT i          the same
//!  a JOIN b ON a.i = b.i      … ON nanoseconds(a.i) = nanoseconds(b.i)
//!  max(i)                     max_by(i, nanoseconds(i))
//!  count(DISTINCT i)          count(DISTINCT nanoseconds(i))
//! ```

use super::interval::nanoseconds;
use crate::aggregate::extreme_row::ExtremeRow;
use crate::arithmetic::interval::is_difference;
use crate::walk::{rewrite_expressions, rewrite_nodes};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunctionDefinition};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Distinct, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use std::mem::take;
use std::sync::Arc;

/// The rule. Runs after DataFusion has found out the types of all operands.
#[derive(Debug)]
pub(crate) struct IntervalKeys;

impl AnalyzerRule for IntervalKeys {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_nodes(plan, &mut rewrite_node)
    }

    fn name(&self) -> &str {
        "interval_keys"
    }
}

fn rewrite_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Sort(mut sort) => {
            let schema = merge_schema(&[&sort.input]);
            let keys = sort.expr.iter_mut().map(|key| &mut key.expr);
            let changed = by_length(keys, &schema);
            Ok(Transformed::new_transformed(
                LogicalPlan::Sort(sort),
                changed,
            ))
        }
        LogicalPlan::Join(mut join) => {
            let mut changed = false;
            for (left, right) in &mut join.on {
                let left_changed = by_length([left].into_iter(), join.left.schema());
                let right_changed = by_length([right].into_iter(), join.right.schema());
                changed |= left_changed | right_changed;
            }
            Ok(Transformed::new_transformed(
                LogicalPlan::Join(join),
                changed,
            ))
        }
        LogicalPlan::Window(_) => rewrite_expressions(node, &rewrite),
        LogicalPlan::Aggregate(_) => {
            let rewritten = rewrite_expressions(node, &rewrite)?;
            rewritten.transform_data(|node| match node {
                LogicalPlan::Aggregate(aggregate) => grouped(aggregate),
                other => Ok(Transformed::no(other)),
            })
        }
        LogicalPlan::Distinct(Distinct::All(input)) if has_intervals(input.schema()) => {
            let columns = input.schema().iter().map(Expr::from).collect();
            let aggregate = Aggregate::try_new(input, columns, Vec::new())?;
            Ok(Transformed::yes(grouped(aggregate)?.data))
        }
        LogicalPlan::Distinct(Distinct::On(mut distinct)) => {
            let schema = Arc::clone(distinct.input.schema());
            let mut changed = by_length(distinct.on_expr.iter_mut(), &schema);
            let keys = distinct.sort_expr.iter_mut().flatten();
            changed |= by_length(keys.map(|key| &mut key.expr), &schema);
            let node = LogicalPlan::Distinct(Distinct::On(distinct));
            Ok(Transformed::new_transformed(node, changed))
        }
        other => rewrite_expressions(other, &|expr, schema| {
            check(&expr, schema)?;
            Ok(Transformed::no(expr))
        }),
    }
}

/// Rejects functions that would compare intervals part by part.
fn check(expr: &Expr, schema: &DFSchema) -> Result<()> {
    match expr {
        Expr::ScalarFunction(function)
            if ["greatest", "least", "nullif"].contains(&function.func.name())
                && function.args.iter().any(|of| is_interval(of, schema)) =>
        {
            let name = function.func.name();
            plan_err!(
                "Cannot infer common argument type for comparison operation {name} of INTERVAL"
            )
        }
        Expr::InSubquery(membership) if is_interval(&membership.expr, schema) => {
            plan_err!(
                "Cannot infer common argument type for comparison operation INTERVAL IN (SELECT …)"
            )
        }
        _ => Ok(()),
    }
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    let of = expr.get_type(schema);
    of.is_ok_and(|of| matches!(of, DataType::Interval(_)))
}

fn has_intervals(schema: &DFSchema) -> bool {
    let mut fields = schema.fields().iter();
    fields.any(|field| matches!(field.data_type(), DataType::Interval(_)))
}

/// Puts their lengths in the place of intervals. Whether there were any.
fn by_length<'a>(keys: impl Iterator<Item = &'a mut Expr>, schema: &DFSchema) -> bool {
    let mut changed = false;
    for key in keys {
        if let Ok(of @ DataType::Interval(_)) = key.get_type(schema) {
            *key = nanoseconds(take(key), &of);
            changed = true;
        }
    }
    changed
}

fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    check(&expr, schema)?;
    let changed = match &mut expr {
        Expr::WindowFunction(function) => {
            let params = &mut function.params;
            let keys = params.order_by.iter_mut().map(|key| &mut key.expr);
            let sorted = by_length(keys, schema);
            let parts = by_length(params.partition_by.iter_mut(), schema);
            let mut extreme = false;
            if let WindowFunctionDefinition::AggregateUDF(of) = &mut function.fun {
                extreme = by_extreme_row(of, &mut params.args, schema);
            }
            sorted | parts | extreme
        }
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            let keys = params.order_by.iter_mut().map(|key| &mut key.expr);
            let sorted = by_length(keys, schema);
            let counts = params.distinct && func.name() == "count";
            let counted = counts && by_length(params.args.iter_mut(), schema);
            sorted | counted | by_extreme_row(func, &mut params.args, schema)
        }
        _ => false,
    };
    Ok(Transformed::new_transformed(expr, changed))
}

/// MIN and MAX of an interval as the one in the row with the least or greatest length.
fn by_extreme_row(
    function: &mut Arc<AggregateUDF>,
    args: &mut Vec<Expr>,
    schema: &DFSchema,
) -> bool {
    let extreme = match function.name() {
        "min" => ExtremeRow::least,
        "max" => ExtremeRow::greatest,
        _ => return false,
    };
    let mut key = args.clone();
    if !by_length(key.iter_mut(), schema) {
        return false;
    }
    *function = Arc::new(AggregateUDF::from(extreme()));
    args.extend(key);
    true
}

/// Groups by the lengths of intervals. Each group has one of its intervals. Differences of timestamps that are as long
/// have the same parts, too.
fn grouped(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let input = Arc::clone(aggregate.input.schema());
    let mut keys = aggregate.group_expr.clone();
    if keys.iter().any(|key| matches!(key, Expr::GroupingSet(_))) {
        let parts = keys.iter().flat_map(|key| match key {
            Expr::GroupingSet(set) => set.distinct_expr(),
            _ => Vec::new(),
        });
        let mut parts = parts.collect::<Vec<_>>().into_iter();
        return match parts.any(|part| is_interval(part, &input)) {
            true => plan_err!(
                "Cannot infer common argument type for comparison operation GROUPING SETS of INTERVAL"
            ),
            false => Ok(Transformed::no(LogicalPlan::Aggregate(aggregate))),
        };
    }
    let mut functions = aggregate.aggr_expr.clone();
    // Per column of the output, the column of the new aggregate.
    let mut names = Vec::new();
    let mut changed = false;
    for (at, key) in keys.iter_mut().enumerate() {
        if !is_interval(key, &input) || is_difference(key) {
            let (qualifier, name) = key.qualified_name();
            names.push(Column::new(qualifier, name));
            continue;
        }
        let name = format!("interval of key {at}");
        let one = first_value_udaf().call(vec![key.clone()]);
        functions.push(one.alias(&name));
        names.push(Column::new_unqualified(name));
        by_length(std::iter::once(&mut *key), &input);
        *key = take(key).alias(format!("length of key {at}"));
        changed = true;
    }
    if !changed {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    for function in &aggregate.aggr_expr {
        let (qualifier, name) = function.qualified_name();
        names.push(Column::new(qualifier, name));
    }
    let inner = Aggregate::try_new(aggregate.input, keys, functions)?;
    let columns = aggregate
        .schema
        .iter()
        .zip(names)
        .map(|((qualifier, field), column)| {
            Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
        });
    let columns: Vec<Expr> = columns.collect();
    let plan = LogicalPlanBuilder::from(LogicalPlan::Aggregate(inner)).project(columns)?;
    Ok(Transformed::yes(plan.build()?))
}
