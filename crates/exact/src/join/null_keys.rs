//! `IS NOT DISTINCT FROM` beside `=` in one query.
//!
//! **Stands for** DataFusion's joins by keys of which either all or none are equal where both are NULL. Its rules add
//! keys of `=` to a join of the first kind, and forget the kind when they put inner joins into another order. So while
//! rules look at a plan, `IS NOT DISTINCT FROM` is a condition like any other. It becomes a key last.
//!
//! ```text
//!   rules      Join on: a.k = b.k   filter: a.x IS NOT DISTINCT FROM b.x     stays so: a condition of the pairs
//!              Join on: –           filter: a.x IS NOT DISTINCT FROM b.x
//!   at last    Join on: a.x = b.x   NULL equals NULL
//! ```

use datafusion::common::tree_node::Transformed;
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::{Join, LogicalPlan};
use datafusion::optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerContext, OptimizerRule};

/// The rule that finds the keys of joins, for `=` alone.
#[derive(Debug, Default)]
pub(crate) struct EqualKeys(ExtractEquijoinPredicate);

impl OptimizerRule for EqualKeys {
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
        let LogicalPlan::Join(join) = &plan else {
            return Ok(Transformed::no(plan));
        };
        // INTERSECT has keys of the other kind from the start.
        if join.filter.is_none() || join.null_equality == NullEquality::NullEqualsNull {
            return Ok(Transformed::no(plan));
        }
        let found = self.0.rewrite(plan.clone(), config)?;
        Ok(match has_null_keys(&found.data) {
            true => Transformed::no(plan),
            false => found,
        })
    }
}

fn has_null_keys(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(join) => join.null_equality == NullEquality::NullEqualsNull,
        _ => false,
    }
}

/// The plan with `IS NOT DISTINCT FROM` as keys of the joins that have no others. No rule comes behind it.
pub(crate) fn with_null_keys(plan: LogicalPlan) -> Result<LogicalPlan> {
    let context = OptimizerContext::new();
    let keys = ExtractEquijoinPredicate::new();
    let done = plan.transform_up_with_subqueries(|node| match &node {
        LogicalPlan::Join(Join {
            on,
            filter: Some(_),
            ..
        }) if on.is_empty() => keys.rewrite(node, &context),
        _ => Ok(Transformed::no(node)),
    })?;
    Ok(done.data)
}
