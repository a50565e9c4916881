//! `round(x, digits)` and `trunc(x, digits)` with more digits than x has.
//!
//! **Stands for** DataFusion's functions, which multiply by a power of ten and divide by it again: with 1,000 digits
//! both are infinite, and the result is no number. A number that is rounded to digits that it does not have stays as
//! it is, and one that is rounded to a power of ten far above it is 0.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float32Type, Float64Type, Int64Type,
};
use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, LazyLock};

/// `digits_of(rounded, x, digits)`: what was rounded, where it is a number.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Digits {
    signature: Signature,
}

static DIGITS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::from(Digits {
        signature: Signature::any(3, Volatility::Immutable),
    }))
});

/// Whether it is one of the functions.
pub(super) fn rounds(call: &ScalarFunction) -> bool {
    matches!(call.name(), "round" | "trunc")
}

/// The call with its repair; `None` if it needs none.
pub(super) fn repaired(call: &Expr, of: Option<&DataType>) -> Option<Expr> {
    let Expr::ScalarFunction(function) = call else {
        return None;
    };
    let is_float = matches!(of, Some(DataType::Float32 | DataType::Float64));
    match function.args.as_slice() {
        [value, digits] if is_float => {
            Some(DIGITS.call(vec![call.clone(), value.clone(), digits.clone()]))
        }
        _ => None,
    }
}

impl ScalarUDFImpl for Digits {
    fn name(&self) -> &str {
        "digits_of"
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
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let digits = cast(&columns[2], &DataType::Int64)?;
        let digits = digits.as_primitive::<Int64Type>();
        let result: ArrayRef = match columns[0].data_type() {
            DataType::Float32 => Arc::new(chosen::<Float32Type>(
                columns[0].as_primitive(),
                columns[1].as_primitive(),
                digits,
                f32::is_finite,
            )),
            _ => Arc::new(chosen::<Float64Type>(
                columns[0].as_primitive(),
                columns[1].as_primitive(),
                digits,
                f64::is_finite,
            )),
        };
        Ok(ColumnarValue::Array(result))
    }
}

fn chosen<T: ArrowPrimitiveType>(
    rounded: &PrimitiveArray<T>,
    values: &PrimitiveArray<T>,
    digits: &PrimitiveArray<Int64Type>,
    is_finite: fn(T::Native) -> bool,
) -> PrimitiveArray<T> {
    let row = |row: usize| {
        if rounded.is_null(row) {
            return None;
        }
        let (result, value) = (rounded.value(row), values.value(row));
        Some(match is_finite(result) || !is_finite(value) {
            true => result,
            false if digits.value(row) > 0 => value,
            false => T::default_value(),
        })
    };
    (0..rounded.len()).map(row).collect()
}
