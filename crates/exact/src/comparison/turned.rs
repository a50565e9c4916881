//! Constants stand behind the operator: `3 < x` becomes `x > 3`.
//!
//! **Stands for** a simplification of DataFusion. Of `x >= 3 AND 3 < x` it keeps one condition, and takes the wrong
//! one: which of two is stricter goes by the operator, without looking which side has the constant. It turns such
//! comparisons itself where they are written so, but not those that come out of a cast later, such as that of a date to
//! a timestamp.

use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{Expr, Operator};

/// Turns a comparison whose left side alone has no columns.
pub(crate) fn rewrite(expr: Expr, _: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if !left.any_column_refs() && right.any_column_refs() =>
        {
            match turned(op) {
                Some(op) => Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(right, op, left))),
                None => Transformed::no(Expr::BinaryExpr(BinaryExpr::new(left, op, right))),
            }
        }
        other => Transformed::no(other),
    })
}

fn turned(op: Operator) -> Option<Operator> {
    Some(match op {
        Operator::Lt => Operator::Gt,
        Operator::LtEq => Operator::GtEq,
        Operator::Gt => Operator::Lt,
        Operator::GtEq => Operator::LtEq,
        _ => return None,
    })
}
