//! Grouping sets, ROLLUP and CUBE: rows are grouped once, by all keys, and these groups once more, by each set.
//!
//! ```text
//! AggregateExec Final, a, b, set            AggregateExec Final, a, b, set
//!   AggregateExec Partial, ROLLUP    ──►      ExpandSetsExec ROLLUP (a, b)    each group once for each set
//!     FragmentExec rows                         FragmentExec groups a, b      rows once
//! ```
//!
//! DataFusion groups each row by each set.

use super::push;
use datafusion::arrow::array::{ArrayRef, BooleanArray, RecordBatch, new_null_array};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::aggregates::{
    AggregateExec, AggregateMode, PhysicalGroupBy, evaluate_group_by,
};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use futures::{StreamExt, TryStreamExt, stream};
use std::fmt;
use std::sync::Arc;

/// Rows that make a group worth it that is in no set.
const ROWS_PER_GROUP: f64 = 4.0;

/// What does the same as a partial aggregate by several sets; `None` if no fragment has groups for it. It was planned
/// as `planned`.
pub(super) fn regrouped(
    aggregate: &AggregateExec,
    planned: &AggregateExec,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let by = aggregate.group_expr();
    if *aggregate.mode() != AggregateMode::Partial || by.is_single() || by.expr().is_empty() {
        return Ok(None);
    }
    let Some(fragment) = push(&by_all_keys(aggregate)?) else {
        return Ok(None);
    };
    // Nobody wants groups by all keys if no set has all of them. Then it takes few groups to be worth it.
    let has_all_keys = by.groups().iter().any(|is_null| !is_null.contains(&true));
    let is_few = |groups| groups * ROWS_PER_GROUP <= fragment.expected_rows();
    if !has_all_keys && !fragment.expected_groups().is_some_and(is_few) {
        return Ok(None);
    }
    let planned: Arc<dyn ExecutionPlan> = Arc::new(by_all_keys(planned)?);
    let groups = Arc::new(fragment.with_joins_below(&planned)?);
    let keys = by.expr().iter().enumerate();
    let keys = keys.map(|(at, (_, name))| {
        let key = Column::new(groups.schema().field(at).name(), at);
        (Arc::new(key) as Arc<dyn PhysicalExpr>, name.clone())
    });
    let (null_keys, sets) = (by.null_expr().to_vec(), by.groups().to_vec());
    let by = PhysicalGroupBy::new(keys.collect(), null_keys, sets, by.has_grouping_set());
    let sets = Sets {
        by,
        aggregates: aggregate.aggr_expr().to_vec(),
        input: aggregate.input().schema(),
        schema: aggregate.schema(),
    };
    Ok(Some(Arc::new(ExpandSetsExec::new(groups, Arc::new(sets)))))
}

/// The same aggregate by all keys at once.
fn by_all_keys(aggregate: &AggregateExec) -> Result<AggregateExec> {
    AggregateExec::try_new(
        AggregateMode::Partial,
        PhysicalGroupBy::new_single(aggregate.group_expr().expr().to_vec()),
        aggregate.aggr_expr().to_vec(),
        aggregate.filter_expr().to_vec(),
        Arc::clone(aggregate.input()),
        aggregate.input_schema(),
    )
}

/// Yields each group once for each set, as groups in parts.
#[derive(Debug)]
struct ExpandSetsExec {
    groups: Arc<dyn ExecutionPlan>,
    sets: Arc<Sets>,
    properties: Arc<PlanProperties>,
}

#[derive(Debug)]
struct Sets {
    /// By the columns of the groups.
    by: PhysicalGroupBy,
    aggregates: Vec<Arc<AggregateFunctionExpr>>,
    /// What these aggregate.
    input: SchemaRef,
    schema: SchemaRef,
}

impl ExpandSetsExec {
    fn new(groups: Arc<dyn ExecutionPlan>, sets: Arc<Sets>) -> Self {
        let streams = groups.output_partitioning().partition_count();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&sets.schema)),
            Partitioning::UnknownPartitioning(streams),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        ExpandSetsExec {
            groups,
            sets,
            properties: Arc::new(properties),
        }
    }
}

