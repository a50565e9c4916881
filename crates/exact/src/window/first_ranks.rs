//! `rank <= n`: rows that cannot be among the first n of their partition are left out before anything is sorted.
//!
//! ```text
//! FilterExec r <= 2                                 FilterExec r <= 2
//!   BoundedWindowAggExec row_number() r               BoundedWindowAggExec row_number() r
//!     SortExec k, v                         ──►         SortExec k, v
//!       RepartitionExec hash(k)                           RepartitionExec hash(k)
//!         rows                                              FirstRanksExec 2 of each k by v
//!                                                             rows
//! ```
//!
//! For each partition it keeps the n best values of the first key that it has seen, or the n best different ones for
//! `dense_rank`. A row is left out if n of them are better than it by this key alone. All others go on, so that the
//! filter above still decides. Each thread does so with its own rows, before they are exchanged.
//!
//! It is given up if that leaves out little, since most partitions have hardly more rows than are wanted.
//!
//! **Stands for** nothing of DataFusion's that is on: its `PartitionedTopKExec` keeps a heap of rows for each
//! partition, and is slow if these are many.

use super::ranking::{Ranking, have_same_window};
use crate::sort::{integers, is_packed};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::{BatchCoalescer, SortOptions};
use datafusion::arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{ScalarValue, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_expr::{
    PhysicalExpr, PhysicalExprRef, PhysicalSortExpr, split_conjunction,
};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use datafusion::physical_plan::execution_plan::{ReplaceChildrenOptions, apply_expression_roots};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
};
use futures::{TryStreamExt, stream};
use std::fmt;
use std::sync::Arc;

/// Ranks up to which it is worth keeping values.
const MOST: usize = 256;
/// Rows after which it is looked at how many of them have gone on.
const PERIOD: usize = 1 << 18;
/// Values that are kept for each row that has come, at most …
const VALUES_PER_ROW: usize = 4;
/// … beside so many.
const FEW_VALUES: usize = 1 << 20;
/// It is given up if more go on, of a hundred.
const MOST_GO_ON: usize = 75;

/// The rule.
#[derive(Debug)]
pub(crate) struct KeepFirstRanks;

impl PhysicalOptimizerRule for KeepFirstRanks {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let Some(filter) = node.downcast_ref::<FilterExec>() else {
                return Ok(Transformed::no(node));
            };
            for conjunct in split_conjunction(filter.predicate()) {
                let Some((column, most)) = first_ranks(conjunct) else {
                    continue;
                };
                if let Some(input) = below_window(filter.input(), column, most)? {
                    return with_input(&node, input).map(Transformed::yes);
                }
            }
            Ok(Transformed::no(node))
        })
        .data()
    }

    fn name(&self) -> &str {
        "keep_first_ranks"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn with_input(
    plan: &Arc<dyn ExecutionPlan>,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    Arc::clone(plan).replace_children(vec![input], options)
}

/// The column of which a condition wants only values up to a number, and this number.
fn first_ranks(condition: &PhysicalExprRef) -> Option<(usize, usize)> {
    let binary = condition.downcast_ref::<BinaryExpr>()?;
    let column = |side: &PhysicalExprRef| Some(side.downcast_ref::<Column>()?.index());
    let number = |side: &PhysicalExprRef| {
        let value = side.downcast_ref::<Literal>()?.value();
        match value.cast_to(&DataType::Int64).ok()? {
            ScalarValue::Int64(Some(number)) if value.data_type().is_integer() => Some(number),
            _ => None,
        }
    };
    let (column, op, number) = match (column(binary.left()), column(binary.right())) {
        (Some(column), None) => (column, *binary.op(), number(binary.right())?),
        (None, Some(column)) => (column, binary.op().swap()?, number(binary.left())?),
        _ => return None,
    };
    let most = match op {
        Operator::LtEq | Operator::Eq => number,
        Operator::Lt => number.checked_sub(1)?,
        _ => return None,
    };
    let most = usize::try_from(most).ok()?;
    (1..=MOST).contains(&most).then_some((column, most))
}

/// The same plan with fewer rows below the window function that a column is; `None` if it is no rank.
fn below_window(
    plan: &Arc<dyn ExecutionPlan>,
    column: usize,
    most: usize,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let Some(from) = projection.expr()[column].expr.downcast_ref::<Column>() else {
            return Ok(None);
        };
        let less = below_window(projection.input(), from.index(), most)?;
        return less.map(|input| with_input(plan, input)).transpose();
    }
    let (functions, input) = match plan.downcast_ref::<BoundedWindowAggExec>() {
        Some(window) => (window.window_expr(), window.input()),
        None => match plan.downcast_ref::<WindowAggExec>() {
            Some(window) => (window.window_expr(), window.input()),
            None => return Ok(None),
        },
    };
    let number = column.checked_sub(input.schema().fields().len());
    let Some(wanted) = number.and_then(|number| functions.get(number)) else {
        return Ok(None);
    };
    // Rows that are left out must not matter to any of the functions.
    let all_rank =
        (functions.iter()).all(|one| Ranking::of(one).is_some() && have_same_window(one, wanted));
    let Some(first) = FirstRanks::of(wanted, most, &input.schema())?.filter(|_| all_rank) else {
        return Ok(None);
    };
    let less = below_sort(input, &first)?;
    less.map(|input| with_input(plan, input)).transpose()
}

