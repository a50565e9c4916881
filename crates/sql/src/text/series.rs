//! A series in FROM for each row of the tables before it.
//!
//! ```text
//! FROM t, generate_series(1, t.x) AS g(i)      FROM t, unnest(generate_series(1, t.x)) AS g(i)
//! FROM t, LATERAL unnest(t.l) AS u(x)          FROM t, unnest(t.l) AS u(x)
//! ```
//!
//! As a table, a function has only constants for arguments. There it makes its rows without a list of them. Either way
//! the column is called as the function, as in DuckDB and PostgreSQL.

use crate::text::identifier::last_name;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    ObjectName, Query, TableAlias, TableAliasColumnDef, TableFactor, Visitor, VisitorMut,
};
use eris_syntax::{walk, walk_mut};
use std::ops::ControlFlow;

/// Functions that are tables, and have lists of the same values beside them.
const SERIES: [&str; 2] = ["generate_series", "range"];

/// Writes them out anywhere in a query.
pub(super) fn write_out(query: &mut Query) {
    // The visitor never breaks off.
    let _ = walk_mut(query, &mut SeriesOfRows);
}

struct SeriesOfRows;

impl VisitorMut for SeriesOfRows {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        let (name, args, alias) = match table {
            TableFactor::Table {
                name,
                args: Some(args),
                alias,
                ..
            } => (name, &mut args.args, alias),
            TableFactor::Function {
                name,
                args,
                alias,
                with_ordinality: false,
                ..
            } => (name, args, alias),
            _ => return ControlFlow::Continue(()),
        };
        let function = last_name(name).unwrap_or_default();
        if SERIES.contains(&function.as_str()) {
            *alias = Some(named(alias.take(), &function));
        }
        let lists = match function.as_str() {
            "unnest" => {
                let lists = args.drain(..).filter_map(|arg| match arg {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(list)) => Some(list),
                    _ => None,
                });
                lists.collect()
            }
            series if SERIES.contains(&series) && args.iter().any(differs_by_row) => {
                vec![call(name.clone(), std::mem::take(args))]
            }
            _ => return ControlFlow::Continue(()),
        };
        *table = TableFactor::UNNEST {
            alias: alias.take(),
            array_exprs: lists,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: false,
        };
        ControlFlow::Continue(())
    }
}

/// Whether an argument has columns or queries in it.
fn differs_by_row(arg: &FunctionArg) -> bool {
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

fn call(name: ObjectName, args: Vec<FunctionArg>) -> Expr {
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

/// The alias with a name for the column.
fn named(alias: Option<TableAlias>, function: &str) -> TableAlias {
    let mut alias = alias.unwrap_or_else(|| TableAlias {
        explicit: true,
        name: Ident::with_quote('"', function),
        columns: Vec::new(),
        at: None,
    });
    if alias.columns.is_empty() {
        alias.columns.push(TableAliasColumnDef {
            name: Ident::with_quote('"', function),
            data_type: None,
        });
    }
    alias
}
