//! COPY table FROM files.
//!
//! Text is parsed with the table's own types. Columns of CSV files are the table's, or those that are named, in this
//! order; members of JSON objects go by name; columns of Parquet and Arrow files go by name if all are there, else in
//! order.

use super::failed;
use super::parse::CopyFrom;
use crate::catalog::Table;
use crate::context::StatementContext;
use crate::error::{SqlError, SqlErrorKind};
use crate::plan::files::StatementTables;
use crate::plan::files::options::GivenOptions;
use crate::plan::files::read_options::read_options;
use crate::plan::planning;
use crate::progress;
use crate::running::outcome::Begun;
use crate::statements::insert::write;
use crate::text::statement::Statement;
use crate::write::coerce::Target;
use crate::write::locks;
use crate::write::locks::Writable;
use crate::write::references::Effect;
use crate::write::targets::{check_not_generated, columns, targets};
use datafusion::arrow::datatypes::Schema;
use datafusion::sql::sqlparser::ast::ObjectName;
use eris_files::{FileColumn, Format, ReadOptions, format_of, open};
use std::sync::Arc;

/// The name under which the statement's query knows the files. No table has it, for nothing closes its bracket.
const FILES: &str = "copy(";

/// Runs the statement.
pub(super) async fn run(
    context: &StatementContext,
    copy: CopyFrom,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let table = locks::writable(context, &copy.table, &Effect::adding(), statement).await?;
    let names: Vec<_> = copy
        .columns
        .iter()
        .cloned()
        .map(|name| ObjectName::from(vec![name]))
        .collect();
    let columns = columns(&table, &names)?;
    for &column in &columns {
        check_not_generated(&table, column)?;
    }
    let options = options_for(&table, copy.options)?;
    let rows = load(context, &table, &columns, copy.files, options).await?;
    Ok(Begun::Count { rows, tag: "COPY" })
}

/// What COPY says about the files. FORCE_NOT_NULL, as DuckDB exports it, names columns that have no NULL anyway. An
/// empty field is an error there.
pub(super) fn options_for(
    table: &Table,
    mut options: GivenOptions,
) -> Result<ReadOptions, SqlError> {
    if let Some(given) = options.take(&["force_not_null"])? {
        for name in given.texts()? {
            let Ok(field) = table.schema.field_with_name(&name) else {
                return Err(given.reject("columns of the table"));
            };
            if field.is_nullable() {
                let what = format!("FORCE_NOT_NULL of column \"{name}\", which may be NULL");
                return Err(SqlError::not_supported(what)
                    .at(given.place.clone())
                    .with_hint(Some(
                        "coalesce(column, '') in INSERT … SELECT … FROM read_csv(…)",
                    )));
            }
        }
    }
    read_options(options, None, "COPY FROM")
}

/// Writes the files' rows into these columns of a table: all of them, or none.
pub(super) async fn load(
    context: &StatementContext,
    table: &Writable,
    columns: &[usize],
    files: Vec<String>,
    mut options: ReadOptions,
) -> Result<u64, SqlError> {
    let (shown, format) = (files.first().cloned().unwrap_or_default(), options.format);
    let format = format_of(files.clone(), format).await?;
    options.format = Some(format);
    let given = match format {
        Format::Csv | Format::Json => Some(given(table, columns)),
        Format::Parquet | Format::Arrow => None,
    };
    let progress = progress::current();
    let provider = open(files, options, given, context.state(), progress.files()).await?;
    let places = match format {
        Format::Csv | Format::Json => (0..columns.len()).collect(),
        Format::Parquet | Format::Arrow => places(&provider.schema(), table, columns, &shown)?,
    };
    let selected: Vec<_> = places
        .iter()
        .map(|&place| quoted(provider.schema().field(place).name()))
        .collect();
    let query = format!("SELECT {} FROM {}", selected.join(", "), quoted(FILES));
    let files = StatementTables::from([(FILES.to_owned(), provider)]);
    let plan = planning::plan_text(context, &query, files).await?;
    let sources: Vec<Target> = targets(context, table, columns)?;
    let written = write(context, table, plan.run_into_table()?, sources).await;
    written.map_err(|error| match error.kind() {
        SqlErrorKind::Constraint(..) | SqlErrorKind::Invalid(..) => {
            error.within(&format!("file '{shown}'"))
        }
        _ => error,
    })
}

/// A name in double quotes.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The table's columns as a text file has them.
fn given(table: &Table, columns: &[usize]) -> Vec<FileColumn> {
    let column = |&at: &usize| FileColumn {
        field: Arc::clone(&table.schema.fields()[at]),
        max_characters: table.rules[at].max_characters,
    };
    columns.iter().map(column).collect()
}

/// Where the file has the columns: by name if it has all of them, else in order.
fn places(
    file: &Schema,
    table: &Table,
    columns: &[usize],
    shown: &str,
) -> Result<Vec<usize>, SqlError> {
    let by_name = columns.iter().map(|&at| {
        let name = table.schema.field(at).name();
        let found = file.fields().iter().position(|field| field.name() == name);
        found.or_else(|| {
            file.fields()
                .iter()
                .position(|field| field.name().eq_ignore_ascii_case(name))
        })
    });
    if let Some(places) = by_name.collect::<Option<Vec<_>>>() {
        return Ok(places);
    }
    if file.fields().len() == columns.len() {
        return Ok((0..columns.len()).collect());
    }
    let names: Vec<_> = file
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    let reason = format!(
        "{} columns, but {} are wanted, and not all of them by name",
        names.len(),
        columns.len()
    );
    Err(failed(shown, reason).with_hint(Some(format!(
        "its columns are {}; name those of the table that it has: COPY {} (column, …) FROM …",
        names.join(", "),
        table.name
    ))))
}
