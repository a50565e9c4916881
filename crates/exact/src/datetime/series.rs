//! `generate_series` and `range` as tables.
//!
//! **Stands for** DataFusion's functions. They take timestamps of nanoseconds only, where SQL's have microseconds. And
//! they do not say how many rows they have: then a join takes a few numbers for the larger side, and a product of them
//! and a table has a batch for each of the table's rows.

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, SchemaRef, TimeUnit};
use datafusion::catalog::{
    Session, TableFunction, TableFunctionArgs, TableFunctionImpl, TableProvider,
};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, Result, ScalarValue, Statistics, plan_datafusion_err};
use datafusion::datasource::{TableType, ViewTable, provider_as_source};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, cast};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use std::fmt;
use std::sync::Arc;

/// DataFusion's function with the repair.
#[derive(Debug)]
pub(crate) struct Series(pub Arc<TableFunction>);

impl TableFunctionImpl for Series {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let nanoseconds = |expr: &Expr| match expr {
            Expr::Literal(value, metadata) => {
                Ok(Expr::Literal(as_nanoseconds(value)?, metadata.clone()))
            }
            other => Ok(other.clone()),
        };
        let exprs: Vec<Expr> = args
            .exprs()
            .iter()
            .map(nanoseconds)
            .collect::<Result<_>>()?;
        let inner = self.0.function();
        let table = inner.call_with_args(TableFunctionArgs::new(&exprs, args.session()))?;
        let schema = table.schema();
        let field = schema.field(0);
        let DataType::Timestamp(TimeUnit::Nanosecond, zone) = field.data_type() else {
            let has_end = self.0.name() == "generate_series";
            return Ok(match numbers(&exprs, has_end) {
                Some(rows) => Arc::new(CountedTable { table, rows }),
                None => table,
            });
        };
        let shown = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
        let column = Expr::Column(Column::new_unqualified(field.name()));
        let plan = LogicalPlanBuilder::scan(self.0.name(), provider_as_source(table), None)?
            .project([cast(column, shown).alias(field.name())])?
            .build()?;
        Ok(Arc::new(ViewTable::new(plan, None)))
    }
}

/// How many numbers a series has, if it is one of numbers.
fn numbers(exprs: &[Expr], has_end: bool) -> Option<usize> {
    let mut all = exprs.iter().map(|expr| match expr {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => Some(i128::from(*number)),
        _ => None,
    });
    let first = all.next()??;
    let (start, end) = match all.next() {
        Some(end) => (first, end?),
        None => (0, first),
    };
    let step = all.next().unwrap_or(Some(1))?;
    let length = (end - start) * step.signum();
    let rows = match (has_end, step) {
        (_, 0) => return None,
        (true, _) if length < 0 => 0,
        (true, _) => length / step.abs() + 1,
        (false, _) => (length.max(0) + step.abs() - 1) / step.abs(),
    };
    usize::try_from(rows).ok()
}

/// A table that knows how many rows it has.
#[derive(Debug)]
struct CountedTable {
    table: Arc<dyn TableProvider>,
    rows: usize,
}

#[async_trait]
impl TableProvider for CountedTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let inner = self.table.scan(session, projection, filters, limit).await?;
        let rows = self.rows;
        Ok(Arc::new(CountedExec { inner, rows }))
    }
}

/// The leaf of such a table.
#[derive(Debug)]
struct CountedExec {
    inner: Arc<dyn ExecutionPlan>,
    rows: usize,
}

impl DisplayAs for CountedExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_as(format, f)
    }
}

impl ExecutionPlan for CountedExec {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.inner.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let inner = Arc::clone(&self.inner).reset_state()?;
        let rows = self.rows;
        Ok(Arc::new(CountedExec { inner, rows }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.inner.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.inner.metrics()
    }

    fn statistics_from_inputs(
        &self,
        _: &[Arc<Statistics>],
        _: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let mut statistics = Statistics::new_unknown(&self.inner.schema());
        statistics.num_rows = Precision::Exact(self.rows);
        Ok(Arc::new(statistics))
    }
}

/// A timestamp in nanoseconds; any other value as it is.
fn as_nanoseconds(value: &ScalarValue) -> Result<ScalarValue> {
    let DataType::Timestamp(_, zone) = value.data_type() else {
        return Ok(value.clone());
    };
    let to = DataType::Timestamp(TimeUnit::Nanosecond, zone);
    let fits = value.cast_to(&to).ok();
    fits.filter(|cast| cast.is_null() == value.is_null())
        .ok_or_else(|| {
            plan_datafusion_err!(
                "a series of timestamps lies between the years 1678 and 2261, not at {value}"
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::logical_expr::lit;

    #[test]
    fn numbers_are_counted() {
        let count = |start: i64, end: i64, step: i64, has_end| {
            numbers(&[lit(start), lit(end), lit(step)], has_end)
        };
        for has_end in [true, false] {
            for (start, end) in [(1, 10), (10, 1), (-7, 5), (3, 3), (4, 3)] {
                for step in [1, 2, 3, 7, 100, -1, -4] {
                    let is_in = |number: &i64| match (step > 0, has_end) {
                        (true, true) => *number <= end,
                        (true, false) => *number < end,
                        (false, true) => *number >= end,
                        (false, false) => *number > end,
                    };
                    let next = |number: &i64| Some(number + step);
                    let all = std::iter::successors(Some(start), next).take_while(is_in);
                    let counted = count(start, end, step, has_end);
                    assert_eq!(counted, Some(all.count()), "{start} to {end} by {step}");
                }
            }
        }
        assert_eq!(count(1, 2, 0, true), None);
        assert_eq!(count(i64::MIN, i64::MAX, 1, true), None);
        assert_eq!(numbers(&[lit(5i64)], true), Some(6));
        assert_eq!(numbers(&[lit(5i64)], false), Some(5));
        assert_eq!(numbers(&[lit("5")], false), None);
    }
}
