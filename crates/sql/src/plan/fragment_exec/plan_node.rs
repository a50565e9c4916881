//! The leaf as DataFusion sees it: what it executes, and what moves into it while plans are optimised.

use super::FragmentExec;
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_expr::{Distribution, PhysicalExpr, split_conjunction};
use datafusion::physical_plan::execution_plan::{ReplaceChildrenOptions, apply_expression_roots};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use eris_fragment::Output;
use std::sync::Arc;

impl ExecutionPlan for FragmentExec {
    fn name(&self) -> &str {
        "FragmentExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    /// The sides of its joins.
    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.star.iter().flat_map(|star| star.plans()).collect()
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition; self.children().len()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.with_build_sides(children))
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.with_build_sides(children))
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let mut fresh = FragmentExec::clone(&self);
        fresh.runs = Arc::default();
        Ok(Arc::new(fresh))
    }

    /// The dynamic filters that it holds on to; a join computes its filter only if it finds it here.
    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots(&self.dynamic, visit)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let run = self.open(partition);
        Ok(Box::pin(self.result_stream(run, partition, context)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn child_stats_requests(&self, _: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(None); self.children().len()]
    }

    fn statistics_from_inputs(
        &self,
        build_sides: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let Output::Rows { columns, limit } = &self.output else {
            return Ok(Arc::new(Statistics::new_unknown(&self.schema)));
        };
        let star = self.star.as_ref();
        let joined = star.map(|star| star.joined_rows(&self.scan, build_sides));
        let all = (self.scan.statistics).rows_out(columns, &self.filter, *limit, joined.as_ref());
        // A stream gets what its workers send, so only the sum is known.
        Ok(Arc::new(match args.partition() {
            None => all,
            Some(_) => all.to_inexact(),
        }))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn fetch(&self) -> Option<usize> {
        self.limit().map(|limit| limit as usize)
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        // A filter of a join above the limit must stay above it.
        let Output::Rows { columns, .. } = &self.output else {
            return None;
        };
        if !self.dynamic.is_empty() {
            return None;
        }
        let limit = limit.map(|limit| limit as u64);
        let output = Output::Rows {
            columns: columns.clone(),
            limit,
        };
        Some(Arc::new(self.with_output(output, Arc::clone(&self.schema))))
    }

    /// Takes a projection in, if all of it can be evaluated where the rows are.
    fn try_swapping_with_projection(
        &self,
        projection: &ProjectionExec,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Output::Rows { limit, .. } = &self.output else {
            return Ok(None);
        };
        if !self.dynamic.is_empty() {
            return Ok(None);
        }
        let inputs = self.inputs();
        let scope = self.scope(&self.schema, &inputs);
        let columns = projection
            .expr()
            .iter()
            .map(|column| scope.translate_output(&column.expr));
        let Some(columns) = columns.collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let output = Output::Rows {
            columns,
            limit: *limit,
        };
        let fragment = self.with_output(output, projection.schema());
        let whole: Arc<dyn ExecutionPlan> = Arc::new(projection.clone());
        Ok(Some(Arc::new(fragment.with_joins_below(&whole)?)))
    }

    fn handle_child_pushdown_result(
        &self,
        _: FilterPushdownPhase,
        pushed: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        if !self.accepts_filters() || pushed.parent_filters.is_empty() {
            return Ok(FilterPushdownPropagation::all_unsupported(pushed));
        }
        let inputs = self.inputs();
        let scope = self.scope(&self.schema, &inputs);
        let mut node = self.with_output(self.output.clone(), Arc::clone(&self.schema));
        node.dynamic = self.dynamic.clone();
        let mut answers = Vec::with_capacity(pushed.parent_filters.len());
        for offered in &pushed.parent_filters {
            let filter = &offered.filter;
            let conjuncts = split_conjunction(filter)
                .into_iter()
                .map(|conjunct| scope.translate(conjunct));
            answers.push(if is_dynamic(filter) {
                // Whatever it says, the join or sort above checks it again.
                node.dynamic.push(Arc::clone(filter));
                PushedDown::No
            } else if let Some(conjuncts) = conjuncts.collect::<Option<Vec<_>>>()
                && self.star.is_none()
            {
                node.filter.extend(conjuncts);
                PushedDown::Yes
            } else {
                PushedDown::No
            });
        }
        let node: Arc<dyn ExecutionPlan> = Arc::new(node);
        Ok(FilterPushdownPropagation::with_parent_pushdown_result(answers).with_updated_node(node))
    }
}

/// Whether any part of a filter may still change.
fn is_dynamic(filter: &Arc<dyn PhysicalExpr>) -> bool {
    filter.is::<DynamicFilterPhysicalExpr>() || filter.children().into_iter().any(is_dynamic)
}
