//! UPDATE table SET … [FROM …] [WHERE …] [RETURNING …]

use super::per_row;
use super::target;
use super::{Action, Change};
use crate::catalog::Table;
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError, SqlErrorKind};
use crate::plan::resolve::ROW;
use crate::statements::insert::values;
use crate::system::functions::session_state;
use crate::write::coerce;
use crate::write::targets;
use crate::write::targets::{default_target, is_word_default};
use datafusion::sql::sqlparser::ast::{
    Assignment, AssignmentTarget, Expr, Ident, ObjectName, SelectItem, TableFactor, TableWithJoins,
    Update, UpdateTableFromKind,
};
use std::sync::Arc;

/// The table whose rows are updated.
pub(super) fn table(update: &Update) -> Result<&TableFactor, SqlError> {
    match update.table.joins.is_empty() {
        true => Ok(&update.table.relation),
        false => Err(SqlError::not_supported("UPDATE of a join")
            .with_hint(Some("name the other tables after FROM"))),
    }
}

pub(super) fn change(
    context: &StatementContext,
    target: &Arc<Table>,
    update: Update,
    old_columns: &[usize],
) -> Result<Change, SqlError> {
    if update.output.is_some() || update.or.is_some() || !update.optimizer_hints.is_empty() {
        return Err(SqlError::not_supported("UPDATE with these clauses"));
    }
    if !update.order_by.is_empty() || update.limit.is_some() {
        return Err(SqlError::not_supported("UPDATE … ORDER BY or LIMIT")
            .with_hint(Some("choose the rows with a subquery after WHERE")));
    }
    let factor = table(&update)?.clone();
    let alias = target::alias(&factor)?;
    let mut items = vec![target::named(target::column(&alias, ROW), 0)];
    let set = assigned(context, target, update.assignments)?;
    let targets = values(context, target, &alias, set, &mut items)?;
    let old = items.len();
    items.extend(target::columns(target, old_columns, &alias, old));
    let mut from = vec![TableWithJoins {
        relation: target::with_row_ids(&factor)?,
        joins: Vec::new(),
    }];
    match update.from {
        Some(UpdateTableFromKind::AfterSet(tables)) => from.extend(tables),
        Some(UpdateTableFromKind::BeforeSet(_)) => {
            return Err(SqlError::not_supported("UPDATE … FROM before SET")
                .with_hint(Some("FROM comes after SET")));
        }
        None => {}
    }
    Ok(Change {
        table: Arc::clone(target),
        query: target::select(items, from, update.selection),
        alias,
        action: Action::Update(targets),
        old,
        inserted_once: None,
        returning: update.returning,
        tag: "UPDATE",
    })
}

/// Per column of the table what SET says, if it says something.
pub(super) fn assigned(
    context: &StatementContext,
    table: &Table,
    assignments: Vec<Assignment>,
) -> Result<Vec<Option<Expr>>, SqlError> {
    let mut names: Vec<ObjectName> = Vec::new();
    let mut values = Vec::new();
    for Assignment { target, value } in assignments {
        match (target, value) {
            (AssignmentTarget::ColumnName(name), value) => {
                names.push(name);
                values.push(value);
            }
            (AssignmentTarget::Tuple(several), Expr::Tuple(each))
                if several.len() == each.len() =>
            {
                names.extend(several);
                values.extend(each);
            }
            (AssignmentTarget::Tuple(mut one), Expr::Nested(value)) if one.len() == 1 => {
                names.append(&mut one);
                values.push(*value);
            }
            (AssignmentTarget::Tuple(several), Expr::Tuple(each)) => {
                return Err(SqlError::invalid(
                    Mistake::Syntax,
                    format!("SET: {} columns, but {} values", several.len(), each.len()),
                ));
            }
            (AssignmentTarget::Tuple(_), _) => {
                return Err(SqlError::not_supported("SET (columns) = a query")
                    .with_hint(Some("give each column a value of its own")));
            }
        }
    }
    per_row::check(context, values.iter(), "SET")?;
    let columns = targets::columns(table, &names).map_err(|error| match error.kind() {
        SqlErrorKind::Invalid(Mistake::DuplicateColumn, message) => {
            SqlError::invalid(Mistake::Syntax, format!("SET: {message}"))
        }
        _ => error,
    })?;
    let mut set = vec![None; table.types.len()];
    for (column, value) in columns.into_iter().zip(values) {
        targets::check_given(table, column, Some(&value))?;
        set[column] = Some(value);
    }
    Ok(set)
}

/// Adds the new values of the table's columns to a query; where the values of each column are found then.
pub(super) fn values(
    context: &StatementContext,
    table: &Table,
    alias: &Ident,
    set: Vec<Option<Expr>>,
    items: &mut Vec<SelectItem>,
) -> Result<Vec<coerce::Target>, SqlError> {
    let state = session_state(context);
    let columns = table.column_names().zip(set).enumerate();
    let targets = columns.map(|(position, (name, value))| {
        let value = match value {
            Some(value) if is_word_default(&value) => {
                return default_target(&state, table, position);
            }
            Some(value) => values::for_column(value, table.schema.field(position).data_type()),
            None => target::column(alias, name),
        };
        items.push(target::named(value, items.len()));
        Ok(coerce::Target::Source(items.len() - 1))
    });
    targets.collect()
}
