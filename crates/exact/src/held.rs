//! DataFusion's rules for logical plans, held back at the nodes where they are wrong.

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// Tells whether a rule is not applied at a node.
pub(crate) type IsHeld = fn(&LogicalPlan) -> Result<bool>;

/// A rule, and at which nodes it is not applied.
#[derive(Debug)]
pub(crate) struct HeldRule {
    pub rule: Arc<dyn OptimizerRule + Send + Sync>,
    pub is_held: IsHeld,
}

impl OptimizerRule for HeldRule {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match (self.is_held)(&plan)? {
            true => Ok(Transformed::no(plan)),
            false => self.rule.rewrite(plan, config),
        }
    }
}
