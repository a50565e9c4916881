//! Sorts by numbers: rows are compared by [one number each](packed), not key by key.
//!
//! ```text
//! batches of the input ──▶ keys packed ──▶ numbers sorted ──▶ batches: keys are read out of the numbers, other columns
//!       │                      │                              are gathered from the batches of the input
//!       │                      └─ too wide ──────────┐
//!       └─ no room for them ─────────────────────────┴──▶ DataFusion's sort, which writes files
//! ```
//!
//! If all partitions become one, the rows are sorted in parts by all threads, and nothing is left to merge.
//!
//! **Stands for** DataFusion's `SortExec` of numbers of which all are wanted: it sorts batch by batch, key by key, and
//! then merges a thousand batches; and for its merge of several sorts. Most windows wait for one.

mod packed;

use crate::join::hash::on_threads;
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
use datafusion::physical_expr::{LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan,
    InputDistributionRequirements, PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};
use packed::{KeyColumn, Order, Rows, is_unpacked};
pub(crate) use packed::{integers, is_packed};
use std::fmt;
use std::sync::Arc;

/// A stream whose batches are made by a task of its own.
fn beside(mut stream: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let mut builder = RecordBatchReceiverStream::builder(stream.schema(), READY_BATCHES);
    let sender = builder.tx();
    builder.spawn(async move {
        while let Some(batch) = stream.next().await {
            if sender.send(batch).await.is_err() {
                break;
            }
        }
        Ok(())
    });
    builder.build()
}

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
            if let Some(whole) = in_one_piece(&node) {
                return Ok(Transformed::yes(Arc::new(PackedSortExec::new(whole))));
            }
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

