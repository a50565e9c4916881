//! The statements that make a table or view anew, from the catalogue: `SHOW CREATE TABLE`, `SHOW CREATE VIEW`.
//!
//! ```text
//! CREATE TABLE sales.item (
//!     id INTEGER NOT NULL,
//!     price DECIMAL(8,2) DEFAULT 9.99,
//!     CONSTRAINT item_price_check CHECK (price >= 0)
//! ) WITH (partition_by = 'id')
//! ```
//!
//! Names are qualified unless they are in `public`, and quoted where they have to be, so that the text means the same
//! in every session whose current schema is `public`.

use crate::catalog::{ForeignKey, Table, TableIndex, View, quoted};
use eris_exact::types::sql_name;
use eris_home::Partitioning;

/// The CREATE TABLE statement of a table, and those of its indexes; without a semicolon at the end.
pub(crate) fn create_statement(table: &Table) -> String {
    create_statement_with(table, |_| true)
}

/// The same with only some of its foreign keys.
pub(crate) fn create_statement_with(table: &Table, has: impl Fn(&ForeignKey) -> bool) -> String {
    let mut lines = Vec::new();
    for (field, rules) in table.schema.fields().iter().zip(&table.rules) {
        let name = quoted(field.name());
        let mut line = format!(
            "{name} {}",
            sql_name(field.data_type(), rules.max_characters)
        );
        if !field.is_nullable() {
            line.push_str(" NOT NULL");
        }
        if let Some(default) = &rules.default {
            line.push_str(&format!(" DEFAULT {default}"));
        }
        lines.push(line);
    }
    if let Some(key) = &table.key {
        let columns: Vec<_> = key.columns.iter().map(|column| quoted(column)).collect();
        lines.push(format!(
            "CONSTRAINT {} PRIMARY KEY ({})",
            quoted(&key.name),
            columns.join(", ")
        ));
    }
    for unique in &table.uniques {
        let columns: Vec<_> = unique.columns.iter().map(|column| quoted(column)).collect();
        lines.push(format!(
            "CONSTRAINT {} UNIQUE ({})",
            quoted(&unique.name),
            columns.join(", ")
        ));
    }
    let foreign_keys = table.foreign_keys.iter().filter(|key| has(key));
    lines.extend(foreign_keys.map(|key| format!("CONSTRAINT {}", foreign_key(key))));
    for check in &table.checks {
        lines.push(format!(
            "CONSTRAINT {} CHECK ({})",
            quoted(&check.name),
            check.expr
        ));
    }
    let options = match table.partitioning {
        Partitioning::Size => String::new(),
        Partitioning::Range(column) => {
            let column = table.schema.field(column.index()).name();
            format!(" WITH (partition_by = '{}')", column.replace('\'', "''"))
        }
    };
    let order: Vec<_> = table
        .row_order
        .iter()
        .map(|column| quoted(column))
        .collect();
    let order = match order.is_empty() {
        true => String::new(),
        false => format!(" ORDER BY ({})", order.join(", ")),
    };
    let indexes = table
        .indexes
        .iter()
        .map(|index| create_index_statement(table, index));
    let indexes: String = indexes.map(|index| format!(";\n{index}")).collect();
    format!(
        "CREATE TABLE {} (\n    {}\n){options}{order}{indexes}",
        table.name.sql(),
        lines.join(",\n    ")
    )
}

/// A foreign key as what follows CONSTRAINT.
pub(crate) fn foreign_key(key: &ForeignKey) -> String {
    let list = |columns: &[String]| {
        let columns: Vec<_> = columns.iter().map(|column| quoted(column)).collect();
        columns.join(", ")
    };
    format!(
        "{} FOREIGN KEY ({}) REFERENCES {} ({})",
        quoted(&key.name),
        list(&key.columns),
        key.table.sql(),
        list(&key.referenced)
    )
}

/// The CREATE VIEW statement of a view, without a semicolon.
pub(crate) fn create_view_statement(view: &View) -> String {
    let columns: Vec<String> = match view.named {
        true => view.column_names().map(quoted).collect(),
        false => Vec::new(),
    };
    let columns = match columns.is_empty() {
        true => String::new(),
        false => format!(" ({})", columns.join(", ")),
    };
    format!("CREATE VIEW {}{columns} AS {}", view.name.sql(), view.text)
}

/// The CREATE INDEX statement of an index, without a semicolon.
pub(crate) fn create_index_statement(table: &Table, index: &TableIndex) -> String {
    let columns = index
        .columns
        .iter()
        .map(|column| quoted(table.schema.field(*column).name()));
    format!(
        "CREATE INDEX {} ON {} USING {} ({})",
        quoted(&index.name),
        table.name.sql(),
        index.kind_name(),
        columns.collect::<Vec<_>>().join(", ")
    )
}
