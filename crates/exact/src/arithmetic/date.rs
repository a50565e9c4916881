//! A date and an interval together are a timestamp, as in PostgreSQL and DuckDB.
//!
//! **Stands for** DataFusion's arithmetic, which makes a date of them: an hour more is lost.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, cast};
use std::mem::take;

/// A date beside an interval as the timestamp of its midnight.
pub(crate) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(rewritten(expr, schema))
}

fn rewritten(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = &mut expr else {
        return Transformed::no(expr);
    };
    let is_date = |operand: &Expr| {
        operand
            .get_type(schema)
            .is_ok_and(|of| of == DataType::Date32)
    };
    let is_interval = |operand: &Expr| {
        let of = operand.get_type(schema);
        of.is_ok_and(|of| matches!(of, DataType::Interval(_)))
    };
    let date = match op {
        Operator::Plus | Operator::Minus if is_date(left) && is_interval(right) => left,
        Operator::Plus if is_interval(left) && is_date(right) => right,
        _ => return Transformed::no(expr),
    };
    let midnight = DataType::Timestamp(TimeUnit::Microsecond, None);
    **date = cast(take(&mut **date), midnight);
    Transformed::yes(expr)
}
