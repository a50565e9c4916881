//! The leaf of a physical plan that is not executed here but by the engine: one fragment over one table.

use crate::dynamic_filter;
use crate::run::Run;
use crate::scan::Scan;
use crate::translate::{Named, Scope};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::Statistics;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_expr::{
    EquivalenceProperties, Partitioning, PhysicalExpr, split_conjunction,
};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, apply_expression_roots,
};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{
    BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput,
};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use eris_fragment::{
    Aggregate, AggregateFunction, Execution, Expr, Fragment, FragmentError, FragmentReport,
    FragmentStream, Output, Probe,
};
use eris_types::ColumnId;
use futures::{Stream, StreamExt};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

/// A fragment as a leaf. Its expressions name columns by their position in the table; the fragment itself, which reads
/// only the columns it needs, is made when the first partition is polled, with the filters that are known by then.
#[derive(Clone, Debug)]
pub(crate) struct FragmentExec {
    scan: Arc<Scan>,
    filter: Vec<Expr>,
    output: Output,
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

impl FragmentExec {
    /// A fragment with this output, whose columns get the names and nullability of `schema`.
    pub fn new(scan: Arc<Scan>, filter: Vec<Expr>, output: Output, schema: SchemaRef) -> Self {
        let lanes = match &output {
            Output::Groups { keys, .. } if keys.is_empty() => 1,
            _ => scan.lanes,
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(lanes),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        FragmentExec {
            scan,
            filter,
            output,
            dynamic: Vec::new(),
            schema,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            runs: Arc::default(),
        }
    }

    /// The same with another output.
    pub fn with_output(&self, output: Output, schema: SchemaRef) -> Self {
        Self::new(Arc::clone(&self.scan), self.filter.clone(), output, schema)
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
    fn fragment(&self) -> Result<Fragment> {
        let inputs = self.inputs();
        let scope = Scope {
            schema: &self.schema,
            inputs: &inputs,
            types: &self.scan.table.types,
        };
        let known = dynamic_filter::harvest(&self.dynamic, &scope, &self.scan.statistics)?;
        let filter = self.filter.iter().cloned().chain(known.filter).collect();
        Ok(self.compact(filter, known.probes))
    }

    /// The fragment that reads only the columns it needs.
    fn compact(&self, mut filter: Vec<Expr>, mut probes: Vec<Probe>) -> Fragment {
        let mut output = self.output.clone();
        let mut used = Vec::new();
        let mut note = |column: usize| {
            if !used.contains(&column) {
                used.push(column);
            }
        };
        filter
            .iter()
            .for_each(|expr| expr.for_each_column(&mut note));
        probes.iter().for_each(|probe| note(probe.column));
        expressions(&mut output)
            .into_iter()
            .for_each(|expr| expr.for_each_column(&mut note));
        used.sort_unstable();
        let place = |column: usize| used.binary_search(&column).expect("noted above");
        filter.iter_mut().for_each(|expr| renumber(expr, &place));
        probes
            .iter_mut()
            .for_each(|probe| probe.column = place(probe.column));
        expressions(&mut output)
            .into_iter()
            .for_each(|expr| renumber(expr, &place));
        Fragment {
            object: self.scan.table.object,
            snapshot: self.scan.snapshot,
            columns: used
                .into_iter()
                .map(|column| ColumnId(column as u32))
                .collect(),
            filter,
            probes,
            output,
        }
    }

    fn start(&self) -> Result<Execution, FragmentError> {
        let fragment = self
            .fragment()
            .map_err(|error| FragmentError::Evaluation(Arc::new(error)))?;
        let lanes = self.properties.partitioning.partition_count();
        self.scan.executor.execute(Arc::new(fragment), lanes)
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
            runs.runs.push(Arc::new(Run::new(lanes)));
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

/// Replaces every column position.
fn renumber(expr: &mut Expr, place: &impl Fn(usize) -> usize) {
    match expr {
        Expr::Column(position) => *position = place(*position),
        Expr::Literal(_) => {}
        Expr::Binary { left, right, .. } => {
            renumber(left, place);
            renumber(right, place);
        }
        Expr::Not(operand)
        | Expr::Negate(operand)
        | Expr::IsNull(operand)
        | Expr::IsNotNull(operand)
        | Expr::InList { operand, .. }
        | Expr::Like { operand, .. }
        | Expr::Cast { operand, .. } => renumber(operand, place),
        Expr::Case {
            branches,
            otherwise,
        } => {
            for (condition, then) in branches {
                renumber(condition, place);
                renumber(then, place);
            }
            if let Some(otherwise) = otherwise {
                renumber(otherwise, place);
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

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
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

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(Lane {
            run: self.open(partition),
            lane: partition,
            stream: None,
            rest: self.limit(),
            metrics: BaselineMetrics::new(&self.metrics, partition),
            plan: self.clone(),
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
        let scope = Scope {
            schema: &self.schema,
            inputs: &inputs,
            types: &self.scan.table.types,
        };
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
        Ok(Some(Arc::new(
            self.with_output(output, projection.schema()),
        )))
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
        let scope = Scope {
            schema: &self.schema,
            inputs: &inputs,
            types: &self.scan.table.types,
        };
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
            } else if let Some(conjuncts) = conjuncts.collect::<Option<Vec<_>>>() {
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

/// One partition.
struct Lane {
    run: Arc<Run>,
    lane: usize,
    stream: Option<FragmentStream>,
    /// Rows that may still pass, of a limit. The engine only promises to stop soon after it.
    rest: Option<u64>,
    metrics: BaselineMetrics,
    plan: FragmentExec,
}

impl Stream for Lane {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let timer = this.metrics.elapsed_compute().clone();
        let _timer = timer.timer();
        let stream = match &mut this.stream {
            Some(stream) => stream,
            None => match this.run.take(this.lane, || this.plan.start()) {
                Ok(stream) => this.stream.insert(stream),
                Err(error) => {
                    this.stream = Some(Box::pin(futures::stream::empty()));
                    return Poll::Ready(Some(Err(external(error))));
                }
            },
        };
        let polled = match std::task::ready!(stream.poll_next_unpin(cx)) {
            Some(Ok(batch)) => Some(restore(&this.plan.schema, cut(batch, &mut this.rest))),
            Some(Err(error)) => Some(Err(external(error))),
            None => None,
        };
        if this.rest == Some(0) {
            this.stream = Some(Box::pin(futures::stream::empty()));
        }
        Poll::Ready(polled.map(|batch| batch.record_output(&this.metrics)))
    }
}

impl RecordBatchStream for Lane {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.plan.schema)
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        if self.stream.is_none() {
            self.run.abandon(self.lane);
        }
    }
}

/// A fragment's error, whole, on its way through DataFusion.
fn external(error: FragmentError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The batch, or the part of it that a limit still lets pass.
fn cut(batch: RecordBatch, rest: &mut Option<u64>) -> RecordBatch {
    let Some(rest) = rest else { return batch };
    let rows = (batch.num_rows() as u64).min(*rest);
    *rest -= rows;
    batch.slice(0, rows as usize)
}

/// The batch with the names and nullability that the plan has promised.
fn restore(schema: &SchemaRef, batch: RecordBatch) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let (_, mut columns, _) = batch.into_parts();
    for (column, field) in columns.iter_mut().zip(schema.fields()) {
        // Only counts differ: see `aggregate_rule`.
        if column.data_type() != field.data_type() {
            *column = cast(column, field.data_type())?;
        }
    }
    Ok(RecordBatch::try_new_with_options(
        Arc::clone(schema),
        columns,
        &options,
    )?)
}

impl DisplayAs for FragmentExec {
    fn fmt_as(&self, style: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &self.scan.table;
        let separator = if matches!(style, DisplayFormatType::TreeRender) {
            "\n"
        } else {
            ", "
        };
        if !matches!(style, DisplayFormatType::TreeRender) {
            f.write_str("FragmentExec: ")?;
        }
        write!(f, "table={}", table.name)?;
        match &self.output {
            Output::Rows { columns, limit } => {
                write!(f, "{separator}columns=[{}]", list(columns, &table.schema))?;
                self.fmt_filters(separator, f)?;
                if let Some(limit) = limit {
                    write!(f, "{separator}limit={limit}")?;
                }
            }
            Output::Groups { keys, aggregates } => {
                self.fmt_filters(separator, f)?;
                write!(f, "{separator}groups=[{}]", list(keys, &table.schema))?;
                let aggregates: Vec<_> = aggregates
                    .iter()
                    .map(|aggregate| describe(aggregate, &table.schema))
                    .collect();
                write!(f, "{separator}aggregates=[{}]", aggregates.join(", "))?;
            }
        }
        write!(f, "{separator}push")
    }
}

impl FragmentExec {
    fn fmt_filters(&self, separator: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = &self.scan.table.schema;
        if !self.filter.is_empty() {
            let conjuncts: Vec<_> = self
                .filter
                .iter()
                .map(|expr| Named { expr, schema }.to_string())
                .collect();
            write!(f, "{separator}filter=[{}]", conjuncts.join(" AND "))?;
        }
        if !self.dynamic.is_empty() {
            let mut columns = Vec::new();
            for filter in &self.dynamic {
                for column in filter.children() {
                    let name = column.to_string();
                    let name = name.split('@').next().unwrap_or_default().to_owned();
                    if !columns.contains(&name) {
                        columns.push(name);
                    }
                }
            }
            write!(f, "{separator}probes=dynamic({})", columns.join(", "))?;
        }
        Ok(())
    }
}

fn list(exprs: &[Expr], schema: &Schema) -> String {
    exprs
        .iter()
        .map(|expr| Named { expr, schema }.to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

fn describe(aggregate: &Aggregate, schema: &Schema) -> String {
    let name = match aggregate.function {
        AggregateFunction::Sum => "sum",
        AggregateFunction::Count => "count",
        AggregateFunction::Min => "min",
        AggregateFunction::Max => "max",
    };
    let argument = match &aggregate.input {
        Some(expr) => Named { expr, schema }.to_string(),
        None => "*".to_owned(),
    };
    match &aggregate.filter {
        Some(expr) => format!("{name}({argument}) FILTER ({})", Named { expr, schema }),
        None => format!("{name}({argument})"),
    }
}
