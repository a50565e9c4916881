//! `a || b` of strings as a function, which [`growth`](super::growth) bounds.
//!
//! **Stands for** DataFusion's operator, which makes what it is asked for: of `s || s`, twice as much in each round of
//! a recursive query.

use datafusion::arrow::compute::kernels::concat_elements::concat_elements_dyn;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::type_coercion::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

/// The function's name.
pub(crate) const CONCATENATION: &str = "string_concat";

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Concatenation {
    signature: Signature,
}

impl Default for Concatenation {
    fn default() -> Self {
        Concatenation {
            signature: Signature::any(2, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Concatenation {
    fn name(&self) -> &str {
        CONCATENATION
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        BinaryTypeCoercer::new(&types[0], &Operator::StringConcat, &types[1]).get_result_type()
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_constant = |value: &ColumnarValue| matches!(value, ColumnarValue::Scalar(_));
        let are_constant = args.args.iter().all(is_constant);
        let strings = ColumnarValue::values_to_arrays(&args.args)?;
        let whole = concat_elements_dyn(&strings[0], &strings[1])?;
        Ok(match are_constant {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&whole, 0)?),
            false => ColumnarValue::Array(whole),
        })
    }
}
