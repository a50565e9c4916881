//! The final aggregate above a fragment that yields groups: merges those that come in parts, and only those.
//!
//! ```text
//!                       stream of the fragment
//!                               │ first batch: is every group merged?
//!             ┌── yes ──────────┴────────── no ──┐
//!   states become results,               AggregateExec Final, over this stream alone:
//!   batch by batch                       the streams have no groups in common
//! ```
//!
//! Its partitions are the streams of the fragment. These have no groups in common, but which stream has a group is
//! nobody else's business: towards the plan above the rows come in any partition, so that a join or window that wants
//! them partitioned by a key partitions them itself, by its own hash.

use crate::plan::fragment_exec::FragmentExec;
use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::filter_pushdown::{FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::metrics::RecordOutput;
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use eris_exact::OnceExec;
use futures::{StreamExt, TryStreamExt, stream};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The node.
#[derive(Debug)]
pub(crate) struct MergeGroupsExec {
    /// The final aggregate as planned, over the fragment.
    planned: Arc<AggregateExec>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// The aggregates of streams whose groups came in parts.
    merging: Arc<Mutex<Vec<Arc<dyn ExecutionPlan>>>>,
}

impl MergeGroupsExec {
    /// What takes the place of a final aggregate; `None` if that is not one of all partial aggregates of a fragment's
    /// groups.
    pub fn in_place_of(planned: &AggregateExec) -> Option<Self> {
        let streams = planned.input().output_partitioning().partition_count();
        let is_final = match planned.mode() {
            AggregateMode::FinalPartitioned => true,
            AggregateMode::Final => streams == 1,
            _ => false,
        };
        // FILTER is the partial aggregate's business.
        let is_plain = planned.group_expr().is_single() && planned.limit_options().is_none();
        let fragment = fragment_below(planned.input())?;
        (is_final && is_plain && fragment.has_groups()).then(|| Self::new(planned.clone()))
    }

    fn new(planned: AggregateExec) -> Self {
        let streams = planned.input().output_partitioning().partition_count();
        let properties = PlanProperties::new(
            planned.cache().eq_properties.clone(),
            Partitioning::UnknownPartitioning(streams),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        MergeGroupsExec {
            planned: Arc::new(planned),
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            merging: Arc::default(),
        }
    }
}

/// The fragment, behind operators that only pass rows on.
fn fragment_below(plan: &Arc<dyn ExecutionPlan>) -> Option<&FragmentExec> {
    match plan.downcast_ref::<FragmentExec>() {
        None if plan.name() == "CooperativeExec" => fragment_below(plan.children()[0]),
        fragment => fragment,
    }
}

/// How results are made of merged groups.
struct Finish {
    keys: usize,
    functions: Vec<Arc<AggregateFunctionExpr>>,
    schema: SchemaRef,
}

impl Finish {
    fn apply(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = batch.columns()[..self.keys].to_vec();
        let mut states = &batch.columns()[self.keys..];
        for function in &self.functions {
            let (own, rest) = states.split_at(function.state_fields()?.len());
            columns.push(self.result(function, own, batch.num_rows())?);
            states = rest;
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    fn result(
        &self,
        function: &AggregateFunctionExpr,
        states: &[ArrayRef],
        rows: usize,
    ) -> Result<ArrayRef> {
        let is_state = matches!(function.fun().name(), "count" | "sum" | "min" | "max");
        if let [state] = states
            && is_state
            && state.data_type() == function.field().data_type()
        {
            return Ok(Arc::clone(state));
        }
        let groups: Vec<usize> = (0..rows).collect();
        let mut results = function.create_groups_accumulator()?;
        results.merge_batch(states, &groups, rows)?;
        results.evaluate(EmitTo::All)
    }
}

impl DisplayAs for MergeGroupsExec {
    fn fmt_as(&self, style: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let planned = &self.planned;
        let groups = planned.group_expr().expr().iter();
        let groups: Vec<&str> = groups.map(|(_, name)| name.as_str()).collect();
        let aggregates = planned.aggr_expr().iter();
        let aggregates: Vec<&str> = aggregates.map(|aggregate| aggregate.name()).collect();
        let separator = match style {
            DisplayFormatType::TreeRender => "\n",
            _ => {
                f.write_str("MergeGroupsExec: ")?;
                ", "
            }
        };
        let (groups, aggregates) = (groups.join(", "), aggregates.join(", "));
        write!(f, "groups=[{groups}]{separator}aggregates=[{aggregates}]")
    }
}

impl ExecutionPlan for MergeGroupsExec {
    fn name(&self) -> &str {
        "MergeGroupsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![self.planned.input()]
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
        let planned: Arc<dyn ExecutionPlan> = Arc::clone(&self.planned) as _;
        let planned = planned.replace_children(children, options)?;
        match planned.downcast_ref::<AggregateExec>() {
            Some(planned) => Ok(Arc::new(Self::new(planned.clone()))),
            None => internal_err!("an aggregate with another input is an aggregate"),
        }
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
        let Some(fragment) = fragment_below(self.planned.input()) else {
            return internal_err!("groups that are merged come from a fragment");
        };
        let (run, groups) = fragment.open_groups(partition, Arc::clone(&context));
        let mut groups = make_cooperative(groups);
        let schema = self.schema();
        let finish = Finish {
            keys: self.planned.group_expr().expr().len(),
            functions: self.planned.aggr_expr().to_vec(),
            schema: Arc::clone(&schema),
        };
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let (planned, merging) = (Arc::clone(&self.planned), Arc::clone(&self.merging));
        let merged = async move {
            let Some(first) = groups.try_next().await? else {
                return Ok(stream::empty().boxed());
            };
            let schema = groups.schema();
            let all = stream::iter([Ok(first)]).chain(groups);
            if run.is_merged() {
                let finished = all.map(move |batch| {
                    let _timer = metrics.elapsed_compute().timer();
                    finish.apply(&batch?).record_output(&metrics)
                });
                return Ok(finished.boxed());
            }
            let all = Box::pin(RecordBatchStreamAdapter::new(schema, all));
            let partition: Arc<dyn ExecutionPlan> = Arc::new(OnceExec::new(all));
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            let merge = planned.replace_children(vec![partition], options)?;
            let results = merge.execute(0, context)?;
            let mut merging = merging.lock().unwrap_or_else(PoisonError::into_inner);
            merging.push(merge);
            Ok::<_, DataFusionError>(results.boxed())
        };
        let results = stream::once(merged).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, results)))
    }

    /// What streams whose groups came in parts did, and the others.
    fn metrics(&self) -> Option<MetricsSet> {
        let mut all = self.metrics.clone_inner();
        let merging = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        for plan in &*merging {
            let metrics = plan.metrics().into_iter();
            let metrics = metrics.flat_map(|metrics| metrics.iter().cloned().collect::<Vec<_>>());
            metrics.for_each(|metric| all.push(metric));
        }
        Some(all)
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

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        self.planned
            .gather_filters_for_pushdown(phase, filters, config)
    }
}
