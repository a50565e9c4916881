//! `octet_length` of strings and BLOB values.
//!
//! **Stands for** DataFusion's, which takes strings alone.

use super::{is_binary, is_uuid};
use crate::columns::of_column;
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::length::length;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct OctetLength {
    signature: Signature,
}

impl Default for OctetLength {
    fn default() -> Self {
        OctetLength {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for OctetLength {
    fn name(&self) -> &str {
        "octet_length"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [of] if of.is_null() => Ok(vec![DataType::Utf8View]),
            [of] if of.is_string() || is_binary(of) && !is_uuid(of) => Ok(vec![of.clone()]),
            _ => plan_err!("octet_length function requires 1 arguments: a string or a BLOB"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_column(&args, |of| Ok(cast(&length(of)?, &DataType::Int64)?))
    }
}
