//! The physical rule for sorts of rows without columns:
//! `SELECT count(*) FROM (SELECT * FROM t ORDER BY random() LIMIT 3)`.
//!
//! Which rows come first makes no difference then, so only the limit is left of the sort.
//!
//! **Stands for** DataFusion's sorts, which cannot make batches without columns.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use std::sync::Arc;

/// The rule.
#[derive(Debug)]
pub(crate) struct LimitWithoutColumns;

impl PhysicalOptimizerRule for LimitWithoutColumns {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            if !node.schema().fields().is_empty() {
                return Ok(Transformed::no(node));
            }
            if let Some(sort) = node.downcast_ref::<SortExec>() {
                let input = Arc::clone(sort.input());
                return Ok(Transformed::yes(match sort.fetch() {
                    Some(fetch) if sort.preserve_partitioning() => {
                        Arc::new(LocalLimitExec::new(input, fetch))
                    }
                    fetch => limited(input, fetch),
                }));
            }
            if let Some(merge) = node.downcast_ref::<SortPreservingMergeExec>() {
                let limited = limited(Arc::clone(merge.input()), merge.fetch());
                return Ok(Transformed::yes(limited));
            }
            Ok(Transformed::no(node))
        })
        .data()
    }

    fn name(&self) -> &str {
        "limit_without_columns"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// At most so many rows, in one partition.
fn limited(input: Arc<dyn ExecutionPlan>, fetch: Option<usize>) -> Arc<dyn ExecutionPlan> {
    let single: Arc<dyn ExecutionPlan> = match input.output_partitioning().partition_count() {
        1 => input,
        _ => Arc::new(CoalescePartitionsExec::new(input)),
    };
    match fetch {
        Some(fetch) => Arc::new(GlobalLimitExec::new(single, 0, Some(fetch))),
        None => single,
    }
}
