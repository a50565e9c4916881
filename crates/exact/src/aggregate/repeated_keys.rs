//! Sort keys that repeat an earlier one, and so change nothing, are left out.
//!
//! **Stands for** DataFusion's `DISTINCT ON` and ordered aggregates, which count keys both before and after it drops
//! such keys, and fail when the numbers differ.
//!
//! ```text
//!  DISTINCT ON (a) … ORDER BY a, b DESC, b         DISTINCT ON (a) … ORDER BY a, b DESC
//!  first_value(x ORDER BY a, a DESC)               first_value(x ORDER BY a)
//! ```

use crate::walk::{rewrite_expressions, rewrite_nodes};
use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{AggregateFunction, Sort};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use datafusion::optimizer::analyzer::AnalyzerRule;

/// The rule.
#[derive(Debug)]
pub(crate) struct OmitRepeatedKeys;

impl AnalyzerRule for OmitRepeatedKeys {
    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        rewrite_nodes(plan, &mut |mut plan| {
            if let LogicalPlan::Distinct(Distinct::On(on)) = &mut plan
                && let Some(keys) = &mut on.sort_expr
                && omit(keys)
            {
                return Ok(Transformed::yes(plan));
            }
            match plan {
                LogicalPlan::Aggregate(_) => {
                    rewrite_expressions(plan, &|expr, _| Ok(rewrite(expr)))
                }
                _ => Ok(Transformed::no(plan)),
            }
        })
    }

    fn name(&self) -> &str {
        "omit_repeated_keys"
    }
}

fn rewrite(mut expr: Expr) -> Transformed<Expr> {
    let changed = match &mut expr {
        Expr::AggregateFunction(AggregateFunction { params, .. }) => omit(&mut params.order_by),
        _ => false,
    };
    match changed {
        true => Transformed::yes(expr),
        false => Transformed::no(expr),
    }
}

/// Whether there were any.
fn omit(keys: &mut Vec<Sort>) -> bool {
    let before = keys.len();
    let mut kept: Vec<Sort> = Vec::with_capacity(before);
    for key in keys.drain(..) {
        if kept.iter().all(|earlier| earlier.expr != key.expr) {
            kept.push(key);
        }
    }
    *keys = kept;
    keys.len() < before
}
