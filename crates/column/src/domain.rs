//! Which kind of value a column chunk holds for each Arrow type, and the mapping of integers.

use arrow_array::{ArrayRef, Decimal128Array, FixedSizeBinaryArray, IntervalMonthDayNanoArray};
use arrow_buffer::{IntervalMonthDayNano, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, IntervalUnit};
use eris_types::{interval_of_wide, uuid_of_wide, wide_of_interval, wide_of_uuid};
use std::sync::Arc;

/// The kind of values in a column chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// `i64`: booleans (0, 1), integers, dates, times, timestamps, decimals of up to 18 digits (unscaled), and 64-bit
    /// unsigned integers with the top bit flipped. The order of the type is the order of the integers.
    Integer,
    /// `f32`, in IEEE 754 total order.
    Float32,
    /// `f64`, in IEEE 754 total order.
    Float64,
    /// `i128`: decimals of more than 18 digits (unscaled), UUIDs, and intervals, whose order is not that of the numbers
    /// (see `eris_types`).
    Wide,
    /// UTF-8 text in byte order: codes of a dictionary, or the strings themselves.
    String,
    /// Bytes in their order, which need not be text.
    Bytes,
}

/// Bytes of a UUID.
const UUID_BYTES: i32 = 16;

/// Digits of the largest decimal that is an `i64` whatever its value.
const INTEGER_DIGITS: u8 = 18;

impl Domain {
    /// The domain of an Arrow type; a dictionary array belongs to that of its values. `None`: not supported.
    pub fn of(data_type: &DataType) -> Option<Domain> {
        use DataType::*;
        Some(match data_type {
            Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => {
                Domain::Integer
            }
            Date32 | Time64(_) | Timestamp(..) => Domain::Integer,
            Decimal128(precision, _) if *precision <= INTEGER_DIGITS => Domain::Integer,
            Decimal128(..) => Domain::Wide,
            DataType::Float32 => Domain::Float32,
            DataType::Float64 => Domain::Float64,
            Utf8 | LargeUtf8 | Utf8View => Domain::String,
            Binary | LargeBinary | BinaryView => Domain::Bytes,
            FixedSizeBinary(UUID_BYTES) | Interval(IntervalUnit::MonthDayNano) => Domain::Wide,
            Dictionary(_, values) => return Domain::of(values),
            _ => return None,
        })
    }
}

/// Flips the top bit: maps `u64` to `i64`, and back, keeping the order.
pub(crate) const SIGN: u64 = 1 << 63;

/// The integer that stands for a value of an Arrow type of [`Domain::Integer`] inside chunks and predicates: the value
/// itself, but `UInt64` with its top bit flipped.
///
/// # Panics
/// If the value cannot be one of that type: not within 64 bits, or negative for `UInt64`.
pub fn to_integer(data_type: &DataType, value: i128) -> i64 {
    let mapped = match data_type {
        DataType::UInt64 => u64::try_from(value).ok().map(|value| (value ^ SIGN) as i64),
        _ => i64::try_from(value).ok(),
    };
    mapped.unwrap_or_else(|| panic!("{value} is no value of type {data_type}"))
}

/// The value that an integer inside a chunk stands for; the inverse of [`to_integer`].
pub fn from_integer(data_type: &DataType, integer: i64) -> i128 {
    match data_type {
        DataType::UInt64 => (integer as u64 ^ SIGN) as i128,
        _ => integer as i128,
    }
}

/// The numbers that stand for UUIDs. Those of NULLs may be anything.
pub fn wide_of_uuids(uuids: &FixedSizeBinaryArray) -> impl Iterator<Item = i128> {
    let (uuids, _) = uuids.values().as_chunks::<16>();
    uuids.iter().map(|&uuid| wide_of_uuid(uuid))
}

/// The numbers that stand for intervals. Those of NULLs may be anything.
pub fn wide_of_intervals(intervals: &IntervalMonthDayNanoArray) -> impl Iterator<Item = i128> {
    let intervals = intervals.values().iter();
    intervals.map(|of| wide_of_interval(of.months, of.days, of.nanoseconds))
}

/// Numbers of [`Domain::Wide`] as an array of the type they stand for.
pub fn wide_array(
    data_type: &DataType,
    values: ScalarBuffer<i128>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    match data_type {
        DataType::FixedSizeBinary(bytes) => {
            let uuids: Vec<u8> = values
                .iter()
                .flat_map(|&number| uuid_of_wide(number))
                .collect();
            Arc::new(FixedSizeBinaryArray::new(*bytes, uuids.into(), nulls))
        }
        DataType::Interval(_) => {
            let intervals = values.iter().map(|&number| {
                let (months, days, nanoseconds) = interval_of_wide(number);
                IntervalMonthDayNano::new(months, days, nanoseconds)
            });
            Arc::new(IntervalMonthDayNanoArray::new(intervals.collect(), nulls))
        }
        decimal => {
            let array = Decimal128Array::new(values, nulls);
            Arc::new(array.with_data_type(decimal.clone()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_order_is_kept() {
        let values = [
            0,
            1,
            i64::MAX as i128,
            i64::MAX as i128 + 1,
            u64::MAX as i128,
        ];
        let mapped = values.map(|value| to_integer(&DataType::UInt64, value));
        assert!(mapped.is_sorted());
        assert_eq!((mapped[0], mapped[4]), (i64::MIN, i64::MAX));
        assert_eq!(
            mapped.map(|integer| from_integer(&DataType::UInt64, integer)),
            values
        );
    }

    #[test]
    #[should_panic(expected = "-1 is no value of type UInt64")]
    fn a_value_of_another_type_is_rejected() {
        to_integer(&DataType::UInt64, -1);
    }

    #[test]
    fn precision_decides_the_domain_of_decimals() {
        let domain = |precision| Domain::of(&DataType::Decimal128(precision, 2));
        assert_eq!(domain(18), Some(Domain::Integer));
        assert_eq!(domain(19), Some(Domain::Wide));
        assert_eq!(Domain::of(&DataType::Binary), Some(Domain::Bytes));
        assert_eq!(
            Domain::of(&DataType::FixedSizeBinary(16)),
            Some(Domain::Wide)
        );
        assert_eq!(Domain::of(&DataType::FixedSizeBinary(15)), None);
    }
}
