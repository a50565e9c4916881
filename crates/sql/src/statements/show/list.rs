//! SHOW TABLES, SCHEMAS, DATABASES, FUNCTIONS, VIEWS, INDEXES: queries over the system tables.

use super::describe;
use crate::catalog::{CATALOG, TEMPORARY};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::running::outcome::Begun;
use crate::statements::dml;
use crate::system::described;
use crate::system::{INFORMATION, SYSTEM};
use crate::text::identifier::normalize;
use crate::text::parse::parse;
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Ident, ObjectName, ShowStatementFilter, ShowStatementFilterPosition,
    ShowStatementOptions, Value,
};

/// Runs a SHOW statement; `None` if it is another statement.
pub(crate) async fn list(
    context: &StatementContext,
    tree: &ast::Statement,
    statement: &Statement,
) -> Result<Option<Begun>, SqlError> {
    let query = match tree {
        ast::Statement::ShowColumns { show_options, .. } => {
            return describe::columns(context, show_options, statement)
                .await
                .map(Some);
        }
        ast::Statement::ShowTables { show_options, .. } => {
            let schema = schema(context, show_options)?;
            let columns = match schema.as_str() {
                SYSTEM | INFORMATION => {
                    "table_name FROM information_schema.tables WHERE table_schema"
                }
                _ => {
                    "\"table\" AS table_name, rows, bytes, partitioned_by FROM eris.tables WHERE schema"
                }
            };
            let mut base = format!("SELECT {columns} = {}", literal(&schema));
            // What a name without a schema may mean.
            if show_options.show_in.is_none() && context.variables().temporary.is_some() {
                base += &format!(" OR schema = {}", literal(TEMPORARY));
            }
            filtered(&base, "table_name", position(show_options))
        }
        ast::Statement::ShowViews {
            show_options,
            materialized: false,
            ..
        } => {
            let schema = literal(&schema(context, show_options)?);
            let base = format!(
                "SELECT table_name AS view_name, view_definition FROM information_schema.views \
                 WHERE table_schema = {schema}"
            );
            filtered(&base, "view_name", position(show_options))
        }
        ast::Statement::ShowSchemas { show_options, .. } => filtered(
            "SELECT schema_name FROM information_schema.schemata",
            "schema_name",
            position(show_options),
        ),
        ast::Statement::ShowDatabases { show_options, .. }
        | ast::Statement::ShowCatalogs { show_options, .. } => {
            let base = format!("SELECT {} AS database_name", literal(CATALOG));
            filtered(&base, "database_name", position(show_options))
        }
        ast::Statement::ShowVariable { variable } => match indexes(context, variable, statement)? {
            Some(query) => query,
            None => return Ok(None),
        },
        ast::Statement::ShowFunctions { filter } => filtered(
            "SELECT name AS function_name, kind, usage FROM eris.functions",
            "function_name",
            filter.as_ref(),
        ),
        _ => return Ok(None),
    };
    run(context, &query).await.map(Some)
}

/// `SHOW INDEXES [FROM table]`, which the parser takes for a setting.
fn indexes(
    context: &StatementContext,
    words: &[Ident],
    statement: &Statement,
) -> Result<Option<String>, SqlError> {
    let plain: Vec<String> = words.iter().map(normalize).collect();
    let plain: Vec<&str> = plain.iter().map(String::as_str).collect();
    let condition = match plain.as_slice() {
        ["index" | "indexes"] => format!("schema = {}", literal(&context.current_schema)),
        ["index" | "indexes", "from" | "in", table @ ..] if !table.is_empty() => {
            let name = ObjectName::from(words[words.len() - table.len()..].to_vec());
            let name = context.table(&name, statement)?.name.clone();
            let (schema, name) = (literal(&name.schema), literal(&name.name));
            format!("schema = {schema} AND \"table\" = {name}")
        }
        _ => return Ok(None),
    };
    Ok(Some(format!(
        "SELECT \"table\" AS table_name, name AS index_name, columns, kind, \"unique\" AS is_unique \
         FROM eris.indexes WHERE {condition}"
    )))
}

/// Runs a query that we have written ourselves, in one stream: its rows come in the order in which they are computed,
/// and no memory is needed for a sort. Who is out of memory wants to see this, too.
async fn run(context: &StatementContext, query: &str) -> Result<Begun, SqlError> {
    let statement = Statement::from(query);
    match parse(&statement)? {
        ast::Statement::Query(query) => {
            dml::run_query(&context.in_one_stream(), query, &statement).await
        }
        _ => unreachable!("it is a query"),
    }
}

/// `SELECT * FROM name`.
pub(super) fn everything_of(name: &ObjectName) -> Result<ast::Query, SqlError> {
    match parse(&Statement::from(format!("SELECT * FROM {name}")))? {
        ast::Statement::Query(query) => Ok(*query),
        other => unreachable!("{other} is no query"),
    }
}

/// The schema that is asked for, or the current one.
fn schema(context: &StatementContext, options: &ShowStatementOptions) -> Result<String, SqlError> {
    let name = (options.show_in.as_ref()).and_then(|from| from.parent_name.as_ref());
    let Some(name) = name else {
        return Ok(context.variables().schema.clone());
    };
    let parts: Vec<String> = (name.0.iter())
        .filter_map(|part| part.as_ident().map(normalize))
        .collect();
    let schema = match parts.as_slice() {
        [schema] => schema.clone(),
        [catalog, schema] if catalog == CATALOG => schema.clone(),
        _ => {
            return Err(SqlError::invalid(
                Mistake::UndefinedSchema,
                format!("\"{name}\" is no schema"),
            ));
        }
    };
    described::check_schema(context, &schema)?;
    Ok(schema)
}

fn position(options: &ShowStatementOptions) -> Option<&ShowStatementFilter> {
    options
        .filter_position
        .as_ref()
        .map(|position| match position {
            ShowStatementFilterPosition::Infix(filter)
            | ShowStatementFilterPosition::Suffix(filter) => filter,
        })
}

/// The rows of a query that a filter leaves.
fn filtered(base: &str, name: &str, filter: Option<&ShowStatementFilter>) -> String {
    let condition = match filter {
        None => "true".to_owned(),
        Some(ShowStatementFilter::Like(pattern) | ShowStatementFilter::NoKeyword(pattern)) => {
            format!("{name} LIKE {}", literal(pattern))
        }
        Some(ShowStatementFilter::ILike(pattern)) => format!("{name} ILIKE {}", literal(pattern)),
        Some(ShowStatementFilter::Where(condition)) => condition.to_string(),
    };
    format!("SELECT * FROM ({base}) AS shown WHERE {condition}")
}

/// A text as SQL.
fn literal(text: &str) -> String {
    Value::SingleQuotedString(text.to_owned()).to_string()
}
