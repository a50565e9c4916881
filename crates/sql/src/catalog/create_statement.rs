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

use crate::catalog::{
    Course, ForeignKey, Identity, Macro, RelationName, SCHEMA, Sequence, Table, TableIndex, View,
    quoted,
};
use datafusion::arrow::datatypes::DataType;
use eris_exact::types::sql_name;
use eris_home::Partitioning;

/// The CREATE TABLE statement of a table, and those of its indexes; without a semicolon at the end.
pub(crate) fn create_statement(table: &Table) -> String {
    create_statement_with(table, |_| true, false)
}

/// The same with only some of its foreign keys. With `goes_on`, sequences of columns begin where these are now.
pub(crate) fn create_statement_with(
    table: &Table,
    has: impl Fn(&ForeignKey) -> bool,
    goes_on: bool,
) -> String {
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
        if let Some(identity) = &rules.identity {
            line.push_str(&identity_option(identity, field.data_type(), goes_on));
        } else if let Some(generated) = &rules.generated {
            line.push_str(&format!(" {generated}"));
        } else if let Some(default) = &rules.default {
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
    for unique in table.uniques.iter().filter(|unique| unique.is_constraint()) {
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
    let comments = comments_of_table(table);
    let more: String = indexes
        .chain(comments)
        .map(|more| format!(";\n{more}"))
        .collect();
    format!(
        "CREATE TABLE {} (\n    {}\n){options}{order}{more}",
        table.name.sql(),
        lines.join(",\n    ")
    )
}

/// GENERATED … AS IDENTITY, with what is not understood.
fn identity_option(identity: &Identity, data_type: &DataType, goes_on: bool) -> String {
    let sequence = &identity.sequence;
    let Course {
        start,
        increment,
        least,
        most,
        cycle,
    } = sequence.course;
    let top = match data_type {
        DataType::Int16 => i64::from(i16::MAX),
        DataType::Int32 => i64::from(i32::MAX),
        _ => i64::MAX,
    };
    let start = if goes_on {
        sequence.goes_on_with()
    } else {
        start
    };
    let options = match (increment, least, most, cycle) {
        (1, 1, most, false) if most == top && start == 1 => String::new(),
        (1, 1, most, false) if most == top => format!(" (START {start})"),
        _ => format!(" ({})", sequence.course.sql(start)),
    };
    let kind = if identity.always {
        "ALWAYS"
    } else {
        "BY DEFAULT"
    };
    format!(" GENERATED {kind} AS IDENTITY{options}")
}

/// The CREATE MACRO statement of a macro, without a semicolon.
pub(crate) fn create_macro_statement(named: &Macro) -> String {
    let is_qualified = named.definition.schema != SCHEMA;
    let forms = named.definition.forms.iter();
    let forms: Vec<_> = forms.map(|form| form.sql(is_qualified)).collect();
    format!("CREATE MACRO {}{}", named.name.sql(), forms.join(", "))
}

/// The CREATE SEQUENCE statement of a sequence that goes on where this one is now, without a semicolon.
pub(crate) fn create_sequence_statement(sequence: &Sequence) -> String {
    let course = sequence.course.sql(sequence.goes_on_with());
    format!("CREATE SEQUENCE {} {course}", sequence.name.sql())
}

/// The COMMENT ON statements of a table and its columns.
fn comments_of_table(table: &Table) -> Vec<String> {
    let columns = table.column_names().zip(&table.rules);
    let columns = columns.map(|(column, rules)| (column, rules.comment.as_deref()));
    comments("TABLE", &table.name, table.comment.as_deref(), columns)
}

/// The COMMENT ON statements of a relation and its columns.
fn comments<'a>(
    kind: &str,
    name: &RelationName,
    comment: Option<&str>,
    columns: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> Vec<String> {
    let own = comment.map(|comment| comment_statement(kind, &name.sql(), comment));
    let columns = columns.filter_map(|(column, comment)| {
        let column = format!("{}.{}", name.sql(), quoted(column));
        Some(comment_statement("COLUMN", &column, comment?))
    });
    own.into_iter().chain(columns).collect()
}

/// A COMMENT ON statement, without a semicolon.
pub(crate) fn comment_statement(kind: &str, name: &str, comment: &str) -> String {
    let comment = comment.replace('\'', "''");
    format!("COMMENT ON {kind} {name} IS '{comment}'")
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
    let of_columns = view.column_comments.iter().map(Option::as_deref);
    let of_columns = view.column_names().zip(of_columns);
    let comments = comments("VIEW", &view.name, view.comment.as_deref(), of_columns);
    let comments: String = comments.iter().map(|more| format!(";\n{more}")).collect();
    format!(
        "CREATE VIEW {}{columns} AS {}{comments}",
        view.name.sql(),
        view.text
    )
}

/// The CREATE INDEX statement of an index, without a semicolon.
pub(crate) fn create_index_statement(table: &Table, index: &TableIndex) -> String {
    let columns = index
        .columns
        .iter()
        .map(|column| quoted(table.schema.field(*column).name()));
    format!(
        "CREATE {}INDEX {} ON {} USING {} ({})",
        if table.has_unique_index(&index.name) {
            "UNIQUE "
        } else {
            ""
        },
        quoted(&index.name),
        table.name.sql(),
        index.kind_name(),
        columns.collect::<Vec<_>>().join(", ")
    )
}
