//! A constant that is not known yet, in a plan.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, Result, internal_err};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use eris_fragment::Type;
use std::sync::Arc;

/// The n-th parameter, from 0 on, as a function of the column that it is compared with: so it is constant for no rule
/// of DataFusion, but can go wherever that column goes. A fragment has it as a column behind those of its table, until
/// the value is known.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlanParameter {
    pub number: usize,
    data_type: DataType,
    signature: Signature,
}

impl ScalarUDFImpl for PlanParameter {
    fn name(&self) -> &str {
        "plan_parameter"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.data_type.clone())
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("a parameter of a plan was left above its fragment")
    }
}

/// The plan with such functions for `$1`, `$2` …
pub(crate) fn put_in(plan: LogicalPlan, types: &[Type]) -> Result<LogicalPlan> {
    let replaced = plan.transform_up(|node| {
        node.map_expressions(|expr| {
            expr.transform_up(|expr| {
                if !matches!(expr, Expr::BinaryExpr(_) | Expr::Between(_)) {
                    return Ok(Transformed::no(expr));
                }
                let column = expr.column_refs().into_iter().next().cloned();
                let Some(column) = column else {
                    return Ok(Transformed::no(expr));
                };
                expr.map_children(|operand| replaced(operand, &column, types))
            })
        })
    });
    replaced.data()
}

/// A placeholder that is compared with a column, as such a function of it.
fn replaced(operand: Expr, column: &Column, types: &[Type]) -> Result<Transformed<Expr>> {
    let Expr::Placeholder(Placeholder { id, .. }) = &operand else {
        return Ok(Transformed::no(operand));
    };
    let number: Option<usize> = id.strip_prefix('$').and_then(|id| id.parse().ok());
    let Some(number) = number.filter(|number| (1..=types.len()).contains(number)) else {
        return internal_err!("parameter {id} of a plan is not known");
    };
    let function = ScalarUDF::from(PlanParameter {
        number: number - 1,
        data_type: DataType::from(&types[number - 1]),
        signature: Signature::any(1, Volatility::Immutable),
    });
    let arguments = vec![Expr::Column(column.clone())];
    Ok(Transformed::yes(Expr::ScalarFunction(
        ScalarFunction::new_udf(Arc::new(function), arguments),
    )))
}
