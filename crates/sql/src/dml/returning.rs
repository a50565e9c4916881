//! RETURNING: a query over the rows that a statement has written, or deleted.
//!
//! It is evaluated before the commit, for it may fail; the answer is handed out after it. The rows are those of the table: as
//! they were stored, with defaults and casts applied. Subqueries in it see the statement's snapshot.

use super::per_row;
use super::target::{self, TARGET};
use crate::catalog::Table;
use crate::core::Core;
use crate::error::SqlError;
use crate::files::Files;
use crate::reserved::Reserved;
use crate::resolve::Names;
use crate::statement::Statement;
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::{self, Ident, SelectItem, TableWithJoins};
use futures::StreamExt;
use std::sync::Arc;

/// RETURNING as a query over [`TARGET`], the rows that were written.
pub(crate) fn query(
    core: &Core,
    alias: &Ident,
    items: Vec<SelectItem>,
) -> Result<ast::Query, SqlError> {
    per_row::check(core, items.iter(), "RETURNING")?;
    let rows = TableWithJoins {
        relation: target::called(alias.clone()),
        joins: Vec::new(),
    };
    Ok(target::select(items, vec![rows], None))
}

/// Rows that wait for RETURNING.
pub(crate) struct Kept {
    batches: Vec<RecordBatch>,
    reserved: Reserved,
}

impl Kept {
    pub fn new(core: &Core) -> Self {
        Kept {
            batches: Vec::new(),
            reserved: Reserved::new(core),
        }
    }

    /// Keeps rows with the table's columns.
    pub fn keep(&mut self, rows: RecordBatch) -> Result<(), SqlError> {
        self.reserved.grow(rows.get_array_memory_size())?;
        self.batches.push(rows);
        Ok(())
    }

    /// What RETURNING makes of them, with all that can fail done.
    pub async fn returned(
        mut self,
        core: &Core,
        names: &Names,
        table: &Table,
        alias: &Ident,
        items: Vec<SelectItem>,
    ) -> Result<SendableRecordBatchStream, SqlError> {
        let query = query(core, alias, items)?;
        let fields = table.schema.fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batches = std::mem::take(&mut self.batches).into_iter();
        let batches = batches
            .map(|batch| RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec()));
        let batches = batches.collect::<Result<Vec<_>, _>>()?;
        let rows = MemTable::try_new(schema, vec![batches]).map_err(SqlError::from_datafusion)?;
        let files = Files::from([(TARGET.to_owned(), Arc::new(rows) as _)]);
        let text = Statement::from("RETURNING");
        let plan = core
            .in_one_stream()
            .plan_at(query, &names.clone().with_files(files), &text)
            .await
            .map_err(|error| error.within("RETURNING"))?;
        let mut stream = plan.answer()?;
        let schema = stream.schema();
        let mut all = Vec::new();
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(SqlError::from_datafusion)?;
            self.reserved.grow(batch.get_array_memory_size())?;
            all.push(batch);
        }
        // What is reserved is given back with the last batch.
        let reserved = self.reserved;
        let all = futures::stream::iter(all).map(move |batch| {
            let _ = &reserved;
            Ok(batch)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, all)))
    }
}
