//! INSERT, and the writing part of CREATE TABLE AS.

pub(crate) mod by_name;
mod literals;
pub(crate) mod replace;
pub(crate) mod values;

use crate::catalog::Table;
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::plan::planning;
use crate::plan::planning::Plan;
use crate::plan::resolve::NameScope;
use crate::progress;
use crate::running::outcome::Begun;
use crate::statements::dml::{self, Kept};
use crate::text::questions::of_body;
use crate::text::statement::Statement;
use crate::write::at_source;
use crate::write::at_source::Written;
use crate::write::coerce::Target;
use crate::write::locks;
use crate::write::locks::Writable;
use crate::write::references::Effect;
use crate::write::row_rules::RowRules;
use crate::write::table_writer::TableWriter;
use crate::write::targets::{check_rows, columns, targets};
use datafusion::arrow::array::{ArrayRef, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::{self, Ident, SetExpr, TableObject, Values};
use futures::StreamExt;
use std::sync::Arc;

/// INSERT INTO table [(columns)] VALUES … or SELECT … or DEFAULT VALUES.
pub(crate) async fn insert(
    context: &StatementContext,
    mut insert: ast::Insert,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    reject_the_rest(&insert)?;
    let context = &context.for_change();
    let TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::not_supported("INSERT INTO a function or query"));
    };
    let name = name.clone();
    by_name::write_out(context, &mut insert, statement).await?;
    let effect = Effect::of_insert(&insert);
    let table = locks::writable(context, &name, &effect, statement).await?;
    let columns = columns(&table, &insert.columns)?;
    if let Some(source) = &insert.source {
        check_rows(&table, &columns, source)?;
    }
    replace::write_out(&mut insert, &table, &columns)?;
    let alias = alias(&table, &insert);
    let (source, targets) = match insert.source.take() {
        Some(mut source) => {
            let cells = values::prepare(&mut source, &table, &columns);
            if insert.on.is_some() {
                cells.cast_apart(&mut source, &table, &columns);
                insert.source = None;
                return dml::upsert(context, table, insert, *source, &columns, statement).await;
            }
            cells.take_apart(&mut source);
            let rows = match literals::take(&mut source) {
                Some(rows) => RowSource::Stream(rows),
                None => {
                    let plan = planning::plan(context, *source, statement).await?;
                    RowSource::Plan(Box::new(plan))
                }
            };
            let given = rows.width();
            let expected = cells.width(columns.len());
            if given != expected {
                return Err(wrong_width(&table, columns.len(), given));
            }
            let mut targets = targets(context, &table, &columns)?;
            cells.retarget(&mut targets);
            (rows, targets)
        }
        None => {
            let row = RowSource::Stream(one_row_without_columns()?);
            (row, targets(context, &table, &[])?)
        }
    };
    let Some(items) = insert.returning else {
        let rows = match source {
            RowSource::Plan(plan) => write_plan(context, &table, *plan, targets).await?,
            RowSource::Stream(rows) => write(context, &table, rows, targets).await?,
        };
        if rows == 0 {
            context.show_found().await?;
        }
        return Ok(Begun::Count {
            rows,
            tag: "INSERT",
        });
    };
    let mut kept = Kept::new(context);
    let source = source.run()?;
    let appended = Box::pin(append(context, &table, source, targets, Some(&mut kept)));
    let (writer, _) = appended.await?;
    let names = NameScope::now(context);
    let returned = kept.returned(context, &names, &table, &alias, items);
    let returned = returned.await?;
    (writer.finish(context, |error| table.write_error(error))).await?;
    Ok(Begun::Rows(returned))
}

/// Where the rows of an INSERT come from.
enum RowSource {
    Stream(SendableRecordBatchStream),
    Plan(Box<Plan>),
}

impl RowSource {
    /// The number of its columns.
    fn width(&self) -> usize {
        match self {
            RowSource::Stream(rows) => rows.schema().fields().len(),
            RowSource::Plan(plan) => plan.physical.schema().fields().len(),
        }
    }

    fn run(self) -> Result<SendableRecordBatchStream, SqlError> {
        match self {
            RowSource::Stream(rows) => Ok(rows),
            RowSource::Plan(plan) => plan.run_into_table(),
        }
    }
}

/// The rows to be inserted have another number of values than there are columns for them.
pub(super) fn wrong_width(table: &Table, columns: usize, values: usize) -> SqlError {
    let message = format!(
        "INSERT INTO \"{}\": {columns} columns, but {values} values",
        table.name
    );
    SqlError::invalid(Mistake::Syntax, message)
}

