//! The information schema of the SQL standard.

use crate::catalog::{CATALOG, TEMPORARY};
use crate::context::StatementContext;
use crate::system::described::{self, DescribedColumn, RelationKind};
use crate::system::keys;
use crate::system::relation::{Cell, CellType, SystemTable, row};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use futures::FutureExt;
use std::future::ready;

use CellType::{Number, Text};

pub(super) static RELATIONS: [SystemTable; 8] = [
    SystemTable {
        name: "schemata",
        columns: &[
            ("catalog_name", Text),
            ("schema_name", Text),
            ("schema_owner", Text),
            ("default_character_set_catalog", Text),
            ("default_character_set_schema", Text),
            ("default_character_set_name", Text),
            ("sql_path", Text),
        ],
        rows: |context| ready(Ok(schemata(context))).boxed(),
    },
    SystemTable {
        name: "tables",
        columns: &[
            ("table_catalog", Text),
            ("table_schema", Text),
            ("table_name", Text),
            ("table_type", Text),
            ("self_referencing_column_name", Text),
            ("reference_generation", Text),
            ("user_defined_type_catalog", Text),
            ("user_defined_type_schema", Text),
            ("user_defined_type_name", Text),
            ("is_insertable_into", Text),
            ("is_typed", Text),
            ("commit_action", Text),
        ],
        rows: |context| ready(Ok(tables(context))).boxed(),
    },
    SystemTable {
        name: "columns",
        columns: &[
            ("table_catalog", Text),
            ("table_schema", Text),
            ("table_name", Text),
            ("column_name", Text),
            ("ordinal_position", Number),
            ("column_default", Text),
            ("is_nullable", Text),
            ("data_type", Text),
            ("character_maximum_length", Number),
            ("character_octet_length", Number),
            ("numeric_precision", Number),
            ("numeric_precision_radix", Number),
            ("numeric_scale", Number),
            ("datetime_precision", Number),
            ("is_identity", Text),
            ("is_generated", Text),
            ("is_updatable", Text),
        ],
        rows: |context| ready(Ok(columns(context))).boxed(),
    },
    SystemTable {
        name: "views",
        columns: &[
            ("table_catalog", Text),
            ("table_schema", Text),
            ("table_name", Text),
            ("view_definition", Text),
            ("check_option", Text),
            ("is_updatable", Text),
            ("is_insertable_into", Text),
        ],
        rows: |context| ready(Ok(views(context))).boxed(),
    },
    SystemTable {
        name: "table_constraints",
        columns: &[
            ("constraint_catalog", Text),
            ("constraint_schema", Text),
            ("constraint_name", Text),
            ("table_catalog", Text),
            ("table_schema", Text),
            ("table_name", Text),
            ("constraint_type", Text),
            ("is_deferrable", Text),
            ("initially_deferred", Text),
            ("enforced", Text),
        ],
        rows: |context| ready(Ok(table_constraints(context))).boxed(),
    },
    SystemTable {
        name: "check_constraints",
        columns: &[
            ("constraint_catalog", Text),
            ("constraint_schema", Text),
            ("constraint_name", Text),
            ("check_clause", Text),
        ],
        rows: |context| ready(Ok(check_constraints(context))).boxed(),
    },
    SystemTable {
        name: "referential_constraints",
        columns: &[
            ("constraint_catalog", Text),
            ("constraint_schema", Text),
            ("constraint_name", Text),
            ("unique_constraint_catalog", Text),
            ("unique_constraint_schema", Text),
            ("unique_constraint_name", Text),
            ("match_option", Text),
            ("update_rule", Text),
            ("delete_rule", Text),
        ],
        rows: |context| ready(Ok(keys::referential_constraints(context))).boxed(),
    },
    SystemTable {
        name: "key_column_usage",
        columns: &[
            ("constraint_catalog", Text),
            ("constraint_schema", Text),
            ("constraint_name", Text),
            ("table_catalog", Text),
            ("table_schema", Text),
            ("table_name", Text),
            ("column_name", Text),
            ("ordinal_position", Number),
            ("position_in_unique_constraint", Number),
        ],
        rows: |context| ready(Ok(keys::key_column_usage(context))).boxed(),
    },
];

fn yes_or_no(value: bool) -> &'static str {
    if value { "YES" } else { "NO" }
}

fn schemata(context: &StatementContext) -> Vec<Vec<Cell>> {
    let schemas = described::schemas(context).into_iter();
    let null = || Cell::Null;
    schemas
        .map(|schema| row![CATALOG, schema, CATALOG, null(), null(), null(), null()])
        .collect()
}

fn tables(context: &StatementContext) -> Vec<Vec<Cell>> {
    let null = || Cell::Null;
    let rows = described::all(context).into_iter().map(|table| {
        let (kind, writable) = match table.kind {
            RelationKind::Table { .. } if table.schema == TEMPORARY => ("LOCAL TEMPORARY", true),
            RelationKind::Table { .. } => ("BASE TABLE", true),
            RelationKind::View { .. } | RelationKind::System => ("VIEW", false),
        };
        row![
            CATALOG,
            table.schema,
            table.name,
            kind,
            null(),
            null(),
            null(),
            null(),
            null(),
            yes_or_no(writable),
            "NO",
            null(),
        ]
    });
    rows.collect()
}

