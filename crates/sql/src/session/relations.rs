//! What there is, for people who look around and for completion: tables, views, functions. Without planning a query, so
//! that it can be asked at every key.

use crate::catalog::create_statement::{create_statement, create_view_statement, foreign_key};
use crate::catalog::{self, Contents, RelationName, Table, quoted, script};
use crate::error::SqlError;
use crate::session::Session;
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
    /// COMMENT ON TABLE or VIEW.
    pub comment: Option<String>,
    /// Its columns in their order.
    pub columns: Vec<RelationColumn>,
    /// By what its rows are found: its key, UNIQUE constraints and indexes, a line each.
    pub indexes: Vec<String>,
    /// Its CHECK constraints, a line each.
    pub checks: Vec<String>,
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
    /// COMMENT ON COLUMN.
    pub comment: Option<String>,
}

/// Whether a table or view is wanted, by its schema and name.
pub type IsWanted<'a> = &'a dyn Fn(&str, &str) -> bool;

/// A part of the script that makes a database anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptPart {
    /// Statements, without the last semicolon.
    Statement(String),
    /// The rows of a table, as many INSERTs as one likes.
    Rows {
        /// The table's name, as a script writes it.
        table: String,
        /// The same with its schema: no temporary table hides it.
        full: String,
        /// The names of the columns to which values are given.
        columns: Vec<String>,
    },
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

impl Session {
    /// All tables and views that it sees, by schema and name, then the system tables.
    pub fn relations(&self) -> Vec<Relation> {
        let context = self.context();
        let contents = context.catalog.contents();
        let users = contents.relations();
        let users = users.filter(|known| context.sees(known.name()));
        let users = users.map(|known| {
            let described = relation(described::describe_relation(known));
            match known {
                catalog::TableOrView::Table(table) => Relation {
                    indexes: indexes(table),
                    checks: checks(table),
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

    /// The statements that make the database anew, in the order in which they can run: all of them, or those of the
    /// tables and views that are `wanted`, by schema and name. Temporary ones are left out.
    ///
    /// # Errors
    /// A table whose rows no INSERT can give.
    pub fn script(&self, wanted: Option<IsWanted<'_>>) -> Result<Vec<ScriptPart>, SqlError> {
        let context = self.context();
        let contents = context.catalog.contents();
        let is_wanted = |name: &RelationName| match wanted {
            Some(wanted) => wanted(&name.schema, &name.name),
            None => true,
        };
        let mut parts = Vec::new();
        if wanted.is_none() {
            parts.extend(
                script::before_tables(&contents)
                    .into_iter()
                    .map(ScriptPart::Statement),
            );
        }
        let mut tables = script::tables(&contents, false);
        tables.retain(|(table, _)| is_wanted(&table.name));
        for (table, statement) in &tables {
            let mut rules = table
                .rules
                .iter()
                .filter_map(|rules| rules.identity.as_ref());
            if rules.any(|identity| identity.always) {
                let message = format!(
                    "a script of INSERTs for table \"{}\", which numbers its rows ALWAYS",
                    table.name
                );
                return Err(SqlError::not_supported(message)
                    .with_hint(Some("EXPORT DATABASE keeps the numbers")));
            }
            parts.push(ScriptPart::Statement(statement.clone()));
            let columns = table.column_names().zip(&table.rules);
            let columns = columns.filter(|(_, rules)| rules.generated.is_none());
            parts.push(ScriptPart::Rows {
                table: table.name.sql(),
                full: format!(
                    "{}.{}",
                    quoted(&table.name.schema),
                    quoted(&table.name.name)
                ),
                columns: columns.map(|(name, _)| quoted(name)).collect(),
            });
        }
        let late = script::late_keys(&tables, false);
        let views = script::views(&contents).into_iter();
        let views = views.filter(|(view, _)| is_wanted(&view.name));
        let last = late
            .into_iter()
            .chain(views.map(|(_, statement)| statement));
        parts.extend(last.map(ScriptPart::Statement));
        if wanted.is_none() {
            parts.extend(script::macros(&contents).map(ScriptPart::Statement));
        }
        Ok(parts)
    }

    /// All schemas, by name.
    pub fn schemas(&self) -> Vec<String> {
        described::schemas(&self.context())
    }
}

impl Database {
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
        for name in crate::plan::files::ABOUT_FILES {
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
    let uniques = table.uniques.iter().filter(|unique| unique.is_constraint());
    let uniques = uniques.map(|unique| {
        let mut columns = unique.columns.iter().map(String::as_str);
        line(&unique.name, "UNIQUE", &mut columns)
    });
    let others = table.indexes.iter().map(|index| {
        let columns = index.columns.iter();
        let mut columns = columns.map(|column| table.schema.field(*column).name().as_str());
        let kind = match table.has_unique_index(&index.name) {
            true => format!("UNIQUE INDEX {}", index.kind_name()),
            false => index.kind_name().to_owned(),
        };
        line(&index.name, &kind, &mut columns)
    });
    key.chain(uniques).chain(others).collect()
}

fn checks(table: &Table) -> Vec<String> {
    let lines = table.checks.iter();
    lines
        .map(|check| format!("{} CHECK ({})", quoted(&check.name), check.expr))
        .collect()
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
        comment: column.comment.clone(),
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
        comment: described.comment,
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        referenced_by: Vec::new(),
        definition: String::new(),
    }
}
