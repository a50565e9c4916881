//! The leaf of a physical plan that is not executed here but by the engine: one fragment over one table.

mod append;
mod columns;
mod compact;
mod display;
mod plan_node;
mod result_stream;
mod star;

use crate::plan::dictionary_exec::DictionaryExec;
use crate::plan::run::FragmentRun;
use crate::plan::scan::Scan;
use crate::plan::translate::Scope;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    AcrossPartitions, ConstExpr, EquivalenceProperties, Partitioning, PhysicalExpr,
};
use datafusion::physical_plan::execution_plan::{
    Boundedness, ChildrenPropertiesMode, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{ExecutionPlan, PlanProperties, replace_children_if_necessary};
use eris_exact::scalar;
use eris_fragment::{
    Access, BinaryOp, Estimate, Execution, Expr, FragmentError, FragmentReport, Order, Output, Type,
};
pub(crate) use star::{BuildSide, JoinRules, SideJoin, Star};
use star::{BuildSides, into_fragment_error};
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
    /// Whether functions may be computed once for each value of a column. A value that no row has may make them fail.
    computes_values: bool,
    /// Filters over the output's columns that become known while the plan runs.
    dynamic: Vec<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    runs: Arc<Mutex<FragmentRuns>>,
}

/// The executions of one plan node: the n-th opening of a partition belongs to the n-th run.
#[derive(Debug, Default)]
struct FragmentRuns {
    opened: Vec<usize>,
    runs: Vec<Arc<FragmentRun>>,
}

/// What a fragment yields and filters that does nothing but look for values.
pub(crate) struct PlainRows<'a> {
    /// The columns of its rows.
    pub columns: Vec<usize>,
    /// The columns that are compared for equality, and what with.
    pub conditions: Vec<(usize, &'a Expr)>,
}

/// Which columns show the same value, or a constant. DataFusion may have relied on it before they became columns of a
/// fragment.
fn equal_columns(output: &Output, schema: &SchemaRef) -> EquivalenceProperties {
    let mut properties = EquivalenceProperties::new(Arc::clone(schema));
    let Output::Rows { columns, .. } = output else {
        return properties;
    };
    let column = |number: usize| Arc::new(Column::new(schema.field(number).name(), number)) as _;
    let column: &dyn Fn(usize) -> Arc<dyn PhysicalExpr> = &column;
    for (number, expr) in columns.iter().enumerate() {
        if let Some(value) = constant(expr, schema.field(number).data_type()) {
            let value = AcrossPartitions::Uniform(Some(value));
            // Without orders beside it, this cannot fail.
            let _ = properties.add_constants([ConstExpr::new(column(number), value)]);
        }
        if let Some(first) = columns[..number].iter().position(|other| other == expr) {
            // Two columns without conditions beside them: this cannot fail.
            let _ = properties.add_equal_conditions(column(first), column(number));
        }
    }
    properties
}

/// The value of a constant, which may be cast to the type of its column.
fn constant(expr: &Expr, data_type: &DataType) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value) => scalar::to_datafusion(value)?.cast_to(data_type).ok(),
        Expr::Cast { operand, .. } => constant(operand, data_type),
        _ => None,
    }
}

