//! Strings beside BLOB and UUID values become such values, as strings beside numbers become numbers. So do constants
//! beside BOOLEAN: `b = 'true'`. TIME beside TIME(9) becomes as fine.

use super::{by_function, is_binary, is_uuid};
use crate::comparison::{ONE_OF, of_one_type};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, cast};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::mem::take;

/// The expression with its strings as values of the type that is beside them.
///
/// # Errors
/// LIKE of such a value.
pub(super) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Expr::Like(like) | Expr::SimilarTo(like) = &expr
        && let Ok(of) = like.expr.get_type(schema)
        && is_binary(&of)
    {
        return plan_err!("There isn't a common type to coerce {of} and Utf8 in LIKE expression");
    }
    let mut changed = false;
    for operands in operands(&mut expr) {
        changed |= become_one(operands, schema);
    }
    Ok(Transformed::new_transformed(expr, changed))
}

/// Does so for operators when they are planned: DataFusion compares their types already then.
#[derive(Debug)]
pub(crate) struct Beside;

impl ExprPlanner for Beside {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        if matches!(expr.op, Eq | NotEq | Lt | LtEq | Gt | GtEq) {
            become_one(vec![&mut expr.left, &mut expr.right], schema);
        }
        Ok(PlannerResult::Original(expr))
    }
}

/// The operands of an expression that are of one type.
fn operands(expr: &mut Expr) -> Vec<Vec<&mut Expr>> {
    let is_operator = |binary: &BinaryExpr| binary.op.supports_propagation();
    of_one_type(expr, &is_operator, &|name| ONE_OF.contains(&name))
}

fn constants_become_boolean(operands: Vec<&mut Expr>) -> bool {
    let mut changed = false;
    for operand in operands {
        if let Expr::Literal(value, _) = &*operand
            && value.data_type().is_string()
        {
            *operand = cast(take(operand), DataType::Boolean);
            changed = true;
        }
    }
    changed
}

/// Whether times of microseconds were beside times of nanoseconds.
fn times_become_finer(operands: Vec<&mut Expr>, types: &[DataType]) -> bool {
    const FINE: DataType = DataType::Time64(TimeUnit::Nanosecond);
    const COARSE: DataType = DataType::Time64(TimeUnit::Microsecond);
    if !types.contains(&FINE) || !types.contains(&COARSE) {
        return false;
    }
    for (operand, _) in operands
        .into_iter()
        .zip(types)
        .filter(|(_, of)| **of == COARSE)
    {
        *operand = cast(take(operand), FINE);
    }
    true
}

/// Whether there were strings beside such values, or values of another type that become theirs.
fn become_one(mut operands: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let types = operands.iter().map(|operand| operand.get_type(schema));
    // What has no type, such as a parameter, gets one later.
    let types: Vec<_> = types.map(|of| of.unwrap_or(DataType::Null)).collect();
    if types.iter().any(|of| matches!(of, DataType::Time64(_))) {
        return times_become_finer(operands, &types);
    }
    let Some(of) = types.iter().find(|of| is_binary(of)) else {
        let is_boolean = |of: &DataType| *of == DataType::Boolean || of.is_string() || of.is_null();
        return types.contains(&DataType::Boolean)
            && types.iter().all(is_boolean)
            && constants_become_boolean(operands);
    };
    let to = match is_uuid(of) {
        true => of.clone(),
        false => DataType::BinaryView,
    };
    let mut changed = false;
    for (operand, from) in operands.iter_mut().zip(&types) {
        if from.is_string()
            && let Some(value) = by_function(operand, from, &to, false)
        {
            **operand = value;
            changed = true;
        }
    }
    changed
}
