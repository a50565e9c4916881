//! `ORDER BY ALL`: by all columns, from left to right.
//!
//! ```text
//! SELECT a, b FROM t ORDER BY ALL DESC     SELECT a, b FROM t ORDER BY 1 DESC, 2 DESC
//! SELECT * FROM t ORDER BY ALL             asks for the columns of SELECT * FROM t
//! ```
//!
//! The planner orders by names, of which a query may have one twice. A query that refers to rows around it cannot be
//! asked, and is left to it.

use crate::text::column_lists::width;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, OrderByExpr, OrderByKind, OrderByOptions, Query, SetExpr, Value,
};

/// The part of a query whose columns have to be known; `None` if its text tells, or it is ordered otherwise.
pub(super) fn of_query(query: &mut Query) -> Option<SetExpr> {
    let options = all(query)?;
    if let Some(columns) = width(&query.body) {
        order(query, columns, options);
        return None;
    }
    Some(SetExpr::clone(&query.body))
}

/// Orders the query by the columns that it was found to have, if that is known.
pub(super) fn settle(query: &mut Query, columns: Option<usize>) {
    let Some(options) = all(query) else {
        return;
    };
    match columns {
        Some(columns) => order(query, columns, options),
        None => set(query, OrderByKind::All(options)),
    }
}

/// How a query is ordered by all columns, if it is. The parser takes ALL for a column.
fn all(query: &Query) -> Option<OrderByOptions> {
    let OrderByKind::Expressions(list) = &query.order_by.as_ref()?.kind else {
        return None;
    };
    match &list[..] {
        [
            OrderByExpr {
                expr:
                    Expr::Identifier(Ident {
                        value,
                        quote_style: None,
                        ..
                    }),
                options,
                ..
            },
        ] if value.eq_ignore_ascii_case("all") => Some(*options),
        _ => None,
    }
}

fn order(query: &mut Query, columns: usize, options: OrderByOptions) {
    let number = |number: usize| OrderByExpr {
        expr: Expr::value(Value::Number(number.to_string(), false)),
        options,
        with_fill: None,
    };
    set(
        query,
        OrderByKind::Expressions((1..=columns).map(number).collect()),
    );
}

fn set(query: &mut Query, kind: OrderByKind) {
    if let Some(order_by) = &mut query.order_by {
        order_by.kind = kind;
    }
}
