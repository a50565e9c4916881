//! Constants and stored integers as Arrow arrays.

use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use eris_column::wide_array;
use eris_fragment::{FragmentError, Scalar, Value};
use std::sync::Arc;

/// The constant as an array of one row.
pub(crate) fn literal(scalar: &Scalar) -> Result<ArrayRef, FragmentError> {
    let data_type = DataType::from(&scalar.data_type);
    let malformed = FragmentError::Malformed {
        reason: "a constant whose value does not fit its type",
    };
    let array: ArrayRef = match (&scalar.value, &data_type) {
        (Value::Null, _) => new_null_array(&data_type, 1),
        (Value::Boolean(value), DataType::Boolean) => Arc::new(BooleanArray::from(vec![*value])),
        (Value::Float(value), DataType::Float32) => {
            Arc::new(Float32Array::from(vec![*value as f32]))
        }
        (Value::Float(value), DataType::Float64) => Arc::new(Float64Array::from(vec![*value])),
        (Value::String(value), DataType::Utf8View) => {
            Arc::new(StringViewArray::from(vec![&**value]))
        }
        (Value::Bytes(value), DataType::BinaryView) => {
            Arc::new(BinaryViewArray::from_iter_values([value]))
        }
        (Value::Integer(value), DataType::FixedSizeBinary(_) | DataType::Interval(_)) => {
            wide_array(&data_type, vec![*value].into(), None)
        }
        (Value::Integer(value), DataType::Decimal128(precision, scale)) => Arc::new(
            Decimal128Array::from(vec![*value])
                .with_precision_and_scale(*precision, *scale)
                .map_err(|_| malformed)?,
        ),
        (Value::Integer(value), DataType::UInt64) => {
            let value = u64::try_from(*value).map_err(|_| malformed)?;
            Arc::new(UInt64Array::from(vec![value]))
        }
        (Value::Integer(value), data_type) if data_type.is_integer() || data_type.is_temporal() => {
            let (low, high) = crate::bounds::value_bounds(&scalar.data_type).expect("an integer");
            if *value < low || *value > high {
                return Err(malformed);
            }
            integers_to_array(data_type, vec![*value as i64], None)
        }
        _ => return Err(malformed),
    };
    Ok(array)
}

/// Integers as they are stored in column chunks (`eris_column::from_integer`), as an array of the type they stand for.
/// The values of NULLs may be anything.
pub(crate) fn integers_to_array(
    data_type: &DataType,
    values: Vec<i64>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    fn narrow<T: ArrowPrimitiveType>(
        values: Vec<i64>,
        nulls: Option<NullBuffer>,
        convert: impl Fn(i64) -> T::Native,
    ) -> PrimitiveArray<T> {
        let values: Vec<T::Native> = values.into_iter().map(convert).collect();
        PrimitiveArray::new(values.into(), nulls)
    }
    match data_type {
        DataType::Boolean => {
            let bits = values.into_iter().map(|value| value != 0).collect();
            Arc::new(BooleanArray::new(bits, nulls))
        }
        DataType::Int8 => Arc::new(narrow::<Int8Type>(values, nulls, |value| value as i8)),
        DataType::Int16 => Arc::new(narrow::<Int16Type>(values, nulls, |value| value as i16)),
        DataType::Int32 => Arc::new(narrow::<Int32Type>(values, nulls, |value| value as i32)),
        DataType::Int64 => Arc::new(Int64Array::new(values.into(), nulls)),
        DataType::UInt8 => Arc::new(narrow::<UInt8Type>(values, nulls, |value| value as u8)),
        DataType::UInt16 => Arc::new(narrow::<UInt16Type>(values, nulls, |value| value as u16)),
        DataType::UInt32 => Arc::new(narrow::<UInt32Type>(values, nulls, |value| value as u32)),
        DataType::UInt64 => Arc::new(narrow::<UInt64Type>(values, nulls, |value| {
            value as u64 ^ 1 << 63
        })),
        DataType::Date32 => Arc::new(narrow::<Date32Type>(values, nulls, |value| value as i32)),
        DataType::Time64(TimeUnit::Microsecond) => {
            Arc::new(Time64MicrosecondArray::new(values.into(), nulls))
        }
        DataType::Time64(TimeUnit::Nanosecond) => {
            Arc::new(Time64NanosecondArray::new(values.into(), nulls))
        }
        DataType::Timestamp(unit, zone) => {
            let (values, zone) = (values.into(), zone.clone());
            match unit {
                TimeUnit::Second => {
                    Arc::new(TimestampSecondArray::new(values, nulls).with_timezone_opt(zone))
                }
                TimeUnit::Millisecond => {
                    Arc::new(TimestampMillisecondArray::new(values, nulls).with_timezone_opt(zone))
                }
                TimeUnit::Microsecond => {
                    Arc::new(TimestampMicrosecondArray::new(values, nulls).with_timezone_opt(zone))
                }
                TimeUnit::Nanosecond => {
                    Arc::new(TimestampNanosecondArray::new(values, nulls).with_timezone_opt(zone))
                }
            }
        }
        DataType::Decimal128(..) => Arc::new(
            narrow::<Decimal128Type>(values, nulls, |value| value as i128)
                .with_data_type(data_type.clone()),
        ),
        other => unreachable!("{other} is not stored as integers"),
    }
}
