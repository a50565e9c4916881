//! CREATE INDEX, DROP INDEX.
//!
//! The table's writers wait until the index is complete, its readers go on. What the index is called is part of the
//! table's definition; its entries are with the rows.

use crate::catalog::{Contents, Table, TableIndex, TableOrView, Unique, quoted, retire};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::progress;
use crate::running::outcome::Begun;
use crate::statements::ddl::{alter, excerpt, generated};
use crate::text::identifier::normalize;
use crate::text::statement::Statement;
use crate::write::locks;
use datafusion::sql::sqlparser::ast::{self, CreateIndex, Ident, IndexType, ObjectName};
use eris_home::{IndexKind, SecondaryIndexes};
use eris_types::ColumnId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const TAG: &str = "CREATE INDEX";

/// `CREATE [UNIQUE] INDEX [IF NOT EXISTS] [name] ON table [USING kind] (column, …)`.
///
/// What keeps a UNIQUE index unique is that of a UNIQUE constraint: a data object of its keys, beside the index by
/// which queries find rows.
pub(super) async fn create(
    context: &StatementContext,
    create: CreateIndex,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    reject_the_rest(&create)?;
    let kind = kind(&create)?;
    let locked = locks::exclusive_table(context, &create.table_name, statement).await?;
    let old = &locked.table;
    let mut columns = Vec::new();
    for column in &create.columns {
        let name = column_name(column)?;
        let plain = normalize(&name);
        let position = old.schema.index_of(&plain).map_err(|_| {
            let place = excerpt(&ObjectName::from(vec![name.clone()]), statement);
            SqlError::invalid(
                Mistake::UndefinedColumn,
                format!("table \"{}\" has no column \"{plain}\"", old.name),
            )
            .at(place)
            .with_hint(Some(format!(
                "DESCRIBE {} shows its columns",
                old.name.sql()
            )))
        })?;
        if columns.contains(&position) {
            return Err(SqlError::invalid(
                Mistake::DuplicateColumn,
                format!("column \"{plain}\" is named twice"),
            ));
        }
        columns.push(position);
    }
    let contents = context.catalog.contents();
    let name = match &create.name {
        Some(name) => name_in_schema(context, name, &old.name.schema, statement)?,
        None => free_name(&contents, old, &columns),
    };
    // What was made in another order may have a name that could not be given now.
    if !context.is_opening() && is_taken(&create, &contents, old, &name, statement)? {
        return Ok(Begun::Done { tag: TAG });
    }
    // A cancelled INSERT may have let go of the lock while its commit was under way.
    context.home.settle().await;
    let ids = columns.iter().map(|column| ColumnId(*column as u32));
    let ids: Vec<ColumnId> = ids.collect();
    let built = Arc::new(AtomicU64::new(0));
    let rows = context.home.statistics(old.object)?.rows;
    let counted = Arc::clone(&built);
    let done = move || counted.load(Ordering::Relaxed);
    progress::current().expect_scan(rows).counts(Arc::new(done));
    let indexes = indexes(context)?;
    let mut new = match create.unique {
        true => {
            let names = columns
                .iter()
                .map(|column| old.schema.field(*column).name());
            let names: Vec<String> = names.cloned().collect();
            generated::reject("a UNIQUE index", &names, &old.schema, &old.rules)?;
            let unique = Unique {
                name: name.clone(),
                columns: names,
                of_index: true,
                keys: None,
            };
            alter::with_unique(context, old, unique, statement).await?
        }
        false => old.redefined(old.definition())?,
    };
    let id = match indexes.create_index(old.object, &ids, kind, built).await {
        Ok(id) => id,
        Err(error) => {
            retire([Arc::new(new)]).await?;
            return Err(error.into());
        }
    };
    new.indexes.push(TableIndex {
        name,
        columns,
        kind,
        id,
    });
    let new = Arc::new(new);
    let mut change = context.catalog.change().await;
    change.put(TableOrView::Table(Arc::clone(&new)));
    if let Err(error) = change.commit().await {
        indexes.drop_index(old.object, id)?;
        retire([new]).await?;
        return Err(error);
    }
    Ok(Begun::Done { tag: TAG })
}

