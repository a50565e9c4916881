//! Changes of rows by key under the exclusive write lock. They are for changes that need other rows, and to explain a
//! failure.

use super::changed;
use crate::catalog::Table;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::text::statement::Statement;
use crate::write::locks;
use crate::write::references::Effect;
use crate::write::table_writer::TableWriter;
use datafusion::arrow::array::{ArrayRef, Int64Array, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use eris_home::Newest;
use eris_types::ColumnId;
use std::collections::HashSet;
use std::sync::Arc;

/// Ends the rows that have keys, and adds others; how many ended.
pub(super) async fn change(
    context: StatementContext,
    table: Arc<Table>,
    effect: Effect,
    keys: Vec<ArrayRef>,
    new: Option<RecordBatch>,
) -> Result<u64, SqlError> {
    let name = [&table.name.schema, &table.name.name];
    let name = name.map(|part| Ident::with_quote('"', part.as_str()));
    let name = ObjectName::from(name.to_vec());
    let text = Statement::from("");
    let writable = locks::writable(&context, &name, &effect, &text).await?;
    if !Arc::ptr_eq(&writable, &table) {
        return Err(changed(&table));
    }
    let mut writer = TableWriter::changing(&context, &writable).await?;
    let old = TableWriter::old_columns(&table, writable.affected());
    let reads: Arc<[ColumnId]> = old.iter().map(|&column| ColumnId(column as u32)).collect();
    let found = (context.home)
        .lookup(table.object, &keys, reads, Newest::Applied)
        .await?;
    // A key that is named twice has one row.
    let mut seen = HashSet::new();
    let ids = found.row_ids().map(|id| id.0 as i64).enumerate();
    let ids = ids.filter(|(_, id)| seen.insert(*id));
    let (places, ids): (Vec<u32>, Vec<i64>) = ids.map(|(at, id)| (at as u32, id)).unzip();
    let places = UInt32Array::from(places);
    let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(ids))];
    for column in found.rows.columns() {
        columns.push(take(column, &places, None)?);
    }
    let ended = places.len() as u64;
    if ended > 0 {
        let id = Field::new("row", DataType::Int64, false);
        let fields = found.rows.schema();
        let fields = fields.fields().iter().map(|field| field.as_ref().clone());
        let schema = Schema::new(std::iter::once(id).chain(fields).collect::<Vec<_>>());
        let batch = RecordBatch::try_new(Arc::new(schema), columns)?;
        writer.delete(&batch, 1).await?;
    }
    if let Some(new) = new {
        writer.append(new).await?;
    }
    (writer.finish(&context, |error| table.write_error(error))).await?;
    Ok(ended)
}
