//! What was made in a draft of the catalogue takes effect.

use super::references;
use crate::catalog::{Draft, ForeignKey, Table};
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan::resolve::NameScope;
use crate::write::locks;
use crate::write::references::verify;
use std::sync::Arc;

/// All of it takes effect at once.
///
/// # Errors
/// What it depends on was changed meanwhile.
pub(crate) async fn publish(context: &StatementContext, draft: &Draft) -> Result<(), SqlError> {
    let context = &context.for_change();
    let added = draft.added();
    // Writers of tables that were there before know nothing of foreign keys that refer to these.
    let referenced = || {
        let contents = context.catalog.contents();
        let tables = added.tables.iter();
        let all = tables.flat_map(|table| references::referenced(&contents, table));
        Ok(all.collect())
    };
    let locked = locks::exclusive(context, referenced).await?;
    if !locked.is_empty() {
        context.home.settle().await;
    }
    for table in &added.tables {
        let keys = table.foreign_keys.iter();
        let keys = keys.filter_map(|key| {
            let mut locked = locked.iter().map(|locked| &locked.table);
            let other = locked.find(|other| other.name == key.table)?;
            Some((key.clone(), Arc::clone(other)))
        });
        let keys: Vec<(ForeignKey, Arc<Table>)> = keys.collect();
        if !keys.is_empty() {
            Box::pin(verify(context, table, keys)).await?;
        }
    }
    let mut change = context.catalog.change().await;
    change.take_in(draft, &added)?;
    for table in &added.tables {
        references::check(&change, table)?;
    }
    for view in &added.views {
        NameScope::of(&change, context).plan_view(view).await?;
    }
    change.commit().await
}
