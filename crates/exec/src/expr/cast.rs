//! CAST with the rules of the SQL layer above: an error where a value does not fit.

use arrow_arith::aggregate::{max, min};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, TimeUnit};
use std::sync::Arc;

pub(super) fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == to {
        return Ok(array.clone());
    }
    check_time(array, to)?;
    let array = &without_fraction(array, to)?;
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(array, to, &options)
}

/// What goes into an integer is rounded, which Arrow does not: floating-point numbers half to even, DECIMAL half away
/// from 0.
fn without_fraction(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    Ok(match array.data_type() {
        _ if !to.is_integer() => array.clone(),
        DataType::Float32 => {
            let numbers = array.as_primitive::<Float32Type>();
            Arc::new(numbers.unary::<_, Float32Type>(f32::round_ties_even))
        }
        DataType::Float64 => {
            let numbers = array.as_primitive::<Float64Type>();
            Arc::new(numbers.unary::<_, Float64Type>(f64::round_ties_even))
        }
        DataType::Decimal128(precision, scale @ 1..) => {
            let digits = (precision + 1).saturating_sub(*scale as u8).max(1);
            arrow_cast::cast(array, &DataType::Decimal128(digits, 0))?
        }
        _ => array.clone(),
    })
}

/// Arrow multiplies unchecked when it casts dates and timestamps to a finer unit.
fn check_time(array: &ArrayRef, to: &DataType) -> Result<(), ArrowError> {
    let DataType::Timestamp(to_unit, _) = to else {
        return Ok(());
    };
    let (least, greatest, factor) = match array.data_type() {
        DataType::Date32 => {
            let days = array.as_primitive::<Date32Type>();
            let seconds = 86_400 * per_second(to_unit);
            (min(days).map(i64::from), max(days).map(i64::from), seconds)
        }
        DataType::Timestamp(unit, _) => {
            let units = arrow_cast::cast(array, &DataType::Int64)?;
            let units = units.as_primitive::<Int64Type>();
            let factor = per_second(to_unit) / per_second(unit);
            (min(units), max(units), factor)
        }
        _ => return Ok(()),
    };
    for value in [least, greatest].into_iter().flatten() {
        if value.checked_mul(factor).is_none() {
            return Err(ArrowError::CastError(format!(
                "a value of type {} lies outside the range of {to}",
                array.data_type()
            )));
        }
    }
    Ok(())
}

fn per_second(unit: &TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}
