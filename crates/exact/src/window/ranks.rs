//! Ranks of sorted rows, batch by batch.
//!
//! ```text
//! partition  a a a a │ b b …      rows of a batch, and where partitions and peers begin
//! by         1 1 2 3 │ 1 1
//! row_number 1 2 3 4 │ 1 2
//! rank       1 1 3 4 │ 1 1        what the next batch goes on with: the last row's keys and ranks
//! dense_rank 1 1 2 3 │ 1 1
//! ```
//!
//! **Stands for** DataFusion's `BoundedWindowAggExec`, if all its functions rank, in one window: it asks each function
//! for a value for each row, and makes arrays of these.

use super::ranking::{Ranking, have_same_window};
use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::arrow::compute::{concat, partition};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Statistics;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{PhysicalExpr, PhysicalExprRef};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::InputOrderMode;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::BoundedWindowAggExec;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan,
    InputDistributionRequirements, PlanProperties,
};
use futures::StreamExt;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The rule that puts it in the place of such windows.
#[derive(Debug)]
pub(crate) struct RankInBatches;

impl PhysicalOptimizerRule for RankInBatches {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let ranks = node
                .downcast_ref::<BoundedWindowAggExec>()
                .is_some_and(ranks);
            Ok(match ranks {
                true => Transformed::yes(Arc::new(RankExec::new(node)) as _),
                false => Transformed::no(node),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "rank_in_batches"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether a node does nothing but rank the rows of one window, which are sorted.
fn ranks(window: &BoundedWindowAggExec) -> bool {
    let functions = window.window_expr();
    let schema = window.schema();
    let added = &schema.fields()[window.input().schema().fields().len()..];
    matches!(window.input_order_mode, InputOrderMode::Sorted)
        && window.state_observer().is_none()
        && added
            .iter()
            .all(|field| *field.data_type() == DataType::Int64)
        && (functions.iter())
            .all(|one| Ranking::of(one).is_some() && have_same_window(one, &functions[0]))
}

/// Ranks of rows that come sorted.
#[derive(Debug)]
pub(crate) struct RankExec {
    /// The node as planned.
    planned: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
}

impl RankExec {
    fn new(planned: Arc<dyn ExecutionPlan>) -> Self {
        RankExec {
            planned,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    fn window(&self) -> &BoundedWindowAggExec {
        let window = self.planned.downcast_ref::<BoundedWindowAggExec>();
        window.expect("the rule has looked")
    }
}

impl DisplayAs for RankExec {
    fn fmt_as(&self, style: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.window().fmt_as(style, f)
    }
}

impl ExecutionPlan for RankExec {
    fn name(&self) -> &str {
        self.planned.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.planned.properties()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.planned.input_distribution_requirements()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.planned.maintains_input_order()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.planned.children()
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.planned.apply_expressions(visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planned = Arc::clone(&self.planned).replace_children(children, options)?;
        Ok(Arc::new(RankExec::new(planned)))
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
        let window = self.window();
        let input = window.input().execute(partition, context)?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let functions = window.window_expr();
        let order = functions[0].order_by().iter();
        let rankings: Vec<Ranking> = functions.iter().filter_map(Ranking::of).collect();
        let mut ranking = RankedRows {
            knows_peers: rankings.iter().any(|one| *one != Ranking::RowNumber),
            functions: rankings,
            partition: functions[0].partition_by().to_vec(),
            order: order.map(|key| Arc::clone(&key.expr)).collect(),
            schema: window.schema(),
            last: None,
        };
        let ranked = input.map(move |batch| {
            let batch = batch?;
            let _timer = metrics.elapsed_compute().timer();
            ranking.ranked(&batch).record_output(&metrics)
        });
        let schema = window.schema();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, ranked)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        self.planned.child_stats_requests(partition)
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        self.planned.statistics_from_inputs(inputs, args)
    }
}

/// The rows of a stream, ranked up to some place.
struct RankedRows {
    functions: Vec<Ranking>,
    /// Whether a function needs to know which rows have the same order.
    knows_peers: bool,
    partition: Vec<PhysicalExprRef>,
    order: Vec<PhysicalExprRef>,
    schema: SchemaRef,
    last: Option<LastRow>,
}

/// The row before the next batch.
struct LastRow {
    partition: Vec<ArrayRef>,
    order: Vec<ArrayRef>,
    ranks: Ranks,
}

/// All ranks of a row.
#[derive(Clone, Copy, Default)]
struct Ranks {
    row_number: i64,
    rank: i64,
    dense_rank: i64,
}

impl RankedRows {
    /// The next rows with their ranks.
    fn ranked(&mut self, batch: &RecordBatch) -> Result<RecordBatch> {
        let rows = batch.num_rows();
        let values = |keys: &[PhysicalExprRef]| {
            let keys = keys.iter();
            let keys = keys.map(|key| key.evaluate(batch)?.into_array(rows));
            keys.collect::<Result<Vec<_>>>()
        };
        let partition = values(&self.partition)?;
        let order = match self.knows_peers {
            true => values(&self.order)?,
            false => Vec::new(),
        };
        let mut out: Vec<Vec<i64>> = (self.functions.iter())
            .map(|_| Vec::with_capacity(rows))
            .collect();
        let mut ranks = Ranks::default();
        // The first partition, and the first peers in it, may have begun before.
        let (mut goes_on, mut has_peers) = (false, false);
        if let (Some(last), true) = (&self.last, rows > 0) {
            goes_on = are_equal(&last.partition, &partition)?;
            has_peers = goes_on && are_equal(&last.order, &order)?;
            ranks = last.ranks;
        }
        let both: Vec<ArrayRef> = partition.iter().chain(&order).cloned().collect();
        let mut partitions = ranges(&partition, rows)?.into_iter().peekable();
        for peers in ranges(&both, rows)? {
            if partitions
                .next_if(|range| range.start == peers.start)
                .is_some()
            {
                if !goes_on {
                    ranks = Ranks::default();
                }
                goes_on = false;
            }
            if !has_peers {
                ranks.rank = ranks.row_number + 1;
                ranks.dense_rank += 1;
            }
            has_peers = false;
            let first = ranks.row_number + 1;
            ranks.row_number += peers.len() as i64;
            for (ranking, out) in self.functions.iter().zip(&mut out) {
                match ranking {
                    Ranking::RowNumber => out.extend(first..=ranks.row_number),
                    Ranking::Rank => out.resize(peers.end, ranks.rank),
                    Ranking::DenseRank => out.resize(peers.end, ranks.dense_rank),
                }
            }
        }
        if rows > 0 {
            let last = |keys: &[ArrayRef]| keys.iter().map(|key| key.slice(rows - 1, 1)).collect();
            self.last = Some(LastRow {
                partition: last(&partition),
                order: last(&order),
                ranks,
            });
        }
        let out = out
            .into_iter()
            .map(|ranks| Arc::new(Int64Array::from(ranks)) as ArrayRef);
        let columns = batch.columns().iter().cloned().chain(out);
        Ok(RecordBatch::try_new(
            Arc::clone(&self.schema),
            columns.collect(),
        )?)
    }
}

/// Ranges of so many rows that have the same keys.
fn ranges(keys: &[ArrayRef], rows: usize) -> Result<Vec<Range<usize>>> {
    Ok(match keys.is_empty() || rows == 0 {
        true => vec![0..rows; rows.min(1)],
        false => partition(keys)?.ranges(),
    })
}

/// Whether the only row of some keys is the same as the first of others.
fn are_equal(last: &[ArrayRef], next: &[ArrayRef]) -> Result<bool> {
    if last.is_empty() {
        return Ok(true);
    }
    let both = last.iter().zip(next);
    let both = both.map(|(last, next)| concat(&[last, &next.slice(0, 1)]));
    let both = both.collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(partition(&both)?.len() == 1)
}