/// System tables are views, too, without a definition.
fn views(context: &StatementContext) -> Vec<Vec<Cell>> {
    let views = described::all(context).into_iter().filter_map(|view| {
        let definition = match view.kind {
            RelationKind::Table { .. } => return None,
            RelationKind::View { definition } => Some(definition),
            RelationKind::System => None,
        };
        Some(row![
            CATALOG,
            view.schema,
            view.name,
            definition,
            "NONE",
            "NO",
            "NO"
        ])
    });
    views.collect()
}

fn columns(context: &StatementContext) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for table in described::all(context) {
        let writable = matches!(table.kind, RelationKind::Table { .. });
        for (position, column) in table.columns.iter().enumerate() {
            let numbers = Numbers::of(&column.data_type);
            let characters = column.max_characters;
            rows.push(row![
                CATALOG,
                &table.schema,
                &table.name,
                &column.name,
                position + 1,
                column.default.clone(),
                yes_or_no(column.nullable),
                type_name(column),
                characters,
                // UTF-8 takes up to four bytes for a character.
                characters.map(|characters| characters.saturating_mul(4)),
                numbers.precision,
                numbers.radix,
                numbers.scale,
                numbers.second_digits,
                "NO",
                "NEVER",
                yes_or_no(writable),
            ]);
        }
    }
    rows
}

/// The type's name without its arguments, which have columns of their own.
fn type_name(column: &DescribedColumn) -> String {
    let full = column.type_name();
    match (full.find('('), full.find(')')) {
        (Some(open), Some(close)) => format!("{}{}", &full[..open], &full[close + 1..]),
        _ => full,
    }
}

/// A type's arguments.
#[derive(Default)]
struct Numbers {
    precision: Option<u32>,
    radix: Option<u32>,
    scale: Option<i32>,
    second_digits: Option<u32>,
}

impl Numbers {
    fn of(data_type: &DataType) -> Self {
        let binary = |bits: u32, scale: Option<i32>| Numbers {
            precision: Some(bits),
            radix: Some(2),
            scale,
            second_digits: None,
        };
        match data_type {
            DataType::Int8 | DataType::UInt8 => binary(8, Some(0)),
            DataType::Int16 | DataType::UInt16 => binary(16, Some(0)),
            DataType::Int32 | DataType::UInt32 => binary(32, Some(0)),
            DataType::Int64 | DataType::UInt64 => binary(64, Some(0)),
            DataType::Float32 => binary(24, None),
            DataType::Float64 => binary(53, None),
            DataType::Decimal128(precision, scale) => Numbers {
                precision: Some((*precision).into()),
                radix: Some(10),
                scale: Some((*scale).into()),
                second_digits: None,
            },
            DataType::Date32 => Numbers {
                second_digits: Some(0),
                ..Numbers::default()
            },
            DataType::Time64(unit) | DataType::Timestamp(unit, _) => Numbers {
                second_digits: Some(match unit {
                    TimeUnit::Second => 0,
                    TimeUnit::Millisecond => 3,
                    TimeUnit::Microsecond => 6,
                    TimeUnit::Nanosecond => 9,
                }),
                ..Numbers::default()
            },
            _ => Numbers::default(),
        }
    }
}

/// The constraints of users' tables: schema, table, name, condition. A column that is NOT NULL is one, as in the
/// standard.
fn constraints(context: &StatementContext) -> Vec<(String, String, String, String)> {
    let mut all = Vec::new();
    for table in described::tables(context) {
        if let RelationKind::Table { checks, .. } = &table.kind {
            for (name, condition) in checks {
                all.push((
                    table.schema.clone(),
                    table.name.clone(),
                    name.clone(),
                    condition.clone(),
                ));
            }
        }
        for column in table.columns.iter().filter(|column| !column.nullable) {
            all.push((
                table.schema.clone(),
                table.name.clone(),
                format!("{}_{}_not_null", table.name, column.name),
                format!("{} IS NOT NULL", column.name),
            ));
        }
    }
    all
}

fn table_constraints(context: &StatementContext) -> Vec<Vec<Cell>> {
    let row = |schema: String, table: String, name: String, kind: &str| {
        row![
            CATALOG, &schema, name, CATALOG, &schema, table, kind, "NO", "NO", "YES",
        ]
    };
    let mut rows = Vec::new();
    for table in described::tables(context) {
        if let RelationKind::Table { key: Some(key), .. } = &table.kind {
            let (schema, name) = (table.schema.clone(), table.name.clone());
            rows.push(row(schema, name, key.clone(), "PRIMARY KEY"));
        }
        if let RelationKind::Table {
            uniques,
            foreign_keys,
            ..
        } = &table.kind
        {
            let uniques = uniques.iter().filter(|unique| unique.is_constraint);
            let uniques = uniques.map(|unique| (&unique.name, "UNIQUE"));
            let foreign = foreign_keys.iter().map(|name| (name, "FOREIGN KEY"));
            rows.extend(uniques.chain(foreign).map(|(constraint, kind)| {
                let (schema, name) = (table.schema.clone(), table.name.clone());
                row(schema, name, constraint.clone(), kind)
            }));
        }
    }
    let checks = constraints(context).into_iter();
    rows.extend(checks.map(|(schema, table, name, _)| row(schema, table, name, "CHECK")));
    rows
}

fn check_constraints(context: &StatementContext) -> Vec<Vec<Cell>> {
    let rows = constraints(context).into_iter();
    rows.map(|(schema, _, name, clause)| row![CATALOG, schema, name, clause])
        .collect()
}
