//! Values of a column as numbers in the same order.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, Int64Array};
use arrow_schema::DataType;
use eris_column::to_integer;

/// The keys in their 64-bit order, none of them NULL. NULL sorts first.
pub(crate) fn keys_of(array: &ArrayRef) -> Int64Array {
    /// Loops over plain values, so that the compiler sees that there is nothing to decide.
    fn keys<T: ArrowPrimitiveType>(
        array: &ArrayRef,
        key: impl Fn(T::Native) -> i64 + Copy,
    ) -> Int64Array {
        let values = array.as_primitive::<T>();
        let keys: Vec<i64> = match values.null_count() {
            0 => values.values().iter().map(|value| key(*value)).collect(),
            _ => {
                let values = values.iter();
                values.map(|value| value.map_or(i64::MIN, key)).collect()
            }
        };
        keys.into()
    }
    /// They are their order already.
    fn same<T: ArrowPrimitiveType<Native = i64>>(array: &ArrayRef) -> Int64Array {
        let values = array.as_primitive::<T>();
        match values.null_count() {
            0 => Int64Array::new(values.values().clone(), None),
            _ => keys::<T>(array, |value| value),
        }
    }
    use arrow_schema::TimeUnit::*;
    let data_type = array.data_type();
    match data_type {
        DataType::Boolean => {
            let values = array.as_boolean().iter();
            let keys = values.map(|value| value.map_or(i64::MIN, i64::from));
            keys.collect::<Vec<_>>().into()
        }
        DataType::Int8 => keys::<Int8Type>(array, i64::from),
        DataType::Int16 => keys::<Int16Type>(array, i64::from),
        DataType::Int32 => keys::<Int32Type>(array, i64::from),
        DataType::Int64 => same::<Int64Type>(array),
        DataType::UInt8 => keys::<UInt8Type>(array, i64::from),
        DataType::UInt16 => keys::<UInt16Type>(array, i64::from),
        DataType::UInt32 => keys::<UInt32Type>(array, i64::from),
        DataType::UInt64 => {
            keys::<UInt64Type>(array, |value| to_integer(&DataType::UInt64, value.into()))
        }
        DataType::Date32 => keys::<Date32Type>(array, i64::from),
        DataType::Decimal128(..) => {
            keys::<Decimal128Type>(array, |value| to_integer(data_type, value))
        }
        DataType::Time64(Microsecond) => same::<Time64MicrosecondType>(array),
        DataType::Time64(Nanosecond) => same::<Time64NanosecondType>(array),
        DataType::Timestamp(Second, _) => same::<TimestampSecondType>(array),
        DataType::Timestamp(Millisecond, _) => same::<TimestampMillisecondType>(array),
        DataType::Timestamp(Microsecond, _) => same::<TimestampMicrosecondType>(array),
        DataType::Timestamp(Nanosecond, _) => same::<TimestampNanosecondType>(array),
        other => {
            unreachable!("{other} is no partitioning type; checked when the object was made")
        }
    }
}
