//! The leaf of a physical plan that is not executed here but by the engine: one fragment over one table.

mod display;
mod lane;
mod star;

use crate::dynamic_filter;
use crate::run::Run;
use crate::scan::Scan;
use crate::translate::Scope;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{Column, DynamicFilterPhysicalExpr};
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, Partitioning, PhysicalExpr, split_conjunction,
};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
    apply_expression_roots,
};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties, replace_children_if_necessary};
use eris_fragment::{
    Access, BinaryOp, Execution, Expr, Fragment, FragmentError, FragmentReport, Order, Output,
    Probe, Type,
};
use lane::Lane;
pub(crate) use star::{Side, Star};
use star::{Sides, into_fragment_error};
use std::sync::{Arc, Mutex};

/// A fragment as a leaf. Its expressions name columns by their position in the table; the fragment itself, which reads
/// only the columns it needs, is made when the first partition is polled, with the filters that are known by then.
#[derive(Clone, Debug)]
pub(crate) struct FragmentExec {
    scan: Arc<Scan>,
    filter: Vec<Expr>,
    output: Output,
    /// How many rows are enough, and by which order of the table's columns.
    order: Option<Order>,
    /// What is joined to its rows.
    star: Option<Arc<Star>>,
    /// Filters over the output's columns that become known while the plan runs.
    dynamic: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    runs: Arc<Mutex<Runs>>,
}

/// The executions of one plan node: the n-th opening of a partition belongs to the n-th run.
#[derive(Debug, Default)]
struct Runs {
    opened: Vec<usize>,
    runs: Vec<Arc<Run>>,
}

/// What a fragment yields and filters that does nothing but look for values.
pub(crate) struct PlainRows<'a> {
    /// The columns of its rows.
    pub columns: Vec<usize>,
    /// The columns that are compared for equality, and what with.
    pub conditions: Vec<(usize, &'a Expr)>,
}

/// Which columns show the same value. DataFusion may have relied on it before they became columns of a fragment.
fn equal_columns(output: &Output, schema: &SchemaRef) -> EquivalenceProperties {
    let mut properties = EquivalenceProperties::new(Arc::clone(schema));
    let Output::Rows { columns, .. } = output else {
        return properties;
    };
    let column = |number: usize| Arc::new(Column::new(schema.field(number).name(), number)) as _;
    for (number, expr) in columns.iter().enumerate() {
        if let Some(first) = columns[..number].iter().position(|other| other == expr) {
            // Two columns without conditions beside them: this cannot fail.
            let _ = properties.add_equal_conditions(column(first), column(number));
        }
    }
    properties
}

