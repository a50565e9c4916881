//! Memory for the input of window functions.
//!
//! **Stands for** DataFusion's `WindowAggExec`, for frames without upper bound: it keeps all its input and does not
//! ask for the memory. So a node below it asks, and the statement fails as all others do when there is none.

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Statistics;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::utils::memory::RecordBatchMemoryCounter;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::windows::WindowAggExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
};
use futures::{Stream, StreamExt};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The batches are kept, then joined to one.
const COPIES: usize = 2;

/// The rule that puts the accounting below such window functions.
#[derive(Debug)]
pub(crate) struct AccountWindows;

impl PhysicalOptimizerRule for AccountWindows {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(window) = node.downcast_ref::<WindowAggExec>() else {
                return Ok(Transformed::no(node));
            };
            let input = Arc::clone(window.input());
            let accounted: Arc<dyn ExecutionPlan> = Arc::new(AccountExec { input });
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
            node.replace_children(vec![accounted], options)
                .map(Transformed::yes)
        })
        .data()
    }

    fn name(&self) -> &str {
        "account_windows"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Passes everything on, and holds memory for all of it as long as it is open.
#[derive(Debug)]
pub(crate) struct AccountExec {
    input: Arc<dyn ExecutionPlan>,
}

impl AccountExec {
    /// What it passes on.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }
}

impl DisplayAs for AccountExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccountExec")
    }
}

impl ExecutionPlan for AccountExec {
    fn name(&self) -> &str {
        "AccountExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
        let input = children.remove(0);
        Ok(Arc::new(AccountExec { input }))
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let input = children.remove(0);
        Ok(Arc::new(AccountExec { input }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let consumer = MemoryConsumer::new(format!("Window[{partition}]"));
        Ok(Box::pin(Accounted {
            reservation: consumer.register(context.memory_pool()),
            counter: RecordBatchMemoryCounter::new(),
            input: self.input.execute(partition, context)?,
        }))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&inputs[0]))
    }
}

struct Accounted {
    input: SendableRecordBatchStream,
    counter: RecordBatchMemoryCounter,
    reservation: MemoryReservation,
}

impl Stream for Accounted {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        Poll::Ready(match ready!(this.input.poll_next_unpin(cx)) {
            Some(Ok(batch)) => {
                let bytes = COPIES * this.counter.count_batch(&batch);
                Some(this.reservation.try_grow(bytes).map(|()| batch))
            }
            other => other,
        })
    }
}

impl RecordBatchStream for Accounted {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
