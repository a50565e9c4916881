//! `date_bin` of a width that is longer than nothing.
//!
//! **Stands for** DataFusion's function of the same name, which counts backwards with a width of less than nothing.

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::functions::datetime::date_bin;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};
use std::sync::Arc;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Binned {
    other: Arc<ScalarUDF>,
}

impl Default for Binned {
    fn default() -> Self {
        Binned { other: date_bin() }
    }
}

impl ScalarUDFImpl for Binned {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn signature(&self) -> &Signature {
        self.other.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.other.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.other.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let width = match &args.args[0] {
            ColumnarValue::Scalar(ScalarValue::IntervalMonthDayNano(width)) => *width,
            _ => None,
        };
        // Months, days and times are never mixed here.
        if width.is_some_and(|width| {
            let parts = [width.months.into(), width.days.into(), width.nanoseconds];
            parts.iter().all(|part: &i64| *part <= 0)
        }) {
            return exec_err!("date_bin takes a width that is longer than nothing");
        }
        self.other.invoke_with_args(args)
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.other.output_ordering(input)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.other.documentation()
    }
}
