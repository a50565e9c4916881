//! `generate_series` and `range` over timestamps as tables.
//!
//! **Stands for** DataFusion's functions, which take timestamps of nanoseconds only. SQL's have microseconds.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::catalog::{TableFunction, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Column, Result, ScalarValue, plan_datafusion_err};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, cast};
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
            return Ok(table);
        };
        let shown = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
        let column = Expr::Column(Column::new_unqualified(field.name()));
        let plan = LogicalPlanBuilder::scan(self.0.name(), provider_as_source(table), None)?
            .project([cast(column, shown).alias(field.name())])?
            .build()?;
        Ok(Arc::new(ViewTable::new(plan, None)))
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
