//! What there is, for people who look around and for completion: tables, views, functions. Without planning a query, so that
//! it can be asked at every key.

use crate::catalog::{SCHEMA, Table};
use crate::database::Database;
use crate::types::sql_name;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Documentation;
use eris_engine::Partitioning;
use std::fmt::Write;

/// A table or view.
#[derive(Clone, Debug)]
pub struct Relation {
    /// The schema in which it is.
    pub schema: String,
    /// Its name there.
    pub name: String,
    /// Which of the two.
    pub kind: RelationKind,
    /// Its columns in their order.
    pub columns: Vec<RelationColumn>,
    /// The statement that makes it anew, without its semicolon.
    pub definition: String,
}

/// A table or a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationKind {
    /// It has rows of its own.
    Table,
    /// A query with a name.
    View,
}

/// A column of a table or view.
#[derive(Clone, Debug)]
pub struct RelationColumn {
    /// Its name.
    pub name: String,
    /// Its type, as SQL writes it.
    pub data_type: String,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// The expression of its default.
    pub default: Option<String>,
}

/// A function that queries can call.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What it is called on.
    pub kind: FunctionKind,
    /// How it is called, as an example.
    pub syntax: Option<String>,
    /// What it does.
    pub description: Option<String>,
}

/// What a function is called on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FunctionKind {
    /// Each row.
    Scalar,
    /// Groups of rows.
    Aggregate,
    /// A row among its neighbours.
    Window,
    /// It stands in FROM.
    Table,
}

impl Database {
    /// All tables and views, by schema and name.
    pub fn relations(&self) -> Vec<Relation> {
        let tables = self.core().catalog.tables();
        tables.iter().map(|table| relation(table)).collect()
    }

    /// All schemas, by name.
    pub fn schemas(&self) -> Vec<String> {
        vec![SCHEMA.to_owned()]
    }

    /// All functions, by name.
    pub fn functions(&self) -> Vec<Function> {
        let state = self.core().state();
        let mut functions = Vec::new();
        let mut add = |name: &str, kind, documentation: Option<&Documentation>| {
            let text = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            functions.push(Function {
                name: name.to_owned(),
                kind,
                syntax: documentation.map(|known| text(&known.syntax_example)),
                description: documentation.map(|known| text(&known.description)),
            });
        };
        for (name, function) in state.scalar_functions() {
            add(name, FunctionKind::Scalar, function.documentation());
        }
        for (name, function) in state.aggregate_functions() {
            add(name, FunctionKind::Aggregate, function.documentation());
        }
        for (name, function) in state.window_functions() {
            add(name, FunctionKind::Window, function.documentation());
        }
        for name in state.table_functions().keys() {
            add(name, FunctionKind::Table, None);
        }
        functions.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
        functions
    }
}

fn relation(table: &Table) -> Relation {
    let columns = table.schema.fields().iter().zip(&table.rules);
    let columns = columns.map(|(field, rules)| RelationColumn {
        name: field.name().clone(),
        data_type: sql_name(field.data_type(), rules.max_characters),
        nullable: field.is_nullable(),
        default: rules.default.as_ref().map(literal),
    });
    let columns: Vec<_> = columns.collect();
    Relation {
        schema: SCHEMA.to_owned(),
        name: table.name.clone(),
        kind: RelationKind::Table,
        definition: definition(table, &columns),
        columns,
    }
}

/// The CREATE TABLE statement.
fn definition(table: &Table, columns: &[RelationColumn]) -> String {
    let mut text = format!("CREATE TABLE {} (", quoted(&table.name));
    for (position, column) in columns.iter().enumerate() {
        let comma = if position == 0 { "" } else { "," };
        let _ = write!(
            text,
            "{comma}\n    {} {}",
            quoted(&column.name),
            column.data_type
        );
        if !column.nullable {
            text.push_str(" NOT NULL");
        }
        if let Some(default) = &column.default {
            let _ = write!(text, " DEFAULT {default}");
        }
    }
    text.push_str("\n)");
    if let Partitioning::Range(column) = table.partitioning {
        let name = table.schema.field(column.index()).name();
        let _ = write!(
            text,
            " WITH (partition_by = '{}')",
            name.replace('\'', "''")
        );
    }
    text
}

/// A constant as SQL writes it.
fn literal(value: &ScalarValue) -> String {
    let text = value
        .to_array()
        .and_then(|array| Ok(array_value_to_string(&array, 0)?));
    let text = text.unwrap_or_else(|_| value.to_string());
    match value {
        null if null.is_null() => "NULL".to_owned(),
        ScalarValue::Boolean(_) => text,
        number if number.data_type().is_numeric() => text,
        _ => format!("'{}'", text.replace('\'', "''")),
    }
}

/// A name as it has to be written: between quotes unless it is made of small letters, digits and underscores.
fn quoted(name: &str) -> String {
    let mut chars = name.chars();
    let plain = |c: char| c == '_' || c.is_ascii_lowercase();
    if chars.next().is_some_and(plain) && chars.all(|c| plain(c) || c.is_ascii_digit()) {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}
