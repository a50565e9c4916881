//! The physical rule that brings joins in order, by what they cost.
//!
//! ```text
//! HashJoinExec c_custkey = o_custkey                 HashJoinExec s_nationkey = c_nationkey, l_orderkey = o_orderkey
//!   HashJoinExec s_nationkey = c_nationkey    ──►      HashJoinExec s_suppkey = l_suppkey
//!     FragmentExec supplier                              FragmentExec supplier
//!     FragmentExec customer                              FragmentExec lineitem
//!   HashJoinExec l_orderkey = o_orderkey               HashJoinExec c_custkey = o_custkey
//!     …                                                  …
//! ```
//!
//! Inner joins that lie on one another are one join of many [relations]. The crate `optimizer` finds the cheapest order
//! by [estimates], and the plan is [made anew](rebuilt). All else is a relation: a scan, a group, an outer join, a join
//! by computed keys. Inside of such a relation, joins are brought in order for themselves.
//!
//! The order of the text stays unless another one costs clearly less, for estimates are not exact. Runs before
//! joins become stars, which take their own sides by size, and before anybody says which side is read first.
//!
//! **Adds** what DataFusion lacks: it joins in the order of the text.
//!
//! Why: docs/decisions/0046.

mod estimates;
mod rebuilt;
mod relations;

use crate::plan::join_order::relations::{JoinedRelations, is_inner_join};
use datafusion::arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use eris_optimizer::RelationSet;
use std::sync::Arc;

/// Another order is taken if it costs at most this part of the text's.
const PART: f64 = 0.8;

/// The rule.
#[derive(Debug)]
pub(crate) struct JoinOrder;

impl PhysicalOptimizerRule for JoinOrder {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match config.optimizer.join_reordering {
            true => in_order(plan).data(),
            false => Ok(plan),
        }
    }

    fn name(&self) -> &str {
        "join_order"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn in_order(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    plan.transform_down(|node| match node.downcast_ref::<ProjectionExec>() {
        Some(projection) if is_inner_join(projection.input()) => {
            joined_in_order(projection.input(), projection.expr(), &node)
        }
        None if is_inner_join(&node) => joined_in_order(&node, &all_columns(&node.schema()), &node),
        _ => Ok(Transformed::no(node)),
    })
}

/// Expressions that are the columns of rows as they are.
fn all_columns(schema: &Schema) -> Vec<ProjectionExpr> {
    let columns = schema.fields().iter().enumerate();
    let columns = columns.map(|(place, field)| {
        let column = Column::new(field.name(), place);
        ProjectionExpr::new(Arc::new(column) as _, field.name().clone())
    });
    columns.collect()
}

/// A tree of joins in its cheapest order, and the relations below it in theirs. `node` computes these expressions of
/// the tree's rows.
fn joined_in_order(
    joins: &Arc<dyn ExecutionPlan>,
    exprs: &[ProjectionExpr],
    node: &Arc<dyn ExecutionPlan>,
) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let node = Arc::clone(node);
    let (mut joined, text, columns) = JoinedRelations::of(joins);
    // Of two, the sides are somebody else's choice.
    let count = joined.relations.len();
    if count < 3 || (count <= RelationSet::CAPACITY && !joined.fits_any_order()) {
        return Ok(Transformed::no(node));
    }
    // So many are joined as they are written, with all that is below them.
    if count > RelationSet::CAPACITY {
        return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
    }
    let mut is_other = false;
    for relation in &mut joined.relations {
        let ordered = in_order(Arc::clone(relation))?;
        is_other |= ordered.transformed;
        *relation = ordered.data;
    }
    let graph = joined.graph()?;
    let best = Some(graph.best_order());
    let is_better = |cost: f64| cost.is_finite() && cost <= PART * graph.cost(&text);
    let best = best.filter(|best| is_better(best.cost));
    if best.is_none() && !is_other {
        return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
    }
    let tree = best.map_or(text, |best| best.tree);
    let plan = joined.plan(&tree, &graph, &columns, exprs, &node.schema())?;
    Ok(Transformed::new(plan, true, TreeNodeRecursion::Jump))
}
