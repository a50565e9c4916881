//! The numbers that values of a type can be, and what casts do to them.

use eris_fragment::{TimeUnit, Type};

/// Stored integers are the values themselves, except for BIGINT UNSIGNED, whose order is kept by moving it down.
pub(crate) fn domain_offset(data_type: &Type) -> i128 {
    match data_type {
        Type::UInt64 => 1 << 63,
        _ => 0,
    }
}

/// The values a stored integer of the type can have, before its [`domain_offset`].
pub(crate) fn value_bounds(data_type: &Type) -> Option<(i128, i128)> {
    Some(match data_type {
        Type::Boolean => (0, 1),
        Type::Int8 => (i8::MIN as i128, i8::MAX as i128),
        Type::Int16 => (i16::MIN as i128, i16::MAX as i128),
        Type::Int32 | Type::Date => (i32::MIN as i128, i32::MAX as i128),
        Type::Int64 | Type::Timestamp { .. } => (i64::MIN as i128, i64::MAX as i128),
        // Up to midnight, which 24:00:00 is not.
        Type::Time { unit } => (0, 86_400 * units(unit) - 1),
        Type::UInt8 => (0, u8::MAX as i128),
        Type::UInt16 => (0, u16::MAX as i128),
        Type::UInt32 => (0, u32::MAX as i128),
        Type::UInt64 => (0, u64::MAX as i128),
        Type::Decimal { precision, .. } => {
            let end = 10i128.pow(*precision as u32) - 1;
            (-end, end)
        }
        Type::Float32 | Type::Float64 | Type::String | Type::Blob | Type::Uuid | Type::Interval => {
            return None;
        }
    })
}

/// How many of them a second has.
fn units(unit: &TimeUnit) -> i128 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// The stored values a column of the type can have.
pub(crate) fn stored_bounds(data_type: &Type) -> Option<(i64, i64)> {
    let (low, high) = value_bounds(data_type)?;
    let offset = domain_offset(data_type);
    Some((
        (low - offset).try_into().ok()?,
        (high - offset).try_into().ok()?,
    ))
}

/// By how much a cast multiplies every value, if it never fails and loses nothing.
pub(crate) fn lossless_factor(from: &Type, to: &Type) -> Option<i128> {
    if from == to {
        return Some(1);
    }
    let scale = |data_type: &Type| match data_type {
        Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64 => Some(0),
        Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64 => Some(0),
        Type::Decimal { scale, .. } => Some(*scale),
        _ => None,
    };
    let factor = match (from, to) {
        // The days of every DATE fit in milliseconds and microseconds.
        (Type::Date, Type::Timestamp { unit, zone: None }) if *unit != TimeUnit::Nanosecond => {
            return Some(86_400 * units(unit));
        }
        (Type::Time { unit: from }, Type::Time { unit: to }) if units(to) > units(from) => {
            units(to) / units(from)
        }
        _ => {
            let power = scale(to)?.checked_sub(scale(from)?)?;
            10i128.checked_pow(u32::try_from(power).ok()?)?
        }
    };
    let ((low, high), (least, greatest)) = (value_bounds(from)?, value_bounds(to)?);
    let fits = low.checked_mul(factor)? >= least && high.checked_mul(factor)? <= greatest;
    fits.then_some(factor)
}
