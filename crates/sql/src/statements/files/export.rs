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
use crate::catalog::create_statement::{create_statement_with, create_view_statement, foreign_key};
use crate::catalog::{Contents, ForeignKey, RelationName, SCHEMA, Table, View, quoted};
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
    let context = &context.clone().in_schema(SCHEMA);
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
    for name in contents.schema_names().filter(|name| *name != SCHEMA) {
        schema += &format!("CREATE SCHEMA {};\n", quoted(name));
    }
    let tables = referenced_first(contents);
    let mut created: Vec<&RelationName> = Vec::new();
    let mut later = String::new();
    for (number, table) in tables.into_iter().enumerate() {
        let query = Statement::from(format!("SELECT * FROM {}", table.name.sql()));
        let ast::Statement::Query(query_tree) = parse(&query)? else {
            unreachable!("it is a query");
        };
        let plan = planning::plan_at(context, *query_tree, &names, &query).await?;
        let file = format!("{}.{ending}", file_stem(&table.name, number));
        let path = directory.file(&file);
        let (_, written) = copy_to::write(&plan, path, options.clone()).await?;
        written.finish().await?;
        created.push(&table.name);
        let is_there = |key: &ForeignKey| created.contains(&&key.table);
        schema += &format!("{};\n", create_statement_with(table, is_there));
        for key in table.foreign_keys.iter().filter(|key| !is_there(key)) {
            let constraint = foreign_key(key);
            let table = table.name.sql();
            later += &format!("ALTER TABLE {table} ADD CONSTRAINT {constraint};\n");
        }
        let header = if ending == "csv" { ", HEADER true" } else { "" };
        let path = target.join(&file).to_string_lossy().replace('\'', "''");
        load += &format!(
            "COPY {} FROM '{path}' (FORMAT '{ending}'{header});\n",
            table.name.sql()
        );
    }
    load += &later;
    for view in in_order(contents) {
        schema += &format!("{};\n", create_view_statement(view));
    }
    begin_commit()?;
    let texts = vec![(SCHEMA_FILE, schema), (LOAD_FILE, load)];
    directory.finish(texts).await?;
    Ok(Begun::Done {
        tag: "EXPORT DATABASE",
    })
}

/// All tables, each behind those to which its foreign keys refer, unless these form a circle.
fn referenced_first(contents: &Contents) -> Vec<&Table> {
    let mut left: Vec<&Table> = contents.tables().map(|table| &**table).collect();
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |table: &Table, key: &ForeignKey| {
            key.table != table.name && left.iter().any(|other| other.name == key.table)
        };
        let mut free = left.iter();
        let free = free.position(|table| !table.foreign_keys.iter().any(|key| waits(table, key)));
        ordered.push(left.remove(free.unwrap_or(0)));
    }
    ordered
}

/// All views, each behind those that it reads.
fn in_order(contents: &Contents) -> Vec<&View> {
    let mut left: Vec<&View> = contents.views().map(|view| &**view).collect();
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let free = |view: &&View| !left.iter().any(|other| view.reads(&other.name));
        let free = left.iter().position(free).expect("views form no circle");
        ordered.push(left.remove(free));
    }
    ordered
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