impl FragmentExec {
    /// A fragment with this output, whose columns get the names and nullability of `schema`.
    pub fn new(scan: Arc<Scan>, filter: Vec<Expr>, output: Output, schema: SchemaRef) -> Self {
        let streams = match &output {
            Output::Groups { keys, .. } if keys.is_empty() => 1,
            _ if scan.is_of_one_key(&filter) => 1,
            _ => scan.streams,
        };
        let properties = PlanProperties::new(
            equal_columns(&output, &schema),
            Partitioning::UnknownPartitioning(streams),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        FragmentExec {
            scan,
            filter,
            output,
            order: None,
            star: None,
            computes_values: true,
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
            computes_values: self.computes_values,
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
    fn with_build_sides(self: Arc<Self>, plans: Vec<Arc<dyn ExecutionPlan>>) -> Arc<Self> {
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

    /// Whether functions of its columns may be computed once for each value.
    pub fn computes_values(&self) -> bool {
        self.computes_values
    }

    /// Whether it yields groups by keys.
    pub fn has_groups(&self) -> bool {
        self.keys() > 0
    }

    /// The keys by which it groups.
    fn keys(&self) -> usize {
        match &self.output {
            Output::Rows { .. } => 0,
            Output::Groups { keys, .. } => keys.len(),
        }
    }

    /// About how many groups there are at most, as far as it is known.
    pub fn expected_groups(&self) -> Option<f64> {
        let Output::Groups { keys, .. } = &self.output else {
            return None;
        };
        let values = keys.iter().map(|key| match key {
            Expr::Column(column) => self.scan.statistics.distinct(*column),
            _ => None,
        });
        values.product()
    }

    /// One stream of its groups, and the run that it is of.
    pub fn open_groups(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> (Arc<FragmentRun>, SendableRecordBatchStream) {
        let run = self.open(partition);
        let stream = self.result_stream(Arc::clone(&run), partition, context);
        (run, Box::pin(stream))
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

    /// What it is expected to take, by where its rows are worked on; of a plan that is not bound to a snapshot,
    /// nothing.
    fn estimate(&self) -> Option<Estimate> {
        self.scan.snapshot.as_ref()?;
        let fragment = self.compact(self.filter.clone(), Vec::new(), None).ok()?;
        self.scan.executor.estimate(&fragment)
    }

    /// The same over other scans of its table and its sides' tables, as if nothing had been executed. `None` if one is
    /// not among them.
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

    /// The table's columns that it yields as they are, and what its filter compares columns with for equality, if it
    /// does nothing else.
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

    /// Starts a run, which owns what this gives back.
    fn start(
        &self,
        context: Arc<TaskContext>,
    ) -> impl Future<Output = Result<Execution, FragmentError>> + Send + 'static + use<> {
        let mut plan = self.clone();
        // Or else the run would own itself.
        plan.runs = Arc::default();
        async move {
            let streams = plan.properties.partitioning.partition_count();
            let mut build_sides = None;
            if let Some(star) = &plan.star {
                build_sides = star.read(&context).await.map_err(into_fragment_error)?;
                if build_sides.is_none() {
                    let execution = star.execute_general(streams, plan.keys(), &context);
                    return execution.map_err(into_fragment_error);
                }
            }
            if let Some(star) = &plan.star {
                star.tell(&plan.scan);
            }
            let hold = build_sides.as_ref().map(BuildSides::hold);
            let fragment = plan
                .fragment(build_sides)
                .await
                .map_err(into_fragment_error)?;
            let mut execution = plan.scan.executor.execute(Arc::new(fragment), streams)?;
            if let Some(hold) = hold {
                execution.streams = execution.streams.into_iter().map(hold).collect();
            }
            Ok(execution)
        }
    }

    /// The run to which this opening of a partition belongs.
    fn open(&self, partition: usize) -> Arc<FragmentRun> {
        let streams = self.properties.partitioning.partition_count();
        let mut runs = self.runs.lock().expect("nothing panics under this lock");
        let runs = &mut *runs;
        runs.opened.resize(streams, 0);
        let number = runs.opened[partition];
        runs.opened[partition] += 1;
        if number == runs.runs.len() {
            let rows = self.scan.statistics.rows();
            let progress = self.scan.progress.expect_scan(rows);
            runs.runs
                .push(Arc::new(FragmentRun::new(streams, progress)));
        }
        Arc::clone(&runs.runs[number])
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
    if let Some(dictionary) = plan.downcast_ref::<DictionaryExec>() {
        return Some(Arc::new(dictionary.on(scans)?));
    }
    let inputs = plan.children().into_iter();
    let inputs = inputs.map(|input| over_scans(input, scans));
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    let inputs = inputs.collect::<Option<_>>()?;
    Arc::clone(plan).replace_children(inputs, options).ok()
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
