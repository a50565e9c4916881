//! What comes before a cast of a DOUBLE to REAL: a number beyond the range of REAL is an error, and NULL for TRY_CAST.
//!
//! **Stands for** Arrow's cast, which makes infinity of it.

use crate::columns::ColumnFunction;
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::logical_expr::ScalarUDF;
use std::sync::{Arc, LazyLock};

pub(super) static WITHIN_REAL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let function = ColumnFunction::scalar("within_real", DataType::clone, |column| {
        let numbers = column.as_primitive::<Float64Type>();
        match numbers.iter().flatten().find(|number| is_beyond(*number)) {
            None => Ok(Arc::clone(column)),
            Some(number) => {
                let message = format!("Can't cast value {number:e} to type Float32");
                Err(ArrowError::CastError(message).into())
            }
        }
    });
    Arc::new(function)
});

pub(super) static REAL_OR_NULL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let function = ColumnFunction::scalar("real_or_null", DataType::clone, |column| {
        let numbers = column.as_primitive::<Float64Type>();
        let within = |number: f64| (!is_beyond(number)).then_some(number);
        Ok(Arc::new(numbers.unary_opt::<_, Float64Type>(within)) as ArrayRef)
    });
    Arc::new(function)
});

/// Whether a number becomes infinite as a REAL.
fn is_beyond(number: f64) -> bool {
    number.is_finite() && (number as f32).is_infinite()
}

/// Whether a cast is one of a DOUBLE to REAL.
pub(super) fn is_cast(from: &DataType, to: &DataType) -> bool {
    *from == DataType::Float64 && *to == DataType::Float32
}