/// What an INSERT calls its table.
pub(crate) fn alias(table: &Table, insert: &ast::Insert) -> Ident {
    match &insert.table_alias {
        Some(alias) => alias.alias.clone(),
        None => Ident::with_quote('"', table.name.name.as_str()),
    }
}

/// Writes all rows of a plan: all of them become visible, or none.
pub(crate) async fn write_plan(
    context: &StatementContext,
    table: &Writable,
    plan: Plan,
    targets: Vec<Target>,
) -> Result<u64, SqlError> {
    match Box::pin(at_source::write(context, table, plan, &targets)).await? {
        Written::AtSource(writer, rows) => {
            (writer.finish(context, |error| table.write_error(error))).await?;
            Ok(rows)
        }
        Written::NotYet(plan) => write(context, table, plan.run_into_table()?, targets).await,
    }
}

/// Writes all rows of a stream: all of them become visible, or none.
pub(crate) async fn write(
    context: &StatementContext,
    table: &Writable,
    source: SendableRecordBatchStream,
    targets: Vec<Target>,
) -> Result<u64, SqlError> {
    let appended = Box::pin(append(context, table, source, targets, None));
    let (writer, rows) = appended.await?;
    (writer.finish(context, |error| table.write_error(error))).await?;
    Ok(rows)
}

/// Hands over all rows of a stream to a writer, which has yet to commit; keeps them for RETURNING, too.
async fn append(
    context: &StatementContext,
    table: &Writable,
    mut source: SendableRecordBatchStream,
    targets: Vec<Target>,
    mut kept: Option<&mut Kept>,
) -> Result<(TableWriter, u64), SqlError> {
    let rules = RowRules::new(context, table)?;
    let mut writer = TableWriter::adding(context, table)?;
    let progress = progress::current();
    let mut written = 0;
    while let Some(batch) = source.next().await {
        let batch = batch.map_err(SqlError::from_datafusion)?;
        let rows = rules.apply(table, &batch, &targets, written + 1)?;
        written += batch.num_rows() as u64;
        if let Some(kept) = &mut kept {
            kept.keep(rows.clone(), "INSERT")?;
        }
        writer.append(rows).await?;
        progress.wrote(batch.num_rows() as u64);
    }
    Ok((writer, written))
}

/// The source of INSERT … DEFAULT VALUES.
fn one_row_without_columns() -> Result<SendableRecordBatchStream, SqlError> {
    let schema = Arc::new(Schema::empty());
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), Vec::new(), &options)
        .map_err(|error| SqlError::from_datafusion(error.into()))?;
    let rows = futures::stream::iter([Ok(batch)]);
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

/// The value of an expression without columns, as an array of one row, and the name of its type.
pub(crate) async fn collect_one(
    context: &StatementContext,
    expr: &ast::Expr,
    statement: &Statement,
) -> Result<(ArrayRef, DataType), SqlError> {
    let rows = vec![ast::Parens::with_empty_span(vec![expr.clone()])];
    let values = Values {
        explicit_row: false,
        value_keyword: false,
        rows,
    };
    let plan = planning::plan(context, of_body(SetExpr::Values(values)), statement).await?;
    let mut stream = plan.run()?;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(SqlError::from_datafusion)?;
        if batch.num_rows() == 1 {
            let array = Arc::clone(batch.column(0));
            let data_type = array.data_type().clone();
            return Ok((array, data_type));
        }
    }
    Err(SqlError::invalid(Mistake::Syntax, "a value is missing"))
}

/// Rejects clauses that are not supported.
pub(crate) fn reject_the_rest(insert: &ast::Insert) -> Result<(), SqlError> {
    let rejected = [
        (
            insert.on.is_some() && insert.source.is_none(),
            "INSERT … DEFAULT VALUES ON CONFLICT",
        ),
        (insert.output.is_some(), "INSERT … OUTPUT"),
        (
            insert.ignore || insert.replace_into || !replace::is_known(insert),
            "INSERT OR …",
        ),
        (insert.overwrite, "INSERT OVERWRITE"),
        (
            insert.partitioned.is_some() || !insert.after_columns.is_empty(),
            "INSERT … PARTITION",
        ),
        (!insert.assignments.is_empty(), "INSERT … SET"),
        (
            insert.insert_alias.is_some(),
            "INSERT with an alias of the new row",
        ),
        (
            insert.multi_table_insert_type.is_some(),
            "INSERT into several tables",
        ),
        (
            insert.settings.is_some() || insert.format_clause.is_some(),
            "INSERT with a format",
        ),
    ];
    match rejected.iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(SqlError::not_supported(*what)),
        None => Ok(()),
    }
}
