//! ALTER TABLE.
//!
//! ```text
//! operations ──▶ new definition, and where each of its columns comes from ──┬── same rows, other names or rules:
//!                                                                          │     checked if there are more rules
//!                                                                          └── other columns: the old rows are read,
//!                                                                                changed and written to a new object
//! ```
//!
//! All operations of a statement take effect together. The table is locked against writers from the beginning, so the
//! rows that are read are all there will ever be of the old table; readers go on with what they have. So are the tables
//! to which new foreign keys refer, and those with foreign keys that refer to it, which are altered with it.

mod operations;
mod rewrite;

use crate::catalog::{
    CatalogChange, ForeignKey, RelationName, Sequence, Table, TableOrView, Unique, retire,
};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::running::outcome::Begun;
use crate::statements::ddl::{dependents, excerpt, references, sequence};
use crate::text::statement::Statement;
use crate::write::locks;
use crate::write::locks::retire_all;
use crate::write::references::verify;
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnOption, ObjectName,
    TableConstraint,
};
use operations::Altered;
use std::sync::Arc;

const TAG: &str = "ALTER TABLE";

/// ALTER TABLE [IF EXISTS] name operation, ….
pub(super) async fn alter(
    context: &StatementContext,
    alter: AlterTable,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    if alter.location.is_some() || alter.on_cluster.is_some() || alter.table_type.is_some() {
        return Err(SqlError::not_supported(
            "ALTER TABLE with other clauses than operations",
        ));
    }
    let full = context.resolve(&alter.name, statement)?;
    if alter.if_exists && context.catalog.contents().get(&full).is_none() {
        return Ok(Begun::Done { tag: TAG });
    }
    let tables = || affected(context, &alter, &full, statement);
    let locked = locks::exclusive(context, tables).await?;
    let old = locked.iter().find(|locked| locked.table.name == full);
    let old = &old.expect("it is among those that were found").table;
    let contents = context.catalog.contents();
    let incoming = contents.referencing(&full);
    let incoming = incoming.filter(|(by, _)| by.name != full);
    let mut altered = Altered::of(
        old,
        incoming
            .map(|(by, key)| (Arc::clone(by), key.clone()))
            .collect(),
    );
    for operation in &alter.operations {
        altered.apply(context, operation, statement).await?;
    }
    let cascade = altered.cascade;
    let incoming = altered.incoming.clone();
    let added = altered.added_keys(&contents);
    let rewritten = altered.needs_rewrite(old);
    let new = Arc::new(Box::pin(rewrite::run(context, old, altered, statement)).await?);
    let added = added.into_iter().map(|(key, other)| {
        let other = other.unwrap_or_else(|| Arc::clone(&new));
        (key, other)
    });
    if let Err(error) = Box::pin(verify(context, &new, added.collect())).await {
        retire([new]).await?;
        return Err(error);
    }

    let published = Publication {
        context,
        old,
        new: &new,
        incoming: &incoming,
        cascade,
    };
    if let Err(error) = published.publish(&alter.name, statement).await {
        retire([new]).await?;
        return Err(error);
    }
    // Its rows refer to others from now on.
    context.look_at(&new);
    drop(new);
    if rewritten {
        retire_all(locked).await?;
    }
    Ok(Begun::Done { tag: TAG })
}

/// The next version of a table whose writers are locked out: it has one more UNIQUE, which its rows keep.
pub(super) async fn with_unique(
    context: &StatementContext,
    old: &Arc<Table>,
    unique: Unique,
    statement: &Statement,
) -> Result<Table, SqlError> {
    let mut altered = Altered::of(old, Vec::new());
    altered.definition.uniques.push(unique);
    altered.recheck = !context.is_opening();
    Box::pin(rewrite::run(context, old, altered, statement)).await
}

/// The table and all others that may not change meanwhile: those that refer to it, and those that it refers to, if that
/// matters.
fn affected(
    context: &StatementContext,
    alter: &AlterTable,
    full: &RelationName,
    statement: &Statement,
) -> Result<Vec<Arc<Table>>, SqlError> {
    let contents = context.catalog.contents();
    let mut tables = references::referencing(&contents, full);
    for name in referenced(&alter.operations) {
        // Whether there is one is told by the operation.
        let other = context.resolve(name, statement);
        tables.extend(other.ok().and_then(|name| contents.table(&name).cloned()));
    }
    let table = context.table(&alter.name, statement)?;
    let changes_values = |operation: &AlterTableOperation| {
        matches!(
            operation,
            AlterTableOperation::AlterColumn {
                op: AlterColumnOperation::SetDataType { .. },
                ..
            }
        )
    };
    if alter.operations.iter().any(changes_values) {
        tables.extend(references::referenced(&contents, &table));
    }
    tables.push(table);
    Ok(tables)
}

