//! Constants, between DataFusion and fragments.
//!
//! No repair: the same values in two forms, of which DataFusion's changes with its versions.

use crate::types::UUID_BYTES;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use eris_fragment::{Scalar, Type, Value};
use eris_types::{interval_of_wide, uuid_of_wide, wide_of_interval, wide_of_uuid};

/// The constants as a column.
///
/// DataFusion's function is generic, and has a copy of itself for each type. So it is compiled here, once.
pub fn to_column(values: Vec<ScalarValue>) -> Result<ArrayRef> {
    ScalarValue::iter_to_array(values)
}

/// The constant as a fragment writes it; `None` for types that fragments do not have.
pub fn to_fragment(value: &ScalarValue) -> Option<Scalar> {
    let data_type = Type::try_from(&value.data_type()).ok()?;
    let value = match value {
        ScalarValue::Boolean(value) => value.map(Value::Boolean),
        ScalarValue::Int8(value) => value.map(|value| Value::Integer(value.into())),
        ScalarValue::Int16(value) => value.map(|value| Value::Integer(value.into())),
        ScalarValue::Int32(value) | ScalarValue::Date32(value) => {
            value.map(|value| Value::Integer(value.into()))
        }
        ScalarValue::Int64(value)
        | ScalarValue::Time64Microsecond(value)
        | ScalarValue::Time64Nanosecond(value)
        | ScalarValue::TimestampSecond(value, _)
        | ScalarValue::TimestampMillisecond(value, _)
        | ScalarValue::TimestampMicrosecond(value, _)
        | ScalarValue::TimestampNanosecond(value, _) => {
            value.map(|value| Value::Integer(value.into()))
        }
        ScalarValue::UInt8(value) => value.map(|value| Value::Integer(value.into())),
        ScalarValue::UInt16(value) => value.map(|value| Value::Integer(value.into())),
        ScalarValue::UInt32(value) => value.map(|value| Value::Integer(value.into())),
        ScalarValue::UInt64(value) => value.map(|value| Value::Integer(value.into())),
        ScalarValue::Decimal128(value, ..) => value.map(Value::Integer),
        ScalarValue::FixedSizeBinary(_, value) => match value {
            Some(bytes) => Some(Value::Integer(wide_of_uuid(
                bytes.as_slice().try_into().ok()?,
            ))),
            None => None,
        },
        ScalarValue::IntervalMonthDayNano(value) => value.map(|value| {
            let number = wide_of_interval(value.months, value.days, value.nanoseconds);
            Value::Integer(number)
        }),
        ScalarValue::Binary(value)
        | ScalarValue::LargeBinary(value)
        | ScalarValue::BinaryView(value) => value.clone().map(Value::Bytes),
        ScalarValue::Float32(value) => value.map(|value| Value::Float(value.into())),
        ScalarValue::Float64(value) => value.map(Value::Float),
        ScalarValue::Utf8(value) | ScalarValue::LargeUtf8(value) | ScalarValue::Utf8View(value) => {
            value.clone().map(Value::String)
        }
        _ => return None,
    };
    Some(Scalar {
        data_type,
        value: value.unwrap_or(Value::Null),
    })
}

