//! `round_half_even`: what comes before a cast of floating-point numbers to integers, also of those in lists.
//!
//! **Stands for** Arrow's cast, which drops the fraction: 2.9 becomes 2.

use super::double::{nearest, rounds_twice};
use super::timestamp_string::strings;
use crate::columns::ColumnFunction;
use crate::datetime::with_seconds::with_seconds;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Float32Type, Float64Type};
use datafusion::arrow::error::ArrowError;
use datafusion::logical_expr::ScalarUDF;
use std::sync::{Arc, LazyLock};

/// The name of the function: the nearest whole number, of two that are as near the even one.
pub(crate) const ROUND_HALF_EVEN: &str = "round_half_even";

pub(super) static ROUND: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let function =
        ColumnFunction::scalar(ROUND_HALF_EVEN, DataType::clone, |column| Ok(whole(column)));
    Arc::new(function)
});

/// What is about to be cast to this type, as a whole number if that is an integer: DECIMAL is rounded half away from 0.
/// Timestamps that are written without seconds get them, and become strings as by CAST. A DECIMAL becomes the nearest
/// DOUBLE.
///
/// # Errors
/// A number that has too many digits.
pub fn before_cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    match array.data_type() {
        DataType::Timestamp(..) if to.is_string() => strings(array),
        from if from.is_string() && matches!(to, DataType::Timestamp(..)) => with_seconds(array),
        from if rounds_twice(from, to) => Ok(nearest(array)),
        from => match Rounding::of(from, to) {
            Some(Rounding::HalfEven) => Ok(whole(array)),
            Some(Rounding::To(whole)) => cast(array, &whole),
            None => Ok(Arc::clone(array)),
        },
    }
}

/// How numbers lose their fractions.
pub(super) enum Rounding {
    /// By the function.
    HalfEven,
    /// By a cast to such a DECIMAL, or to lists of such.
    To(DataType),
}

impl Rounding {
    /// What comes before a cast; `None` if there are no fractions, or may be some behind it.
    pub fn of(from: &DataType, to: &DataType) -> Option<Rounding> {
        match (from, to) {
            (DataType::List(from), DataType::List(to)) => {
                Some(match Rounding::of(from.data_type(), to.data_type())? {
                    Rounding::HalfEven => Rounding::HalfEven,
                    Rounding::To(whole) => {
                        let element = Field::clone(from).with_data_type(whole);
                        Rounding::To(DataType::List(Arc::new(element)))
                    }
                })
            }
            (DataType::Float32 | DataType::Float64, to) if to.is_integer() => {
                Some(Rounding::HalfEven)
            }
            (DataType::Decimal128(precision, scale @ 1..), to) if to.is_integer() => {
                // One digit more: 9.9 becomes 10.
                let digits = (precision + 1).saturating_sub(*scale as u8).max(1);
                Some(Rounding::To(DataType::Decimal128(digits, 0)))
            }
            _ => None,
        }
    }
}

/// Floating-point numbers rounded half to even, or lists of such; anything else as it is.
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
        DataType::List(element) => {
            let (_, offsets, elements, nulls) = array.as_list::<i32>().clone().into_parts();
            let element = Arc::clone(element);
            Arc::new(ListArray::new(element, offsets, whole(&elements), nulls))
        }
        _ => Arc::clone(array),
    }
}
