//! A constant that is not known yet, in a plan.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::expr::{Placeholder, ScalarFunction};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use eris_fragment::Type;
use std::sync::Arc;

/// The n-th parameter, as a function of a column of whatever is filtered: so it is constant for no rule of DataFusion, but
/// can go wherever that column goes. A fragment has it as a column behind those of its table, until the value is known.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct PlanParameter {
    /// The column in the fragment.
    pub column: usize,
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

/// The plan with such functions for `$1`, `$2` …, which are columns from `first` on in the fragment.
pub(super) fn put_in(plan: LogicalPlan, types: &[Type], first: usize) -> Result<LogicalPlan> {
    let replaced = plan.transform_up(|node| {
        let inputs = node.inputs();
        let column = inputs
            .first()
            .and_then(|input| input.schema().columns().into_iter().next());
        node.map_expressions(|expr| {
            expr.transform_up(|expr| match (&expr, &column) {
                (Expr::Placeholder(Placeholder { id, .. }), Some(column)) => {
                    let number: Option<usize> = id.strip_prefix('$').and_then(|id| id.parse().ok());
                    let Some(number) = number.filter(|number| (1..=types.len()).contains(number))
                    else {
                        return internal_err!("parameter {id} of a plan is not known");
                    };
                    let function = ScalarUDF::from(PlanParameter {
                        column: first + number - 1,
                        data_type: DataType::from(&types[number - 1]),
                        signature: Signature::any(1, Volatility::Immutable),
                    });
                    let arguments = vec![Expr::Column(column.clone())];
                    Ok(Transformed::yes(Expr::ScalarFunction(
                        ScalarFunction::new_udf(Arc::new(function), arguments),
                    )))
                }
                _ => Ok(Transformed::no(expr)),
            })
        })
    });
    replaced.data()
}
