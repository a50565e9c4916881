//! Columns of plans: names for new ones, and functions of them.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::hash::{Hash, Hasher};

/// A function of whole columns. There is one of each name.
#[derive(Debug)]
pub(crate) struct ColumnFunction {
    name: &'static str,
    return_type: fn(&DataType) -> DataType,
    function: fn(&ArrayRef) -> Result<ArrayRef>,
    signature: Signature,
}

impl ColumnFunction {
    /// The function of this name. NULL stays NULL.
    pub fn scalar(
        name: &'static str,
        return_type: fn(&DataType) -> DataType,
        function: fn(&ArrayRef) -> Result<ArrayRef>,
    ) -> ScalarUDF {
        ScalarUDF::from(ColumnFunction {
            name,
            return_type,
            function,
            signature: Signature::any(1, Volatility::Immutable),
        })
    }
}

impl PartialEq for ColumnFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ColumnFunction {}

impl Hash for ColumnFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for ColumnFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok((self.return_type)(&types[0]))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_column(&args, self.function)
    }
}

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

/// What names of new columns can begin with: no column of the input has such a name.
pub(crate) fn unused_prefix(wanted: &str, input: &DFSchema) -> String {
    let mut prefix = wanted.to_owned();
    while (input.fields().iter()).any(|field| field.name().starts_with(&prefix)) {
        prefix.push('_');
    }
    prefix
}
