//! Strings that are grouped or counted are views.
//!
//! ```text
//!  GROUP BY s                 GROUP BY CAST(s AS view), and CAST back above
//!  count(DISTINCT s)          count(DISTINCT CAST(s AS view))
//! ```
//!
//! **Stands for** DataFusion's tables of strings that are no views: all of them are in one buffer, which doubles before
//! it asks for memory. Those of views are in blocks of 2 MiB. Columns of tables and files are views already.

use crate::walk::rewrite_nodes;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{
    Aggregate, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast,
};
use datafusion::optimizer::analyzer::AnalyzerRule;
use std::mem::take;

/// The rule. Runs when nothing makes groups any more.
#[derive(Debug)]
pub(crate) struct ViewKeys;

impl AnalyzerRule for ViewKeys {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_nodes(plan, &mut |node| match node {
            LogicalPlan::Aggregate(aggregate) => by_views(aggregate),
            other => Ok(Transformed::no(other)),
        })
    }

    fn name(&self) -> &str {
        "view_keys"
    }
}

fn by_views(mut aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let input = aggregate.input.schema().clone();
    let is_flat = |expr: &Expr| {
        let of = expr.get_type(&input);
        of.is_ok_and(|of| matches!(of, DataType::Utf8 | DataType::LargeUtf8))
    };
    let view = |expr: &mut Expr| {
        let name = expr.qualified_name();
        let unaliased = take(expr).unalias();
        *expr = cast(unaliased, DataType::Utf8View).alias_qualified(name.0, name.1);
    };
    let mut changed = false;
    for expr in &mut aggregate.aggr_expr {
        let name = expr.qualified_name();
        if let Expr::AggregateFunction(AggregateFunction { func, params }) = expr
            && params.distinct
            && func.name() == "count"
            && params.args.iter().any(is_flat)
        {
            for arg in params.args.iter_mut().filter(|arg| is_flat(arg)) {
                *arg = cast(take(arg), DataType::Utf8View);
            }
            *expr = take(expr).alias_qualified(name.0, name.1);
            changed = true;
        }
    }
    let has_sets = (aggregate.group_expr.iter()).any(|key| matches!(key, Expr::GroupingSet(_)));
    let flat = aggregate.group_expr.iter_mut().filter(|key| is_flat(key));
    let mut keys = 0;
    for key in flat.filter(|_| !has_sets) {
        view(key);
        keys += 1;
    }
    if !changed && keys == 0 {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let schema = aggregate.schema.clone();
    let inner = Aggregate::try_new(aggregate.input, aggregate.group_expr, aggregate.aggr_expr)?;
    if keys == 0 {
        return Ok(Transformed::yes(LogicalPlan::Aggregate(inner)));
    }
    let found = inner.schema.iter().map(Column::from).collect::<Vec<_>>();
    let columns = schema.iter().zip(found).map(|((table, field), column)| {
        let column = Expr::Column(column);
        match field.data_type() {
            flat @ (DataType::Utf8 | DataType::LargeUtf8) => {
                cast(column, flat.clone()).alias_qualified(table.cloned(), field.name())
            }
            _ => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    let plan = LogicalPlanBuilder::from(LogicalPlan::Aggregate(inner)).project(columns)?;
    Ok(Transformed::yes(plan.build()?))
}
