//! The physical rule that makes joins give way.
//!
//! An operator's task notices that it was cancelled only when it yields. A join may turn one batch into thousands.
//!
//! **Stands for** DataFusion's `EnsureCooperative`, which counts the batches that are read, but not those that a join
//! produces.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use std::sync::Arc;

/// The rule. Runs beside DataFusion's own, which does the same for leaves.
#[derive(Debug)]
pub(crate) struct YieldAfterJoins;

impl PhysicalOptimizerRule for YieldAfterJoins {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let join = node.is::<NestedLoopJoinExec>()
                || node.is::<CrossJoinExec>()
                || node.is::<HashJoinExec>()
                || node.is::<SortMergeJoinExec>();
            Ok(if join {
                Transformed::yes(Arc::new(CooperativeExec::new(node)) as _)
            } else {
                Transformed::no(node)
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "yield_after_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
