//! Medians and other quantiles are computed where all values of a group are.
//!
//! ```text
//! AggregateExec FinalPartitioned k, median(v)          AggregateExec SinglePartitioned k, median(v)
//!   RepartitionExec hash(k)                     ──►      RepartitionExec hash(k)
//!     AggregateExec Partial                                rows
//!       rows
//! ```
//!
//! A partial median is the list of all values. Rows are exchanged with less work than such lists: these are copied into
//! arrays, and out of them again.
//!
//! **Stands for** DataFusion's two steps for all aggregates.

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use std::sync::Arc;

/// Aggregates whose partial state is all values.
const HOLISTIC: [&str; 2] = ["median", "percentile_cont"];

/// Groups that make it worth leaving out the first step, for each thread.
const GROUPS_PER_THREAD: usize = 4;

/// The rule. Exchanges are added after it.
#[derive(Debug)]
pub(crate) struct AggregateWholeGroups;

impl PhysicalOptimizerRule for AggregateWholeGroups {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        options: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let threads = options.execution.target_partitions;
        plan.transform_down(|node| {
            let partial = node.downcast_ref::<AggregateExec>().and_then(partial_of);
            let partial = match partial {
                Some(partial) if has_many_groups(partial, threads)? => Some(partial),
                _ => None,
            };
            let whole = partial.map(|partial| {
                AggregateExec::try_new(
                    AggregateMode::SinglePartitioned,
                    partial.group_expr().clone(),
                    partial.aggr_expr().to_vec(),
                    partial.filter_expr().to_vec(),
                    Arc::clone(partial.input()),
                    partial.input_schema(),
                )
            });
            Ok(match whole.transpose()? {
                Some(whole) => Transformed::yes(Arc::new(whole) as _),
                None => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "aggregate_whole_groups"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The first step of an aggregate by keys, if it has two, and a state of it is all values.
fn partial_of(last: &AggregateExec) -> Option<&AggregateExec> {
    let is_last = *last.mode() == AggregateMode::FinalPartitioned;
    let partial = last.input().downcast_ref::<AggregateExec>()?;
    let is_first = *partial.mode() == AggregateMode::Partial;
    let keys = partial.group_expr();
    let mut functions = partial.aggr_expr().iter();
    let is_holistic = functions.any(|one| HOLISTIC.contains(&one.fun().name()));
    let fits = is_last && is_first && keys.is_single() && !keys.is_empty() && is_holistic;
    fits.then_some(partial)
}

/// Whether there are several groups for each thread, as far as it is known: else many threads would wait for few.
fn has_many_groups(partial: &AggregateExec, threads: usize) -> Result<bool> {
    let rows = StatisticsContext::new().compute(partial, &StatisticsArgs::new())?;
    let groups = rows.num_rows.get_value();
    Ok(groups.is_none_or(|groups| *groups >= GROUPS_PER_THREAD * threads))
}
