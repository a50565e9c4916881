//! The types that data objects can have, and constants of them.

use crate::text;
use arrow_schema::DataType;
use eris_types::uuid_of_wide;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of a column or expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Type {
    /// BOOLEAN
    Boolean,
    /// TINYINT
    Int8,
    /// SMALLINT
    Int16,
    /// INTEGER
    Int32,
    /// BIGINT
    Int64,
    /// TINYINT UNSIGNED
    UInt8,
    /// SMALLINT UNSIGNED
    UInt16,
    /// INTEGER UNSIGNED
    UInt32,
    /// BIGINT UNSIGNED
    UInt64,
    /// REAL
    Float32,
    /// DOUBLE
    Float64,
    /// DECIMAL(precision, scale), precision 1 to 38
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: i8,
    },
    /// VARCHAR: UTF-8 text, Arrow's `Utf8View` at every seam
    String,
    /// BLOB: bytes, Arrow's `BinaryView` at every seam
    Blob,
    /// UUID: 16 bytes, Arrow's `FixedSizeBinary(16)` at every seam
    Uuid,
    /// INTERVAL: months, days and nanoseconds. No fragment compares or groups by them.
    Interval,
    /// DATE: days since 1970-01-01
    Date,
    /// TIME: units since midnight, microseconds or nanoseconds
    Time {
        /// The unit of the count.
        unit: TimeUnit,
    },
    /// TIMESTAMP: units since 1970-01-01T00:00:00
    Timestamp {
        /// The unit of the count.
        unit: TimeUnit,
        /// The time zone of TIMESTAMP WITH TIME ZONE.
        zone: Option<String>,
    },
}

impl Type {
    /// Whether fragments group by values of the type, and find the least and the greatest.
    pub fn is_grouped(&self) -> bool {
        !matches!(self, Type::Blob | Type::Interval)
    }

    /// Whether arithmetic works on values of the type.
    pub fn is_number(&self) -> bool {
        !matches!(
            self,
            Type::Boolean
                | Type::String
                | Type::Blob
                | Type::Uuid
                | Type::Interval
                | Type::Date
                | Type::Time { .. }
                | Type::Timestamp { .. }
        )
    }
}

impl fmt::Display for Type {
    /// SQL's spelling.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Boolean => "BOOLEAN",
            Type::Int8 => "TINYINT",
            Type::Int16 => "SMALLINT",
            Type::Int32 => "INTEGER",
            Type::Int64 => "BIGINT",
            Type::UInt8 => "TINYINT UNSIGNED",
            Type::UInt16 => "SMALLINT UNSIGNED",
            Type::UInt32 => "INTEGER UNSIGNED",
            Type::UInt64 => "BIGINT UNSIGNED",
            Type::Float32 => "REAL",
            Type::Float64 => "DOUBLE",
            Type::Decimal { precision, scale } => {
                return write!(f, "DECIMAL({precision}, {scale})");
            }
            Type::String => "VARCHAR",
            Type::Blob => "BLOB",
            Type::Uuid => "UUID",
            Type::Interval => "INTERVAL",
            Type::Date => "DATE",
            Type::Time {
                unit: TimeUnit::Nanosecond,
            } => "TIME(9)",
            Type::Time { .. } => "TIME",
            Type::Timestamp { unit, zone } => {
                let digits = match unit {
                    TimeUnit::Second => 0,
                    TimeUnit::Millisecond => 3,
                    TimeUnit::Microsecond => 6,
                    TimeUnit::Nanosecond => 9,
                };
                let zone = if zone.is_some() {
                    " WITH TIME ZONE"
                } else {
                    ""
                };
                return write!(f, "TIMESTAMP({digits}){zone}");
            }
        })
    }
}

/// The unit of a time or timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TimeUnit {
    /// Seconds
    Second,
    /// 10⁻³ s
    Millisecond,
    /// 10⁻⁶ s
    Microsecond,
    /// 10⁻⁹ s
    Nanosecond,
}

/// A type that Eris does not store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("type {0} is not supported")]
pub struct UnsupportedType(pub String);

impl TryFrom<&DataType> for Type {
    type Error = UnsupportedType;

