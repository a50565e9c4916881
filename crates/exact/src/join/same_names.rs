//! Filters of joins and sorts, in plans with two columns of one name.
//!
//! **Stands for** DataFusion's `FilterPushdown`, which pushes such a filter down by the names of its columns. Where a
//! relation has two columns of one name, as behind joins with one table twice, the filter may reach the wrong one,
//! and rows that match are lost. Plans in which a filter might pass there are not given to that rule.

use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use std::collections::HashSet;
use std::sync::Arc;

/// A rule that goes by the names of columns, where these are distinct.
#[derive(Debug)]
pub(crate) struct UnlessSameNames(pub Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for UnlessSameNames {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match has_same_names(&plan, false) {
            true => Ok(plan),
            false => self.0.optimize(plan, config),
        }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Operators that hold no filter of their own for those below them.
const FILTERLESS: [&str; 6] = [
    "CoalescePartitionsExec",
    "CooperativeExec",
    "GlobalLimitExec",
    "LocalLimitExec",
    "ProjectionExec",
    "RepartitionExec",
];

/// Whether a filter might have to pass a node that has two columns of one name.
fn has_same_names(plan: &Arc<dyn ExecutionPlan>, is_filtered: bool) -> bool {
    let mut names = HashSet::new();
    let schema = plan.schema();
    let twice = !(schema.fields().iter()).all(|field| names.insert(field.name()));
    let is_filtered_below = is_filtered || !FILTERLESS.contains(&plan.name());
    let children = plan.children();
    is_filtered && twice
        || (children.into_iter()).any(|child| has_same_names(child, is_filtered_below))
}
