//! Expressions that are always quick. An owner evaluates them between commands, on a small stack, and nobody can stop
//! them.
//!
//! Numbers are computed and compared. Strings are at most passed on or compared: to make, search or read one takes as
//! long as it is.

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, Literal,
    NegativeExpr, NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use eris_exact::Replacement;
use std::sync::Arc;

/// Parts of an expression, and so its levels, too.
const MOST_PARTS: usize = 64;

/// Whether it is one of these, over columns of the schema.
pub(crate) fn is_quick(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let mut parts = MOST_PARTS;
    are_quick(expr, schema, &mut parts)
}

fn are_quick(expr: &Arc<dyn PhysicalExpr>, schema: &Schema, parts: &mut usize) -> bool {
    if *parts == 0 {
        return false;
    }
    *parts -= 1;
    if expr.is::<Column>() || expr.is::<Literal>() {
        return true;
    }
    let is_operator = || match expr.downcast_ref::<BinaryExpr>() {
        Some(binary) => is_quick_operator(*binary.op()),
        None => false,
    };
    let is_cast = || {
        let cast = expr.downcast_ref::<CastExpr>();
        let from = cast.and_then(|cast| cast.expr().data_type(schema).ok());
        from.is_some_and(|from| is_number(&from))
    };
    let of_numbers = || {
        let function = expr.downcast_ref::<ScalarFunctionExpr>();
        function.is_some_and(|function| Replacement::of(function.fun()).is_some())
    };
    let is_known = is_operator()
        || is_cast()
        || expr.is::<CaseExpr>()
        || expr.is::<InListExpr>()
        || expr.is::<IsNullExpr>()
        || expr.is::<IsNotNullExpr>()
        || expr.is::<NotExpr>()
        || expr.is::<NegativeExpr>()
        || of_numbers();
    is_known
        && expr
            .data_type(schema)
            .is_ok_and(|result| is_number(&result))
        && (expr.children().into_iter()).all(|child| are_quick(child, schema, parts))
}

fn is_number(data_type: &DataType) -> bool {
    data_type.primitive_width().is_some() || *data_type == DataType::Boolean
}

/// Arithmetic, comparisons and logic, but no patterns.
fn is_quick_operator(op: Operator) -> bool {
    use Operator::{
        And, Divide, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, Minus, Modulo,
        Multiply, NotEq, Or, Plus,
    };
    matches!(
        op,
        And | Divide
            | Eq
            | Gt
            | GtEq
            | IsDistinctFrom
            | IsNotDistinctFrom
            | Lt
            | LtEq
            | Minus
            | Modulo
            | Multiply
            | NotEq
            | Or
            | Plus
    )
}
