//! TRUNCATE, and DELETE of all rows: the table goes on with a new, empty data object.
//!
//! Statements that read the old rows finish with them; with the last of these the memory goes.
//!
//! A table to which rows of others refer is only emptied together with these, or once they are gone.

use crate::catalog::{Table, TableOrView, retire};
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::running::outcome::Begun;
use crate::statements::ddl::references::referencing;
use crate::text::statement::Statement;
use crate::write::locks;
use crate::write::locks::{Exclusive, retire_all};
use crate::write::references::check_all;
use datafusion::sql::sqlparser::ast::{
    self, CascadeOption, Delete, FromTable, ObjectName, TableFactor, Truncate,
};
use eris_syntax::are_equal;
use std::sync::Arc;

/// `TRUNCATE [TABLE] name, …`: all of them at once, with CASCADE also the tables that refer to them.
pub(super) async fn truncate(
    context: &StatementContext,
    truncate: Truncate,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    if truncate.partitions.is_some() || truncate.identity.is_some() || truncate.on_cluster.is_some()
    {
        return Err(SqlError::not_supported(
            "TRUNCATE with other clauses than CASCADE and RESTRICT",
        ));
    }
    let names: Vec<_> = (truncate.table_names.iter())
        .map(|target| &target.name)
        .collect();
    let locked = locks::exclusive(context, || {
        let mut tables = Vec::new();
        for &name in &names {
            let full = context.resolve(name, statement)?;
            if truncate.if_exists && context.catalog.contents().get(&full).is_none() {
                continue;
            }
            tables.push(context.table(name, statement)?);
        }
        if truncate.cascade == Some(CascadeOption::Cascade) {
            let contents = context.catalog.contents();
            let mut next = 0;
            while let Some(table) = tables.get(next) {
                for by in referencing(&contents, &table.name.clone()) {
                    if !tables.iter().any(|table| table.name == by.name) {
                        tables.push(by);
                    }
                }
                next += 1;
            }
        }
        Ok(tables)
    })
    .await?;
    keep_references(context, &locked, "TRUNCATE").await?;
    empty(context, locked).await?;
    Ok(Begun::Done {
        tag: "TRUNCATE TABLE",
    })
}

/// Whether this is DELETE FROM table, and nothing else.
pub(crate) fn is_delete_of_all(delete: &Delete) -> bool {
    deleted_table(delete).is_some()
}

fn deleted_table(delete: &Delete) -> Option<&ObjectName> {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [from] = &from[..] else {
        return None;
    };
    let TableFactor::Table { name, .. } = &from.relation else {
        return None;
    };
    let plain = ast::Delete {
        delete_token: delete.delete_token.clone(),
        from: delete.from.clone(),
        tables: Vec::new(),
        using: None,
        selection: None,
        returning: None,
        output: None,
        order_by: Vec::new(),
        limit: None,
        optimizer_hints: Vec::new(),
    };
    (are_equal(&plain, delete) && from.joins.is_empty()).then_some(name)
}

/// DELETE FROM table.
pub(super) async fn delete_all(
    context: &StatementContext,
    delete: Delete,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let name = deleted_table(&delete).expect("it was looked at before");
    let locked = locks::exclusive_table(context, name, statement).await?;
    // Nobody writes now, and what has begun to commit is visible behind this.
    context.home.settle().await;
    let rows = context.home.statistics(locked.table.object)?.rows;
    let locked = vec![locked];
    keep_references(context, &locked, "DELETE").await?;
    empty(context, locked).await?;
    Ok(Begun::Count {
        rows,
        tag: "DELETE",
    })
}

/// Rejects to empty tables to which rows of others refer.
async fn keep_references(
    context: &StatementContext,
    locked: &[Exclusive],
    statement: &str,
) -> Result<(), SqlError> {
    let contents = context.catalog.contents();
    let is_emptied = |table: &Table| locked.iter().any(|locked| locked.table.name == table.name);
    let mut has_waited = false;
    for table in locked.iter().map(|locked| &locked.table) {
        let others = contents.referencing(&table.name);
        for (by, key) in others.filter(|(by, _)| !is_emptied(by)) {
            if !has_waited {
                // A writer that was cancelled may have let go of its lock while its commit was under way.
                context.home.settle().await;
                has_waited = true;
            }
            let checked = Box::pin(check_all(context, table, by, key)).await;
            checked.map_err(|error| {
                let together = format!(
                    "TRUNCATE {}, {} empties both",
                    table.name.sql(),
                    by.name.sql()
                );
                let hint = (statement == "TRUNCATE").then_some(together);
                match hint {
                    Some(hint) => error.with_hint(Some(hint)),
                    None => error,
                }
            })?;
        }
    }
    Ok(())
}

async fn empty(context: &StatementContext, locked: Vec<Exclusive>) -> Result<(), SqlError> {
    let mut new = Vec::with_capacity(locked.len());
    for old in &locked {
        let definition = old.table.definition();
        let mut table = old
            .table
            .successor(&context.data_source(), definition)
            .await?;
        table
            .take_over_indexes(&context.home, &old.table, Some, false)
            .await?;
        let (from, to) = (old.table.object, table.object);
        context.services.balance.take_over(&*context.home, from, to);
        new.push(Arc::new(table));
    }
    let mut change = context.catalog.change().await;
    for table in &new {
        change.put(TableOrView::Table(Arc::clone(table)));
    }
    if let Err(error) = change.commit().await {
        retire(new).await?;
        return Err(error);
    }
    drop(new);
    retire_all(locked).await
}
