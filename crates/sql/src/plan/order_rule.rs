//! The physical rule that tells fragments of how many rows the first are enough: `ORDER BY … LIMIT` above a scan. The
//! sort stays. An executor with an index in this order sends little more than these rows, and others leave out what
//! comes too late.

use crate::plan::fragment_exec::FragmentExec;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use eris_exact::Replacement;
use eris_fragment::{Order, OrderKey};
use std::sync::Arc;

/// The rule.
#[derive(Debug)]
pub(crate) struct TellOrder;

impl PhysicalOptimizerRule for TellOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            Ok(match node.downcast_ref::<SortExec>().and_then(told) {
                Some(input) => Transformed::yes(over(&node, input?)?),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "tell_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The sort's input with a fragment that knows of it.
fn told(sort: &SortExec) -> Option<Result<Arc<dyn ExecutionPlan>>> {
    let keys = sort.expr().iter().map(|key| {
        let column = key.expr.downcast_ref::<Column>();
        let column = column.or_else(|| zero_of(&key.expr));
        Some(OrderKey {
            column: column?.index(),
            descending: key.options.descending,
            nulls_first: key.options.nulls_first,
        })
    });
    let order = Order {
        keys: keys.collect::<Option<_>>()?,
        rows: sort.fetch()? as u64,
    };
    below(sort.input(), order)
}

/// The column whose zeros have lost their sign.
fn zero_of(key: &Arc<dyn PhysicalExpr>) -> Option<&Column> {
    let function = key.downcast_ref::<ScalarFunctionExpr>()?;
    let is_zero = Replacement::of(function.fun()) == Some(Replacement::UnsignedZero);
    function
        .args()
        .first()
        .filter(|_| is_zero)?
        .downcast_ref::<Column>()
}

/// The plan over a fragment that knows the order of the plan's columns.
fn below(
    plan: &Arc<dyn ExecutionPlan>,
    mut order: Order,
) -> Option<Result<Arc<dyn ExecutionPlan>>> {
    if let Some(fragment) = plan.downcast_ref::<FragmentExec>() {
        return Some(Ok(Arc::new(fragment.in_order(order)?)));
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        for key in &mut order.keys {
            let column = &projection.expr().get(key.column)?.expr;
            key.column = column.downcast_ref::<Column>()?.index();
        }
    } else if !plan.is::<CooperativeExec>() && !plan.is::<CoalescePartitionsExec>() {
        return None;
    }
    let [input] = plan.children()[..] else {
        return None;
    };
    let input = below(input, order)?;
    Some(input.and_then(|input| over(plan, input)))
}

/// The same node over another input with the same rows.
fn over(
    plan: &Arc<dyn ExecutionPlan>,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    Arc::clone(plan).replace_children(vec![input], options)
}
