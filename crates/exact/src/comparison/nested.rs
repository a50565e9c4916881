//! `<`, `<=`, `>`, `>=` and BETWEEN of structs and lists.
//!
//! **Stands for** DataFusion's comparison of nested values, to which NULL within a value is less than anything. Here it
//! is greater, as for ORDER BY, `max` and `min`, and as in DuckDB.

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, make_comparator};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Between, BinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use std::cmp::Ordering;
use std::sync::Arc;

/// NULL within a value is greater than anything.
pub(crate) const ORDER: SortOptions = SortOptions {
    descending: false,
    nulls_first: false,
};

/// The comparison of nested values in the place of DataFusion's; `None` if it is none. Comes when both are of one type.
pub(crate) fn compared(expr: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is_nested = |expr: &Expr| expr.get_type(schema).is_ok_and(|of| of.is_nested());
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_nested(left) => {
            Some(call(Comparison::of(*op)?, left, right))
        }
        Expr::Between(Between {
            expr,
            negated,
            low,
            high,
        }) if is_nested(expr) => {
            let above = call(Comparison::AtLeast, expr, low);
            let below = call(Comparison::AtMost, expr, high);
            let within = above.and(below);
            Some(match negated {
                true => Expr::Not(Box::new(within)),
                false => within,
            })
        }
        _ => None,
    }
}

fn call(comparison: Comparison, left: &Expr, right: &Expr) -> Expr {
    let function = ScalarUDF::from(Compare {
        comparison,
        signature: Signature::any(2, Volatility::Immutable),
    });
    function.call(vec![left.clone(), right.clone()])
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Comparison {
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Comparison {
    fn of(op: Operator) -> Option<Self> {
        Some(match op {
            Operator::Lt => Comparison::Less,
            Operator::LtEq => Comparison::AtMost,
            Operator::Gt => Comparison::Greater,
            Operator::GtEq => Comparison::AtLeast,
            _ => return None,
        })
    }

    fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Less => order.is_lt(),
            Comparison::AtMost => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::AtLeast => order.is_ge(),
        }
    }
}

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Compare {
    comparison: Comparison,
    signature: Signature,
}

impl ScalarUDFImpl for Compare {
    fn name(&self) -> &str {
        match self.comparison {
            Comparison::Less => "nested_less",
            Comparison::AtMost => "nested_at_most",
            Comparison::Greater => "nested_greater",
            Comparison::AtLeast => "nested_at_least",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = &columns[..] else {
            unreachable!("the signature has two arguments");
        };
        let compared: ArrayRef = Arc::new(self.compare(left, right)?);
        Ok(ColumnarValue::Array(compared))
    }
}

impl Compare {
    fn compare(&self, left: &ArrayRef, right: &ArrayRef) -> Result<BooleanArray> {
        let compare = make_comparator(left, right, ORDER)?;
        let holds = |row: usize| self.comparison.holds(compare(row, row));
        let values = BooleanBuffer::collect_bool(left.len(), holds);
        let nulls = NullBuffer::union(
            left.logical_nulls().as_ref(),
            right.logical_nulls().as_ref(),
        );
        Ok(BooleanArray::new(values, nulls))
    }
}
