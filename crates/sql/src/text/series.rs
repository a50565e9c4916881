//! A series in FROM for each row of the tables before it.
//!
//! ```text
//! FROM t, generate_series(1, t.x) AS g(i)      FROM t, unnest(generate_series(1, t.x)) AS g(i)
//! FROM t, LATERAL unnest(t.l) AS u(x)          FROM t, unnest(t.l) AS u(x)
//! ```
//!
//! As a table, a function has only constants for arguments. There it makes its rows without a list of them.
//!
//! The column is called as the table, as in PostgreSQL: `SELECT i FROM generate_series(1, 3) i`. In DuckDB the
//! function's name leads to it, too:
//!
//! ```text
//! SELECT r.range FROM range(3) r               SELECT r.r AS range FROM range(3) r(r)
//! ```

use crate::text::identifier::{last_name, normalize};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, OrderBy, Query, Select, SelectItem, SetExpr, TableAlias, TableAliasColumnDef,
    TableFactor, TableWithJoins, Visitor, VisitorMut,
};
use eris_syntax::{expressions_mut, own_expressions_mut, walk, walk_mut};
use std::ops::ControlFlow;

/// Functions that are tables, and have lists of the same values beside them.
const SERIES: [&str; 2] = ["generate_series", "range"];

const UNNEST: &str = "unnest";

/// Writes them out anywhere in a query.
pub(super) fn write_out(query: &mut Query) {
    // The visitor never breaks off.
    let _ = walk_mut(query, &mut SeriesOfRows);
}

struct SeriesOfRows;

impl VisitorMut for SeriesOfRows {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        of_body(&mut query.body, query.order_by.as_mut());
        ControlFlow::Continue(())
    }
}

fn of_body(body: &mut SetExpr, order_by: Option<&mut OrderBy>) {
    match body {
        SetExpr::Select(select) => of_select(select, order_by),
        SetExpr::SetOperation { left, right, .. } => {
            of_body(left, None);
            of_body(right, None);
        }
        _ => {}
    }
}

fn of_select(select: &mut Select, order_by: Option<&mut OrderBy>) {
    let mut named = Vec::new();
    select
        .from
        .iter_mut()
        .for_each(|tables| of_tables(tables, &mut named));
    if named.iter().all(NamedFunction::is_plain) {
        return;
    }
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expr) = item
            && let Some(column) = meant(expr, &named)
            && let Some(alias) = last_part(expr).cloned()
        {
            let expr = column;
            *item = SelectItem::ExprWithAlias { expr, alias };
        }
    }
    // The visitors never break off.
    let _ = own_expressions_mut(select, |expr| put(expr, &named));
    let qualified = |expr: &mut Expr| match expr {
        Expr::CompoundIdentifier(_) => put(expr, &named),
        _ => ControlFlow::Continue(()),
    };
    let _ = expressions_mut(select, qualified);
    if let Some(order_by) = order_by {
        let _ = own_expressions_mut(order_by, qualified);
    }
}

/// A function in FROM, and what its table and its column are called.
struct NamedFunction {
    function: String,
    alias: Ident,
}

impl NamedFunction {
    /// Whether table and column are called as the function.
    fn is_plain(&self) -> bool {
        normalize(&self.alias) == self.function
    }
}

fn of_tables(tables: &mut TableWithJoins, named: &mut Vec<NamedFunction>) {
    let joined = tables.joins.iter_mut().map(|join| &mut join.relation);
    for table in std::iter::once(&mut tables.relation).chain(joined) {
        match table {
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => of_tables(table_with_joins, named),
            table => named.extend(of_table(table)),
        }
    }
}

/// Names the column of a function, and makes a list of a series that differs by row.
fn of_table(table: &mut TableFactor) -> Option<NamedFunction> {
    let (name, args, alias) = match table {
        TableFactor::Table {
            name,
            args: Some(args),
            alias,
            with_ordinality: false,
            ..
        } => (name, &mut args.args, alias),
        TableFactor::Function {
            name,
            args,
            alias,
            with_ordinality: false,
            ..
        } => (name, args, alias),
        TableFactor::UNNEST {
            alias, array_exprs, ..
        } => return name_column(alias, UNNEST, array_exprs.len()),
        _ => return None,
    };
    let function = last_name(name).unwrap_or_default();
    let is_unnest = function == UNNEST;
    if !is_unnest && !SERIES.contains(&function.as_str()) {
        return None;
    }
    let columns = if is_unnest { args.len() } else { 1 };
    let named = name_column(alias, &function, columns);
    let lists = match is_unnest {
        true => {
            let lists = args.drain(..).filter_map(|arg| match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(list)) => Some(list),
                _ => None,
            });
            lists.collect()
        }
        false if args.iter().any(differs_by_row) => {
            vec![call(name.clone(), std::mem::take(args))]
        }
        false => return named,
    };
    *table = TableFactor::UNNEST {
        alias: alias.take(),
        array_exprs: lists,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: false,
    };
    named
}

/// Names the columns of a function as its table, unless they have names. Several get numbers.
fn name_column(
    alias: &mut Option<TableAlias>,
    function: &str,
    columns: usize,
) -> Option<NamedFunction> {
    let alias = alias.get_or_insert_with(|| TableAlias {
        explicit: true,
        name: Ident::with_quote('"', function),
        columns: Vec::new(),
        at: None,
    });
    if !alias.columns.is_empty() {
        return None;
    }
    let name = |number: usize| match number {
        0 => alias.name.clone(),
        _ => Ident::with_quote('"', format!("{}_{number}", normalize(&alias.name))),
    };
    let names = (0..columns).map(|number| TableAliasColumnDef {
        name: name(number),
        data_type: None,
    });
    alias.columns = names.collect();
    Some(NamedFunction {
        function: function.to_owned(),
        alias: alias.name.clone(),
    })
}

/// The column that is meant by a function's name; `None` if it is none, or there are several.
fn meant(expr: &Expr, named: &[NamedFunction]) -> Option<Expr> {
    let mut tables = match expr {
        Expr::Identifier(column) => {
            let column = normalize(column);
            named
                .iter()
                .filter(|table| table.function == column)
                .collect::<Vec<_>>()
        }
        Expr::CompoundIdentifier(parts) => {
            let [table, column] = &parts[..] else {
                return None;
            };
            let (name, column) = (normalize(table), normalize(column));
            let is_meant = |table: &&NamedFunction| {
                table.function == column && normalize(&table.alias) == name
            };
            named.iter().filter(is_meant).collect()
        }
        _ => return None,
    };
    let table = tables.pop().filter(|_| tables.is_empty())?;
    if table.is_plain() {
        return None;
    }
    Some(Expr::CompoundIdentifier(vec![
        table.alias.clone(),
        table.alias.clone(),
    ]))
}

fn last_part(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Identifier(name) => Some(name),
        Expr::CompoundIdentifier(parts) => parts.last(),
        _ => None,
    }
}

fn put(expr: &mut Expr, named: &[NamedFunction]) -> ControlFlow<()> {
    if let Some(column) = meant(expr, named) {
        *expr = column;
    }
    ControlFlow::Continue(())
}

/// Whether an argument has columns or queries in it.
pub(super) fn differs_by_row(arg: &FunctionArg) -> bool {
    struct Differs;
    impl Visitor for Differs {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => walk(expr, &mut Differs).is_break(),
        _ => false,
    }
}

/// A call without any clause.
pub(super) fn call(name: ObjectName, args: Vec<FunctionArg>) -> Expr {
    Expr::Function(Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
