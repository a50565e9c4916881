//! EXPORT DATABASE 'directory': what makes the database again, there as a whole or not at all.
//!
//! ```text
//! directory/schema.sql      CREATE statements, a table behind those to which it refers
//! directory/load.sql        a COPY per table; foreign keys that form a circle are added behind them
//! directory/<table>.parquet its rows, all tables at one snapshot
//! ```
//!
//! The layout is DuckDB's, which reads it.

use super::copy_to;
use super::parse::Export;
use super::write_options::write_options;
use crate::cancel::begin_commit;
use crate::catalog::{RelationName, SCHEMA, quoted, script};
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan::planning;
use crate::plan::resolve::NameScope;
use crate::running::outcome::Begun;
use crate::text::parse::parse;
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast;
use eris_files::DirectoryUnderWay;
use std::path::PathBuf;

/// The file with the statements that make the tables.
pub(super) const SCHEMA_FILE: &str = "schema.sql";
/// The file with the statements that fill them.
pub(super) const LOAD_FILE: &str = "load.sql";

/// Runs the statement.
pub(super) async fn run(context: &StatementContext, export: Export) -> Result<Begun, SqlError> {
    // What the files say has to mean the same whatever schema is current.
    let context = &context.without_temporary().in_schema(SCHEMA);
    let target = PathBuf::from(export.directory.trim_end_matches('/'));
    let parquet = export.options.0.iter().all(|given| given.name != "format");
    let file = if parquet { "x.parquet" } else { "" };
    let (options, keys) = write_options(export.options, file)?;
    if !keys.is_empty() {
        return Err(SqlError::not_supported("EXPORT DATABASE with PARTITION_BY"));
    }
    let ending = options.format.name();
    let directory = DirectoryUnderWay::create(target.clone()).await?;
    let names = NameScope::now(context);
    let contents = names.contents();
    let (mut schema, mut load) = (String::new(), String::new());
    for statement in script::before_tables(contents) {
        schema += &format!("{statement};\n");
    }
    let tables = script::tables(contents, true);
    for (number, (table, statement)) in tables.iter().enumerate() {
        let columns = table.column_names().zip(&table.rules);
        let columns = columns.filter(|(_, rules)| rules.generated.is_none());
        let columns: Vec<String> = columns.map(|(name, _)| quoted(name)).collect();
        let query = format!("SELECT {} FROM {}", columns.join(", "), table.name.sql());
        let query = Statement::from(query);
        let ast::Statement::Query(query_tree) = parse(&query)? else {
            unreachable!("it is a query");
        };
        let plan = planning::plan_at(context, *query_tree, &names, &query).await?;
        let file = format!("{}.{ending}", file_stem(&table.name, number));
        let path = directory.file(&file);
        let (_, written) = copy_to::write(&plan, path, options.clone()).await?;
        written.finish().await?;
        schema += &format!("{statement};\n");
        let header = if ending == "csv" { ", HEADER true" } else { "" };
        let path = target.join(&file).to_string_lossy().replace('\'', "''");
        load += &format!(
            "COPY {} FROM '{path}' (FORMAT '{ending}'{header});\n",
            table.name.sql()
        );
    }
    for statement in script::late_keys(&tables, true) {
        load += &format!("{statement};\n");
    }
    for (_, statement) in script::views(contents) {
        schema += &format!("{statement};\n");
    }
    for statement in script::macros(contents) {
        schema += &format!("{statement};\n");
    }
    begin_commit()?;
    let texts = vec![(SCHEMA_FILE, schema), (LOAD_FILE, load)];
    directory.finish(texts).await?;
    Ok(Begun::Done {
        tag: "EXPORT DATABASE",
    })
}

/// A file's name for a table's.
fn file_stem(table: &RelationName, number: usize) -> String {
    if table.schema != SCHEMA {
        return format!("table {number}");
    }
    let table = &table.name;
    let plain = table
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if plain && table.len() < 200 && *table == table.to_lowercase() {
        table.to_owned()
    } else {
        format!("table {number}")
    }
}
