//! `SELECT * REPLACE (value AS column)` of a column that is there.
//!
//! **Stands for** DataFusion's REPLACE, which ignores a column that is not there. `replaced(value, column)` is the
//! value, and names the column. So it has to be one.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The name of the function.
pub const REPLACED: &str = "replaced";

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Replaced {
    signature: Signature,
}

impl Default for Replaced {
    fn default() -> Self {
        Replaced {
            signature: Signature::any(2, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Replaced {
    fn name(&self) -> &str {
        REPLACED
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&args.arg_fields[0]))
    }

    /// The column is not read.
    fn simplify(&self, mut args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(ExprSimplifyResult::Simplified(args.swap_remove(0)))
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(args.args.swap_remove(0))
    }
}
