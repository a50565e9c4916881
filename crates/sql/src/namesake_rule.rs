//! DataFusion pushes a join's or a sort's filter down by the names of its columns. Where a relation has two columns of one name, as behind
//! joins with one table twice, it may reach the wrong one, and rows that match are lost: such plans go without.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use std::collections::HashSet;
use std::sync::Arc;

/// A rule that goes by the names of columns, where these are distinct.
#[derive(Debug)]
pub(crate) struct UnlessNamesakes(pub Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for UnlessNamesakes {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match has_namesakes(&plan)? {
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

/// Whether some node has two columns of one name.
fn has_namesakes(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut found = false;
    plan.apply(|node| {
        let schema = node.schema();
        let mut names = HashSet::new();
        found = !schema
            .fields()
            .iter()
            .all(|field| names.insert(field.name()));
        Ok(match found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(found)
}