    fn try_from(data_type: &DataType) -> Result<Self, UnsupportedType> {
        Ok(match data_type {
            DataType::Boolean => Type::Boolean,
            DataType::Int8 => Type::Int8,
            DataType::Int16 => Type::Int16,
            DataType::Int32 => Type::Int32,
            DataType::Int64 => Type::Int64,
            DataType::UInt8 => Type::UInt8,
            DataType::UInt16 => Type::UInt16,
            DataType::UInt32 => Type::UInt32,
            DataType::UInt64 => Type::UInt64,
            DataType::Float32 => Type::Float32,
            DataType::Float64 => Type::Float64,
            DataType::Decimal128(precision, scale) => Type::Decimal {
                precision: *precision,
                scale: *scale,
            },
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Type::String,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Type::Blob,
            DataType::FixedSizeBinary(16) => Type::Uuid,
            DataType::Interval(arrow_schema::IntervalUnit::MonthDayNano) => Type::Interval,
            DataType::Date32 => Type::Date,
            DataType::Time64(arrow_schema::TimeUnit::Microsecond) => Type::Time {
                unit: TimeUnit::Microsecond,
            },
            DataType::Time64(arrow_schema::TimeUnit::Nanosecond) => Type::Time {
                unit: TimeUnit::Nanosecond,
            },
            DataType::Timestamp(unit, zone) => Type::Timestamp {
                unit: match unit {
                    arrow_schema::TimeUnit::Second => TimeUnit::Second,
                    arrow_schema::TimeUnit::Millisecond => TimeUnit::Millisecond,
                    arrow_schema::TimeUnit::Microsecond => TimeUnit::Microsecond,
                    arrow_schema::TimeUnit::Nanosecond => TimeUnit::Nanosecond,
                },
                zone: zone.as_ref().map(|zone| zone.to_string()),
            },
            other => return Err(UnsupportedType(other.to_string())),
        })
    }
}

impl From<&Type> for DataType {
    fn from(data_type: &Type) -> Self {
        match data_type {
            Type::Boolean => DataType::Boolean,
            Type::Int8 => DataType::Int8,
            Type::Int16 => DataType::Int16,
            Type::Int32 => DataType::Int32,
            Type::Int64 => DataType::Int64,
            Type::UInt8 => DataType::UInt8,
            Type::UInt16 => DataType::UInt16,
            Type::UInt32 => DataType::UInt32,
            Type::UInt64 => DataType::UInt64,
            Type::Float32 => DataType::Float32,
            Type::Float64 => DataType::Float64,
            Type::Decimal { precision, scale } => DataType::Decimal128(*precision, *scale),
            Type::String => DataType::Utf8View,
            Type::Blob => DataType::BinaryView,
            Type::Uuid => DataType::FixedSizeBinary(16),
            Type::Interval => DataType::Interval(arrow_schema::IntervalUnit::MonthDayNano),
            Type::Date => DataType::Date32,
            Type::Time { unit } => DataType::Time64(match unit {
                TimeUnit::Nanosecond => arrow_schema::TimeUnit::Nanosecond,
                _ => arrow_schema::TimeUnit::Microsecond,
            }),
            Type::Timestamp { unit, zone } => DataType::Timestamp(
                match unit {
                    TimeUnit::Second => arrow_schema::TimeUnit::Second,
                    TimeUnit::Millisecond => arrow_schema::TimeUnit::Millisecond,
                    TimeUnit::Microsecond => arrow_schema::TimeUnit::Microsecond,
                    TimeUnit::Nanosecond => arrow_schema::TimeUnit::Nanosecond,
                },
                zone.as_deref().map(Into::into),
            ),
        }
    }
}

/// A typed constant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scalar {
    /// Its type.
    pub data_type: Type,
    /// Its value, in the form that the type demands.
    pub value: Value,
}

/// The value of a [`Scalar`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// Unknown, of any type.
    Null,
    /// BOOLEAN
    Boolean(bool),
    /// Every integer type; the unscaled number of a decimal; the days of a date; the units of a time or
    /// timestamp; the numbers that UUIDs and intervals are
    /// (`eris_types`).
    Integer(i128),
    /// REAL (exactly widened) and DOUBLE
    Float(f64),
    /// VARCHAR
    String(String),
    /// BLOB
    Bytes(Vec<u8>),
}

impl Scalar {
    /// The NULL of a type.
    pub fn null(data_type: Type) -> Self {
        Scalar {
            data_type,
            value: Value::Null,
        }
    }

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.value, &self.data_type) {
            (Value::Null, _) => f.write_str("NULL"),
            (Value::Boolean(value), _) => write!(f, "{value}"),
            (Value::Integer(value), Type::Decimal { scale, .. }) if *scale > 0 => {
                let unit = 10i128.pow(*scale as u32);
                let sign = if *value < 0 { "-" } else { "" };
                let (whole, part) = (value.abs() / unit, value.abs() % unit);
                write!(f, "{sign}{whole}.{part:0width$}", width = *scale as usize)
            }
            (Value::Integer(value), Type::Time { unit }) => {
                f.write_str("'")?;
                text::write_time(f, *value as i64, *unit)?;
                f.write_str("'")
            }
            (Value::Integer(value), Type::Uuid) => {
                f.write_str("'")?;
                text::write_uuid(f, uuid_of_wide(*value))?;
                f.write_str("'")
            }
            (Value::Bytes(value), _) => {
                f.write_str("'")?;
                text::write_blob(f, value)?;
                f.write_str("'")
            }
            (Value::Integer(value), _) => write!(f, "{value}"),
            (Value::Float(value), _) => write!(f, "{value:?}"),
            (Value::String(value), _) => write!(f, "'{}'", value.replace('\'', "''")),
        }
    }
}