/// Whether there is an index of this name, which is what the statement wants.
///
/// # Errors
/// The name is taken.
fn is_taken(
    create: &CreateIndex,
    contents: &Contents,
    old: &Table,
    name: &str,
    statement: &Statement,
) -> Result<bool, SqlError> {
    if let Some(table) = table_of(contents, &old.name.schema, name) {
        if create.if_not_exists {
            return Ok(true);
        }
        return Err(SqlError::invalid(
            Mistake::DuplicateTable,
            format!(
                "index \"{name}\" exists already, of table \"{}\"",
                table.name
            ),
        )
        .at(create
            .name
            .as_ref()
            .and_then(|name| excerpt(name, statement)))
        .with_hint(Some("CREATE INDEX IF NOT EXISTS, or another name")));
    }
    if let Some(table) = table_with_constraint(contents, &old.name.schema, name) {
        return Err(SqlError::invalid(Mistake::DuplicateObject, format!(
            "\"{name}\" is the name of a constraint of table \"{}\", which has an index of this name",
            table.name
        ))
        .at(create
            .name
            .as_ref()
            .and_then(|name| excerpt(name, statement)))
        .with_hint(Some("another name")));
    }
    if old.definition().has_constraint(name) {
        let message = format!("table \"{}\" has a constraint \"{name}\" already", old.name);
        return Err(SqlError::invalid(Mistake::DuplicateObject, message));
    }
    Ok(false)
}

/// DROP INDEX [IF EXISTS] name, …: all of them, or none.
pub(super) async fn drop(
    context: &StatementContext,
    names: &[ObjectName],
    if_exists: bool,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let find = || -> Result<Vec<(Arc<Table>, String)>, SqlError> {
        let contents = context.catalog.contents();
        let mut found = Vec::new();
        for name in names {
            let full = context.resolve(name, statement)?;
            match table_of(&contents, &full.schema, &full.name) {
                Some(table) => found.push((Arc::clone(table), full.name)),
                None => {
                    let constraint = table_with_constraint(&contents, &full.schema, &full.name);
                    if let Some(table) = constraint {
                        return Err(SqlError::invalid(
                            Mistake::DependentObjects,
                            format!(
                                "index \"{full}\" is that of a constraint of table \"{}\"",
                                table.name
                            ),
                        )
                        .at(excerpt(name, statement))
                        .with_hint(Some(format!(
                            "ALTER TABLE {} DROP CONSTRAINT {}",
                            table.name.sql(),
                            quoted(&full.name)
                        ))));
                    }
                    if if_exists {
                        continue;
                    }
                    return Err(SqlError::invalid(
                        Mistake::UndefinedObject,
                        format!("index \"{full}\" does not exist"),
                    )
                    .at(excerpt(name, statement))
                    .with_hint(Some("SELECT name FROM eris.indexes lists all")));
                }
            }
        }
        Ok(found)
    };
    let tables = || Ok(find()?.into_iter().map(|(table, _)| table).collect());
    let locked = locks::exclusive(context, tables).await?;
    let mut change = context.catalog.change().await;
    let mut dropped = Vec::new();
    for table in &locked {
        let old = &table.table;
        let mut new = old.redefined(old.definition())?;
        for (_, name) in find()?
            .iter()
            .filter(|(of, _)| Arc::ptr_eq(&of.lock, &old.lock))
        {
            let gone = new.indexes.extract_if(.., |index| index.name == *name);
            dropped.extend(gone.map(|index| (old.object, index.id)));
            new.uniques
                .retain(|unique| unique.is_constraint() || unique.name != *name);
        }
        change.put(TableOrView::Table(Arc::new(new)));
    }
    change.commit().await?;
    for (object, id) in dropped {
        indexes(context)?.drop_index(object, id)?;
    }
    Ok(Begun::Done { tag: "DROP INDEX" })
}

/// Where indexes are made.
fn indexes(context: &StatementContext) -> Result<&dyn SecondaryIndexes, SqlError> {
    let indexes = context.home.secondary_indexes();
    indexes.ok_or_else(|| SqlError::not_supported("CREATE INDEX where these tables are"))
}

/// The table that has an index of this name.
fn table_of<'a>(contents: &'a Contents, schema: &str, name: &str) -> Option<&'a Arc<Table>> {
    let mut tables = contents
        .tables()
        .filter(|table| table.name.schema == schema);
    tables.find(|table| table.indexes.iter().any(|index| index.name == name))
}

