//! The catalogue as system tables tell it.

use crate::catalog::{ColumnRules, TEMPORARY, Table, TableOrView, View};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::system::{INFORMATION, SYSTEM, relations};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use eris_exact::types::sql_name;
use eris_home::Partitioning;
use eris_types::ObjectId;
use eris_types::most_similar;

/// A relation.
pub(crate) struct Described {
    pub schema: String,
    pub name: String,
    pub kind: RelationKind,
    pub columns: Vec<DescribedColumn>,
    pub comment: Option<String>,
}

/// What a relation is.
pub(crate) enum RelationKind {
    Table {
        object: ObjectId,
        partitioned_by: Option<String>,
        /// CHECK constraints: name and condition.
        checks: Vec<(String, String)>,
        /// The name of the PRIMARY KEY.
        key: Option<String>,
        /// The names of foreign keys.
        foreign_keys: Vec<String>,
        uniques: Vec<DescribedUnique>,
    },
    /// A view, with its query.
    View { definition: String },
    /// A system table.
    System,
}

/// What is kept unique.
pub(crate) struct DescribedUnique {
    pub name: String,
    /// The data object of its keys.
    pub keys: ObjectId,
    /// Whether it is a constraint; else it is a UNIQUE index.
    pub is_constraint: bool,
}

/// A column.
pub(crate) struct DescribedColumn {
    pub name: String,
    pub data_type: DataType,
    pub max_characters: Option<u64>,
    pub nullable: bool,
    /// As SQL; or how it is generated.
    pub default: Option<String>,
    pub comment: Option<String>,
}

impl DescribedColumn {
    /// SQL's name of its type.
    pub fn type_name(&self) -> String {
        sql_name(&self.data_type, self.max_characters)
    }
}

/// The names of all schemas, in order.
pub(crate) fn schemas(context: &StatementContext) -> Vec<String> {
    let contents = context.catalog.contents();
    let users = contents.schema_names().map(str::to_owned);
    let own = context.variables().temporary.iter();
    let own = own.filter(|schema| contents.relations_in(schema).next().is_some());
    let mut names: Vec<String> = users
        .chain(own.map(|_| TEMPORARY.to_owned()))
        .chain([SYSTEM, INFORMATION].map(str::to_owned))
        .collect();
    names.sort();
    names
}

/// Rejects names of schemas that do not exist.
pub(crate) fn check_schema(context: &StatementContext, name: &str) -> Result<(), SqlError> {
    let schemas = schemas(context);
    if schemas.iter().any(|schema| schema == name) {
        return Ok(());
    }
    let similar = most_similar(name, schemas.iter().map(String::as_str));
    let hint = similar.map_or_else(
        || "SHOW SCHEMAS lists all schemas".to_owned(),
        |similar| format!("did you mean \"{similar}\"?"),
    );
    Err(SqlError::invalid(
        Mistake::UndefinedSchema,
        format!("schema \"{name}\" does not exist"),
    )
    .with_hint(Some(hint)))
}

/// Users' tables, by schema and name.
pub(crate) fn tables(context: &StatementContext) -> Vec<Described> {
    let contents = context.catalog.contents();
    let tables = contents.tables();
    let tables = tables.filter(|table| context.sees(&table.name));
    tables.map(|table| describe_table(table)).collect()
}

/// All relations, by schema and name.
pub(crate) fn all(context: &StatementContext) -> Vec<Described> {
    let contents = context.catalog.contents();
    let users = contents.relations();
    let users = users.filter(|relation| context.sees(relation.name()));
    let users = users.map(describe_relation);
    let mut all: Vec<Described> = users.chain(system()).collect();
    all.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
    all
}

/// The system tables.
pub(crate) fn system() -> impl Iterator<Item = Described> {
    let schemas = [SYSTEM, INFORMATION].into_iter();
    schemas.flat_map(|schema| {
        relations(schema).map(move |relation| Described {
            schema: schema.to_owned(),
            name: relation.name.to_owned(),
            kind: RelationKind::System,
            columns: columns(&relation.schema(), |_| &NO_RULES, |_| None),
            comment: None,
        })
    })
}

/// A table or view.
pub(crate) fn describe_relation(relation: &TableOrView) -> Described {
    match relation {
        TableOrView::Table(table) => describe_table(table),
        TableOrView::View(view) => describe_view(view),
    }
}

fn describe_table(table: &Table) -> Described {
    let partitioned_by = match table.partitioning {
        Partitioning::Size => None,
        Partitioning::Range(column) => Some(table.schema.field(column.index()).name().clone()),
    };
    let checks = table.checks.iter();
    let checks = checks.map(|check| (check.name.clone(), check.expr.to_string()));
    Described {
        schema: table.name.shown_schema().to_owned(),
        name: table.name.name.clone(),
        kind: RelationKind::Table {
            object: table.object,
            partitioned_by,
            checks: checks.collect(),
            key: table.key.as_ref().map(|key| key.name.clone()),
            foreign_keys: (table.foreign_keys.iter())
                .map(|key| key.name.clone())
                .collect(),
            uniques: (table.uniques.iter())
                .map(|unique| DescribedUnique {
                    name: unique.name.clone(),
                    keys: unique.object(),
                    is_constraint: unique.is_constraint(),
                })
                .collect(),
        },
        columns: columns(
            &table.schema,
            |position| &table.rules[position],
            |position| table.rules[position].comment.clone(),
        ),
        comment: table.comment.clone(),
    }
}

fn describe_view(view: &View) -> Described {
    Described {
        schema: view.name.shown_schema().to_owned(),
        name: view.name.name.clone(),
        kind: RelationKind::View {
            definition: view.text.clone(),
        },
        columns: columns(
            &view.schema,
            |_| &NO_RULES,
            |position| view.column_comments.get(position).cloned().flatten(),
        ),
        comment: view.comment.clone(),
    }
}

/// The rules of columns of queries.
static NO_RULES: ColumnRules = ColumnRules {
    max_characters: None,
    default: None,
    identity: None,
    generated: None,
    comment: None,
};

fn columns<'a>(
    schema: &SchemaRef,
    rules: impl Fn(usize) -> &'a ColumnRules,
    comment: impl Fn(usize) -> Option<String>,
) -> Vec<DescribedColumn> {
    let fields = schema.fields().iter().enumerate();
    fields
        .map(|(position, field)| {
            let rules = rules(position);
            DescribedColumn {
                name: field.name().clone(),
                data_type: field.data_type().clone(),
                max_characters: rules.max_characters,
                nullable: field.is_nullable(),
                default: match &rules.generated {
                    Some(generated) => Some(generated.to_string()),
                    None => rules.default.as_ref().map(|value| value.to_string()),
                },
                comment: comment(position),
            }
        })
        .collect()
}
