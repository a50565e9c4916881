//! The columns of keys, value by value.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, StringViewArray};
use arrow_schema::{DataType, TimeUnit};
use eris_index::key::{Encoder, Word};

/// The values of a column of keys.
pub(crate) enum Cells<'a> {
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
    Text(&'a StringViewArray),
}

impl<'a> Cells<'a> {
    pub fn of(column: &'a ArrayRef) -> Self {
        use TimeUnit::*;
        fn values<T: ArrowPrimitiveType>(column: &ArrayRef) -> &[T::Native] {
            column.as_primitive::<T>().values()
        }
        match column.data_type() {
            DataType::Boolean => Cells::Boolean(column.as_boolean()),
            DataType::Int8 => Cells::Int8(values::<Int8Type>(column)),
            DataType::Int16 => Cells::Int16(values::<Int16Type>(column)),
            DataType::Int32 => Cells::Int32(values::<Int32Type>(column)),
            DataType::Date32 => Cells::Int32(values::<Date32Type>(column)),
            DataType::Int64 => Cells::Int64(values::<Int64Type>(column)),
            DataType::Timestamp(Second, _) => Cells::Int64(values::<TimestampSecondType>(column)),
            DataType::Timestamp(Millisecond, _) => {
                Cells::Int64(values::<TimestampMillisecondType>(column))
            }
            DataType::Timestamp(Microsecond, _) => {
                Cells::Int64(values::<TimestampMicrosecondType>(column))
            }
            DataType::Timestamp(Nanosecond, _) => {
                Cells::Int64(values::<TimestampNanosecondType>(column))
            }
            DataType::UInt8 => Cells::UInt8(values::<UInt8Type>(column)),
            DataType::UInt16 => Cells::UInt16(values::<UInt16Type>(column)),
            DataType::UInt32 => Cells::UInt32(values::<UInt32Type>(column)),
            DataType::UInt64 => Cells::UInt64(values::<UInt64Type>(column)),
            DataType::Float32 => Cells::Float32(values::<Float32Type>(column)),
            DataType::Float64 => Cells::Float64(values::<Float64Type>(column)),
            DataType::Decimal128(precision, _) => {
                Cells::Decimal(values::<Decimal128Type>(column), *precision)
            }
            DataType::Utf8View => Cells::Text(column.as_string_view()),
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
            Cells::Boolean(values) => put(keys, values.values().iter()),
            Cells::Int8(values) => put(keys, values.iter().copied()),
            Cells::Int16(values) => put(keys, values.iter().copied()),
            Cells::Int32(values) => put(keys, values.iter().copied()),
            Cells::Int64(values) => put(keys, values.iter().copied()),
            Cells::UInt8(values) => put(keys, values.iter().copied()),
            Cells::UInt16(values) => put(keys, values.iter().copied()),
            Cells::UInt32(values) => put(keys, values.iter().copied()),
            Cells::UInt64(values) => put(keys, values.iter().copied()),
            Cells::Float32(_) | Cells::Float64(_) | Cells::Decimal(..) | Cells::Text(_) => {
                unreachable!("keys with such columns are bytes")
            }
        }
    }

    /// Appends the value of a row to a key.
    pub fn push(&self, row: usize, encoder: &mut Encoder) {
        match self {
            Cells::Boolean(values) => encoder.push(values.value(row)),
            Cells::Int8(values) => encoder.push(values[row]),
            Cells::Int16(values) => encoder.push(values[row]),
            Cells::Int32(values) => encoder.push(values[row]),
            Cells::Int64(values) => encoder.push(values[row]),
            Cells::UInt8(values) => encoder.push(values[row]),
            Cells::UInt16(values) => encoder.push(values[row]),
            Cells::UInt32(values) => encoder.push(values[row]),
            Cells::UInt64(values) => encoder.push(values[row]),
            // Both zeros are equal in SQL, and so are all NaN.
            Cells::Float32(values) => match values[row] + 0.0 {
                value if value.is_nan() => encoder.push(f32::NAN),
                value => encoder.push(value),
            },
            Cells::Float64(values) => match values[row] + 0.0 {
                value if value.is_nan() => encoder.push(f64::NAN),
                value => encoder.push(value),
            },
            Cells::Decimal(values, precision) => encoder.push_decimal(values[row], *precision),
            Cells::Text(values) => encoder.push_text(values.value(row)),
        };
    }
}