/// The table with a PRIMARY KEY or UNIQUE constraint of this name.
fn table_with_constraint<'a>(
    contents: &'a Contents,
    schema: &str,
    name: &str,
) -> Option<&'a Arc<Table>> {
    let mut tables = contents
        .tables()
        .filter(|table| table.name.schema == schema);
    tables.find(|table| {
        let is_key = table.key.as_ref().is_some_and(|key| key.name == name);
        let mut uniques = table.uniques.iter();
        is_key || uniques.any(|unique| unique.is_constraint() && unique.name == name)
    })
}

/// A name for an index that got none: those of the table and the columns.
fn free_name(contents: &Contents, table: &Table, columns: &[usize]) -> String {
    let columns = columns
        .iter()
        .map(|column| table.schema.field(*column).name().as_str());
    let name = [
        &[table.name.name.as_str()],
        &columns.collect::<Vec<_>>()[..],
        &["idx"],
    ]
    .concat()
    .join("_");
    let is_free = |name: &String| {
        table_of(contents, &table.name.schema, name).is_none()
            && table_with_constraint(contents, &table.name.schema, name).is_none()
    };
    let mut numbered = (1..).map(|number| format!("{name}{number}"));
    match is_free(&name) {
        true => name,
        false => numbered.find(is_free).expect("numbers do not end"),
    }
}

/// The name of an index, which is in its table's schema.
fn name_in_schema(
    context: &StatementContext,
    name: &ObjectName,
    schema: &str,
    statement: &Statement,
) -> Result<String, SqlError> {
    let full = context.resolve(name, statement)?;
    if name.0.len() > 1 && full.schema != schema {
        let message = format!("an index is in the schema of its table, which is \"{schema}\"");
        return Err(SqlError::invalid(Mistake::Syntax, message).at(excerpt(name, statement)));
    }
    Ok(full.name)
}

fn column_name(column: &ast::IndexColumn) -> Result<Ident, SqlError> {
    let order = &column.column;
    let mut expr = &order.expr;
    while let ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    match expr {
        // It finds rows and orders none, so that a direction says nothing.
        ast::Expr::Identifier(name)
            if column.operator_class.is_none() && order.with_fill.is_none() =>
        {
            Ok(name.clone())
        }
        ast::Expr::Identifier(name) => Err(SqlError::not_supported(format!(
            "an index of \"{}\" with an operator class",
            normalize(name)
        ))
        .with_hint(Some("leave it out: LIKE 'abc%' uses any index of strings"))),
        _ => Err(SqlError::not_supported("an index of an expression")
            .with_hint(Some("an index is of columns of its table"))),
    }
}

fn kind(create: &CreateIndex) -> Result<IndexKind, SqlError> {
    match &create.using {
        None | Some(IndexType::BTree) => Ok(IndexKind::Ordered),
        Some(IndexType::Hash) => Ok(IndexKind::Hashed),
        Some(IndexType::Custom(name)) if normalize(name) == "art" => Ok(IndexKind::Ordered),
        Some(IndexType::Custom(name)) if normalize(name) == "blink" => Ok(IndexKind::Shared),
        Some(other) => Err(
            SqlError::not_supported(format!("an index USING {other}")).with_hint(Some(
                "USING art, which is the default, USING hash or USING blink",
            )),
        ),
    }
}

fn reject_the_rest(create: &CreateIndex) -> Result<(), SqlError> {
    if create.predicate.is_some() {
        return Err(SqlError::not_supported("CREATE INDEX … WHERE")
            .with_hint(Some("an index is of all rows: leave WHERE out")));
    }
    if !create.include.is_empty() {
        return Err(SqlError::not_supported("CREATE INDEX … INCLUDE")
            .with_hint(Some("all columns are with their rows: leave INCLUDE out")));
    }
    let more = !create.with.is_empty()
        || !create.index_options.is_empty()
        || !create.alter_options.is_empty()
        || create.nulls_distinct.is_some();
    match more {
        true => Err(SqlError::not_supported(
            "CREATE INDEX with more than columns and USING",
        )),
        false => Ok(()),
    }
}
