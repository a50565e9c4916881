//! Leaves of a plan that know how many rows there are, and how many they have read.

use crate::parquet::is_parquet;
use crate::scan::FileExec;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use std::sync::Arc;

/// A leaf of a plan that reads Parquet files, or a frame that knows its rows.
pub struct CountedScan {
    source: Arc<dyn ExecutionPlan>,
    /// Rows that there are.
    pub rows: u64,
}

impl CountedScan {
    /// How many rows are done so far.
    ///
    /// The reader of Parquet files counts the rows that it gives and those that a filter takes out on the way, but not
    /// those of row groups that it skips: a statement may end before all rows are counted.
    pub fn rows_read(&self) -> u64 {
        let metrics = self.source.metrics().unwrap_or_default();
        let filtered = metrics.sum_by_name("pushdown_rows_pruned");
        let filtered = filtered.map_or(0, |rows| rows.as_usize());
        (metrics.output_rows().unwrap_or(0) + filtered) as u64
    }
}

/// The leaves of a plan that count their rows.
///
/// # Errors
/// The plan does not know its statistics.
pub fn counted_scans(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<CountedScan>> {
    let mut scans = Vec::new();
    plan.apply(|node| {
        let is_frame = node
            .downcast_ref::<FileExec>()
            .is_some_and(FileExec::knows_rows);
        if is_frame || is_parquet(node) {
            let statistics =
                StatisticsContext::new().compute(node.as_ref(), &StatisticsArgs::new())?;
            let rows = statistics.num_rows.get_value().copied().unwrap_or(0);
            scans.push(CountedScan {
                source: Arc::clone(node),
                rows: rows as u64,
            });
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(scans)
}