impl Sets {
    /// The groups by each set.
    fn expand(&self, groups: &RecordBatch) -> Result<Vec<RecordBatch>> {
        let states = &groups.columns()[self.by.expr().len()..];
        let sets = evaluate_group_by(&self.by, groups)?.into_iter();
        sets.map(|keys| self.batch(keys, states)).collect()
    }

    fn batch(&self, mut columns: Vec<ArrayRef>, states: &[ArrayRef]) -> Result<RecordBatch> {
        columns.extend(states.iter().cloned());
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// What the sets without keys have where there are no rows: a group each.
    fn of_no_rows(&self, schema: &SchemaRef) -> Result<Vec<RecordBatch>> {
        let mut states = Vec::new();
        for aggregate in &self.aggregates {
            let arguments = aggregate.expressions().into_iter().map(|argument| {
                let data_type = argument.data_type(&self.input)?;
                Ok(new_null_array(&data_type, 1))
            });
            let arguments = arguments.collect::<Result<Vec<_>>>()?;
            let mut group = aggregate.create_groups_accumulator()?;
            // A row that is left out. Without any, DataFusion takes the group for one that has been seen.
            let nobody = BooleanArray::from(vec![false]);
            group.update_batch(&arguments, &[0], Some(&nobody), 1)?;
            states.extend(group.state(EmitTo::All)?);
        }
        let fields = schema.fields().iter();
        let fields = fields.map(|field| Field::clone(field).with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let fields = schema.fields().iter();
        let nulls = fields.map(|field| new_null_array(field.data_type(), 1));
        let row = RecordBatch::try_new(Arc::clone(&schema), nulls.collect())?;
        let keys = evaluate_group_by(&self.by, &row)?.into_iter();
        let sets = keys.zip(self.by.groups());
        let without_keys = sets.filter(|(_, is_null)| is_null.iter().all(|is_null| *is_null));
        without_keys
            .map(|(keys, _)| self.batch(keys, &states))
            .collect()
    }
}

impl DisplayAs for ExpandSetsExec {
    fn fmt_as(&self, style: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = &self.sets.by;
        let names: Vec<&str> = by.expr().iter().map(|(_, name)| name.as_str()).collect();
        let set = |is_null: &Vec<bool>| {
            let named = names.iter().zip(is_null);
            let named = named.filter(|(_, is_null)| !**is_null);
            let named: Vec<&str> = named.map(|(name, _)| *name).collect();
            format!("({})", named.join(", "))
        };
        let sets: Vec<String> = by.groups().iter().map(set).collect();
        if !matches!(style, DisplayFormatType::TreeRender) {
            f.write_str("ExpandSetsExec: ")?;
        }
        write!(f, "sets=[{}]", sets.join(", "))
    }
}

impl ExecutionPlan for ExpandSetsExec {
    fn name(&self) -> &str {
        "ExpandSetsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.groups]
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for (key, _) in self.sets.by.expr() {
            recursion = visit(key)?;
            if recursion == TreeNodeRecursion::Stop {
                break;
            }
        }
        Ok(recursion)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (Some(groups), None) = (children.pop(), children.pop()) else {
            return internal_err!("sets are expanded over one input");
        };
        Ok(Arc::new(Self::new(groups, Arc::clone(&self.sets))))
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
        let groups = self.groups.execute(partition, context)?;
        let of_groups = groups.schema();
        let sets = Arc::clone(&self.sets);
        let groups = groups.try_filter(|batch| std::future::ready(batch.num_rows() > 0));
        let expanded = async move {
            let mut groups = Box::pin(groups);
            let Some(first) = groups.try_next().await? else {
                let groups = sets.of_no_rows(&of_groups)?.into_iter().map(Ok);
                return Ok(stream::iter(groups).boxed());
            };
            let groups = stream::iter([Ok(first)]).chain(groups);
            let expanded = groups.map(move |batch| sets.expand(&batch?));
            let expanded = expanded.map_ok(|batches| stream::iter(batches.into_iter().map(Ok)));
            Ok::<_, DataFusionError>(expanded.try_flatten().boxed())
        };
        let expanded = stream::once(expanded).try_flatten();
        let schema = Arc::clone(&self.sets.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, expanded)))
    }
}
