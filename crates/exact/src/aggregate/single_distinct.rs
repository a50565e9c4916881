//! `count(DISTINCT x)` as a grouping by `x`, but not beside sums of decimals.
//!
//! **Stands for** DataFusion's `SingleDistinctToGroupBy`: it makes sums of sums beside the grouping, and these have
//! more digits than the plan above expects.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::single_distinct_to_groupby::SingleDistinctToGroupBy;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// DataFusion's rule, where it may be applied.
#[derive(Debug)]
pub(crate) struct SingleDistinct(SingleDistinctToGroupBy);

impl Default for SingleDistinct {
    fn default() -> Self {
        SingleDistinct(SingleDistinctToGroupBy::new())
    }
}

impl OptimizerRule for SingleDistinct {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Aggregate(aggregate) if sums_decimals(aggregate)? => {
                Ok(Transformed::no(plan))
            }
            _ => self.0.rewrite(plan, config),
        }
    }
}

fn sums_decimals(aggregate: &Aggregate) -> Result<bool> {
    for expr in &aggregate.aggr_expr {
        if let Expr::AggregateFunction(function) = expr.clone().unalias()
            && function.func.name() == "sum"
            && matches!(
                expr.get_type(aggregate.input.schema())?,
                DataType::Decimal128(..) | DataType::Decimal256(..)
            )
        {
            return Ok(true);
        }
    }
    Ok(false)
}
