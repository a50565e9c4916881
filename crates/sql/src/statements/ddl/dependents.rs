//! Views that read what a statement changes or drops.

use crate::catalog::{CatalogChange, Contents, RelationName, View};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::plan::resolve::NameScope;
use crate::system::functions::session_state;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::logical_expr::LogicalPlan;
use std::sync::Arc;

/// Makes sure that the views which read `changed` still have the columns that they had. With `cascade`, those that have
/// not are dropped, and what reads them.
///
/// # Errors
/// The first such view.
pub(super) async fn keep(
    context: &StatementContext,
    change: &mut CatalogChange<'_>,
    changed: &RelationName,
    kind: &str,
    cascade: bool,
) -> Result<(), SqlError> {
    for view in change.dependents(changed) {
        if change.get(&view.name).is_none() {
            continue;
        }
        let Err(reason) = still_plans(context, change, &view).await else {
            continue;
        };
        if !cascade {
            let message = format!(
                "{kind} \"{changed}\" cannot be changed so: view \"{}\" reads it, and would fail: {reason}",
                view.name
            );
            return Err(SqlError::invalid(Mistake::DependentObjects, message)
                .with_hint(Some(format!("DROP VIEW {} first", view.name.sql()))));
        }
        remove_with_dependents(change, &view.name);
    }
    Ok(())
}

/// Whether the view yields what it did when it was created; if not, why.
async fn still_plans(
    context: &StatementContext,
    contents: &Contents,
    view: &Arc<View>,
) -> Result<(), String> {
    let names = NameScope::of(contents, context);
    let plan = names.plan_view(view).await;
    let plan = plan.and_then(|plan| {
        session_state(context)
            .optimize(&plan)
            .map_err(SqlError::from_datafusion)
    });
    let plan = plan.map_err(|error| error.kind().to_string())?;
    let now = columns(&plan);
    let differing = (view.schema.fields().iter()).find(|before| {
        let same = now.field_with_name(before.name());
        same.map_or(true, |field| field.data_type() != before.data_type())
    });
    match differing {
        Some(field) => Err(format!(
            "its column \"{}\" would be lost or of another type",
            field.name()
        )),
        None if now.fields().len() != view.schema.fields().len() => {
            Err("it would have other columns".into())
        }
        None => Ok(()),
    }
}

/// The columns of a query.
pub(super) fn columns(plan: &LogicalPlan) -> SchemaRef {
    Arc::clone(plan.schema().inner())
}

/// The error of dropping something that a view reads.
pub(super) fn in_use(kind: &str, name: &RelationName, view: &View) -> SqlError {
    SqlError::invalid(
        Mistake::DependentObjects,
        format!(
            "{kind} \"{name}\" cannot be dropped: view \"{}\" reads it",
            view.name
        ),
    )
    .with_hint(Some(format!(
        "DROP … CASCADE drops the view too; or DROP VIEW {} first",
        view.name.sql()
    )))
}

/// Removes a table or view, and the views that read it.
pub(super) fn remove_with_dependents(change: &mut CatalogChange<'_>, name: &RelationName) {
    for view in change.dependents(name) {
        change.remove(&view.name);
    }
    change.drop_relation(name);
}
