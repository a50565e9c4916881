//! The function that rejects a second row of a value: `single_row(value, rows)`.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::max;
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use std::sync::{Arc, LazyLock};

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SingleRow {
    signature: Signature,
}

static SINGLE_ROW: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(SingleRow {
        signature: Signature::any(2, Volatility::Immutable),
    }))
});

/// The value, if its rows are not more than one.
pub(super) fn single_row(value: Expr, rows: Expr) -> Expr {
    SINGLE_ROW.call(vec![value, rows])
}

impl ScalarUDFImpl for SingleRow {
    fn name(&self) -> &str {
        "single_row"
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

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.args.swap_remove(1).to_array(args.number_rows)?;
        if max(rows.as_primitive::<Int64Type>()) > Some(1) {
            // As DataFusion says it of subqueries without outer references.
            return exec_err!("Scalar subquery returned more than one row");
        }
        Ok(args.args.swap_remove(0))
    }
}