impl FragmentExec {
    /// A fragment with this output, whose columns get the names and nullability of `schema`.
    pub fn new(scan: Arc<Scan>, filter: Vec<Expr>, output: Output, schema: SchemaRef) -> Self {
        let lanes = match &output {
            Output::Groups { keys, .. } if keys.is_empty() => 1,
            _ if scan.is_of_one_key(&filter) => 1,
            _ => scan.lanes,
        };
        let properties = PlanProperties::new(
            equal_columns(&output, &schema),
            Partitioning::UnknownPartitioning(lanes),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        FragmentExec {
            scan,
            filter,
            output,
            order: None,
            star: None,
            dynamic: Vec::new(),
            schema,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            runs: Arc::default(),
        }
    }

    /// The same with another output.
    pub fn with_output(&self, output: Output, schema: SchemaRef) -> Self {
        let fragment = Self::new(Arc::clone(&self.scan), self.filter.clone(), output, schema);
        FragmentExec {
            star: self.star.clone(),
            ..fragment
        }
    }

    /// The same, standing for `plan`: that is the plan whose work has moved into it, if it joins by joins.
    pub fn with_joins_below(mut self, plan: &Arc<dyn ExecutionPlan>) -> Result<Self> {
        if let Some(star) = &self.star {
            let star = star.over(|joins| on_top_of(joins, plan))?;
            self.star = Some(Arc::new(star));
        }
        Ok(self)
    }

    /// The types of the columns that its expressions name.
    pub fn types(&self) -> &[Type] {
        match &self.star {
            Some(star) => star.types(),
            None => &self.scan.types,
        }
    }

    /// What columns of a schema with these inputs stand for in its expressions.
    pub fn scope<'a>(&'a self, schema: &'a Schema, inputs: &'a [Option<Expr>]) -> Scope<'a> {
        Scope {
            schema,
            inputs,
            types: self.types(),
            parameters: self.scan.parameters(),
        }
    }

    /// The same with these plans of the sides.
    fn with_sides(self: Arc<Self>, plans: Vec<Arc<dyn ExecutionPlan>>) -> Arc<Self> {
        let Some(star) = &self.star else {
            return self;
        };
        Arc::new(FragmentExec {
            star: Some(Arc::new(star.with_plans(plans))),
            metrics: ExecutionPlanMetricsSet::new(),
            runs: Arc::default(),
            ..FragmentExec::clone(&self)
        })
    }

    /// Whether anything is joined to its rows.
    pub fn is_joined(&self) -> bool {
        self.star.is_some()
    }

    /// The same, of which the first rows are enough, by an order of its output's columns; `None` if these are computed.
    pub fn in_order(&self, mut order: Order) -> Option<Self> {
        let Output::Rows {
            columns,
            limit: None,
        } = &self.output
        else {
            return None;
        };
        for key in &mut order.keys {
            let Some(Expr::Column(column)) = columns.get(key.column) else {
                return None;
            };
            if *column >= self.scan.table.types.len() {
                return None;
            }
            key.column = *column;
        }
        Some(FragmentExec {
            order: Some(order),
            metrics: ExecutionPlanMetricsSet::new(),
            runs: Arc::default(),
            ..self.clone()
        })
    }

    /// The index that the engine would use now.
    fn access(&self) -> Option<Access> {
        let known = self.scan.schema.fields().len() + self.scan.values.len();
        let mut unknown = self.scan.snapshot.is_none() || self.star.is_some();
        let mut note = |column: usize| unknown |= column >= known;
        self.filter
            .iter()
            .for_each(|expr| expr.for_each_column(&mut note));
        if unknown {
            return None;
        }
        let fragment = self.compact(self.filter.clone(), Vec::new(), None).ok()?;
        self.scan.executor.access(&fragment)
    }

    /// The same over other scans of its table and its sides' tables, as if nothing had been executed. `None` if one is not among them.
    pub fn over(&self, scans: &[Arc<Scan>]) -> Option<Self> {
        let star = self.star.as_ref().map(|star| star.on(scans));
        Some(FragmentExec {
            scan: Arc::clone(self.scan.among(scans)?),
            star: match star {
                Some(star) => Some(Arc::new(star?)),
                None => None,
            },
            metrics: ExecutionPlanMetricsSet::new(),
            runs: Arc::default(),
            ..self.clone()
        })
    }

    /// Whether all its filters are known before it runs.
    pub fn has_constant_filters(&self) -> bool {
        self.dynamic.is_empty()
    }

    /// The rows' expressions, if it yields rows, and all of them: then more can be put on top of it.
    pub fn open_rows(&self) -> Option<&[Expr]> {
        match &self.output {
            Output::Rows {
                columns,
                limit: None,
            } if self.dynamic.is_empty() => Some(columns),
            _ => None,
        }
    }

    /// The table's columns that it yields as they are, and what its filter compares columns with for equality, if it does
    /// nothing else.
    pub fn plain_rows(&self) -> Option<PlainRows<'_>> {
        let own = self.scan.table.types.len();
        let column = |expr: &Expr| match expr {
            Expr::Column(position) if *position < own => Some(*position),
            _ => None,
        };
        let Output::Rows { columns, limit } = &self.output else {
            return None;
        };
        if !self.dynamic.is_empty()
            || self.order.is_some()
            || self.star.is_some()
            || *limit == Some(0)
        {
            return None;
        }
        let conditions = self.filter.iter().map(|conjunct| match conjunct {
            Expr::Binary {
                op: BinaryOp::Eq,
                left,
                right,
            } => match (column(left), column(right)) {
                (Some(column), None) => Some((column, &**right)),
                (None, Some(column)) => Some((column, &**left)),
                _ => None,
            },
            _ => None,
        });
        let columns = columns.iter().map(column);
        Some(PlainRows {
            columns: columns.collect::<Option<_>>()?,
            conditions: conditions.collect::<Option<_>>()?,
        })
    }

    /// What it reads.
    pub fn scan(&self) -> &Arc<Scan> {
        &self.scan
    }

    /// What the engine did, once it runs: the newest run's report.
    pub fn report(&self) -> Option<FragmentReport> {
        let run = self
            .runs
            .lock()
            .expect("nothing panics under this lock")
            .runs
            .last()
            .cloned();
        run?.report()
    }

    /// Per output column its expression, as far as it is one of each row: the state of an aggregate is not.
    fn inputs(&self) -> Vec<Option<Expr>> {
        match &self.output {
            Output::Rows { columns, .. } => columns.iter().cloned().map(Some).collect(),
            Output::Groups { keys, aggregates } => {
                let states = aggregates.iter().map(|_| None);
                keys.iter().cloned().map(Some).chain(states).collect()
            }
        }
    }

    fn limit(&self) -> Option<u64> {
        match self.output {
            Output::Rows { limit, .. } => limit,
            Output::Groups { .. } => None,
        }
    }

    /// Whether a filter on the output may become part of the filter: not behind a limit, nor where a group exists
    /// without rows.
    fn accepts_filters(&self) -> bool {
        match &self.output {
            Output::Rows { limit, .. } => limit.is_none(),
            Output::Groups { keys, .. } => !keys.is_empty(),
        }
    }

    /// The fragment, with the dynamic filters as they are now.
    async fn fragment(&self, sides: Option<Sides>) -> Result<Fragment> {
        let mut inputs = self.inputs();
        // What is joined is not there to be tested.
        let own = self.scan.types.len();
        for input in &mut inputs {
            input.take_if(|expr| {
                let mut joined = false;
                expr.for_each_column(&mut |column| joined |= column >= own);
                joined
            });
        }
        let scope = self.scope(&self.schema, &inputs);
        let known = dynamic_filter::harvest(&self.dynamic, &scope, &self.scan.statistics).await?;
        let filter = self.filter.iter().cloned().chain(known.filter).collect();
        self.compact(filter, known.probes, sides)
    }

    /// The fragment that reads only the columns it needs, with values for parameters.
    fn compact(
        &self,
        mut filter: Vec<Expr>,
        mut probes: Vec<Probe>,
        sides: Option<Sides>,
    ) -> Result<Fragment> {
        let mut output = self.output.clone();
        let mut order = self.order.clone();
        let mut used = Vec::new();
        let columns = self.scan.parameters();
        let chosen = self.chosen();
        let mut lookups = Vec::new();
        if let Some(sides) = sides {
            let more;
            (lookups, more) = sides.into_parts(&chosen)?;
            probes.extend(more);
        }
        let mut note = |column: usize| {
            if column < columns && !used.contains(&column) {
                used.push(column);
            }
        };
        filter
            .iter()
            .for_each(|expr| expr.for_each_column(&mut note));
        probes.iter().for_each(|probe| note(probe.column));
        lookups.iter().for_each(|lookup| note(lookup.column));
        expressions(&mut output)
            .into_iter()
            .for_each(|expr| expr.for_each_column(&mut note));
        let keys = order.iter().flat_map(|order| &order.keys);
        keys.for_each(|key| note(key.column));
        used.sort_unstable();
        let place = |column: usize| used.binary_search(&column).expect("noted above");
        // What is joined is called by its place among all that is chosen of the sides.
        let own = self.scan.types.len();
        let joined: Vec<usize> = self.joined_columns(&chosen);
        let replacement = |column: usize| match column.checked_sub(columns) {
            None => Expr::Column(place(column)),
            Some(_) if column >= own => {
                let joined = joined.iter().position(|other| *other == column - own);
                Expr::Column(used.len() + joined.expect("chosen above"))
            }
            Some(parameter) => Expr::Literal(self.scan.values[parameter].clone()),
        };
        filter
            .iter_mut()
            .for_each(|expr| replace_columns(expr, &replacement));
        probes
            .iter_mut()
            .for_each(|probe| probe.column = place(probe.column));
        lookups
            .iter_mut()
            .for_each(|lookup| lookup.column = place(lookup.column));
        expressions(&mut output)
            .into_iter()
            .for_each(|expr| replace_columns(expr, &replacement));
        if let Some(order) = &mut order {
            order
                .keys
                .iter_mut()
                .for_each(|key| key.column = place(key.column));
        }
        let snapshot = &self.scan.snapshot;
        let snapshot = snapshot.as_ref().expect("a plan that runs has a snapshot");
        Ok(Fragment {
            object: self.scan.table.object,
            snapshot: snapshot.at(),
            order,
            columns: used
                .iter()
                .map(|column| self.scan.column_id(*column))
                .collect(),
            filter,
            probes,
            lookups,
            output,
        })
    }

    /// Per side, which of its columns the output needs.
    fn chosen(&self) -> Vec<Vec<usize>> {
        let Some(star) = &self.star else {
            return Vec::new();
        };
        let mut used = Vec::new();
        let mut output = self.output.clone();
        for expr in expressions(&mut output) {
            expr.for_each_column(&mut |column| used.push(column));
        }
        let mut offset = self.scan.types.len();
        let chosen = star.sides().iter().map(|side| {
            let first = offset;
            offset += side.types.len();
            let columns = 0..side.types.len();
            columns
                .filter(|column| used.contains(&(first + column)))
                .collect()
        });
        chosen.collect()
    }

    /// The columns that are chosen, by their number among all columns of the sides, in the order of the lookups.
    fn joined_columns(&self, chosen: &[Vec<usize>]) -> Vec<usize> {
        let sides = self.star.iter().flat_map(|star| star.sides());
        let mut joined = Vec::new();
        let mut offset = 0;
        for (side, chosen) in sides.zip(chosen) {
            joined.extend(chosen.iter().map(|column| offset + column));
            offset += side.types.len();
        }
        joined
    }

    /// Starts a run, which owns what this gives back.
    fn start(
        &self,
        context: Arc<TaskContext>,
    ) -> impl Future<Output = Result<Execution, FragmentError>> + Send + 'static + use<> {
        let mut plan = self.clone();
        // Or else the run would own itself.
        plan.runs = Arc::default();
        async move {
            let lanes = plan.properties.partitioning.partition_count();
            let mut sides = None;
            if let Some(star) = &plan.star {
                sides = star.read(&context).await.map_err(into_fragment_error)?;
                if sides.is_none() {
                    let execution = star.execute_general(lanes, &context);
                    return execution.map_err(into_fragment_error);
                }
            }
            if let Some(star) = &plan.star {
                star.tell(&plan.scan);
            }
            let hold = sides.as_ref().map(Sides::hold);
            let fragment = plan.fragment(sides).await.map_err(into_fragment_error)?;
            let mut execution = plan.scan.executor.execute(Arc::new(fragment), lanes)?;
            if let Some(hold) = hold {
                execution.lanes = execution.lanes.into_iter().map(hold).collect();
            }
            Ok(execution)
        }
    }

    /// The run to which this opening of a partition belongs.
    fn open(&self, partition: usize) -> Arc<Run> {
        let lanes = self.properties.partitioning.partition_count();
        let mut runs = self.runs.lock().expect("nothing panics under this lock");
        let runs = &mut *runs;
        runs.opened.resize(lanes, 0);
        let number = runs.opened[partition];
        runs.opened[partition] += 1;
        if number == runs.runs.len() {
            let rows = self.scan.statistics.rows();
            let progress = self.scan.progress.expect_scan(rows);
            runs.runs.push(Arc::new(Run::new(lanes, progress)));
        }
        Arc::clone(&runs.runs[number])
    }
}

