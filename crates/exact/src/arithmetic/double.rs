//! DECIMAL as DOUBLE: the nearest DOUBLE, also of a number with many digits.
//!
//! **Stands for** Arrow's cast, which rounds twice: the digits to a DOUBLE, and that divided by a power of ten to
//! another one. So 99999999999999999999.99999 becomes more than 1e20. Up to 18 digits it is left to Arrow, for it is
//! fast and wrong in the last bit at most.

use crate::columns::ColumnFunction;
use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use datafusion::logical_expr::ScalarUDF;
use std::sync::{Arc, LazyLock};

/// Digits from which on rounding twice may show.
const MANY_DIGITS: u8 = 19;

pub(super) static DOUBLE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let type_of = |_: &DataType| DataType::Float64;
    let function = ColumnFunction::scalar("nearest_double", type_of, |column| Ok(nearest(column)));
    Arc::new(function)
});

/// Whether a cast from one type to the other rounds twice.
pub(super) fn rounds_twice(from: &DataType, to: &DataType) -> bool {
    matches!(from, DataType::Decimal128(MANY_DIGITS.., 1..)) && *to == DataType::Float64
}

/// The nearest DOUBLE of each DECIMAL.
pub(super) fn nearest(column: &ArrayRef) -> ArrayRef {
    let DataType::Decimal128(_, scale) = *column.data_type() else {
        return Arc::clone(column);
    };
    let doubles = column
        .as_primitive::<Decimal128Type>()
        .unary::<_, Float64Type>(|value| {
            let digits = format!("{value}e-{scale}");
            digits.parse().expect("it is a number")
        });
    Arc::new(doubles)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Array, Decimal128Array};
    use proptest::prelude::*;

    fn one(value: i128, scale: i8) -> f64 {
        let column = Decimal128Array::from(vec![value])
            .with_precision_and_scale(38, scale)
            .expect("it fits");
        let column: ArrayRef = Arc::new(column);
        nearest(&column).as_primitive::<Float64Type>().value(0)
    }

    #[test]
    fn many_digits_are_rounded_once() {
        assert_eq!(one(9_999_999_999_999_999_999_999_999, 5), 1e20);
    }

    #[test]
    fn null_stays_null() {
        let column = Decimal128Array::from(vec![None, Some(15)]);
        let column = column.with_precision_and_scale(38, 1).expect("it fits");
        let column: ArrayRef = Arc::new(column);
        let doubles = nearest(&column);
        assert!(doubles.is_null(0));
        assert_eq!(doubles.as_primitive::<Float64Type>().value(1), 1.5);
    }

    proptest! {
        /// What is less as DECIMAL is not more as DOUBLE, whatever the scale.
        #[test]
        fn it_is_monotone(value in -(10_i128.pow(30))..10_i128.pow(30), scale in 1_i8..=8) {
            let shorter = value / 10;
            prop_assert!(one(shorter, scale - 1) <= one(value, scale) || value < 0);
            prop_assert!(one(shorter, scale - 1) >= one(value, scale) || value > 0);
        }
    }
}
