//! RETURNING: a query over the rows that a statement has written, or deleted.
//!
//! It is evaluated before the commit, for it may fail; the answer is handed out after it. The rows are those of the
//! table: as they were stored, with defaults and casts applied. Subqueries in it see the statement's snapshot. For
//! MERGE they have a column more, which says what became of each; `*` does not mean it.

use super::per_row;
use super::target::{self, TARGET};
use crate::catalog::Table;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan::files::StatementTables;
use crate::plan::planning;
use crate::plan::resolve::NameScope;
use crate::running::reserved::Reserved;
use crate::text::statement::Statement;
use datafusion::arrow::array::StringViewArray;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::{
    self, ExcludeSelectItem, Ident, ObjectName, SelectItem, TableWithJoins,
};
use futures::StreamExt;
use std::sync::Arc;

/// RETURNING as a query over [`TARGET`], the rows that were written.
pub(crate) fn query(
    context: &StatementContext,
    alias: &Ident,
    items: Vec<SelectItem>,
) -> Result<ast::Query, SqlError> {
    per_row::check(context, items.iter(), "RETURNING")?;
    let rows = TableWithJoins {
        relation: target::called(alias.clone()),
        joins: Vec::new(),
    };
    Ok(target::select(items, vec![rows], None))
}

/// The column that says of a row of MERGE what became of it.
const ACTION: &str = "merge_action";

/// Rows that wait for RETURNING.
pub(crate) struct Kept {
    batches: Vec<RecordBatch>,
    /// Whether they have [`ACTION`].
    has_action: bool,
    reserved: Reserved,
}

impl Kept {
    pub fn new(context: &StatementContext) -> Self {
        Kept {
            batches: Vec::new(),
            has_action: false,
            reserved: Reserved::new(context.home.budget()),
        }
    }

    /// For MERGE. A table's own column of the name comes first.
    pub fn of_merge(context: &StatementContext, table: &Table) -> Self {
        Kept {
            has_action: table.column_names().all(|name| name != ACTION),
            ..Kept::new(context)
        }
    }

    /// Keeps rows with the table's columns, of which `action` was done.
    pub fn keep(&mut self, rows: RecordBatch, action: &'static str) -> Result<(), SqlError> {
        self.reserved.grow(rows.get_array_memory_size())?;
        let rows = match self.has_action {
            true => with_action(&rows, action)?,
            false => rows,
        };
        self.batches.push(rows);
        Ok(())
    }

    /// What RETURNING makes of them, with all that can fail done.
    pub async fn returned(
        mut self,
        context: &StatementContext,
        names: &NameScope,
        table: &Table,
        alias: &Ident,
        mut items: Vec<SelectItem>,
    ) -> Result<SendableRecordBatchStream, SqlError> {
        let fields = table.schema.fields().iter();
        let fields = fields.map(|field| field.as_ref().clone().with_nullable(true));
        let mut fields: Vec<_> = fields.collect();
        if self.has_action {
            fields.push(Field::new(ACTION, DataType::Utf8View, true));
            items.iter_mut().for_each(exclude_action);
        }
        let query = query(context, alias, items)?;
        let schema = Arc::new(Schema::new(fields));
        let batches = std::mem::take(&mut self.batches).into_iter();
        let batches = batches
            .map(|batch| RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec()));
        let batches = batches.collect::<Result<Vec<_>, _>>()?;
        let rows = MemTable::try_new(schema, vec![batches]).map_err(SqlError::from_datafusion)?;
        let files = StatementTables::from([(TARGET.to_owned(), Arc::new(rows) as _)]);
        let text = Statement::from("RETURNING");
        let context = context.in_one_stream();
        let names = names.clone().with_files(files);
        let plan = planning::plan_at(&context, query, &names, &text)
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

/// The same rows with [`ACTION`].
fn with_action(rows: &RecordBatch, action: &'static str) -> Result<RecordBatch, SqlError> {
    let mut fields = rows.schema().fields().to_vec();
    fields.push(Arc::new(Field::new(ACTION, DataType::Utf8View, true)));
    let mut columns = rows.columns().to_vec();
    let actions = std::iter::repeat_n(action, rows.num_rows());
    columns.push(Arc::new(StringViewArray::from_iter_values(actions)));
    Ok(RecordBatch::try_new(
        Arc::new(Schema::new(fields)),
        columns,
    )?)
}

/// `*` means the table's columns only.
fn exclude_action(item: &mut SelectItem) {
    let (SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options)) = item else {
        return;
    };
    let mut names = match options.opt_exclude.take() {
        None => Vec::new(),
        Some(ExcludeSelectItem::Single(name)) => vec![name],
        Some(ExcludeSelectItem::Multiple(names)) => names,
    };
    names.push(ObjectName::from(vec![Ident::with_quote('"', ACTION)]));
    options.opt_exclude = Some(ExcludeSelectItem::Multiple(names));
}
