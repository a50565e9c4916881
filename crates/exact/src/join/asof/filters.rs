//! Conditions above an ASOF join that its left side decides go below it. Those of the right side must not: without a
//! row, the one before it would be the nearest.

use super::AsOfJoin;
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Extension, Filter, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// The rule. Runs before filters are pushed further down.
#[derive(Debug)]
pub(crate) struct FilterBelowAsOf;

impl OptimizerRule for FilterBelowAsOf {
    fn name(&self) -> &str {
        "filter_below_asof"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::TopDown)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = &plan else {
            return Ok(Transformed::no(plan));
        };
        let LogicalPlan::Extension(extension) = filter.input.as_ref() else {
            return Ok(Transformed::no(plan));
        };
        let Some(join) = extension.node.as_any().downcast_ref::<AsOfJoin>() else {
            return Ok(Transformed::no(plan));
        };
        let conditions = split_conjunction_owned(filter.predicate.clone());
        let (below, above): (Vec<_>, Vec<_>) = conditions
            .into_iter()
            .partition(|condition| is_of(condition, &join.left));
        let Some(below) = conjunction(below) else {
            return Ok(Transformed::no(plan));
        };
        let left = Filter::try_new(below, Arc::clone(&join.left))?;
        let left = Arc::new(LogicalPlan::Filter(left));
        let (right, conditions) = (Arc::clone(&join.right), join.conditions.clone());
        let node = AsOfJoin::new(left, right, conditions, join.join_type)?;
        let join = LogicalPlan::Extension(Extension {
            node: Arc::new(node),
        });
        Ok(Transformed::yes(match conjunction(above) {
            Some(above) => LogicalPlan::Filter(Filter::try_new(above, Arc::new(join))?),
            None => join,
        }))
    }
}

/// Whether one side decides a condition, each time in the same way.
fn is_of(condition: &Expr, side: &LogicalPlan) -> bool {
    let columns = condition.column_refs();
    !columns.is_empty()
        && columns
            .iter()
            .all(|column| side.schema().has_column(column))
        && !condition.is_volatile()
        && !condition.contains_outer()
}
