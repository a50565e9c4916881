//! `sum(x), sum(CAST(x AS DOUBLE))` in one list.
//!
//! **Stands for** DataFusion's names of expressions, which leave casts out: both aggregates have the name `sum(x)`,
//! and no two columns may have one name. An argument with a cast gets a name that tells of it.

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawWindowExpr,
};

/// Names the arguments of aggregates and of window functions.
#[derive(Debug)]
pub(crate) struct CastNames;

impl ExprPlanner for CastNames {
    fn plan_aggregate(
        &self,
        mut call: RawAggregateExpr,
    ) -> Result<PlannerResult<RawAggregateExpr>> {
        // Its arguments are to be found among the keys.
        if call.func.name() != "grouping" {
            call.args = named(call.args)?;
        }
        Ok(PlannerResult::Original(call))
    }

    fn plan_window(&self, mut call: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        call.args = named(call.args)?;
        Ok(PlannerResult::Original(call))
    }
}

fn named(args: Vec<Expr>) -> Result<Vec<Expr>> {
    let named = |arg: Expr| {
        Ok(match has_cast(&arg)? {
            true => {
                let name = arg.to_string();
                arg.alias(name)
            }
            false => arg,
        })
    };
    args.into_iter().map(named).collect()
}

fn has_cast(expr: &Expr) -> Result<bool> {
    let mut found = false;
    expr.apply(|part| {
        found |= matches!(part, Expr::Cast(_) | Expr::TryCast(_));
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}
