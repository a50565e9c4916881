//! Conditions that stay above groups and windows.
//!
//! **Stands for** DataFusion's `PushDownFilter`. It pushes a condition below an aggregate if all its columns are group
//! keys. So it pushes one without columns, too. Below an aggregate without keys that removes rows, but never the one
//! row of the result: `HAVING FALSE` gives a row. The same holds for the empty set among grouping sets. And a volatile
//! condition is decided anew for each row there, instead of once for each group or row of the result.

use datafusion::error::Result;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Whether this is such a condition above them.
pub(crate) fn stays_above(plan: &LogicalPlan) -> Result<bool> {
    let LogicalPlan::Filter(filter) = plan else {
        return Ok(false);
    };
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