/// The same plan with fewer rows below its sort; `None` if there is none.
fn below_sort(
    plan: &Arc<dyn ExecutionPlan>,
    first: &FirstRanks,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    // A sort with a limit is somebody else's.
    if plan.fetch().is_some() {
        return Ok(None);
    }
    if let Some(merge) = plan.downcast_ref::<SortPreservingMergeExec>() {
        let less = below_sort(merge.input(), first)?;
        return less.map(|input| with_input(plan, input)).transpose();
    }
    let Some(sort) = plan.downcast_ref::<SortExec>() else {
        return Ok(None);
    };
    let kept = match sort.input().downcast_ref::<RepartitionExec>() {
        None => FirstRanksExec::over(sort.input(), first.clone()),
        Some(exchange) => {
            let kept = FirstRanksExec::over(exchange.input(), first.clone());
            with_input(sort.input(), kept)?
        }
    };
    with_input(plan, kept).map(Some)
}

/// What is kept.
#[derive(Clone, Debug)]
struct FirstRanks {
    ranking: Ranking,
    most: usize,
    /// What partitions have in common.
    partition: Vec<PhysicalExprRef>,
    /// The first key by which they are sorted.
    by: PhysicalSortExpr,
}

impl FirstRanks {
    /// Up to a rank that a function gives to rows of a schema; `None` if there is nothing to go by.
    fn of(function: &Arc<dyn WindowExpr>, most: usize, schema: &Schema) -> Result<Option<Self>> {
        let (Some(ranking), [by, ..]) = (Ranking::of(function), function.order_by()) else {
            return Ok(None);
        };
        let data_type = by.expr.data_type(schema)?;
        let has_numbers = is_packed(&data_type) || data_type == DataType::Utf8View;
        Ok(has_numbers.then(|| FirstRanks {
            ranking,
            most,
            partition: function.partition_by().to_vec(),
            by: by.clone(),
        }))
    }
}

/// The rows that may be among the first of their partition.
#[derive(Debug)]
pub(crate) struct FirstRanksExec {
    input: Arc<dyn ExecutionPlan>,
    first: FirstRanks,
    metrics: ExecutionPlanMetricsSet,
}

impl FirstRanksExec {
    fn over(input: &Arc<dyn ExecutionPlan>, first: FirstRanks) -> Arc<dyn ExecutionPlan> {
        Arc::new(FirstRanksExec {
            input: Arc::clone(input),
            first,
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }
}

impl DisplayAs for FirstRanksExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = &self.first;
        let partition: Vec<String> = first.partition.iter().map(ToString::to_string).collect();
        let (most, partition, by) = (first.most, partition.join(", "), &first.by);
        write!(
            f,
            "FirstRanksExec: ranks={most}, partition=[{partition}], by=[{by}]"
        )
    }
}

