//! The types of SQL for what programs have.
//!
//! ```text
//! Utf8, LargeUtf8, Utf8View                 Utf8View        the bytes are shared
//! Binary, LargeBinary, BinaryView, …        BinaryView      FixedSizeBinary too, unless it is called a UUID
//! Dictionary, RunEndEncoded                 as their values
//! Float16                                   Float32
//! Date64                                    Timestamp(ms)
//! Time32                                    Time64(us)
//! Duration                                  Interval
//! Decimal32, Decimal64, Decimal256          Decimal128      if no more than 38 digits are declared
//! LargeList, FixedSizeList                  List
//! ```

use super::FrameFaultKind;
use crate::foreign;
use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, Schema, TimeUnit};
use std::collections::HashSet;
use std::sync::Arc;

/// Digits of the widest decimal.
const DIGITS: u8 = 38;

/// The columns as SQL knows them.
///
/// # Errors
/// What is wrong, with the column if it is one.
pub(super) fn schema(given: &Schema) -> Result<Schema, (Option<String>, FrameFaultKind)> {
    if given.fields().is_empty() {
        return Err((None, FrameFaultKind::NoColumns));
    }
    let mut seen = HashSet::new();
    let known = foreign::columns(given);
    let fields = known.fields().iter().map(|field| {
        let wrong = |kind| (Some(field.name().clone()), kind);
        if !seen.insert(field.name().clone()) {
            return Err(wrong(FrameFaultKind::DoubledColumn));
        }
        let unknown = || wrong(FrameFaultKind::UnknownType(field.data_type().to_string()));
        let data_type = sql_type(field.data_type()).ok_or_else(unknown)?;
        // What a program says about NULLs is not trusted.
        Ok(Field::new(field.name(), data_type, true))
    });
    Ok(Schema::new(fields.collect::<Result<Vec<_>, _>>()?))
}

/// `None`: there is no such type.
fn sql_type(given: &DataType) -> Option<DataType> {
    Some(match given {
        DataType::Null
        | DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float32
        | DataType::Float64
        | DataType::Date32
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Interval(IntervalUnit::MonthDayNano)
        | DataType::FixedSizeBinary(_) => given.clone(),
        DataType::Float16 => DataType::Float32,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::BinaryView,
        DataType::Dictionary(_, values) => sql_type(values)?,
        DataType::RunEndEncoded(_, values) => sql_type(values.data_type())?,
        DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::Time32(_) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Duration(_) | DataType::Interval(_) => {
            DataType::Interval(IntervalUnit::MonthDayNano)
        }
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale)
            if *digits <= DIGITS && (0..=*digits as i8).contains(scale) =>
        {
            DataType::Decimal128(*digits, *scale)
        }
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            DataType::List(Arc::new(sql_field(item)?))
        }
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| sql_field(field));
            DataType::Struct(fields.collect::<Option<Vec<_>>>()?.into())
        }
        _ => return None,
    })
}

fn sql_field(field: &Field) -> Option<Field> {
    let data_type = sql_type(field.data_type())?;
    Some(Field::new(field.name(), data_type, true))
}
