//! The catalogue as system tables tell it.

use crate::catalog::{SCHEMA, Table};
use crate::core::Core;
use crate::system::{INFORMATION, SYSTEM, relations};
use crate::types::sql_name;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use eris_engine::Partitioning;
use eris_types::ObjectId;

/// A relation.
pub(crate) struct Described {
    pub schema: String,
    pub name: String,
    pub kind: RelationKind,
    pub columns: Vec<Column>,
}

/// What a relation is.
pub(crate) enum RelationKind {
    Table {
        object: ObjectId,
        partitioned_by: Option<String>,
    },
    /// A system table.
    System,
}

/// A column.
pub(crate) struct Column {
    pub name: String,
    pub data_type: DataType,
    pub max_characters: Option<u64>,
    pub nullable: bool,
    /// As SQL.
    pub default: Option<String>,
}

impl Column {
    /// SQL's name of its type.
    pub fn type_name(&self) -> String {
        sql_name(&self.data_type, self.max_characters)
    }
}

/// The names of all schemas, in order.
pub(crate) fn schemas(_: &Core) -> Vec<String> {
    let mut names = vec![SYSTEM.to_owned(), INFORMATION.to_owned(), SCHEMA.to_owned()];
    names.sort();
    names
}

/// Users' tables, by schema and name.
pub(crate) fn tables(core: &Core) -> Vec<Described> {
    let tables = core.catalog.tables();
    tables.iter().map(|table| describe(table)).collect()
}

/// All relations, by schema and name.
pub(crate) fn all(core: &Core) -> Vec<Described> {
    let mut all = tables(core);
    all.extend(system());
    all.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
    all
}

/// The system tables.
pub(crate) fn system() -> Vec<Described> {
    let mut all = Vec::new();
    for schema in [SYSTEM, INFORMATION] {
        all.extend(relations(schema).map(|relation| {
            let types = relation.schema();
            Described {
                schema: schema.to_owned(),
                name: relation.name.to_owned(),
                kind: RelationKind::System,
                columns: columns(&types, |_| (None, None)),
            }
        }));
    }
    all
}

/// A table.
pub(crate) fn describe(table: &Table) -> Described {
    let partitioned_by = match table.partitioning {
        Partitioning::Size => None,
        Partitioning::Range(column) => Some(table.schema.field(column.index()).name().clone()),
    };
    Described {
        schema: SCHEMA.to_owned(),
        name: table.name.clone(),
        kind: RelationKind::Table {
            object: table.object,
            partitioned_by,
        },
        columns: columns(&table.schema, |position| {
            let rules = &table.rules[position];
            let default = rules.default.as_ref().map(|value| value.to_string());
            (rules.max_characters, default)
        }),
    }
}

fn columns(
    schema: &SchemaRef,
    rules: impl Fn(usize) -> (Option<u64>, Option<String>),
) -> Vec<Column> {
    let fields = schema.fields().iter().enumerate();
    fields
        .map(|(position, field)| {
            let (max_characters, default) = rules(position);
            Column {
                name: field.name().clone(),
                data_type: field.data_type().clone(),
                max_characters,
                nullable: field.is_nullable(),
                default,
            }
        })
        .collect()
}
