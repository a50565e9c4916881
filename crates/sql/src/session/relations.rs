//! What there is, for people who look around and for completion: tables, views, functions. Without planning a query, so
//! that it can be asked at every key.

use crate::catalog::create_statement::{create_statement, create_view_statement, foreign_key};
use crate::catalog::{self, Contents, Table, quoted};
use crate::session::database::Database;
use crate::system::described::{self, Described};
use datafusion::logical_expr::Documentation;

/// A table, view or system table.
#[derive(Clone, Debug)]
pub struct Relation {
    /// The schema in which it is.
    pub schema: String,
    /// Its name there.
    pub name: String,
    /// What it is.
    pub kind: RelationKind,
    /// Its columns in their order.
    pub columns: Vec<RelationColumn>,
    /// By what its rows are found: its key, UNIQUE constraints and indexes, a line each.
    pub indexes: Vec<String>,
    /// Its foreign keys, a line each.
    pub foreign_keys: Vec<String>,
    /// The foreign keys that refer to it, a line each that begins with the table that has it.
    pub referenced_by: Vec<String>,
    /// The statement that makes it anew, without its semicolon; empty for a system table.
    pub definition: String,
}

/// What a relation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationKind {
    /// It has rows of its own.
    Table,
    /// A query with a name.
    View,
    /// Computed when a statement names it.
    System,
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
    /// All tables and views, by schema and name, then the system tables.
    pub fn relations(&self) -> Vec<Relation> {
        let contents = self.context().catalog.contents();
        let users = contents.relations().map(|known| {
            let described = relation(described::describe_relation(known));
            match known {
                catalog::TableOrView::Table(table) => Relation {
                    indexes: indexes(table),
                    foreign_keys: table.foreign_keys.iter().map(foreign_key).collect(),
                    referenced_by: referenced_by(&contents, table),
                    definition: create_statement(table),
                    ..described
                },
                catalog::TableOrView::View(view) => Relation {
                    definition: create_view_statement(view),
                    ..described
                },
            }
        });
        let system = described::system().map(relation);
        users.chain(system).collect()
    }

    /// All schemas, by name.
    pub fn schemas(&self) -> Vec<String> {
        described::schemas(self.context())
    }

    /// All functions, by name.
    pub fn functions(&self) -> Vec<Function> {
        let state = self.context().state();
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
        for (name, _) in crate::plan::files::FUNCTIONS {
            add(name, FunctionKind::Table, None);
        }
        functions.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
        functions
    }
}

/// What a table's rows are found by.
fn indexes(table: &Table) -> Vec<String> {
    let line = |name: &str, kind: &str, columns: &mut dyn Iterator<Item = &str>| {
        let columns: Vec<_> = columns.map(quoted).collect();
        format!("{} {kind} ({})", quoted(name), columns.join(", "))
    };
    let key = table.key.iter().map(|key| {
        let mut columns = key.columns.iter().map(String::as_str);
        line(&key.name, "PRIMARY KEY", &mut columns)
    });
    let uniques = table.uniques.iter().map(|unique| {
        let mut columns = unique.columns.iter().map(String::as_str);
        line(&unique.name, "UNIQUE", &mut columns)
    });
    let others = table.indexes.iter().map(|index| {
        let columns = index.columns.iter();
        let mut columns = columns.map(|column| table.schema.field(*column).name().as_str());
        line(&index.name, index.kind_name(), &mut columns)
    });
    key.chain(uniques).chain(others).collect()
}

fn referenced_by(contents: &Contents, table: &Table) -> Vec<String> {
    let keys = contents.referencing(&table.name);
    keys.map(|(other, key)| format!("{}: {}", other.name.sql(), foreign_key(key)))
        .collect()
}

fn relation(described: Described) -> Relation {
    let columns = described.columns.iter().map(|column| RelationColumn {
        name: column.name.clone(),
        data_type: column.type_name(),
        nullable: column.nullable,
        default: column.default.clone(),
    });
    Relation {
        columns: columns.collect(),
        schema: described.schema,
        name: described.name,
        kind: match described.kind {
            described::RelationKind::Table { .. } => RelationKind::Table,
            described::RelationKind::View { .. } => RelationKind::View,
            described::RelationKind::System => RelationKind::System,
        },
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        definition: String::new(),
    }
}
