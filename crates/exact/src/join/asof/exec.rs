//! The operator of an ASOF join, and who plans it.

use super::AsOfJoin;
use super::merge::{Merge, Side};
use crate::join::null_keys::with_null_keys;
use async_trait::async_trait;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::context::QueryPlanner;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, JoinType, LogicalPlan, Operator, UserDefinedLogicalNode};
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, Partitioning,
    PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties,
};
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};
use futures::StreamExt;
use std::fmt;
use std::sync::Arc;

/// DataFusion's planner, which also knows our joins.
#[derive(Debug)]
pub(crate) struct PlannerWithJoins;

#[async_trait]
impl QueryPlanner for PlannerWithJoins {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(AsOfPlanner)]);
        let plan = with_null_keys(plan.clone())?;
        planner.create_physical_plan(&plan, session).await
    }
}

struct AsOfPlanner;

#[async_trait]
impl ExtensionPlanner for AsOfPlanner {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        logical: &[&LogicalPlan],
        physical: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(node) = node.as_any().downcast_ref::<AsOfJoin>() else {
            return Ok(None);
        };
        let plan = |expr: &Expr, side: usize| {
            let schema = logical[side].schema();
            planner.create_physical_expr(expr, schema, session, context)
        };
        let mut pairs = Vec::with_capacity(node.conditions.len());
        let mut last = Operator::Eq;
        for condition in &node.conditions {
            let Some((left, operator, right)) = node.sides(condition) else {
                return internal_err!("{condition} compares no two sides");
            };
            last = operator;
            pairs.push((plan(left, 0)?, plan(right, 1)?));
        }
        let schema = Arc::new(node.schema.as_arrow().clone());
        let inputs = [Arc::clone(&physical[0]), Arc::clone(&physical[1])];
        let join = AsOfJoinExec::new(inputs, pairs, last, node.join_type, schema);
        Ok(Some(Arc::new(join)))
    }
}

type Pair = (Arc<dyn PhysicalExpr>, Arc<dyn PhysicalExpr>);

/// Merges two inputs that are sorted by the keys, and then by what goes on: upwards if the nearest row is the greatest
/// before, downwards if it is the least behind.
#[derive(Clone, Debug)]
pub(super) struct AsOfJoinExec {
    inputs: [Arc<dyn ExecutionPlan>; 2],
    /// What is compared; the last pair by the operator, the others by `=`.
    pairs: Vec<Pair>,
    operator: Operator,
    join_type: JoinType,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl AsOfJoinExec {
    fn new(
        inputs: [Arc<dyn ExecutionPlan>; 2],
        pairs: Vec<Pair>,
        operator: Operator,
        join_type: JoinType,
        schema: Arc<Schema>,
    ) -> Self {
        let partitions = inputs[0].output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        AsOfJoinExec {
            inputs,
            pairs,
            operator,
            join_type,
            schema,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// How the inputs are sorted by each pair.
    fn options(&self, pair: usize) -> SortOptions {
        let goes_down = matches!(self.operator, Operator::Lt | Operator::LtEq);
        SortOptions {
            descending: goes_down && pair + 1 == self.pairs.len(),
            nulls_first: true,
        }
    }

    fn of_side(&self, side: usize) -> impl Iterator<Item = &Arc<dyn PhysicalExpr>> {
        self.pairs.iter().map(move |(left, right)| match side {
            0 => left,
            _ => right,
        })
    }

    fn ordering(&self, side: usize) -> Option<OrderingRequirements> {
        let exprs = self.of_side(side).enumerate();
        let exprs = exprs.map(|(pair, expr)| PhysicalSortExpr {
            expr: Arc::clone(expr),
            options: self.options(pair),
        });
        LexOrdering::new(exprs).map(OrderingRequirements::from)
    }
}

impl DisplayAs for AsOfJoinExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AsOfJoinExec: join_type={}, on=[", self.join_type)?;
        for (number, (left, right)) in self.pairs.iter().enumerate() {
            let operator = match number + 1 == self.pairs.len() {
                true => self.operator,
                false => Operator::Eq,
            };
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}{left} {operator} {right}")?;
        }
        write!(f, "]")
    }
}

impl ExecutionPlan for AsOfJoinExec {
    fn name(&self) -> &str {
        "AsOfJoinExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        self.input_distribution_requirements().into_per_child()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let keys = self.pairs.len() - 1;
        if keys == 0 {
            let single = vec![Distribution::SinglePartition; 2];
            return InputDistributionRequirements::new(single);
        }
        let by_keys = |side| self.of_side(side).take(keys).map(Arc::clone).collect();
        InputDistributionRequirements::co_partitioned(vec![
            Distribution::KeyPartitioned(by_keys(0)),
            Distribution::KeyPartitioned(by_keys(1)),
        ])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.ordering(0), self.ordering(1)]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for (left, right) in &self.pairs {
            for expr in [left, right] {
                if f(expr)? == TreeNodeRecursion::Stop {
                    return Ok(TreeNodeRecursion::Stop);
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok(inputs) = <[_; 2]>::try_from(children) else {
            return internal_err!("an ASOF join has two inputs");
        };
        let pairs = self.pairs.clone();
        let schema = Arc::clone(&self.schema);
        Ok(Arc::new(AsOfJoinExec::new(
            inputs,
            pairs,
            self.operator,
            self.join_type,
            schema,
        )))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let options = (0..self.pairs.len()).map(|pair| self.options(pair));
        let options: Vec<_> = options.collect();
        let [left, right] = [0, 1].map(|side| {
            let stream = self.inputs[side].execute(partition, Arc::clone(&context))?;
            Ok::<_, datafusion::error::DataFusionError>(Side {
                stream,
                exprs: self.of_side(side).map(Arc::clone).collect(),
            })
        });
        let merge = Merge::new(
            left?,
            right?,
            &options,
            matches!(self.operator, Operator::GtEq | Operator::LtEq),
            self.join_type == JoinType::Left,
            Arc::clone(&self.schema),
        )?;
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batches = futures::stream::try_unfold(merge, async |mut merge: Merge| {
            let batch = merge.next().await?;
            Ok(batch.map(|batch| (batch, merge)))
        });
        let batches = batches.inspect(move |batch| {
            if let Ok(batch) = batch {
                metrics.record_output(batch.num_rows());
            }
        });
        let schema = Arc::clone(&self.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            schema,
            batches.boxed(),
        )))
    }
}
