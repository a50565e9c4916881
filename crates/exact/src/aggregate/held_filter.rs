//! Conditions that stay above groups and windows.
//!
//! **Stands for** DataFusion's `PushDownFilter`. It pushes a condition below an aggregate if all its columns are group
//! keys. So it pushes one without columns, too. Below an aggregate without keys that removes rows, but never the one
//! row of the result: `HAVING FALSE` gives a row. The same holds for the empty set among grouping sets. And a volatile
//! condition is decided anew for each row there, instead of once for each group or row of the result.

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// DataFusion's rule, where it may be applied.
#[derive(Debug)]
pub(crate) struct HeldFilter(PushDownFilter);

impl Default for HeldFilter {
    fn default() -> Self {
        HeldFilter(PushDownFilter::new())
    }
}

impl OptimizerRule for HeldFilter {
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
            LogicalPlan::Filter(filter) if is_held(filter)? => Ok(Transformed::no(plan)),
            _ => self.0.rewrite(plan, config),
        }
    }
}

fn is_held(filter: &Filter) -> Result<bool> {
    let conditions = split_conjunction(&filter.predicate);
    match filter.input.as_ref() {
        LogicalPlan::Aggregate(aggregate) => {
            let keys = &aggregate.group_expr;
            let has_sets = matches!(keys[..], [Expr::GroupingSet(_)]);
            let has_no_columns = |condition: &&Expr| condition.column_refs().is_empty();
            let is_above_all = keys.is_empty() && conditions.iter().any(has_no_columns);
            Ok(has_sets || is_above_all || filter.predicate.is_volatile())
        }
        LogicalPlan::Window(_) => Ok(filter.predicate.is_volatile()),
        _ => Ok(false),
    }
}
