//! Which columns of a table a statement gives values, and where the others get theirs.

use super::coerce::Target;
use super::row_rules::ComputedDefault;
use crate::catalog::{DefaultValue, Table};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::system::functions::session_state;
use crate::text::identifier::normalize;
use datafusion::common::ScalarValue;
use datafusion::execution::context::SessionState;
use datafusion::sql::sqlparser::ast::{self, Ident, ObjectName};
use eris_types::most_similar;
use std::cell::LazyCell;

/// Where the values of each column of the table come from, if a source has those of `columns`, in this order.
pub(crate) fn targets(
    context: &StatementContext,
    table: &Table,
    columns: &[usize],
) -> Result<Vec<Target>, SqlError> {
    // Most statements need none.
    let state = LazyCell::new(|| session_state(context));
    let all = 0..table.types.len();
    all.map(
        |position| match columns.iter().position(|column| *column == position) {
            Some(source) => Ok(Target::Source(source)),
            None => default_target(&state, table, position),
        },
    )
    .collect()
}

/// The default of a column, or NULL.
pub(crate) fn default_target(
    state: &SessionState,
    table: &Table,
    position: usize,
) -> Result<Target, SqlError> {
    let target = match &table.rules[position].default {
        None => {
            ScalarValue::try_from(table.schema.field(position).data_type()).map(Target::Constant)
        }
        Some(DefaultValue {
            constant: Some(value),
            ..
        }) => Ok(Target::Constant(value.clone())),
        Some(default) => ComputedDefault::new(state, default).map(Target::Computed),
    };
    target.map_err(SqlError::from_datafusion)
}

/// The same as an expression.
pub(crate) fn default_expr(table: &Table, position: usize) -> ast::Expr {
    match &table.rules[position].default {
        Some(default) => default.expr.clone(),
        None => ast::Expr::value(ast::Value::Null),
    }
}

/// Positions in the table of the columns that an INSERT names; all of them if it names none.
pub(crate) fn columns(table: &Table, names: &[ObjectName]) -> Result<Vec<usize>, SqlError> {
    if names.is_empty() {
        return Ok((0..table.types.len()).collect());
    }
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let plain: Option<&Ident> = match &name.0[..] {
            [part] => part.as_ident(),
            _ => None,
        };
        let plain = plain.map_or_else(|| name.to_string(), normalize);
        let position = table.schema.index_of(&plain).map_err(|_| {
            let all = table
                .schema
                .fields()
                .iter()
                .map(|field| field.name().as_str());
            SqlError::invalid(
                Mistake::UndefinedColumn,
                format!("table \"{}\" has no column \"{plain}\"", table.name),
            )
            .with_hint(most_similar(&plain, all).map(|name| format!("did you mean \"{name}\"?")))
        })?;
        if columns.contains(&position) {
            return Err(SqlError::invalid(
                Mistake::DuplicateColumn,
                format!("column \"{plain}\" occurs twice"),
            ));
        }
        columns.push(position);
    }
    Ok(columns)
}

/// Whether the value is the word DEFAULT.
pub(crate) fn is_word_default(cell: &ast::Expr) -> bool {
    matches!(cell, ast::Expr::Identifier(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default"))
}
