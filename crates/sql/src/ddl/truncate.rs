//! TRUNCATE, and DELETE of all rows: the table goes on with a new, empty data object.
//!
//! Statements that read the old rows finish with them; with the last of these the memory goes.

use crate::catalog::Relation;
use crate::core::{Begun, Core};
use crate::error::SqlError;
use crate::locks::{Exclusive, retire_all};
use crate::statement::Statement;
use datafusion::sql::sqlparser::ast::{self, Delete, FromTable, ObjectName, TableFactor, Truncate};
use std::sync::Arc;

/// TRUNCATE [TABLE] name, …: all of them at once.
pub(super) async fn truncate(
    core: &Core,
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
    let locked = core
        .exclusive(|| {
            let mut tables = Vec::new();
            for &name in &names {
                let full = core.resolve(name, statement)?;
                if truncate.if_exists && core.catalog.contents().get(&full).is_none() {
                    continue;
                }
                tables.push(core.table(name, statement)?);
            }
            Ok(tables)
        })
        .await?;
    empty(core, locked).await?;
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
    (plain == *delete && from.joins.is_empty()).then_some(name)
}

/// DELETE FROM table.
pub(super) async fn delete_all(
    core: &Core,
    delete: Delete,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let name = deleted_table(&delete).expect("it was looked at before");
    let locked = core.exclusive_table(name, statement).await?;
    // Nobody writes now, and what has begun to commit is visible behind this.
    core.engine.settle().await;
    let rows = core.engine.statistics(locked.table.object)?.rows;
    empty(core, vec![locked]).await?;
    Ok(Begun::Count {
        rows,
        tag: "DELETE",
    })
}

async fn empty(core: &Core, locked: Vec<Exclusive>) -> Result<(), SqlError> {
    let mut new = Vec::with_capacity(locked.len());
    for old in &locked {
        let definition = old.table.definition();
        let mut table = old.table.successor(&core.engine, definition)?;
        table
            .take_over_indexes(&core.engine, &old.table, Some, false)
            .await?;
        new.push(Arc::new(table));
    }
    let mut change = core.catalog.change().await;
    for table in new {
        change.put(Relation::Table(table));
    }
    change.commit()?;
    retire_all(locked).await
}