impl ExecutionPlan for FirstRanksExec {
    fn name(&self) -> &str {
        "FirstRanksExec"
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
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let by = std::iter::once(&self.first.by.expr);
        apply_expression_roots(self.first.partition.iter().chain(by), visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(FirstRanksExec::over(&children[0], self.first.clone()))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(FirstRanksExec::over(&children[0], self.first.clone()))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, Arc::clone(&context))?;
        let schema = input.schema();
        let held = MemoryConsumer::new(format!("FirstRanks[{partition}]"));
        let rows = context.session_config().batch_size();
        let keeping = Keeping {
            best: Some(Best::new(&self.first, &schema)?),
            held: held.register(context.memory_pool()),
            kept: BatchCoalescer::new(Arc::clone(&schema), rows),
            input: Some(input),
            metrics: BaselineMetrics::new(&self.metrics, partition),
            seen: 0,
            gone_on: 0,
        };
        let kept = stream::try_unfold(keeping, |mut keeping| async move {
            Ok(keeping.next().await?.map(|batch| (batch, keeping)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, kept)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::new(inputs[0].as_ref().clone().to_inexact()))
    }
}

/// One stream of it.
struct Keeping {
    input: Option<SendableRecordBatchStream>,
    /// `None` once it is given up.
    best: Option<Best>,
    held: MemoryReservation,
    kept: BatchCoalescer,
    metrics: BaselineMetrics,
    /// Rows that have come.
    seen: usize,
    /// Those of the period that have gone on.
    gone_on: usize,
}

impl Keeping {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.kept.next_completed_batch() {
                return Ok(Some(batch.record_output(&self.metrics)));
            }
            let Some(input) = &mut self.input else {
                return Ok(None);
            };
            match input.try_next().await? {
                None => {
                    self.input = None;
                    self.give_up();
                    self.kept.finish_buffered_batch()?;
                }
                Some(batch) => {
                    let time = self.metrics.elapsed_compute().clone();
                    let _timer = time.timer();
                    self.take_in(batch)?;
                }
            }
            tokio::task::consume_budget().await;
        }
    }

    fn take_in(&mut self, batch: RecordBatch) -> Result<()> {
        let Some(best) = &mut self.best else {
            return Ok(self.kept.push_batch(batch)?);
        };
        let period = self.seen / PERIOD;
        self.seen += batch.num_rows();
        let most = VALUES_PER_ROW * self.seen + FEW_VALUES;
        let Some(may_be_first) = best.may_be_first(&batch, most, &self.held)? else {
            self.give_up();
            return Ok(self.kept.push_batch(batch)?);
        };
        self.gone_on += may_be_first.count_set_bits();
        self.kept
            .push_batch_with_filter(batch, &BooleanArray::new(may_be_first, None))?;
        if self.seen / PERIOD > period {
            // The first rows of partitions all go on.
            if period > 0 && self.gone_on * 100 > PERIOD * MOST_GO_ON {
                self.give_up();
            }
            self.gone_on = 0;
        }
        Ok(())
    }

    fn give_up(&mut self) {
        self.best = None;
        self.held.free();
    }
}

/// The best values that each partition has had.
struct Best {
    first: FirstRanks,
    groups: Box<dyn GroupValues>,
    /// So many for each group as there are ranks, the best first.
    values: Vec<i64>,
    /// The group of each row.
    of_rows: Vec<usize>,
}

/// What stands where there is no value yet.
const NONE: i64 = i64::MAX;

impl Best {
    fn new(first: &FirstRanks, schema: &SchemaRef) -> Result<Self> {
        let fields = first.partition.iter().zip(0..).map(|(key, number)| {
            let (data_type, nullable) = (key.data_type(schema)?, key.nullable(schema)?);
            Ok(Field::new(format!("key {number}"), data_type, nullable))
        });
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let groups = new_group_values(Arc::new(Schema::new(fields)), &GroupOrdering::None)?;
        Ok(Best {
            first: first.clone(),
            groups,
            values: Vec::new(),
            of_rows: Vec::new(),
        })
    }