/// A table and what becomes of it, ready to be seen by others.
struct Publication<'a> {
    context: &'a StatementContext,
    old: &'a Table,
    new: &'a Arc<Table>,
    /// Foreign keys of other tables that refer to it, as they are to be.
    incoming: &'a [(Arc<Table>, ForeignKey)],
    /// Views that would fail are dropped.
    cascade: bool,
}

impl Publication<'_> {
    /// Puts the new table in the place of the old one, with all that depends on it. On error nothing has changed.
    async fn publish(&self, name: &ObjectName, statement: &Statement) -> Result<(), SqlError> {
        let Publication {
            context, old, new, ..
        } = *self;
        let mut change = context.catalog.change().await;
        if new.name != old.name {
            self.check_new_name(&change, name, statement)?;
            change.remove(&old.name);
        }
        change.put(TableOrView::Table(Arc::clone(new)));
        let is_kept = |own: &Arc<Sequence>| sequence::own(new).any(|kept| Arc::ptr_eq(kept, own));
        let lost = sequence::own(old).filter(|own| !is_kept(own));
        let lost: Vec<RelationName> = lost.map(|own| own.name.clone()).collect();
        sequence::check_unused(&change, &lost, |_| false)?;
        lost.iter().for_each(|name| change.remove_sequence(name));
        for by in references::referencing(&context.catalog.contents(), &old.name) {
            if let Some(by) = followed(&by, old, self.incoming)? {
                change.put(TableOrView::Table(Arc::new(by)));
            }
        }
        dependents::keep(context, &mut change, &new.name, "table", self.cascade).await?;
        change.commit().await
    }

    fn check_new_name(
        &self,
        change: &CatalogChange<'_>,
        name: &ObjectName,
        statement: &Statement,
    ) -> Result<(), SqlError> {
        let Publication { old, new, .. } = self;
        if let Some(taken) = change.get(&new.name) {
            let error = super::exists(taken.kind(), &new.name, None);
            return Err(error.at(excerpt(name, statement)));
        }
        match change.dependents(&old.name).first() {
            None => Ok(()),
            Some(view) => Err(SqlError::invalid(
                Mistake::DependentObjects,
                format!(
                    "table \"{}\" cannot be renamed: view \"{}\" reads it by its name",
                    old.name, view.name
                ),
            )
            .with_hint(Some(format!("DROP VIEW {} first", view.name.sql())))),
        }
    }
}

/// The tables to which the foreign keys refer that operations add.
fn referenced(operations: &[AlterTableOperation]) -> Vec<&ObjectName> {
    let mut tables = Vec::new();
    for operation in operations {
        match operation {
            AlterTableOperation::AddConstraint {
                constraint: TableConstraint::ForeignKey(key),
                ..
            } => tables.push(&key.foreign_table),
            AlterTableOperation::AddColumn { column_def, .. } => {
                let options = column_def.options.iter();
                tables.extend(options.filter_map(|option| match &option.option {
                    ColumnOption::ForeignKey(key) => Some(&key.foreign_table),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
    tables
}

/// A table that refers to the altered one, with what has become of its foreign keys. `None`: nothing has.
fn followed(
    by: &Arc<Table>,
    old: &Table,
    kept: &[(Arc<Table>, ForeignKey)],
) -> Result<Option<Table>, SqlError> {
    if by.name == old.name {
        return Ok(None);
    }
    let mut definition = by.definition();
    definition.foreign_keys.retain_mut(|key| {
        if key.table != old.name {
            return true;
        }
        let mut kept = kept.iter();
        let kept = kept.find(|(table, kept)| table.name == by.name && kept.name == key.name);
        if let Some((_, kept)) = kept {
            key.clone_from(kept);
        }
        kept.is_some()
    });
    match definition.foreign_keys == by.foreign_keys {
        true => Ok(None),
        false => by.redefined(definition).map(Some),
    }
}
