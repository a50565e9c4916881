//! All NaN are one value, greater than any number.
//!
//! **Stands for** DataFusion's comparisons, groups, sorts and joins, which go by the bits of a number. There are many
//! NaN by their bits. Those with a sign come before all numbers there, and x86 computes just these: `0.0 / 0.0`,
//! `∞ - ∞`, `sqrt(-1)`.
//!
//! So there is only one NaN in Eris. A NaN gets its bits where it comes into being: in what computes numbers (the rule
//! below), in rows on their way into a table, and in files that are read.
//!
//! ```text
//!  a / b > 1                   one_nan(a / b) > 1
//!  a * b + c                   one_nan(a * b + c)            arithmetic makes no number of a NaN
//!  sum(a * b)                  the same                      for the same reason
//! ```

use crate::columns::ColumnFunction;
use crate::comparison::ONE_OF;
use crate::comparison::zero::UNSIGNED_ZERO;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, PrimitiveArray, RecordBatch, RecordBatchOptions,
};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Float32Type, Float64Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{BinaryExpr, WindowFunctionDefinition};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, ScalarUDF};
use std::mem::take;
use std::sync::{Arc, LazyLock};

/// An expression whose NaN is the one. The types of all operands are known.
pub(crate) fn rewrite(mut expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let made = match &mut expr {
        Expr::Literal(ScalarValue::Float64(Some(number)), _) if number.is_nan() => {
            *number = f64::NAN;
            return Transformed::no(expr);
        }
        Expr::Literal(ScalarValue::Float32(Some(number)), _) if number.is_nan() => {
            *number = f32::NAN;
            return Transformed::no(expr);
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_arithmetic(*op) => {
            as_computed(left);
            as_computed(right);
            true
        }
        Expr::Negative(operand) => {
            as_computed(operand);
            true
        }
        Expr::ScalarFunction(function) => {
            let name = function.func.name();
            name != ONE_NAN && name != UNSIGNED_ZERO && !ONE_OF.contains(&name)
        }
        Expr::Cast(cast) => is_text(&cast.expr, schema),
        Expr::TryCast(cast) => is_text(&cast.expr, schema),
        Expr::AggregateFunction(function) if ADD.contains(&function.func.name()) => {
            function.params.args.iter_mut().for_each(as_computed);
            false
        }
        Expr::WindowFunction(function) => {
            if let WindowFunctionDefinition::AggregateUDF(of) = &function.fun
                && ADD.contains(&of.name())
            {
                function.params.args.iter_mut().for_each(as_computed);
            }
            false
        }
        _ => false,
    };
    if made && (expr.get_type(schema)).is_ok_and(|of| of.is_floating()) {
        return Transformed::yes(FUNCTION.call(vec![expr]));
    }
    Transformed::no(expr)
}

/// Aggregates that are NaN if one of their numbers is.
const ADD: [&str; 2] = ["sum", "avg"];

fn is_arithmetic(op: Operator) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    matches!(op, Plus | Minus | Multiply | Divide | Modulo)
}

fn is_text(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|of| of.is_string())
}

/// Takes the function away again, where a NaN of any bits does.
fn as_computed(expr: &mut Expr) {
    if let Expr::ScalarFunction(function) = expr
        && function.func.name() == ONE_NAN
    {
        *expr = take(&mut function.args[0]);
    }
}

/// The name of the function: the same number, and the one NaN for any.
pub(crate) const ONE_NAN: &str = "one_nan";

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let values = |column: &ArrayRef| Ok(one_nan(column));
    Arc::new(ColumnFunction::scalar(ONE_NAN, DataType::clone, values))
});

/// The same column with one NaN for all. It is copied only if it has others.
pub fn one_nan(column: &ArrayRef) -> ArrayRef {
    let changed = match column.data_type() {
        DataType::Float32 => {
            let is_other = |number: f32| number.is_nan() && number.to_bits() != NAN_BITS_32;
            with_one::<Float32Type>(column, is_other, f32::NAN)
        }
        DataType::Float64 => {
            let is_other = |number: f64| number.is_nan() && number.to_bits() != NAN_BITS_64;
            with_one::<Float64Type>(column, is_other, f64::NAN)
        }
        _ => None,
    };
    changed.unwrap_or_else(|| Arc::clone(column))
}

const NAN_BITS_32: u32 = f32::NAN.to_bits();
const NAN_BITS_64: u64 = f64::NAN.to_bits();

/// The same rows with one NaN for all.
pub fn one_nan_in_rows(rows: RecordBatch) -> RecordBatch {
    if !(rows.schema_ref().fields().iter()).any(|field| field.data_type().is_floating()) {
        return rows;
    }
    let (schema, mut columns, count) = rows.into_parts();
    columns
        .iter_mut()
        .for_each(|column| *column = one_nan(column));
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(schema, columns, &options).expect("types and lengths stay")
}

fn with_one<T: ArrowPrimitiveType>(
    column: &ArrayRef,
    is_other: impl Fn(T::Native) -> bool,
    nan: T::Native,
) -> Option<ArrayRef> {
    let numbers = column.as_primitive::<T>();
    // Without an early end, so that it is done by vectors.
    let others = (numbers.values().iter()).fold(false, |any, &number| any | is_other(number));
    let changed = || -> PrimitiveArray<T> {
        numbers.unary(|number| if is_other(number) { nan } else { number })
    };
    others.then(|| Arc::new(changed()) as _)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Float32Array, Float64Array};

    #[test]
    fn a_nan_has_one_form_and_other_numbers_stay() {
        let numbers = [Some(-f64::NAN), None, Some(-0.0), Some(f64::INFINITY)];
        let column: ArrayRef = Arc::new(Float64Array::from(numbers.to_vec()));
        let one = one_nan(&column);
        let one = one.as_primitive::<Float64Type>();
        assert_eq!(one.value(0).to_bits(), NAN_BITS_64);
        assert!(one.is_null(1) && one.value(2).is_sign_negative() && one.value(3) == f64::INFINITY);

        let column: ArrayRef = Arc::new(Float32Array::from(vec![1.0, f32::NAN]));
        assert!(Arc::ptr_eq(&one_nan(&column), &column));
    }
}