    /// Which rows may be among the first; `None` if that cannot be told, or takes more memory than there is, or more
    /// values than `most`.
    fn may_be_first(
        &mut self,
        batch: &RecordBatch,
        most: usize,
        held: &MemoryReservation,
    ) -> Result<Option<BooleanBuffer>> {
        let rows = batch.num_rows();
        let by = self.first.by.expr.evaluate(batch)?.into_array(rows)?;
        let Some(numbers) = numbers(&by, self.first.by.options) else {
            return Ok(None);
        };
        self.of_rows.clear();
        if self.first.partition.is_empty() {
            self.of_rows.resize(rows, 0);
        } else {
            let keys = self.first.partition.iter();
            let keys = keys.map(|key| key.evaluate(batch)?.into_array(rows));
            self.groups
                .intern(&keys.collect::<Result<Vec<_>>>()?, &mut self.of_rows)?;
        }
        let all = self.groups.len().max(1) * self.first.most;
        // As they grow, there are twice as many for a moment.
        let numbers_held = 2 * all + self.of_rows.capacity();
        let bytes = self.groups.size() + numbers_held * size_of::<i64>();
        if all > most || held.try_resize(bytes).is_err() {
            return Ok(None);
        }
        let most = self.first.most;
        self.values.resize(all, NONE);
        let is_dense = self.first.ranking == Ranking::DenseRank;
        let (of_rows, values) = (&self.of_rows, &mut self.values);
        Ok(Some(BooleanBuffer::collect_bool(rows, |row| {
            let number = numbers[row];
            let best = &mut values[of_rows[row] * most..][..most];
            let last = best[most - 1];
            if number < last {
                let place = best.partition_point(|&other| other <= number);
                let is_there = place > 0 && best[place - 1] == number;
                if !is_dense || !is_there {
                    best.copy_within(place..most - 1, place + 1);
                    best[place] = number;
                }
            }
            number <= last
        })))
    }
}

/// Numbers of which a lesser one is of a value that comes before. Equal ones may be of different values. `None` if
/// there are no such numbers.
fn numbers(values: &ArrayRef, options: SortOptions) -> Option<Vec<i64>> {
    let mut own = Vec::new();
    let mut numbers = match values.data_type() {
        DataType::Utf8View => {
            let texts = values.as_string_view();
            let texts = (0..texts.len()).map(|row| start_of(texts.value(row).as_bytes()));
            texts.collect()
        }
        // Zeros are equal, and so are all NaN.
        DataType::Float64 => {
            let one = |value: f64| {
                if value.is_nan() {
                    f64::NAN
                } else {
                    value + 0.0
                }
            };
            let values = values.as_primitive::<Float64Type>();
            let values: ArrayRef = Arc::new(values.unary::<_, Float64Type>(one));
            integers(&values, &mut own)?.to_vec()
        }
        DataType::Float32 => {
            let one = |value: f32| {
                if value.is_nan() {
                    f32::NAN
                } else {
                    value + 0.0
                }
            };
            let values = values.as_primitive::<Float32Type>();
            let values: ArrayRef = Arc::new(values.unary::<_, Float32Type>(one));
            integers(&values, &mut own)?.to_vec()
        }
        _ => integers(values, &mut own)?.to_vec(),
    };
    if options.descending {
        numbers.iter_mut().for_each(|number| *number = !*number);
    }
    if let Some(nulls) = values.nulls().filter(|nulls| nulls.null_count() > 0) {
        let null = if options.nulls_first { i64::MIN } else { NONE };
        for (number, valid) in numbers.iter_mut().zip(nulls) {
            if !valid {
                *number = null;
            }
        }
    }
    Some(numbers)
}

/// The first bytes of a text as a number that is in the order of texts.
fn start_of(text: &[u8]) -> i64 {
    let mut start = [0; size_of::<u64>()];
    let length = text.len().min(start.len());
    start[..length].copy_from_slice(&text[..length]);
    (u64::from_be_bytes(start) ^ 1 << 63) as i64
}
