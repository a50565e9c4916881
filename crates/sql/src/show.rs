//! Statements that show the catalogue: `SHOW TABLES`, `DESCRIBE table`.

use crate::catalog::{ColumnRules, Relation, Table};
use crate::core::{Begun, Core};
use crate::create_statement::{create_statement as statement_of, create_view_statement};
use crate::error::SqlError;
use crate::statement::Statement;
use crate::types::sql_name;
use datafusion::arrow::array::{ArrayRef, BooleanArray, StringViewArray, UInt64Array};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::{ObjectName, ShowCreateObject};
use eris_engine::Partitioning;
use futures::stream;
use std::sync::Arc;

/// `SHOW CREATE TABLE table`, `SHOW CREATE VIEW view`: the statement that makes it anew, without its rows.
pub(crate) fn create_statement(
    core: &Core,
    kind: &ShowCreateObject,
    name: &ObjectName,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let (full, text_of_it) = match kind {
        ShowCreateObject::Table => {
            let table = core.table(name, statement)?;
            (table.name.to_string(), statement_of(&table))
        }
        ShowCreateObject::View => {
            let full = core.resolve(name, statement)?;
            match core.catalog.contents().get(&full) {
                Some(Relation::View(view)) => (full.to_string(), create_view_statement(view)),
                Some(Relation::Table(_)) => {
                    return Err(SqlError::invalid(format!(
                        "\"{full}\" is a table, not a view"
                    )));
                }
                None => return Err(core.missing("view", &full, name, statement)),
            }
        }
        other => return Err(SqlError::not_supported(format!("SHOW CREATE {other}"))),
    };
    rows_of([
        ("name", text([Some(full)].into_iter())),
        ("statement", text([Some(text_of_it)].into_iter())),
    ])
}

/// `SHOW TABLES`: name, rows, bytes in memory, and how each is partitioned; of the current schema.
pub(crate) fn tables(core: &Core) -> Result<Begun, SqlError> {
    let mut tables = core.catalog.tables();
    tables.retain(|table| *table.name.schema == *core.current_schema);
    let statistics = tables
        .iter()
        .map(|table| Ok(core.engine.statistics(table.object)?));
    let statistics = statistics.collect::<Result<Vec<_>, SqlError>>()?;
    let rows = UInt64Array::from_iter_values(statistics.iter().map(|table| table.rows));
    let bytes = UInt64Array::from_iter_values(statistics.iter().map(|table| table.bytes));
    rows_of([
        (
            "table_name",
            text(tables.iter().map(|table| Some(table.name.name.clone()))),
        ),
        ("rows", Arc::new(rows)),
        ("bytes", Arc::new(bytes)),
        (
            "partitioned_by",
            text(tables.iter().map(|table| partitioned_by(table))),
        ),
    ])
}

/// `DESCRIBE`, of a table or view: name, type, whether NULL is allowed, and the default of each column.
pub(crate) fn describe(relation: &Relation) -> Result<Begun, SqlError> {
    let (schema, rules) = match relation {
        Relation::Table(table) => (&table.schema, table.rules.clone()),
        Relation::View(view) => (
            &view.schema,
            vec![ColumnRules::default(); view.schema.fields().len()],
        ),
    };
    let columns = || schema.fields().iter().zip(&rules);
    let types =
        columns().map(|(field, rules)| Some(sql_name(field.data_type(), rules.max_characters)));
    let nullable = columns().map(|(field, _)| Some(field.is_nullable()));
    let defaults =
        columns().map(|(_, rules)| rules.default.as_ref().map(|value| value.to_string()));
    rows_of([
        (
            "column_name",
            text(columns().map(|(field, _)| Some(field.name().clone()))),
        ),
        ("column_type", text(types)),
        ("nullable", Arc::new(nullable.collect::<BooleanArray>())),
        ("default", text(defaults)),
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
