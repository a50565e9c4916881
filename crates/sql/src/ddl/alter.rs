//! ALTER TABLE.
//!
//! ```text
//! operations ──▶ new definition, and where each of its columns comes from ──┬── same rows, other names or rules:
//!                                                                          │     checked if there are more rules
//!                                                                          └── other columns: the old rows are read,
//!                                                                                changed and written to a new object
//! ```
//!
//! All operations of a statement take effect together. The table is locked against writers from the beginning, so the rows
//! that are read are all there will ever be of the old table; readers go on with what they have.

mod operations;
mod rewrite;

use crate::catalog::{Relation, retire};
use crate::core::{Begun, Core};
use crate::ddl::{dependents, excerpt};
use crate::error::SqlError;
use crate::locks::retire_all;
use crate::statement::Statement;
use datafusion::sql::sqlparser::ast::AlterTable;
use operations::Altered;
use std::sync::Arc;

const TAG: &str = "ALTER TABLE";

/// ALTER TABLE [IF EXISTS] name operation, ….
pub(super) async fn alter(
    core: &Core,
    alter: AlterTable,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    if alter.location.is_some() || alter.on_cluster.is_some() || alter.table_type.is_some() {
        return Err(SqlError::not_supported(
            "ALTER TABLE with other clauses than operations",
        ));
    }
    let full = core.resolve(&alter.name, statement)?;
    if alter.if_exists && core.catalog.contents().get(&full).is_none() {
        return Ok(Begun::Done { tag: TAG });
    }
    let locked = core.exclusive_table(&alter.name, statement).await?;
    let old = &locked.table;
    let mut altered = Altered::of(old);
    for operation in &alter.operations {
        altered.apply(core, operation, statement).await?;
    }
    let cascade = altered.cascade;
    let renamed = altered.definition.name != old.name;
    let rewritten = altered.needs_rewrite(old);
    let new = Arc::new(rewrite::run(core, old, altered, statement).await?);

    let mut change = core.catalog.change().await;
    let published = async {
        if renamed {
            if let Some(taken) = change.get(&new.name) {
                let error = super::exists(taken.kind(), &new.name, None);
                return Err(error.at(excerpt(&alter.name, statement)));
            }
            if let Some(view) = change.dependents(&old.name).first() {
                return Err(SqlError::invalid(format!(
                    "table \"{}\" cannot be renamed: view \"{}\" reads it by its name",
                    old.name, view.name
                ))
                .with_hint(Some(format!("DROP VIEW {} first", view.name.sql()))));
            }
            change.remove(&old.name);
        }
        change.put(Relation::Table(Arc::clone(&new)));
        dependents::keep(core, &mut change, &new.name, "table", cascade).await
    };
    match published.await {
        Ok(()) => {
            change.commit()?;
            drop(new);
            if rewritten {
                retire_all(vec![locked]).await?;
            }
            Ok(Begun::Done { tag: TAG })
        }
        Err(error) => {
            drop(change);
            retire([new]).await?;
            Err(error)
        }
    }
}
