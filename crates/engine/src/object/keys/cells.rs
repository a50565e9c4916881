//! The columns of keys, value by value.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryViewArray, BooleanArray, FixedSizeBinaryArray,
    StringViewArray,
};
use arrow_schema::{DataType, TimeUnit};
use eris_index::key::{KeyEncoder, Word};
use eris_types::wide_of_uuid;

/// The values of a column of keys.
pub(crate) enum KeyCells<'a> {
    Boolean(&'a BooleanArray),
    Int8(&'a [i8]),
    Int16(&'a [i16]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    UInt8(&'a [u8]),
    UInt16(&'a [u16]),
    UInt32(&'a [u32]),
    UInt64(&'a [u64]),
    Float32(&'a [f32]),
    Float64(&'a [f64]),
    Decimal(&'a [i128], u8),
    Uuid(&'a FixedSizeBinaryArray),
    Text(&'a StringViewArray),
    Blob(&'a BinaryViewArray),
}

impl<'a> KeyCells<'a> {
    pub fn of(column: &'a ArrayRef) -> Self {
        use TimeUnit::*;
        fn values<T: ArrowPrimitiveType>(column: &ArrayRef) -> &[T::Native] {
            column.as_primitive::<T>().values()
        }
        match column.data_type() {
            DataType::Boolean => KeyCells::Boolean(column.as_boolean()),
            DataType::Int8 => KeyCells::Int8(values::<Int8Type>(column)),
            DataType::Int16 => KeyCells::Int16(values::<Int16Type>(column)),
            DataType::Int32 => KeyCells::Int32(values::<Int32Type>(column)),
            DataType::Date32 => KeyCells::Int32(values::<Date32Type>(column)),
            DataType::Int64 => KeyCells::Int64(values::<Int64Type>(column)),
            DataType::Time64(Microsecond) => {
                KeyCells::Int64(values::<Time64MicrosecondType>(column))
            }
            DataType::Time64(Nanosecond) => KeyCells::Int64(values::<Time64NanosecondType>(column)),
            DataType::Timestamp(Second, _) => {
                KeyCells::Int64(values::<TimestampSecondType>(column))
            }
            DataType::Timestamp(Millisecond, _) => {
                KeyCells::Int64(values::<TimestampMillisecondType>(column))
            }
            DataType::Timestamp(Microsecond, _) => {
                KeyCells::Int64(values::<TimestampMicrosecondType>(column))
            }
            DataType::Timestamp(Nanosecond, _) => {
                KeyCells::Int64(values::<TimestampNanosecondType>(column))
            }
            DataType::UInt8 => KeyCells::UInt8(values::<UInt8Type>(column)),
            DataType::UInt16 => KeyCells::UInt16(values::<UInt16Type>(column)),
            DataType::UInt32 => KeyCells::UInt32(values::<UInt32Type>(column)),
            DataType::UInt64 => KeyCells::UInt64(values::<UInt64Type>(column)),
            DataType::Float32 => KeyCells::Float32(values::<Float32Type>(column)),
            DataType::Float64 => KeyCells::Float64(values::<Float64Type>(column)),
            DataType::Decimal128(precision, _) => {
                KeyCells::Decimal(values::<Decimal128Type>(column), *precision)
            }
            DataType::FixedSizeBinary(_) => KeyCells::Uuid(column.as_fixed_size_binary()),
            DataType::Utf8View => KeyCells::Text(column.as_string_view()),
            DataType::BinaryView => KeyCells::Blob(column.as_binary_view()),
            other => unreachable!("{other} is no type of a key; checked when the object was made"),
        }
    }

    /// Puts the values beneath what keys that are numbers have so far, in the order of values.
    pub fn push_below(&self, keys: &mut [u64]) {
        fn put<T: Word>(keys: &mut [u64], values: impl Iterator<Item = T>) {
            let bits = 8 * size_of::<T>() as u32;
            for (key, value) in keys.iter_mut().zip(values) {
                // The first column may take all 64 bits.
                *key = key.unbounded_shl(bits) | eris_index::key::word(value);
            }
        }
        match self {
            KeyCells::Boolean(values) => put(keys, values.values().iter()),
            KeyCells::Int8(values) => put(keys, values.iter().copied()),
            KeyCells::Int16(values) => put(keys, values.iter().copied()),
            KeyCells::Int32(values) => put(keys, values.iter().copied()),
            KeyCells::Int64(values) => put(keys, values.iter().copied()),
            KeyCells::UInt8(values) => put(keys, values.iter().copied()),
            KeyCells::UInt16(values) => put(keys, values.iter().copied()),
            KeyCells::UInt32(values) => put(keys, values.iter().copied()),
            KeyCells::UInt64(values) => put(keys, values.iter().copied()),
            KeyCells::Float32(_)
            | KeyCells::Float64(_)
            | KeyCells::Decimal(..)
            | KeyCells::Uuid(_)
            | KeyCells::Text(_)
            | KeyCells::Blob(_) => {
                unreachable!("keys with such columns are bytes")
            }
        }
    }

    /// Appends the value of a row to a key.
    pub fn push(&self, row: usize, encoder: &mut KeyEncoder) {
        match self {
            KeyCells::Boolean(values) => encoder.push(values.value(row)),
            KeyCells::Int8(values) => encoder.push(values[row]),
            KeyCells::Int16(values) => encoder.push(values[row]),
            KeyCells::Int32(values) => encoder.push(values[row]),
            KeyCells::Int64(values) => encoder.push(values[row]),
            KeyCells::UInt8(values) => encoder.push(values[row]),
            KeyCells::UInt16(values) => encoder.push(values[row]),
            KeyCells::UInt32(values) => encoder.push(values[row]),
            KeyCells::UInt64(values) => encoder.push(values[row]),
            // Both zeros are equal in SQL, and so are all NaN.
            KeyCells::Float32(values) => match values[row] + 0.0 {
                value if value.is_nan() => encoder.push(f32::NAN),
                value => encoder.push(value),
            },
            KeyCells::Float64(values) => match values[row] + 0.0 {
                value if value.is_nan() => encoder.push(f64::NAN),
                value => encoder.push(value),
            },
            KeyCells::Decimal(values, precision) => encoder.push_decimal(values[row], *precision),
            KeyCells::Uuid(values) => {
                let uuid = values.value(row).try_into().expect("16 bytes");
                encoder.push(wide_of_uuid(uuid))
            }
            KeyCells::Text(values) => encoder.push_string(values.value(row)),
            KeyCells::Blob(values) => encoder.push_blob(values.value(row)),
        };
    }
}
