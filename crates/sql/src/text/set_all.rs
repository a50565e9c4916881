//! `EXCEPT ALL` and `INTERSECT ALL`, which count: DataFusion's joins only look whether there is an equal row.
//!
//! Equal rows are numbered on both sides, and so become different rows that can be compared as sets:
//!
//! ```text
//!  A EXCEPT ALL B        SELECT a, b FROM (
//!                          SELECT a, b, row_number() OVER (PARTITION BY a, b) FROM (A)
//!                          EXCEPT
//!                          SELECT a, b, row_number() OVER (PARTITION BY a, b) FROM (B))
//! ```

use crate::error::SqlError;
use crate::text::names::shown;
use datafusion::sql::sqlparser::ast::{
    Query, SetExpr, SetOperator, SetQuantifier, Statement, TableFactor, Values, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use eris_syntax::ErisDialect;
use eris_syntax::walk_mut;
use std::ops::ControlFlow;

/// Numbers the rows of all such operations in a query.
///
/// # Errors
/// A list with a wildcard: its columns are not known here.
pub(crate) fn number(query: &mut Query) -> Result<(), SqlError> {
    match walk_mut(query, &mut Operations) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

struct Operations;

impl VisitorMut for Operations {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<SqlError>> {
        body(&mut query.body)
    }
}

fn body(expr: &mut SetExpr) -> ControlFlow<Box<SqlError>> {
    let SetExpr::SetOperation {
        op,
        set_quantifier,
        left,
        right,
    } = expr
    else {
        return ControlFlow::Continue(());
    };
    body(left)?;
    body(right)?;
    let (SetOperator::Except | SetOperator::Intersect, SetQuantifier::All) =
        (&*op, &*set_quantifier)
    else {
        return ControlFlow::Continue(());
    };
    let Some(columns) = columns(left) else {
        let error = SqlError::not_supported(format!("{op} ALL with * in its list of columns"));
        let error = error.with_hint(Some("name the columns"));
        return ControlFlow::Break(Box::new(error));
    };
    let quoted = columns
        .iter()
        .map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
    let names = quoted.collect::<Vec<_>>().join(", ");
    let numbered = |side: &str| {
        format!(
            "SELECT {names}, row_number() OVER (PARTITION BY {names}) FROM (SELECT 1) AS {side} ({names})"
        )
    };
    let sql = format!(
        "SELECT {names} FROM ({} {op} {}) AS numbered",
        numbered(LEFT),
        numbered(RIGHT)
    );
    let mut parsed = Parser::parse_sql(&ErisDialect, &sql).expect("the text is SQL");
    let Some(Statement::Query(mut whole)) = parsed.pop() else {
        unreachable!("the text is a query");
    };
    let no_rows = Values {
        explicit_row: false,
        value_keyword: false,
        rows: Vec::new(),
    };
    let nothing = || Box::new(SetExpr::Values(no_rows.clone()));
    let mut sides = Sides {
        left: Some(std::mem::replace(left, nothing())),
        right: Some(std::mem::replace(right, nothing())),
    };
    let _ = walk_mut(whole.as_mut(), &mut sides);
    *expr = *whole.body;
    ControlFlow::Continue(())
}

const LEFT: &str = "left_side";
const RIGHT: &str = "right_side";

/// Puts the operands in their places.
struct Sides {
    left: Option<Box<SetExpr>>,
    right: Option<Box<SetExpr>>,
}

impl VisitorMut for Sides {
    type Break = ();

    fn post_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Derived {
            subquery,
            alias: Some(alias),
            ..
        } = table
        {
            let side = match alias.name.value.as_str() {
                LEFT => self.left.take(),
                RIGHT => self.right.take(),
                _ => None,
            };
            if let Some(side) = side {
                subquery.body = side;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The names of a query's columns, if its text tells.
fn columns(expr: &SetExpr) -> Option<Vec<String>> {
    match expr {
        SetExpr::Select(select) => select.projection.iter().map(shown).collect(),
        SetExpr::Query(query) => columns(&query.body),
        SetExpr::SetOperation { left, .. } => columns(left),
        SetExpr::Values(values) => {
            let columns = values.rows.first()?.content.len();
            Some(
                (1..=columns)
                    .map(|column| format!("column{column}"))
                    .collect(),
            )
        }
        _ => None,
    }
}
