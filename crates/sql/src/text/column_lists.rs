//! `t AS x(a)`: an alias may name only the first columns of a table. The others keep their names.
//!
//! ```text
//! SELECT * FROM t AS x(a)             SELECT * FROM t AS x(a, "c2", "c3")
//! WITH q(a) AS (SELECT * FROM t) …    WITH q(a, "c2", "c3") AS (SELECT * FROM t) …
//! ```
//!
//! The planner wants a name for each. Where a query tells by its text that every column has one, nothing is asked.

use crate::text::identifier::normalize;
use crate::text::wildcards::call::is_call;
use datafusion::sql::sqlparser::ast::{
    Cte, Expr, Ident, Query, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
};
use eris_syntax::expressions;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// The table, with the names that it has by itself, if they have to be known.
pub(super) fn of_table(table: &TableFactor) -> Option<TableFactor> {
    let names = named(alias(table)?)?;
    match table {
        TableFactor::Derived { subquery, .. } if is_known(subquery, names) => return None,
        // A function that makes rows out of its arguments has one column.
        TableFactor::Table { args: Some(_), .. } => return None,
        _ => {}
    }
    let mut table = table.clone();
    alias_mut(&mut table)?.columns.clear();
    Some(table)
}

/// The query in WITH, if its columns have to be known.
pub(super) fn of_cte(cte: &Cte) -> Option<Query> {
    let names = named(&cte.alias)?;
    (!is_known(&cte.query, names)).then(|| Query::clone(&cte.query))
}

/// Names the other columns of a table, too.
pub(super) fn complete_table(table: &mut TableFactor, columns: Vec<Ident>) {
    if let Some(alias) = alias_mut(table) {
        complete(alias, columns);
    }
}

/// Names the other columns, too. One whose name has been given to another gets a number, as in DuckDB.
pub(super) fn complete(alias: &mut TableAlias, columns: Vec<Ident>) {
    let others = columns.into_iter().skip(alias.columns.len());
    let mut taken: HashSet<String> = alias
        .columns
        .iter()
        .map(|column| normalize(&column.name))
        .collect();
    for mut name in others {
        let own = name.value.clone();
        let mut number = 0;
        while !taken.insert(name.value.clone()) {
            number += 1;
            name.value = format!("{own}_{number}");
        }
        alias.columns.push(TableAliasColumnDef {
            name,
            data_type: None,
        });
    }
}

/// How many columns an alias names, if it names any.
fn named(alias: &TableAlias) -> Option<usize> {
    (!alias.columns.is_empty()).then_some(alias.columns.len())
}

/// Whether the text tells that a query has no more columns than these.
fn is_known(query: &Query, names: usize) -> bool {
    width(&query.body).is_some_and(|columns| columns <= names)
}

/// How many columns a query has, if its text tells.
pub(super) fn width(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Select(select) => {
            let is_one = |item: &SelectItem| match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                    !stands_for_columns(expr)
                }
                _ => false,
            };
            let items = &select.projection;
            items.iter().all(is_one).then_some(items.len())
        }
        SetExpr::Values(values) => values.rows.first().map(|row| row.len()),
        SetExpr::SetOperation { left, .. } => width(left),
        SetExpr::Query(query) => width(&query.body),
        _ => None,
    }
}

fn stands_for_columns(expr: &Expr) -> bool {
    let found = expressions(expr, |part| match is_call(part) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    found.is_break()
}

fn alias(table: &TableFactor) -> Option<&TableAlias> {
    match table {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => alias.as_ref(),
        _ => None,
    }
}

fn alias_mut(table: &mut TableFactor) -> Option<&mut TableAlias> {
    match table {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::NestedJoin { alias, .. } => alias.as_mut(),
        _ => None,
    }
}
