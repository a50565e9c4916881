//! VALUES in queries, where the planner would fail.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, Values,
};
use datafusion::sql::sqlparser::parser::Parser;
use eris_syntax::{ErisDialect, expressions};
use std::ops::ControlFlow;
use std::sync::LazyLock;

/// All VALUES of a query without those of its subqueries.
pub(super) fn write_out(body: &mut SetExpr) {
    match body {
        SetExpr::Values(values) => {
            if let Some(union) = with_subqueries(values) {
                *body = union;
            }
        }
        SetExpr::SetOperation { left, right, .. } => {
            write_out(left);
            write_out(right);
        }
        _ => {}
    }
}

/// VALUES with a subquery in a cell, which the planner does not run there, as a UNION of queries without FROM.
fn with_subqueries(values: &Values) -> Option<SetExpr> {
    let has_subquery = |cell: &Expr| {
        expressions(cell, |expr| match expr {
            Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. } => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        })
        .is_break()
    };
    let mut cells = values.rows.iter().flat_map(|row| &row.content);
    if !cells.any(has_subquery) {
        return None;
    }
    let selects = values.rows.iter().map(|row| {
        let mut select = ONE_ROW.clone();
        let cells = row.content.iter().enumerate();
        let items = cells.map(|(number, cell)| SelectItem::ExprWithAlias {
            expr: cell.clone(),
            alias: Ident::new(format!("column{}", number + 1)),
        });
        select.projection = items.collect();
        SetExpr::Select(Box::new(select))
    });
    selects.reduce(|left, right| SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        left: Box::new(left),
        right: Box::new(right),
    })
}

static ONE_ROW: LazyLock<Select> = LazyLock::new(|| {
    let parser = Parser::new(&ErisDialect).try_with_sql("SELECT 1");
    let select = parser.and_then(|mut parser| parser.parse_select());
    select.expect("the text is SQL")
});
