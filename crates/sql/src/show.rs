//! Statements that show the catalogue: `SHOW TABLES`, `DESCRIBE table`.

use crate::catalog::Table;
use crate::core::{Begun, Core};
use crate::error::SqlError;
use crate::types::sql_name;
use datafusion::arrow::array::{ArrayRef, BooleanArray, StringViewArray, UInt64Array};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use eris_engine::Partitioning;
use futures::stream;
use std::sync::Arc;

/// `SHOW TABLES`: name, rows, bytes in memory, and how each is partitioned.
pub(crate) fn tables(core: &Core) -> Result<Begun, SqlError> {
    let tables = core.catalog.tables();
    let statistics = tables
        .iter()
        .map(|table| Ok(core.engine.statistics(table.object)?));
    let statistics = statistics.collect::<Result<Vec<_>, SqlError>>()?;
    let rows = UInt64Array::from_iter_values(statistics.iter().map(|table| table.rows));
    let bytes = UInt64Array::from_iter_values(statistics.iter().map(|table| table.bytes));
    rows_of([
        (
            "table_name",
            text(tables.iter().map(|table| Some(table.name.clone()))),
        ),
        ("rows", Arc::new(rows)),
        ("bytes", Arc::new(bytes)),
        (
            "partitioned_by",
            text(tables.iter().map(|table| partitioned_by(table))),
        ),
    ])
}

/// `DESCRIBE table`: name, type, whether NULL is allowed, and the default of each column.
pub(crate) fn describe(table: &Table) -> Result<Begun, SqlError> {
    let columns = || table.schema.fields().iter().zip(&table.rules);
    let types =
        columns().map(|(field, rules)| Some(sql_name(field.data_type(), rules.max_characters)));
    let nullable = columns().map(|(field, _)| Some(field.is_nullable()));
    rows_of([
        (
            "column_name",
            text(columns().map(|(field, _)| Some(field.name().clone()))),
        ),
        ("column_type", text(types)),
        ("nullable", Arc::new(nullable.collect::<BooleanArray>())),
        (
            "default",
            text(columns().map(|(_, rules)| rules.default.as_ref().map(|value| value.to_string()))),
        ),
    ])
}

fn partitioned_by(table: &Table) -> Option<String> {
    match table.partitioning {
        Partitioning::Size => None,
        Partitioning::Range(column) => Some(table.schema.field(column.index()).name().clone()),
    }
}

pub(crate) fn text(values: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(values.collect::<StringViewArray>())
}

/// One batch as the outcome of a statement.
pub(crate) fn rows_of<const N: usize>(columns: [(&str, ArrayRef); N]) -> Result<Begun, SqlError> {
    let columns = columns.map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns)
        .map_err(|error| SqlError::from_datafusion(error.into()))?;
    let schema = batch.schema();
    Ok(Begun::Rows(Box::pin(RecordBatchStreamAdapter::new(
        schema,
        stream::iter([Ok(batch)]),
    ))))
}
