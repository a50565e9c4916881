//! Functions of one argument, a constant or a column.

use datafusion::arrow::array::ArrayRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

/// Applies a function of whole columns to the argument. A constant is a column of one row to it, and stays a constant.
pub(crate) fn of_column(
    args: &ScalarFunctionArgs,
    function: impl FnOnce(&ArrayRef) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    Ok(match &args.args[0] {
        ColumnarValue::Array(column) => ColumnarValue::Array(function(column)?),
        ColumnarValue::Scalar(constant) => {
            let result = function(&constant.to_array()?)?;
            ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?)
        }
    })
}