/// The constant as DataFusion writes it; `None` if the value is not of its own type.
pub fn to_datafusion(scalar: &Scalar) -> Option<ScalarValue> {
    let data_type = DataType::from(&scalar.data_type);
    Some(match (&scalar.value, &data_type) {
        (Value::Null, _) => ScalarValue::try_from(&data_type).ok()?,
        (Value::Boolean(value), DataType::Boolean) => ScalarValue::Boolean(Some(*value)),
        (Value::Float(value), DataType::Float32) => ScalarValue::Float32(Some(*value as f32)),
        (Value::Float(value), DataType::Float64) => ScalarValue::Float64(Some(*value)),
        (Value::String(value), DataType::Utf8View) => ScalarValue::Utf8View(Some(value.clone())),
        (Value::Bytes(value), DataType::BinaryView) => ScalarValue::BinaryView(Some(value.clone())),
        (Value::Integer(value), DataType::FixedSizeBinary(_)) => {
            ScalarValue::FixedSizeBinary(UUID_BYTES, Some(uuid_of_wide(*value).to_vec()))
        }
        (Value::Integer(value), DataType::Interval(_)) => {
            let (months, days, nanoseconds) = interval_of_wide(*value);
            let interval = IntervalMonthDayNano::new(months, days, nanoseconds);
            ScalarValue::IntervalMonthDayNano(Some(interval))
        }
        (Value::Integer(value), DataType::Int8) => {
            ScalarValue::Int8(Some((*value).try_into().ok()?))
        }
        (Value::Integer(value), DataType::Int16) => {
            ScalarValue::Int16(Some((*value).try_into().ok()?))
        }
        (Value::Integer(value), DataType::Int32) => {
            ScalarValue::Int32(Some((*value).try_into().ok()?))
        }
        (Value::Integer(value), DataType::Date32) => {
            ScalarValue::Date32(Some((*value).try_into().ok()?))
        }
        (Value::Integer(value), DataType::Int64) => {
            ScalarValue::Int64(Some((*value).try_into().ok()?))
        }
        (Value::Integer(value), DataType::UInt8) => {
            ScalarValue::UInt8(Some((*value).try_into().ok()?))
        }
        (Value::Integer(value), DataType::UInt16) => {
            ScalarValue::UInt16(Some((*value).try_into().ok()?))
        }
        (Value::Integer(value), DataType::UInt32) => {
            ScalarValue::UInt32(Some((*value).try_into().ok()?))
        }
        (Value::Integer(value), DataType::UInt64) => {
            ScalarValue::UInt64(Some((*value).try_into().ok()?))
        }
        (Value::Integer(value), DataType::Decimal128(precision, scale)) => {
            ScalarValue::Decimal128(Some(*value), *precision, *scale)
        }
        (Value::Integer(value), DataType::Time64(TimeUnit::Nanosecond)) => {
            ScalarValue::Time64Nanosecond(Some((*value).try_into().ok()?))
        }
        (Value::Integer(value), DataType::Time64(_)) => {
            ScalarValue::Time64Microsecond(Some((*value).try_into().ok()?))
        }
        (Value::Integer(value), DataType::Timestamp(unit, zone)) => {
            let (value, zone) = (Some((*value).try_into().ok()?), zone.clone());
            match unit {
                TimeUnit::Second => ScalarValue::TimestampSecond(value, zone),
                TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(value, zone),
                TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(value, zone),
                TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(value, zone),
            }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = ScalarValue> {
        prop_oneof![
            any::<Option<bool>>().prop_map(ScalarValue::Boolean),
            any::<Option<i8>>().prop_map(ScalarValue::Int8),
            any::<Option<i16>>().prop_map(ScalarValue::Int16),
            any::<Option<i32>>().prop_map(ScalarValue::Int32),
            any::<Option<i64>>().prop_map(ScalarValue::Int64),
            any::<Option<u8>>().prop_map(ScalarValue::UInt8),
            any::<Option<u16>>().prop_map(ScalarValue::UInt16),
            any::<Option<u32>>().prop_map(ScalarValue::UInt32),
            any::<Option<u64>>().prop_map(ScalarValue::UInt64),
            any::<Option<f32>>().prop_map(ScalarValue::Float32),
            any::<Option<f64>>().prop_map(ScalarValue::Float64),
            any::<Option<i32>>().prop_map(ScalarValue::Date32),
            any::<Option<i64>>().prop_map(ScalarValue::Time64Microsecond),
            any::<Option<i64>>().prop_map(ScalarValue::Time64Nanosecond),
            any::<Option<String>>().prop_map(ScalarValue::Utf8View),
            any::<Option<Vec<u8>>>().prop_map(ScalarValue::BinaryView),
            any::<Option<[u8; 16]>>()
                .prop_map(|v| { ScalarValue::FixedSizeBinary(UUID_BYTES, v.map(|v| v.to_vec())) }),
            any::<Option<(i32, i32, i64)>>().prop_map(|v| {
                let interval = |(m, d, n)| IntervalMonthDayNano::new(m, d, n);
                ScalarValue::IntervalMonthDayNano(v.map(interval))
            }),
            any::<Option<i64>>().prop_map(|v| ScalarValue::Decimal128(v.map(i128::from), 38, 4)),
            any::<Option<i64>>()
                .prop_map(|v| ScalarValue::TimestampMicrosecond(v, Some("UTC".into()))),
            any::<Option<i64>>().prop_map(|v| ScalarValue::TimestampSecond(v, None)),
        ]
    }

    proptest! {
        #[test]
        fn there_and_back_again(value in values()) {
            prop_assert_eq!(to_datafusion(&to_fragment(&value).unwrap()).unwrap(), value);
        }
    }
}