/// All expressions of an output.
fn expressions(output: &mut Output) -> Vec<&mut Expr> {
    match output {
        Output::Rows { columns, .. } => columns.iter_mut().collect(),
        Output::Groups { keys, aggregates } => {
            let arguments = aggregates.iter_mut().flat_map(|aggregate| {
                aggregate
                    .input
                    .iter_mut()
                    .chain(aggregate.filter.iter_mut())
            });
            keys.iter_mut().chain(arguments).collect()
        }
    }
}

/// The same plan over other scans of its tables, as if nothing had been executed. `None` if one is not among them.
pub(crate) fn over_scans(
    plan: &Arc<dyn ExecutionPlan>,
    scans: &[Arc<Scan>],
) -> Option<Arc<dyn ExecutionPlan>> {
    if let Some(fragment) = plan.downcast_ref::<FragmentExec>() {
        return Some(Arc::new(fragment.over(scans)?));
    }
    let inputs = plan.children().into_iter();
    let inputs = inputs.map(|input| over_scans(input, scans));
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    let inputs = inputs.collect::<Option<_>>()?;
    Arc::clone(plan).replace_children(inputs, options).ok()
}

/// Replaces every column.
fn replace_columns(expr: &mut Expr, replacement: &impl Fn(usize) -> Expr) {
    match expr {
        Expr::Column(position) => *expr = replacement(*position),
        Expr::Literal(_) => {}
        Expr::Binary { left, right, .. } => {
            replace_columns(left, replacement);
            replace_columns(right, replacement);
        }
        Expr::Not(operand)
        | Expr::Negate(operand)
        | Expr::IsNull(operand)
        | Expr::IsNotNull(operand)
        | Expr::InList { operand, .. }
        | Expr::Like { operand, .. }
        | Expr::Cast { operand, .. } => replace_columns(operand, replacement),
        Expr::Case {
            branches,
            otherwise,
        } => {
            for (condition, then) in branches {
                replace_columns(condition, replacement);
                replace_columns(then, replacement);
            }
            if let Some(otherwise) = otherwise {
                replace_columns(otherwise, replacement);
            }
        }
    }
}

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
        Ok(self.with_sides(children))
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.with_sides(children))
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
        Ok(Box::pin(Lane {
            run: self.open(partition),
            lane: partition,
            starting: None,
            stream: None,
            rest: self.limit(),
            metrics: BaselineMetrics::new(&self.metrics, partition),
            plan: self.clone(),
            context,
        }))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let Output::Rows { columns, limit } = &self.output else {
            return Ok(Arc::new(Statistics::new_unknown(&self.schema)));
        };
        let all = self.scan.statistics.rows_out(columns, &self.filter, *limit);
        // A lane gets what its workers send, so only the sum is known.
        Ok(Arc::new(if args.partition().is_none() {
            all
        } else {
            all.to_inexact()
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

/// The plan with other joins below: where it has a fragment, or the joins that one stands for.
fn on_top_of(
    joins: Arc<dyn ExecutionPlan>,
    plan: &Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.is::<FragmentExec>() {
        return Ok(joins);
    }
    let below = on_top_of(joins, plan.children()[0])?;
    replace_children_if_necessary(Arc::clone(plan), vec![below])
}

/// Whether any part of a filter may still change.
fn is_dynamic(filter: &Arc<dyn PhysicalExpr>) -> bool {
    filter.is::<DynamicFilterPhysicalExpr>() || filter.children().into_iter().any(is_dynamic)
}
