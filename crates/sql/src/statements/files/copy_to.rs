//! COPY table or query TO a file.

mod partitioned;

use super::copy_from::quoted;
use super::parse::{CopySource, CopyTo};
use super::write_options::write_options;
use crate::cancel::begin_commit;
use crate::catalog::{SCHEMA, TableOrView};
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan::files::StatementTables;
use crate::plan::planning;
use crate::plan::planning::Plan;
use crate::progress;
use crate::running::outcome::Begun;
use crate::text::identifier::normalize;
use crate::text::statement::Statement;
use crate::write::targets::columns;
use datafusion::sql::sqlparser::ast::{Ident, ObjectName};
use eris_files::{FileUnderWay, WriteOptions};
use std::path::PathBuf;

/// Runs the statement.
pub(super) async fn run(
    context: &StatementContext,
    copy: CopyTo,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let (options, keys) = write_options(copy.options, &copy.file)?;
    let plan = match copy.source {
        CopySource::Query(query) => planning::plan(context, *query, statement).await?,
        CopySource::Table(name, names) => {
            let query = query(context, &name, names, statement)?;
            // The name is that of the table, whatever schema is current.
            let context = context.clone().in_schema(SCHEMA);
            planning::plan_text(&context, &query, StatementTables::new()).await?
        }
    };
    if !keys.is_empty() {
        let target = copy.file.into();
        let rows = partitioned::write(context, &plan, target, options, &keys, statement).await?;
        return Ok(Begun::Count { rows, tag: "COPY" });
    }
    let (rows, file) = write(&plan, copy.file.into(), options).await?;
    begin_commit()?;
    file.finish().await?;
    Ok(Begun::Count { rows, tag: "COPY" })
}

/// The query for a table's or view's columns of these names, or for all of them.
fn query(
    context: &StatementContext,
    name: &ObjectName,
    names: Vec<Ident>,
    statement: &Statement,
) -> Result<String, SqlError> {
    let table = match context.relation(name, statement)? {
        TableOrView::Table(table) => table,
        TableOrView::View(view) => {
            let columns = names.iter().map(|name| quoted(&normalize(name)));
            let columns = match names.is_empty() {
                true => "*".to_owned(),
                false => columns.collect::<Vec<_>>().join(", "),
            };
            return Ok(format!("SELECT {columns} FROM {}", view.name.sql()));
        }
    };
    let names: Vec<_> = names
        .into_iter()
        .map(|name| ObjectName::from(vec![name]))
        .collect();
    let columns = columns(&table, &names)?;
    let columns: Vec<_> = columns
        .iter()
        .map(|&at| quoted(table.schema.field(at).name()))
        .collect();
    Ok(format!(
        "SELECT {} FROM {}",
        columns.join(", "),
        table.name.sql()
    ))
}

/// Writes all rows of a plan into a file, which has its name once it is finished; until then what had it is as it was.
pub(super) async fn write(
    plan: &Plan,
    path: PathBuf,
    options: WriteOptions,
) -> Result<(u64, FileUnderWay), SqlError> {
    let workers = plan.context.session_config().target_partitions();
    let progress = progress::current();
    let wrote = |rows| progress.wrote(rows);
    Ok(eris_files::write(plan.run()?, path, options, workers, wrote).await?)
}
