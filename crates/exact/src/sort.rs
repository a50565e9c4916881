//! Sorts by numbers: rows are compared by [one number each](packed), not key by key.
//!
//! ```text
//! batches of the input ──▶ keys packed ──▶ numbers sorted ──▶ batches: keys are read out of the numbers, other columns
//!       │                      │                              are gathered from the batches of the input
//!       │                      └─ too wide ──────────┐
//!       └─ no room for them ─────────────────────────┴──▶ DataFusion's sort, which writes files
//! ```
//!
//! **Stands for** DataFusion's `SortExec` of numbers of which all are wanted: it sorts batch by batch, key by key, and
//! then merges a thousand batches. Most windows wait for one.

mod packed;

use crate::once::OnceExec;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::{concat_batches, interleave};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::Statistics;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::utils::memory::RecordBatchMemoryCounter;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan,
    InputDistributionRequirements, PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};
use packed::{KeyColumn, Order, is_packed, is_unpacked};
use std::fmt;
use std::sync::Arc;

/// The rule that puts it in the place of sorts whose keys may be packed.
#[derive(Debug)]
pub(crate) struct PackSorts;

impl PhysicalOptimizerRule for PackSorts {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(planned) = node.downcast_ref::<SortExec>() else {
                return Ok(Transformed::no(node));
            };
            let schema = planned.input().schema();
            let is_packed =
                |key: &dyn PhysicalExpr| key.data_type(&schema).map(|of| is_packed(&of));
            for key in planned.expr() {
                if !is_packed(key.expr.as_ref())? {
                    return Ok(Transformed::no(node));
                }
            }
            // Views would have the blocks of all batches in each.
            let mut columns = schema.fields().iter().map(|field| field.data_type());
            let is_copied = |of: &DataType| of.is_primitive() || *of == DataType::Boolean;
            if planned.fetch().is_some() || columns.len() == 0 || !columns.all(is_copied) {
                return Ok(Transformed::no(node));
            }
            Ok(Transformed::yes(Arc::new(PackedSortExec::new(node))))
        })
        .data()
    }

    fn name(&self) -> &str {
        "pack_sorts"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A sort in memory.
#[derive(Debug)]
pub(crate) struct PackedSortExec {
    /// The sort as planned.
    planned: Arc<dyn ExecutionPlan>,
    metrics: ExecutionPlanMetricsSet,
}

impl PackedSortExec {
    fn new(planned: Arc<dyn ExecutionPlan>) -> Self {
        PackedSortExec {
            planned,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    fn sort(&self) -> &SortExec {
        let sort = self.planned.downcast_ref::<SortExec>();
        sort.expect("the rule has looked")
    }
}

impl DisplayAs for PackedSortExec {
    fn fmt_as(&self, style: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.sort().fmt_as(style, f)
    }
}

impl ExecutionPlan for PackedSortExec {
    fn name(&self) -> &str {
        self.planned.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.planned.properties()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.planned.input_distribution_requirements()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.planned.benefits_from_input_partitioning()
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
        Ok(Arc::new(PackedSortExec::new(planned)))
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
        let input = self
            .sort()
            .input()
            .execute(partition, Arc::clone(&context))?;
        let schema = input.schema();
        let sorting = Sorting {
            by: self.sort().expr().clone(),
            held: MemoryConsumer::new(format!("PackedSort[{partition}]"))
                .with_can_spill(true)
                .register(context.memory_pool()),
            metrics: BaselineMetrics::new(&self.metrics, partition),
            context,
        };
        let sorted = stream::once(sorting.run(input)).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, sorted)))
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

/// One partition of a sort.
struct Sorting {
    by: LexOrdering,
    held: MemoryReservation,
    metrics: BaselineMetrics,
    context: Arc<TaskContext>,
}

/// Batches of which small ones are joined: each is looked at for each batch that is handed out.
struct Batches {
    large: Vec<RecordBatch>,
    small: Vec<RecordBatch>,
    most: usize,
}

impl Batches {
    fn new(most: usize) -> Self {
        Batches {
            large: Vec::new(),
            small: Vec::new(),
            most,
        }
    }

    fn push(&mut self, batch: RecordBatch) -> Result<()> {
        self.small.push(batch);
        let rows: usize = self.small.iter().map(RecordBatch::num_rows).sum();
        match rows >= self.most {
            true => self.join(),
            false => Ok(()),
        }
    }

    fn join(&mut self) -> Result<()> {
        if let Some(first) = self.small.first() {
            self.large
                .push(concat_batches(&first.schema(), &self.small)?);
            self.small.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<RecordBatch>> {
        self.join()?;
        Ok(self.large)
    }
}

/// Where the values of a sorted column come from.
enum SortedColumn {
    /// From the numbers.
    Key(usize),
    /// From the batches.
    Others(Vec<ArrayRef>),
}

/// Bytes that the number and the place of a row take beside its keys.
const BYTES_PER_ROW: usize = size_of::<u128>();

impl Sorting {
    async fn run(self, mut input: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
        let schema = input.schema();
        let keys = self.by.iter().map(|key| KeyColumn::new(key.options));
        let mut keys: Vec<KeyColumn> = keys.collect();
        let mut counter = RecordBatchMemoryCounter::new();
        let most = self.context.session_config().batch_size();
        let mut batches = Batches::new(most);
        let time = self.metrics.elapsed_compute().clone();
        while let Some(batch) = input.try_next().await? {
            if batch.num_rows() == 0 {
                continue;
            }
            let timer = time.timer();
            let bytes = counter.count_batch(&batch);
            let before: usize = keys.iter().map(KeyColumn::bytes).sum();
            let mut is_packed = true;
            for (key, column) in self.by.iter().zip(&mut keys) {
                let values = key.expr.evaluate(&batch)?.into_array(batch.num_rows())?;
                is_packed &= column.add(&values);
            }
            let after: usize = keys.iter().map(KeyColumn::bytes).sum();
            let bytes = bytes + after - before + BYTES_PER_ROW * batch.num_rows();
            batches.push(batch)?;
            timer.done();
            if !is_packed || self.held.try_grow(bytes).is_err() {
                return self.hand_over(batches.finish()?, Some(input));
            }
        }
        let timer = time.timer();
        let batches = batches.finish()?;
        let rows: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
        let columns: Vec<SortedColumn> = (0..schema.fields().len())
            .map(|column| match self.key_of(column, &schema, &keys) {
                Some(key) => SortedColumn::Key(key),
                None => SortedColumn::Others(
                    batches
                        .iter()
                        .map(|batch| Arc::clone(batch.column(column)))
                        .collect(),
                ),
            })
            .collect();
        let have_places = columns
            .iter()
            .any(|column| matches!(column, SortedColumn::Others(_)));
        let order = Order::new(keys, &rows, have_places);
        timer.done();
        let Ok(order) = order else {
            return self.hand_over(batches, None);
        };
        drop(batches);
        let of_result = Arc::clone(&schema);
        let sorted = (0..order.len().div_ceil(most)).map(move |piece| {
            let _timer = self.metrics.elapsed_compute().timer();
            // It is held until all is handed out.
            let _ = &self.held;
            let first = piece * most;
            let range = first..order.len().min(first + most);
            let places = match have_places {
                true => order.rows(range.clone()),
                false => Vec::new(),
            };
            let fields = of_result.fields().iter();
            let columns = fields.zip(&columns).map(|(field, column)| match column {
                SortedColumn::Key(key) => Ok(order.key(*key, range.clone(), field.data_type())),
                SortedColumn::Others(pieces) => {
                    let pieces: Vec<&dyn Array> = pieces.iter().map(|piece| &**piece).collect();
                    interleave(&pieces, &places)
                }
            });
            let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
            let batch = RecordBatch::try_new(Arc::clone(&of_result), columns)?;
            Ok(batch).record_output(&self.metrics)
        });
        let sorted = stream::iter(sorted);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, sorted)))
    }

    /// The sort key that a column is, if its values can be read out of the numbers.
    fn key_of(&self, column: usize, schema: &SchemaRef, keys: &[KeyColumn]) -> Option<usize> {
        let is_it = |key: &PhysicalSortExpr| {
            let key = key.expr.downcast_ref::<Column>();
            key.is_some_and(|key| key.index() == column)
        };
        let key = self.by.iter().position(is_it)?;
        let data_type = schema.field(column).data_type();
        (keys[key].is_unpacked() && is_unpacked(data_type)).then_some(key)
    }

    /// What is there, and what comes, sorted by DataFusion.
    fn hand_over(
        self,
        batches: Vec<RecordBatch>,
        rest: Option<SendableRecordBatchStream>,
    ) -> Result<SendableRecordBatchStream> {
        self.held.free();
        let schema = batches[0].schema();
        let rest = stream::iter(rest).flatten();
        let all = stream::iter(batches.into_iter().map(Ok)).chain(rest);
        let all = RecordBatchStreamAdapter::new(Arc::clone(&schema), all);
        let input = Arc::new(OnceExec::new(Box::pin(all)));
        let sorted = SortExec::new(self.by.clone(), input).execute(0, self.context)?;
        let metrics = self.metrics;
        let counted = sorted.map(move |batch| batch.record_output(&metrics));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted)))
    }
}
