//! Keys for messages: their values back, as arrays of one row.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, Float32Array, Float64Array, PrimitiveArray,
    StringViewArray,
};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, TimeUnit};
use eris_column::wide_array;
use eris_fragment::text::{write_blob, write_uuid};
use eris_index::key::Decoder;
use std::sync::Arc;

/// All values of a key, for messages.
pub fn all(types: &[&DataType], key: &[u8]) -> String {
    let mut decoder = Decoder::new(key);
    let values = types
        .iter()
        .map(|data_type| display(&value(data_type, &mut decoder)));
    values.collect::<Vec<_>>().join(", ")
}

/// The value of a type that a number stands for.
pub fn number(data_type: &DataType, number: i128) -> ArrayRef {
    use TimeUnit::*;
    macro_rules! one {
        ($($kind:pat => $native:ty),+ $(,)?) => {
            match data_type {
                DataType::Boolean => Arc::new(BooleanArray::from(vec![number != 0])),
                $($kind => Arc::new(
                    PrimitiveArray::<$native>::from_value(number as _, 1).with_data_type(data_type.clone()),
                ),)+
                other => unreachable!("{other} has no numbers"),
            }
        };
    }
    one! {
        DataType::Int8 => Int8Type,
        DataType::Int16 => Int16Type,
        DataType::Int32 => Int32Type,
        DataType::Int64 => Int64Type,
        DataType::UInt8 => UInt8Type,
        DataType::UInt16 => UInt16Type,
        DataType::UInt32 => UInt32Type,
        DataType::UInt64 => UInt64Type,
        DataType::Date32 => Date32Type,
        DataType::Decimal128(..) => Decimal128Type,
        DataType::Time64(Microsecond) => Time64MicrosecondType,
        DataType::Time64(Nanosecond) => Time64NanosecondType,
        DataType::Timestamp(Second, _) => TimestampSecondType,
        DataType::Timestamp(Millisecond, _) => TimestampMillisecondType,
        DataType::Timestamp(Microsecond, _) => TimestampMicrosecondType,
        DataType::Timestamp(Nanosecond, _) => TimestampNanosecondType,
    }
}

/// The next value of a key.
pub fn value(data_type: &DataType, key: &mut Decoder<'_>) -> ArrayRef {
    let value: i128 = match data_type {
        DataType::Boolean => key.take::<bool>().into(),
        DataType::Int8 => key.take::<i8>().into(),
        DataType::Int16 => key.take::<i16>().into(),
        DataType::Int32 | DataType::Date32 => key.take::<i32>().into(),
        DataType::Int64 | DataType::Time64(_) | DataType::Timestamp(..) => key.take::<i64>().into(),
        DataType::UInt8 => key.take::<u8>().into(),
        DataType::UInt16 => key.take::<u16>().into(),
        DataType::UInt32 => key.take::<u32>().into(),
        DataType::UInt64 => key.take::<u64>().into(),
        DataType::Decimal128(precision, _) => key.take_decimal(*precision),
        DataType::Float32 => return Arc::new(Float32Array::from(vec![key.take::<f32>()])),
        DataType::Float64 => return Arc::new(Float64Array::from(vec![key.take::<f64>()])),
        DataType::FixedSizeBinary(_) => {
            return wide_array(data_type, vec![key.take::<i128>()].into(), None);
        }
        DataType::BinaryView => {
            return Arc::new(BinaryViewArray::from_iter_values([key.take_blob()]));
        }
        _ => return Arc::new(StringViewArray::from(vec![key.take_text()])),
    };
    number(data_type, value)
}

/// As it is printed.
pub fn display(value: &ArrayRef) -> String {
    let mut shown = String::new();
    let written = match value.data_type() {
        DataType::FixedSizeBinary(_) => {
            let uuid = value.as_fixed_size_binary().value(0);
            write_uuid(&mut shown, uuid.try_into().expect("16 bytes"))
        }
        DataType::BinaryView => write_blob(&mut shown, value.as_binary_view().value(0)),
        _ => Ok(()),
    };
    written.expect("a String takes everything");
    if !shown.is_empty() {
        return shown;
    }
    let formatter = ArrayFormatter::try_new(value, &FormatOptions::default());
    formatter.map_or_else(|_| "?".to_owned(), |shown| shown.value(0).to_string())
}
