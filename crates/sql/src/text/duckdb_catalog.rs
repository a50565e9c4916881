//! How DuckDB's users look at what exists: `duckdb_tables()`, `PRAGMA table_info('t')`, as queries of system tables.
//!
//! ```text
//! FROM duckdb_tables() AS t       FROM (SELECT 'eris' AS database_name, … FROM eris.tables …) AS t
//! PRAGMA table_info('s.t')        SELECT * FROM pragma_table_info('s.t')
//! ```
//!
//! They have the columns that mean something here, by DuckDB's names. A column that is left out is an error, not NULL.

use crate::text::identifier::last_name;
use crate::text::own::query_of;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, ObjectName, Query, Statement, TableAlias,
    TableFactor, Value, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use eris_syntax::{ErisDialect, walk_mut};
use std::ops::ControlFlow;

/// The functions, and the queries that they stand for. `$name` is their argument as a table, `$table` its name, and
/// `$schema` the schemas that it may be in.
const FUNCTIONS: [(&str, &str); 11] = [
    (
        "duckdb_tables",
        "SELECT 'eris' AS database_name, t.schema AS schema_name, t.\"table\" AS table_name, t.comment,
           FALSE AS internal, t.schema = 'temp' AS temporary,
           EXISTS (SELECT 1 FROM information_schema.table_constraints k WHERE k.table_schema = t.schema
             AND k.table_name = t.\"table\" AND k.constraint_type = 'PRIMARY KEY') AS has_primary_key,
           t.rows AS estimated_size, t.columns AS column_count,
           (SELECT count(*) FROM eris.indexes i WHERE i.schema = t.schema AND i.\"table\" = t.\"table\") AS index_count
         FROM eris.tables t",
    ),
    (
        "duckdb_columns",
        "SELECT 'eris' AS database_name, c.table_schema AS schema_name, c.table_name, c.column_name,
           CAST(c.ordinal_position AS INTEGER) AS column_index, e.comment,
           c.table_schema IN ('eris', 'information_schema') AS internal,
           CASE WHEN c.is_generated = 'NEVER' THEN c.column_default END AS column_default,
           c.is_nullable = 'YES' AS is_nullable, coalesce(e.type, c.data_type) AS data_type,
           c.character_maximum_length, c.numeric_precision, c.numeric_precision_radix, c.numeric_scale,
           c.is_generated <> 'NEVER' AS is_generated
         FROM information_schema.columns c LEFT JOIN eris.columns e
           ON e.schema = c.table_schema AND e.\"table\" = c.table_name AND e.\"column\" = c.column_name",
    ),
    (
        "duckdb_views",
        "SELECT 'eris' AS database_name, v.schema AS schema_name, v.\"view\" AS view_name, v.comment,
           FALSE AS internal, v.schema = 'temp' AS temporary,
           (SELECT count(*) FROM information_schema.columns c WHERE c.table_schema = v.schema
             AND c.table_name = v.\"view\") AS column_count
         FROM eris.views v",
    ),
    (
        "duckdb_schemas",
        "SELECT 'eris' AS database_name, s.schema AS schema_name, s.comment,
           s.schema IN ('eris', 'information_schema') AS internal
         FROM eris.schemas s",
    ),
    (
        "duckdb_indexes",
        "SELECT 'eris' AS database_name, i.schema AS schema_name, i.name AS index_name, i.\"table\" AS table_name,
           i.\"unique\" AS is_unique, FALSE AS is_primary, '[' || i.columns || ']' AS expressions
         FROM eris.indexes i",
    ),
    (
        "duckdb_sequences",
        "SELECT 'eris' AS database_name, s.schema AS schema_name, s.sequence AS sequence_name,
           s.schema = 'temp' AS temporary, s.start AS start_value, s.min AS min_value, s.max AS max_value,
           s.increment AS increment_by, s.cycle, s.last_value
         FROM eris.sequences s",
    ),
    (
        "duckdb_settings",
        "SELECT s.name, s.value, s.description, s.type AS input_type, s.scope FROM eris.settings s",
    ),
    (
        "duckdb_functions",
        "SELECT 'eris' AS database_name, CAST(NULL AS VARCHAR) AS schema_name, f.name AS function_name,
           f.kind AS function_type, CAST(NULL AS VARCHAR) AS comment, CAST(NULL AS VARCHAR) AS macro_definition,
           TRUE AS internal
         FROM eris.functions f
         UNION ALL
         SELECT 'eris', m.schema, m.macro, CASE m.kind WHEN 'table' THEN 'table_macro' ELSE 'macro' END, m.comment,
           m.definition, FALSE
         FROM eris.macros m",
    ),
    (
        "duckdb_constraints",
        "SELECT 'eris' AS database_name, k.table_schema AS schema_name, k.table_name,
           CASE WHEN c.column_name IS NULL THEN k.constraint_type ELSE 'NOT NULL' END AS constraint_type,
           k.constraint_name
         FROM information_schema.table_constraints k LEFT JOIN information_schema.columns c
           ON c.table_schema = k.table_schema AND c.table_name = k.table_name AND c.is_nullable = 'NO'
             AND k.constraint_type = 'CHECK'
             AND k.constraint_name = c.table_name || '_' || c.column_name || '_not_null'",
    ),
    (
        "duckdb_databases",
        "SELECT 'eris' AS database_name, CAST(NULL AS VARCHAR) AS path, FALSE AS internal, 'eris' AS type,
           FALSE AS readonly",
    ),
    (
        "pragma_table_info",
        "SELECT CAST(c.ordinal_position - 1 AS INTEGER) AS cid, c.column_name AS name,
           coalesce(e.type, c.data_type) AS type, c.is_nullable = 'NO' AS \"notnull\",
           c.column_default AS dflt_value,
           EXISTS (SELECT 1 FROM information_schema.table_constraints k JOIN information_schema.key_column_usage u
             ON k.table_schema = u.table_schema AND k.constraint_name = u.constraint_name
             WHERE k.constraint_type = 'PRIMARY KEY' AND u.table_schema = c.table_schema
             AND u.table_name = c.table_name AND u.column_name = c.column_name) AS pk
         FROM information_schema.columns c LEFT JOIN eris.columns e
           ON e.schema = c.table_schema AND e.\"table\" = c.table_name AND e.\"column\" = c.column_name
           LEFT JOIN (SELECT 1 FROM $name WHERE FALSE) there ON TRUE
         WHERE c.table_name = $table AND c.table_schema IN ($schema)
         ORDER BY cid",
    ),
];

/// Statements without an argument, and the queries that they stand for.
const STATEMENTS: [(&str, &str); 4] = [
    (
        "show_tables",
        "SELECT table_name AS name FROM information_schema.tables WHERE table_schema IN (current_schema(), 'temp')
         ORDER BY name",
    ),
    (
        "database_list",
        "SELECT 0 AS seq, database_name AS name, path AS file FROM duckdb_databases()",
    ),
    ("version", "SELECT version() AS library_version"),
    (
        "show_all_tables",
        "SELECT database_name AS \"database\", schema_name AS \"schema\", table_name AS name,
           array_agg(column_name ORDER BY column_index) AS column_names,
           array_agg(data_type ORDER BY column_index) AS column_types, schema_name = 'temp' AS temporary
         FROM duckdb_columns() WHERE NOT internal
         GROUP BY database_name, schema_name, table_name ORDER BY schema_name, table_name",
    ),
];

/// The query that a statement stands for, if it is one of these.
pub(crate) fn as_query(statement: Statement) -> Statement {
    let text = match &statement {
        Statement::Pragma {
            name,
            value,
            is_eq: false,
        } => match (last_name(name).as_deref(), value) {
            (Some("table_info"), Some(value)) => match &value.value {
                Value::SingleQuotedString(table) => Some(of_table(table)),
                _ => None,
            },
            (Some(name), None) => known(&STATEMENTS, name).map(str::to_owned),
            _ => None,
        },
        Statement::ShowVariable { variable } if is_all_tables(variable) => {
            known(&STATEMENTS, "show_all_tables").map(str::to_owned)
        }
        _ => None,
    };
    match text {
        Some(text) => Statement::Query(Box::new(query_of(&text))),
        None => statement,
    }
}

fn is_all_tables(words: &[Ident]) -> bool {
    let words: Vec<_> = words.iter().map(|word| word.value.to_lowercase()).collect();
    words == ["all", "tables"]
}

/// Writes these functions out anywhere in a query.
pub(super) fn write_out(query: &mut Query) {
    // The visitor never breaks off.
    let _ = walk_mut(query, &mut Functions);
}

struct Functions;

impl VisitorMut for Functions {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table {
            name, args, alias, ..
        } = table
        else {
            return ControlFlow::Continue(());
        };
        let Some(function) = last_name(name) else {
            return ControlFlow::Continue(());
        };
        let args = match args {
            Some(args) => &args.args[..],
            None if is_view(name) => &[],
            None => return ControlFlow::Continue(()),
        };
        let text = match (known(&FUNCTIONS, &function), args) {
            (Some(text), []) if !text.contains("$table") => text.to_owned(),
            (Some(text), [argument]) if text.contains("$table") => match string(argument) {
                Some(name) => filled(text, name),
                None => return ControlFlow::Continue(()),
            },
            _ => return ControlFlow::Continue(()),
        };
        let alias = alias.take().unwrap_or_else(|| TableAlias {
            explicit: true,
            name: Ident::with_quote('"', function),
            columns: Vec::new(),
            at: None,
        });
        *table = TableFactor::Derived {
            lateral: false,
            subquery: Box::new(query_of(&text)),
            alias: Some(alias),
            sample: None,
        };
        ControlFlow::Continue(())
    }
}

/// Whether a table's name is that of a view of DuckDB's, which are called as its functions.
pub(super) fn is_view(name: &ObjectName) -> bool {
    const PREFIX: &str = "duckdb_";
    let [part] = &name.0[..] else { return false };
    let name = part.as_ident().map(|name| name.value.as_bytes());
    let start = name.and_then(|name| name.get(..PREFIX.len()));
    start.is_some_and(|start| start.eq_ignore_ascii_case(PREFIX.as_bytes()))
}

fn known<'a>(queries: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    let found = queries.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

fn string(argument: &FunctionArg) -> Option<&str> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => match &value.value {
            Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn of_table(table: &str) -> String {
    format!("SELECT * FROM pragma_table_info({})", quoted(table))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The query for a table. What is no name is one that does not exist.
fn filled(text: &str, table: &str) -> String {
    let parser = Parser::new(&ErisDialect).try_with_sql(table);
    let name = parser.and_then(|mut parser| parser.parse_object_name(false));
    let name = name.unwrap_or_else(|_| ObjectName::from(vec![Ident::with_quote('"', table)]));
    let part = |part: &ObjectName| last_name(part).unwrap_or_default();
    let schema = match name.0.split_last() {
        Some((_, before)) if !before.is_empty() => quoted(&part(&ObjectName(before.to_vec()))),
        _ => "current_schema(), 'temp'".to_owned(),
    };
    text.replace("$name", &name.to_string())
        .replace("$table", &quoted(&part(&name)))
        .replace("$schema", &schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_a_query() {
        for (name, text) in FUNCTIONS.iter().chain(&STATEMENTS) {
            let query = query_of(&filled(text, "s.t"));
            assert!(!query.to_string().contains('$'), "{name}");
        }
    }
}
