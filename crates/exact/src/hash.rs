//! `hash(value, …)`: a number that is the same for equal values.
//!
//! The numbers are not those of other databases, nor those of other versions. NULL has one, too.
//!
//! **Adds** what DataFusion does not have.

use datafusion::arrow::array::{ArrayRef, AsArray, UInt64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::Result;
use datafusion::common::hash_utils::{QualityRandomState, create_hashes_with_hasher};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct HashOf {
    signature: Signature,
}

impl Default for HashOf {
    fn default() -> Self {
        HashOf {
            signature: Signature::variadic_any(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for HashOf {
    fn name(&self) -> &str {
        "hash"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::UInt64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = args
            .args
            .iter()
            .map(|arg| comparable(&arg.to_array(args.number_rows)?));
        let columns = columns.collect::<Result<Vec<ArrayRef>>>()?;
        let mut hashes = vec![0; args.number_rows];
        create_hashes_with_hasher(&columns, &QualityRandomState::with_seed(0), &mut hashes)?;
        Ok(ColumnarValue::Array(Arc::new(UInt64Array::from(hashes))))
    }
}

/// The column with one representation of each value: integers of one width, strings of one kind, and no -0.0.
fn comparable(column: &ArrayRef) -> Result<ArrayRef> {
    use DataType::{
        Float16, Float32, Float64, Int8, Int16, Int32, Int64, LargeUtf8, UInt8, UInt16, UInt32,
        Utf8, Utf8View,
    };
    Ok(match column.data_type() {
        Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32 => cast(column, &Int64)?,
        Float16 | Float32 | Float64 => {
            let column = cast(column, &Float64)?;
            let column = column.as_primitive::<Float64Type>();
            Arc::new(column.unary::<_, Float64Type>(|value| value + 0.0))
        }
        Utf8 | LargeUtf8 | Utf8View => cast(column, &Utf8)?,
        DataType::Dictionary(_, values) => comparable(&cast(column, values)?)?,
        _ => Arc::clone(column),
    })
}
