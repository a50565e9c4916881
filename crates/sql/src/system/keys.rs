//! The information schema of keys: their columns, and which foreign keys refer to which.

use crate::catalog::{CATALOG, ForeignKey, Table};
use crate::context::StatementContext;
use crate::system::relation::{Cell, row};

/// The constraint of a table to which a foreign key refers: its name and columns.
fn unique_constraint<'a>(key: &ForeignKey, table: &'a Table) -> Option<(&'a str, &'a [String])> {
    let (object, _) = key.key_of(table)?;
    let mut uniques = table.uniques.iter();
    match uniques.find(|unique| unique.object() == object) {
        Some(unique) => Some((&unique.name, &unique.columns)),
        None => (table.key.as_ref()).map(|key| (key.name.as_str(), key.columns.as_slice())),
    }
}

/// One row per foreign key.
pub(super) fn referential_constraints(context: &StatementContext) -> Vec<Vec<Cell>> {
    let contents = context.catalog.contents();
    let mut rows = Vec::new();
    for table in contents.tables().filter(|table| context.sees(&table.name)) {
        for key in &table.foreign_keys {
            let other = contents.table(&key.table);
            let Some((unique, _)) = other.and_then(|other| unique_constraint(key, other)) else {
                continue;
            };
            rows.push(row![
                CATALOG,
                table.name.shown_schema(),
                &key.name,
                CATALOG,
                key.table.shown_schema(),
                unique,
                "NONE",
                "NO ACTION",
                "NO ACTION"
            ]);
        }
    }
    rows
}

/// One row per column of a key: of PRIMARY KEYs, UNIQUE constraints and foreign keys.
pub(super) fn key_column_usage(context: &StatementContext) -> Vec<Vec<Cell>> {
    let contents = context.catalog.contents();
    let mut rows = Vec::new();
    for table in contents.tables().filter(|table| context.sees(&table.name)) {
        let mut add = |name: &str, columns: &[String], places: &dyn Fn(usize) -> Option<usize>| {
            for (position, column) in columns.iter().enumerate() {
                rows.push(row![
                    CATALOG,
                    table.name.shown_schema(),
                    name,
                    CATALOG,
                    table.name.shown_schema(),
                    &table.name.name,
                    column,
                    position + 1,
                    places(position).map(|place| place + 1)
                ]);
            }
        };
        if let Some(key) = &table.key {
            add(&key.name, &key.columns, &|_| None);
        }
        for unique in table.uniques.iter().filter(|unique| unique.is_constraint()) {
            add(&unique.name, &unique.columns, &|_| None);
        }
        for key in &table.foreign_keys {
            let other = contents.table(&key.table);
            let unique = other.and_then(|other| unique_constraint(key, other));
            let columns = unique.map_or(&[][..], |(_, columns)| columns);
            add(&key.name, &key.columns, &|at| {
                let referenced = &key.referenced[at];
                columns.iter().position(|column| column == referenced)
            });
        }
    }
    rows
}
