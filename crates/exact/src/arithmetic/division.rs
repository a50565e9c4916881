//! Division of DECIMAL gives DOUBLE, as in DuckDB.
//!
//! **Stands for** DataFusion's division of decimals, which cuts the quotient: `1 / 3.0` has four digits, `amount / 3`
//! six. Sums and products of DECIMAL stay exact. A quotient has no end of digits, so none are promised
//! (`docs/decisions/0026`).

use crate::comparison::mixed::{is_decimal, to_double};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, cast};

/// A division of DECIMAL as one of DOUBLE.
pub(crate) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(rewritten(expr, schema))
}

fn rewritten(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr {
        left,
        op: Operator::Divide,
        right,
    }) = expr
    else {
        return Transformed::no(expr);
    };
    let types = [&left, &right].map(|operand| operand.get_type(schema));
    let is_number = |data_type: &DataType| data_type.is_numeric();
    let are_decimal = match &types {
        [Ok(left), Ok(right)] => {
            is_number(left) && is_number(right) && (is_decimal(left) || is_decimal(right))
        }
        _ => false,
    };
    if !are_decimal {
        return Transformed::no(Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Divide,
            right,
        }));
    }
    let double = |operand: Box<Expr>| match to_double(*operand, schema) {
        number if number.get_type(schema).is_ok_and(|of| of.is_integer()) => {
            Box::new(cast(number, DataType::Float64))
        }
        number => Box::new(number),
    };
    Transformed::yes(Expr::BinaryExpr(BinaryExpr {
        left: double(left),
        op: Operator::Divide,
        right: double(right),
    }))
}
