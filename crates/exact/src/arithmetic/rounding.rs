//! `round_half_even`: what comes before a cast of a floating-point number to an integer.
//!
//! **Stands for** Arrow's cast, which drops the fraction: 2.9 becomes 2.

use crate::columns::of_column;
use crate::datetime::with_seconds::with_seconds;
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The function: the nearest whole number, of two that are as near the even one.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct RoundHalfEven {
    signature: Signature,
}

impl Default for RoundHalfEven {
    fn default() -> Self {
        RoundHalfEven {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for RoundHalfEven {
    fn name(&self) -> &str {
        "round_half_even"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[0].clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_column(&args, |column| Ok(whole(column)))
    }
}

/// What is about to be cast to this type, as a whole number if that is an integer: DECIMAL is rounded half away from 0.
/// Timestamps that are written without seconds get them.
///
/// # Errors
/// A number that has too many digits.
pub fn before_cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        from if from.is_string() && matches!(to, DataType::Timestamp(..)) => with_seconds(array),
        _ if !to.is_integer() => Ok(Arc::clone(array)),
        DataType::Decimal128(precision, scale @ 1..) => {
            // One digit more: 9.9 becomes 10.
            let digits = (precision + 1).saturating_sub(*scale as u8).max(1);
            cast(array, &DataType::Decimal128(digits, 0))
        }
        _ => Ok(whole(array)),
    }
}

/// Floating-point numbers rounded half to even; anything else as it is.
fn whole(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float32 => Arc::new(
            array
                .as_primitive::<Float32Type>()
                .unary::<_, Float32Type>(f32::round_ties_even),
        ),
        DataType::Float64 => Arc::new(
            array
                .as_primitive::<Float64Type>()
                .unary::<_, Float64Type>(f64::round_ties_even),
        ),
        _ => Arc::clone(array),
    }
}
