//! DuckDB's `INSERT OR REPLACE` and `INSERT OR IGNORE`, written out:
//!
//! ```text
//! INSERT OR REPLACE INTO t (k, a) …    INSERT INTO t (k, a) … ON CONFLICT (k) DO UPDATE SET a = excluded.a
//! INSERT OR IGNORE INTO t (k, a) …     INSERT INTO t (k, a) … ON CONFLICT (k) DO NOTHING
//! ```

use crate::catalog::Table;
use crate::error::{Mistake, SqlError};
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, ConflictTarget, DoUpdate, Expr, Ident, Insert, ObjectName,
    OnConflict, OnConflictAction, OnInsert, SqliteOnConflict,
};

/// Whether what stands behind OR, if anything does, is one of the two.
pub(super) fn is_known(insert: &Insert) -> bool {
    use SqliteOnConflict::{Ignore, Replace};
    matches!(insert.or, None | Some(Ignore | Replace))
}

/// Writes it out, for rows with values of these columns.
///
/// # Errors
/// There is an ON CONFLICT already.
pub(crate) fn write_out(
    insert: &mut Insert,
    table: &Table,
    columns: &[usize],
) -> Result<(), SqlError> {
    let Some(or) = insert.or.take() else {
        return Ok(());
    };
    if insert.on.is_some() {
        let message = "INSERT OR … has ON CONFLICT, too";
        return Err(SqlError::invalid(Mistake::Syntax, message));
    }
    let quoted = |name: &String| Ident::with_quote('"', name);
    let key = table.key.as_ref().map(|key| &key.columns);
    let is_key = |name: &String| key.is_some_and(|key| key.contains(name));
    let names = columns
        .iter()
        .map(|column| table.schema.field(*column).name());
    let assignments = names.filter(|name| !is_key(name)).map(|name| Assignment {
        target: AssignmentTarget::ColumnName(ObjectName::from(vec![quoted(name)])),
        value: Expr::CompoundIdentifier(vec![Ident::new("excluded"), quoted(name)]),
    });
    let assignments: Vec<Assignment> = assignments.collect();
    let action = match or {
        SqliteOnConflict::Replace if !assignments.is_empty() => {
            OnConflictAction::DoUpdate(DoUpdate {
                assignments,
                selection: None,
            })
        }
        _ => OnConflictAction::DoNothing,
    };
    // Without a primary key, the table's only UNIQUE constraint is meant.
    let target = key.map(|key| ConflictTarget::Columns(key.iter().map(quoted).collect()));
    insert.on = Some(OnInsert::OnConflict(OnConflict {
        conflict_target: target,
        action,
    }));
    Ok(())
}
