//! The values of an array in the form in which groups and lookups take them in.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, BinaryViewArray, StringViewArray};
use arrow_schema::{DataType, TimeUnit};
use eris_column::{wide_of_intervals, wide_of_uuids};
use std::borrow::Cow;

/// Values of one argument. Those of NULLs may be anything.
pub(crate) enum Values<'a> {
    /// As stored: see `eris_column::from_integer`.
    Integers(Cow<'a, [i64]>),
    Wide(Vec<i128>),
    Floats(Vec<f64>),
    /// Codes of a column's dictionary.
    Codes(Cow<'a, [i64]>),
    Strings(StringViewArray),
    Bytes(BinaryViewArray),
}

/// The values of an array, in the form of their domain; decimals always wide.
pub(crate) fn values(array: &ArrayRef) -> Values<'static> {
    macro_rules! integers {
        ($kind:ty, $convert:expr) => {
            Values::Integers(
                array
                    .as_primitive::<$kind>()
                    .values()
                    .iter()
                    .map($convert)
                    .collect(),
            )
        };
    }
    match array.data_type() {
        DataType::Boolean => {
            Values::Integers(array.as_boolean().values().iter().map(i64::from).collect())
        }
        DataType::Int8 => integers!(Int8Type, |&value| value as i64),
        DataType::Int16 => integers!(Int16Type, |&value| value as i64),
        DataType::Int32 => integers!(Int32Type, |&value| value as i64),
        DataType::Int64 => integers!(Int64Type, |&value| value),
        DataType::UInt8 => integers!(UInt8Type, |&value| value as i64),
        DataType::UInt16 => integers!(UInt16Type, |&value| value as i64),
        DataType::UInt32 => integers!(UInt32Type, |&value| value as i64),
        DataType::UInt64 => integers!(UInt64Type, |&value| (value ^ 1 << 63) as i64),
        DataType::Date32 => integers!(Date32Type, |&value| value as i64),
        DataType::Time64(TimeUnit::Microsecond) => integers!(Time64MicrosecondType, |&value| value),
        DataType::Time64(TimeUnit::Nanosecond) => integers!(Time64NanosecondType, |&value| value),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => integers!(TimestampSecondType, |&value| value),
            TimeUnit::Millisecond => integers!(TimestampMillisecondType, |&value| value),
            TimeUnit::Microsecond => integers!(TimestampMicrosecondType, |&value| value),
            TimeUnit::Nanosecond => integers!(TimestampNanosecondType, |&value| value),
        },
        DataType::Float32 => {
            let floats = array.as_primitive::<Float32Type>().values();
            Values::Floats(floats.iter().map(|&value| value as f64).collect())
        }
        DataType::Float64 => Values::Floats(array.as_primitive::<Float64Type>().values().to_vec()),
        DataType::Decimal128(..) => {
            Values::Wide(array.as_primitive::<Decimal128Type>().values().to_vec())
        }
        DataType::FixedSizeBinary(_) => {
            Values::Wide(wide_of_uuids(array.as_fixed_size_binary()).collect())
        }
        DataType::Interval(_) => {
            let intervals = array.as_primitive::<IntervalMonthDayNanoType>();
            Values::Wide(wide_of_intervals(intervals).collect())
        }
        DataType::BinaryView => Values::Bytes(array.as_binary_view().clone()),
        DataType::Utf8View => Values::Strings(array.as_string_view().clone()),
        other => unreachable!("{other} is the type of no expression"),
    }
}
