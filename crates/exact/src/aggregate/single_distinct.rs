//! `count(DISTINCT x)` as a grouping by `x`, but not beside sums of decimals.
//!
//! **Stands for** DataFusion's `SingleDistinctToGroupBy`: it makes sums of sums beside the grouping, and these have
//! more digits than the plan above expects.

use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

/// Whether this is such an aggregate.
pub(crate) fn sums_decimals(plan: &LogicalPlan) -> Result<bool> {
    let LogicalPlan::Aggregate(aggregate) = plan else {
        return Ok(false);
    };
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