/// The sort of all partitions at once that stands for a merge of sorted ones.
fn in_one_piece(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let merge = plan.downcast_ref::<SortPreservingMergeExec>()?;
    let sort = merge.input().downcast_ref::<PackedSortExec>()?.sort();
    if merge.fetch().is_some() || merge.expr() != sort.expr() {
        return None;
    }
    let all = CoalescePartitionsExec::new(Arc::clone(sort.input()));
    Some(Arc::new(SortExec::new(sort.expr().clone(), Arc::new(all))))
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
            // Else each partition has its own.
            threads: match self.properties().partitioning.partition_count() {
                1 => context.session_config().target_partitions(),
                _ => 1,
            },
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
    /// How many sort.
    threads: usize,
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

/// Bytes that a row takes at least beside its values.
const BYTES_PER_ROW: usize = size_of::<u64>();
/// Bytes that a key takes besides, if it is no column of the rows.
const BYTES_PER_KEY: usize = size_of::<i64>();
/// Batches of a sorted partition that wait for whoever takes them.
const READY_BATCHES: usize = 4;

impl Sorting {
    async fn run(self, mut input: SendableRecordBatchStream) -> Result<SendableRecordBatchStream> {
        let schema = input.schema();
        let computed = self
            .by
            .iter()
            .filter(|key| !key.expr.is::<Column>())
            .count();
        let bytes_per_row = BYTES_PER_ROW + computed * BYTES_PER_KEY;
        let mut counter = RecordBatchMemoryCounter::new();
        let most = self.context.session_config().batch_size();
        let mut batches = Batches::new(most);
        let time = self.metrics.elapsed_compute().clone();
        while let Some(batch) = input.try_next().await? {
            if batch.num_rows() == 0 {
                continue;
            }
            let timer = time.timer();
            let bytes = counter.count_batch(&batch) + bytes_per_row * batch.num_rows();
            batches.push(batch)?;
            timer.done();
            if self.held.try_grow(bytes).is_err() {
                return self.hand_over(batches.finish()?, Some(input));
            }
        }
        drop(input);
        let timer = time.timer();
        let batches = Arc::new(batches.finish()?);
        let Some(keys) = self.keys(&batches).await? else {
            return self.hand_over(batches.to_vec(), None);
        };
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
        let count: usize = rows.iter().sum();
        let rows = Rows::new(keys, rows, have_places);
        let bytes = rows.bytes_of_number().map(|bytes| count * bytes);
        // While parts are put together, numbers are there more than once.
        let copies = if self.threads > 1 { 3 } else { 1 };
        let has_room = |bytes: usize| self.held.try_grow(copies * bytes).is_ok();
        let Some(bytes) = bytes.filter(|bytes| has_room(*bytes)) else {
            return self.hand_over(batches.to_vec(), None);
        };
        let order = Order::new(rows, self.threads).await?;
        self.held.shrink((copies - 1) * bytes);
        timer.done();
        drop(batches);
        let of_result = Arc::clone(&schema);
        let parts = order.parts().into_iter().enumerate();
        let pieces = parts.flat_map(move |(part, rows)| {
            let firsts = (0..rows).step_by(most);
            firsts.map(move |first| (part, first..rows.min(first + most)))
        });
        let threads = self.threads;
        let sorted = pieces.map(move |(part, range)| {
            let _timer = self.metrics.elapsed_compute().timer();
            // It is held until all is handed out.
            let _ = &self.held;
            let places = match have_places {
                true => order.rows(part, range.clone()),
                false => Vec::new(),
            };
            let fields = of_result.fields().iter();
            let columns = fields.zip(&columns).map(|(field, column)| match column {
                SortedColumn::Key(key) => {
                    Ok(order.key(*key, part, range.clone(), field.data_type()))
                }
                SortedColumn::Others(pieces) => {
                    let pieces: Vec<&dyn Array> = pieces.iter().map(|piece| &**piece).collect();
                    interleave(&pieces, &places)
                }
            });
            let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
            let batch = RecordBatch::try_new(Arc::clone(&of_result), columns)?;
            Ok(batch).record_output(&self.metrics)
        });
        let sorted = RecordBatchStreamAdapter::new(schema, stream::iter(sorted));
        // Whoever takes the only partition has no other thread beside it.
        match threads {
            1 => Ok(Box::pin(sorted)),
            _ => Ok(beside(Box::pin(sorted))),
        }
    }

    /// The sort keys of all rows; `None` if they cannot be packed.
    async fn keys(&self, batches: &Arc<Vec<RecordBatch>>) -> Result<Option<Vec<KeyColumn>>> {
        let (by, of_batches) = (self.by.clone(), Arc::clone(batches));
        let keys = move || by.iter().map(|key| KeyColumn::new(key.options)).collect();
        let none: Vec<KeyColumn> = keys();
        let by = self.by.clone();
        let step = batches.len().div_ceil(2 * self.threads).max(1);
        let some = move |number: usize| {
            let mut some: Vec<KeyColumn> = keys();
            for batch in of_batches.iter().skip(number * step).take(step) {
                for (key, column) in by.iter().zip(&mut some) {
                    let values = key.expr.evaluate(batch)?.into_array(batch.num_rows())?;
                    if !column.add(values) {
                        return Ok(None);
                    }
                }
            }
            Ok(Some(some))
        };
        let pieces: Vec<Option<Vec<KeyColumn>>> =
            on_threads(2 * self.threads, self.threads, some).await?;
        let pieces: Option<Vec<Vec<KeyColumn>>> = pieces.into_iter().collect();
        Ok(pieces.map(|pieces| {
            pieces.into_iter().fold(none, |mut all, piece| {
                for (all, own) in all.iter_mut().zip(piece) {
                    all.append(own);
                }
                all
            })
        }))
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
        let sorted: Arc<dyn ExecutionPlan> = match self.threads {
            1 => Arc::new(SortExec::new(self.by.clone(), input)),
            threads => {
                let spread =
                    RepartitionExec::try_new(input, Partitioning::RoundRobinBatch(threads))?;
                let sort = SortExec::new(self.by.clone(), Arc::new(spread));
                let sort = sort.with_preserve_partitioning(true);
                Arc::new(SortPreservingMergeExec::new(
                    self.by.clone(),
                    Arc::new(sort),
                ))
            }
        };
        let sorted = sorted.execute(0, self.context)?;
        let metrics = self.metrics;
        let counted = sorted.map(move |batch| batch.record_output(&metrics));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted)))
    }
}
