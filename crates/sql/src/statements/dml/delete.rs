//! DELETE FROM table [USING …] [WHERE …] [RETURNING …]

use super::target;
use super::{Action, Change};
use crate::catalog::Table;
use crate::error::SqlError;
use crate::plan::resolve::ROW;
use datafusion::sql::sqlparser::ast::{Delete, FromTable, TableFactor, TableWithJoins};
use std::sync::Arc;

/// The table whose rows are deleted.
pub(super) fn table(delete: &Delete) -> Result<&TableFactor, SqlError> {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    match &from[..] {
        [table] if table.joins.is_empty() && delete.tables.is_empty() => Ok(&table.relation),
        _ => Err(SqlError::not_supported("DELETE from several tables")
            .with_hint(Some("name the other tables after USING"))),
    }
}

pub(super) fn change(
    target: &Arc<Table>,
    delete: Delete,
    old_columns: &[usize],
) -> Result<Change, SqlError> {
    if delete.output.is_some() || !delete.optimizer_hints.is_empty() {
        return Err(SqlError::not_supported("DELETE with these clauses"));
    }
    if !delete.order_by.is_empty() || delete.limit.is_some() {
        return Err(SqlError::not_supported("DELETE … ORDER BY or LIMIT")
            .with_hint(Some("choose the rows with a subquery after WHERE")));
    }
    let factor = table(&delete)?.clone();
    let alias = target::alias(&factor)?;
    let names = match delete.returning {
        Some(_) => target.column_names().collect(),
        None => Vec::new(),
    };
    let items = std::iter::once(ROW).chain(names).enumerate();
    let items = items.map(|(number, name)| target::named(target::column(&alias, name), number));
    let mut items: Vec<_> = items.collect();
    let old = items.len();
    items.extend(target::columns(target, old_columns, &alias, old));
    let mut from = vec![TableWithJoins {
        relation: target::with_row_ids(&factor)?,
        joins: Vec::new(),
    }];
    let repeated = delete.using.is_some();
    from.extend(delete.using.into_iter().flatten());
    Ok(Change {
        table: Arc::clone(target),
        query: target::select(items, from, delete.selection),
        alias,
        action: Action::Delete { repeated },
        old,
        inserted_once: None,
        returning: delete.returning,
        tag: "DELETE",
    })
}
