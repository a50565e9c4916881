//! A function of all strings of a column's dictionary, computed without reading rows.
//!
//! ```text
//! dictionary   0 'http://a/x'   1 'http://b/y'   …       in the order of their codes, the very array
//! function     0 'a'            1 'b'            …       by all threads
//! ```
//!
//! If the function is a condition, only the strings are yielded for which it holds.
//!
//! There may be strings among them that no row has. So an error may be of nobody's row (docs/decisions/0048).

use crate::plan::scan::Scan;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::{concat, filter};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, exec_err};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{
    EquivalenceProperties, Partitioning, PhysicalExpr, PhysicalExprRef,
};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions, SchedulingType, apply_expression_roots,
};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use eris_exact::on_threads;
use futures::stream::once;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows that make it worth computing something once for a string, which nobody has to look for.
const ROWS_PER_STRING: f64 = 2.0;
/// Strings of which the function is computed at once, at most …
const STRINGS: usize = 8_192;
/// … and what their results take, by those of …
const BYTES: usize = 1 << 20;
/// … the first ones.
const FIRST: usize = 32;

/// Strings for which a condition holds, at most: looking for more takes as long as computing it for each row.
const PASSING: usize = 1 << 16;
/// For how many of the strings a condition is taken to hold: one of so many.
const ONE_PASSES: usize = 5;

/// The strings of a column's dictionary and what a function says of each, as one batch; or those for which it holds.
#[derive(Debug)]
pub(crate) struct DictionaryExec {
    scan: Arc<Scan>,
    /// The column, a position in its table.
    column: usize,
    /// Over the strings alone.
    function: PhysicalExprRef,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl DictionaryExec {
    /// The function's only column is the strings; `None` if the strings of the table's column are not known.
    pub fn new(
        scan: &Arc<Scan>,
        column: usize,
        function: PhysicalExprRef,
        result: FieldRef,
    ) -> Option<Self> {
        scan.strings(column)?;
        let schema = Arc::new(Schema::new(vec![strings_of(scan, column), result]));
        Some(Self::over(Arc::clone(scan), column, function, schema))
    }

    /// The strings for which a condition holds, which is one of the strings alone; `None` as for [`Self::new`].
    pub fn passing(scan: &Arc<Scan>, column: usize, condition: PhysicalExprRef) -> Option<Self> {
        scan.strings(column)?;
        let schema = Arc::new(Schema::new(vec![strings_of(scan, column)]));
        Some(Self::over(Arc::clone(scan), column, condition, schema))
    }

    /// Whether only strings are yielded for which the function, a condition, holds.
    fn is_condition(&self) -> bool {
        self.schema.fields().len() == 1
    }

    fn over(scan: Arc<Scan>, column: usize, function: PhysicalExprRef, schema: SchemaRef) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        // It gives way to others by itself.
        let properties = properties.with_scheduling_type(SchedulingType::Cooperative);
        DictionaryExec {
            scan,
            column,
            function,
            schema,
            properties: Arc::new(properties),
        }
    }

    /// The same over another scan of its table; `None` if it is not among these.
    pub fn on(&self, scans: &[Arc<Scan>]) -> Option<Self> {
        let scan = Arc::clone(self.scan.among(scans)?);
        let (function, schema) = (Arc::clone(&self.function), Arc::clone(&self.schema));
        Some(Self::over(scan, self.column, function, schema))
    }
}

fn strings_of(scan: &Scan, column: usize) -> FieldRef {
    let name = scan.schema.field(column).name();
    Arc::new(Field::new(name, DataType::Utf8View, false))
}

/// Whether all strings of a column are known, and few of them beside so many rows. There may be more strings than
/// values: a dictionary keeps those of deleted rows.
pub(crate) fn has_few_strings(scan: &Scan, column: usize, rows: f64) -> bool {
    let are_few = |strings: f64| strings * ROWS_PER_STRING <= rows;
    scan.statistics.distinct(column).is_some_and(are_few)
        && (scan.strings(column)).is_some_and(|strings| are_few(strings.len() as f64))
}

/// What is computed.
struct Computing {
    strings: ArrayRef,
    function: PhysicalExprRef,
    /// Of the strings alone, or of the results, too.
    schema: SchemaRef,
    threads: usize,
    held: MemoryReservation,
}

impl Computing {
    /// The strings, and beside them the function's results; or the strings for which it is true.
    async fn run(self) -> Result<RecordBatch> {
        let rows = self.strings.len();
        // Some functions make long results of short strings.
        let first = self.results(0, FIRST.min(rows))?;
        let width = first.get_array_memory_size() / FIRST;
        let piece = (BYTES / width.max(1)).clamp(1, STRINGS);
        let (pieces, threads) = (rows.div_ceil(piece).max(1), self.threads);
        let all = Arc::new(self);
        let (computing, passed) = (Arc::clone(&all), AtomicUsize::new(0));
        let one = move |number: usize| {
            let start = number * piece;
            let len = piece.min(rows - start);
            let results = computing.results(start, len)?;
            let found = match computing.is_condition() {
                false => results,
                true => filter(&computing.strings.slice(start, len), results.as_boolean())?,
            };
            let before = passed.fetch_add(found.len(), Ordering::Relaxed);
            if computing.is_condition() && before + found.len() > PASSING {
                return exec_err!("a condition holds for too many strings");
            }
            // Here, and put together.
            let bytes = match computing.is_condition() {
                true => found.len() * size_of::<u128>(),
                false => found.get_array_memory_size(),
            };
            computing.held.try_grow(2 * bytes)?;
            Ok(found)
        };
        let found = on_threads(pieces, threads, one).await?;
        let found: Vec<_> = found.iter().map(|piece| piece.as_ref()).collect();
        let mut columns = vec![concat(&found)?];
        if !all.is_condition() {
            columns.insert(0, Arc::clone(&all.strings));
        }
        Ok(RecordBatch::try_new(Arc::clone(&all.schema), columns)?)
    }

    fn is_condition(&self) -> bool {
        self.schema.fields().len() == 1
    }

    /// What the function says of some strings.
    fn results(&self, start: usize, len: usize) -> Result<ArrayRef> {
        let schema = Arc::new(Schema::new(vec![self.schema.field(0).clone()]));
        let rows = RecordBatch::try_new(schema, vec![self.strings.slice(start, len)])?;
        self.function.evaluate(&rows)?.into_array(len)
    }
}

impl DisplayAs for DictionaryExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (table, column) = (&self.scan.table.name, self.schema.field(0).name());
        let what = if self.is_condition() {
            "passing"
        } else {
            "computed"
        };
        let function = &self.function;
        write!(
            f,
            "DictionaryExec: table={table}, strings=[{column}], {what}=[{function}]"
        )
    }
}

impl ExecutionPlan for DictionaryExec {
    fn name(&self) -> &str {
        "DictionaryExec"
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

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        apply_expression_roots([&self.function], visit)
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(strings) = self.scan.strings(self.column) else {
            return exec_err!("the strings of a column have no codes any more");
        };
        let held = MemoryConsumer::new("functions of strings");
        let computing = Computing {
            strings: Arc::new(strings),
            function: Arc::clone(&self.function),
            schema: Arc::clone(&self.schema),
            threads: context.session_config().target_partitions(),
            held: held.register(context.memory_pool()),
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            once(computing.run()),
        )))
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.schema);
        if let Some(strings) = self.scan.strings(self.column) {
            let rows = match self.is_condition() {
                true => strings.len() / ONE_PASSES,
                false => strings.len(),
            };
            statistics.num_rows = Precision::Inexact(rows);
        }
        Ok(Arc::new(statistics))
    }
}
