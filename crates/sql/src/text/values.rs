//! VALUES in queries, where the planner would fail or give other types.

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, Expr, Ident, Select, SelectItem, SetExpr, SetOperator, SetQuantifier,
    Value, Values,
};
use datafusion::sql::sqlparser::parser::Parser;
use eris_syntax::{ErisDialect, expressions};
use std::ops::ControlFlow;
use std::sync::LazyLock;

/// All VALUES of a query without those of its subqueries.
pub(super) fn write_out(body: &mut SetExpr) {
    match body {
        SetExpr::Values(values) => {
            exponents(values);
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

/// In VALUES, numbers with a point become DOUBLE beside numbers with an exponent, which are casts by now.
fn exponents(values: &mut Values) {
    let is_double = |cell: &Expr| {
        let Expr::Cast { data_type, .. } = cell else {
            return false;
        };
        matches!(
            data_type,
            DataType::Float8 | DataType::Double(_) | DataType::DoublePrecision
        )
    };
    let columns = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..columns {
        let mut cells = values.rows.iter().filter_map(|row| row.content.get(column));
        if !cells.any(is_double) {
            continue;
        }
        for row in &mut values.rows {
            if let Some(cell) = row.content.get_mut(column)
                && let Expr::Value(value) = &*cell
                && matches!(value.value, Value::Number(..))
            {
                *cell = Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(cell.clone()),
                    data_type: DataType::Float8,
                    array: false,
                    format: None,
                };
            }
        }
    }
}
