//! A date and an interval together are a timestamp, as in PostgreSQL and DuckDB. So is a date that is truncated.
//!
//! **Stands for** DataFusion's arithmetic, which makes a date of them: an hour more is lost. And for its `date_trunc`,
//! which makes timestamps of nanoseconds, and these end in 2262.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, cast};
use std::mem::take;

/// A date beside an interval, or truncated, as the timestamp of its midnight.
pub(crate) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(rewritten(expr, schema))
}

fn rewritten(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let is_date = |operand: &Expr| {
        operand
            .get_type(schema)
            .is_ok_and(|of| of == DataType::Date32)
    };
    let is_interval = |operand: &Expr| {
        let of = operand.get_type(schema);
        of.is_ok_and(|of| matches!(of, DataType::Interval(_)))
    };
    let date = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::Plus | Operator::Minus if is_date(left) && is_interval(right) => left,
            Operator::Plus if is_interval(left) && is_date(right) => right,
            _ => return Transformed::no(expr),
        },
        Expr::ScalarFunction(call) if call.name() == "date_trunc" => match &mut call.args[..] {
            [_, date] if is_date(date) => date,
            _ => return Transformed::no(expr),
        },
        _ => return Transformed::no(expr),
    };
    let midnight = DataType::Timestamp(TimeUnit::Microsecond, None);
    *date = cast(take(date), midnight);
    Transformed::yes(expr)
}
