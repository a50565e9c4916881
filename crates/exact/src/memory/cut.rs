//! Batches are cut by bytes where rows are wide.
//!
//! ```text
//! 8,192 rows ── CutBatchesExec: rows=40 ── 40 rows at a time ── ProjectionExec: repeat('x', 200000)
//! ```
//!
//! All operators of such a plan make batches of as few rows.
//!
//! **Stands for** DataFusion's batches of so many rows, whatever they take.

use super::widths;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;

/// Bytes of a batch that is cut.
const BYTES: u64 = 8 << 20;
/// Rows that a node makes no wider need no cut: some thousands of them take no more than operators hold anyway.
const WIDE: u64 = 4 << 10;
/// The same for rows that are read. Of many columns, they are read faster by the thousand.
const WIDE_READ: u64 = 32 << 10;

/// The rule. It runs last, for its node must stay where it is.
#[derive(Debug)]
pub(crate) struct CutBatches;

impl PhysicalOptimizerRule for CutBatches {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(cut(plan)?.0)
    }

    fn name(&self) -> &str {
        "cut_batches"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan with cuts, and how wide its columns are.
fn cut(plan: Arc<dyn ExecutionPlan>) -> Result<(Arc<dyn ExecutionPlan>, Vec<u64>)> {
    let children: Vec<_> = plan.children().into_iter().map(Arc::clone).collect();
    let mut widths = Vec::with_capacity(children.len());
    let mut inputs = Vec::with_capacity(children.len());
    for child in &children {
        let (child, width) = cut(Arc::clone(child))?;
        inputs.push(child);
        widths.push(width);
    }
    let own = widths::of_node(&plan, &widths);
    let row = own
        .iter()
        .fold(0_u64, |sum, width| sum.saturating_add(*width));
    let row = match &widths[..] {
        [child] => row.max(widths::while_evaluated(&plan, child)?),
        _ => row,
    };
    let rows = (BYTES / row.max(1)).max(1) as usize;
    // What only hands wide rows on gets few of them at once.
    let of_inputs = widths
        .iter()
        .flatten()
        .fold(0_u64, |sum, width| sum.saturating_add(*width));
    if row > WIDE && row / 2 > of_inputs {
        for input in &mut inputs {
            *input = CutBatchesExec::over(Arc::clone(input), rows);
        }
    }
    let is_changed = inputs
        .iter()
        .zip(&children)
        .any(|(new, old)| !Arc::ptr_eq(new, old));
    let mut plan = match is_changed {
        true => {
            let mode = ChildrenPropertiesMode::Recompute;
            plan.replace_children(inputs, ReplaceChildrenOptions::new(mode))?
        }
        false => plan,
    };
    if row > WIDE_READ && children.is_empty() {
        plan = CutBatchesExec::over(plan, rows);
    }
    Ok((plan, own))
}

/// Rows of a batch in a plan: the usual number, or fewer where rows are wide.
pub fn batch_rows(plan: &Arc<dyn ExecutionPlan>, usual: usize) -> usize {
    let mut rows = usual;
    plan.apply(|node| {
        if let Some(cut) = node.downcast_ref::<CutBatchesExec>() {
            rows = rows.min(cut.rows);
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .expect("nothing in it fails");
    rows
}

/// The surroundings of a plan, with batches of so many rows.
pub fn with_batch_rows(context: &TaskContext, rows: usize) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        context.task_id(),
        context.session_id(),
        context.session_config().clone().with_batch_size(rows),
        context.scalar_functions().clone(),
        context.higher_order_functions().clone(),
        context.aggregate_functions().clone(),
        context.window_functions().clone(),
        context.runtime_env(),
    ))
}

/// Hands batches on in pieces of so many rows.
#[derive(Debug)]
struct CutBatchesExec {
    input: Arc<dyn ExecutionPlan>,
    rows: usize,
}

impl CutBatchesExec {
    fn over(input: Arc<dyn ExecutionPlan>, rows: usize) -> Arc<dyn ExecutionPlan> {
        Arc::new(CutBatchesExec { input, rows })
    }
}

impl DisplayAs for CutBatchesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CutBatchesExec: rows={}", self.rows)
    }
}

impl ExecutionPlan for CutBatchesExec {
    fn name(&self) -> &str {
        "CutBatchesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.pop().expect("it has one child");
        Ok(CutBatchesExec::over(input, self.rows))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context)?;
        let schema = input.schema();
        let rows = self.rows;
        let pieces = input.map_ok(move |batch| futures::stream::iter(pieces(batch, rows)));
        let pieces = pieces.try_flatten().boxed();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, pieces)))
    }
}

fn pieces(batch: RecordBatch, rows: usize) -> impl Iterator<Item = Result<RecordBatch>> {
    let places = (0..batch.num_rows()).step_by(rows);
    places.map(move |from| Ok(batch.slice(from, rows.min(batch.num_rows() - from))))
}
