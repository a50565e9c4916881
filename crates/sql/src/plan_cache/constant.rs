//! Constants as exact values of a column's type.

use super::literal::{LiteralForm, LiteralSource};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use eris_exact::scalar;
use eris_exact::text::{blob_bytes, nanoseconds, uuid_bytes};
use eris_fragment::{Scalar, TimeUnit, Type, Value};
use eris_types::wide_of_uuid;

/// Digits that fit an `i128`.
const DIGITS: usize = 38;

/// Whether constants can be values of this type: not where comparing needs more than the value itself, as with
/// rounding.
pub(super) fn is_comparable(data_type: &Type) -> bool {
    !matches!(
        data_type,
        Type::Boolean | Type::Float32 | Type::Float64 | Type::Interval
    )
}

/// The constant that is written so, as a value of this type; `None` if it is none.
pub(super) fn read(text: &str, source: &LiteralSource, to: &Type) -> Option<Scalar> {
    match source.written {
        LiteralForm::Number { negative } if matches!(to, Type::Float32 | Type::Float64) => {
            // As if the digits were cast, which rounds once.
            let value: f64 = match to {
                Type::Float32 => text.parse::<f32>().ok()?.into(),
                _ => text.parse().ok()?,
            };
            // The general path rejects a number that is too large.
            value.is_finite().then(|| Scalar {
                data_type: to.clone(),
                // -0 is an integer before it is a float, -0.0 is not.
                value: Value::Float(match negative && (value != 0.0 || text.contains('.')) {
                    true => -value,
                    false => value,
                }),
            })
        }
        LiteralForm::Number { negative } => {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            if whole.len() + fraction.len() > DIGITS {
                return None;
            }
            let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
            let digits = if negative { -digits } else { digits };
            number(digits, fraction.len() as u32, to)
        }
        LiteralForm::Text => from_text(unquoted(text)?, to),
        LiteralForm::Date => {
            let text = unquoted(text)?;
            let is_date = from_text(text.clone(), &Type::Date).is_some();
            let fits = is_date && matches!(to, Type::Date | Type::Timestamp { .. });
            fits.then(|| from_text(text, to))?
        }
    }
}

/// A constant of another type as a value of this type; `None` if it is none.
pub(super) fn convert(value: &ScalarValue, to: &Type) -> Option<Scalar> {
    let scalar = scalar::to_fragment(value)?;
    match (scalar.value, &scalar.data_type) {
        (Value::Integer(_), Type::Boolean) => None,
        (Value::Integer(digits), Type::Decimal { scale, .. }) => {
            number(digits, u32::try_from(*scale).ok()?, to)
        }
        (
            value @ (Value::Integer(_) | Value::Bytes(_)),
            Type::Date | Type::Time { .. } | Type::Timestamp { .. } | Type::Uuid | Type::Blob,
        ) => (scalar.data_type == *to).then(|| Scalar {
            data_type: to.clone(),
            value,
        }),
        (Value::Integer(value), _) => number(value, 0, to),
        (Value::String(text), _) => from_text(text, to),
        _ => None,
    }
}

/// `digits` divided by ten `scale` times.
fn number(mut digits: i128, mut scale: u32, to: &Type) -> Option<Scalar> {
    let (precision, wanted) = match to {
        Type::Decimal { precision, scale } => (Some(*precision), u32::try_from(*scale).ok()?),
        Type::Date | Type::Time { .. } | Type::Timestamp { .. } | Type::String => return None,
        Type::Blob | Type::Uuid | Type::Interval => return None,
        _ => (None, 0),
    };
    while scale > wanted {
        if digits % 10 != 0 {
            return None;
        }
        digits /= 10;
        scale -= 1;
    }
    digits = digits.checked_mul(10i128.checked_pow(wanted - scale)?)?;
    if precision.is_some_and(|precision| digits.unsigned_abs() >= 10u128.pow(precision.into())) {
        return None;
    }
    let scalar = Scalar {
        data_type: to.clone(),
        value: Value::Integer(digits),
    };
    // It knows the limits of all types.
    scalar::to_datafusion(&scalar).map(|_| scalar)
}

fn from_text(text: String, to: &Type) -> Option<Scalar> {
    match to {
        Type::String => Some(Scalar {
            data_type: Type::String,
            value: Value::String(text),
        }),
        Type::Uuid => Some(Scalar {
            data_type: Type::Uuid,
            value: Value::Integer(wide_of_uuid(uuid_bytes(&text)?)),
        }),
        Type::Blob => Some(Scalar {
            data_type: Type::Blob,
            value: Value::Bytes(blob_bytes(&text)?),
        }),
        Type::Time { unit } => {
            let time = i128::from(nanoseconds(&text)?);
            let each = if *unit == TimeUnit::Nanosecond {
                1
            } else {
                1_000
            };
            (time % each == 0).then(|| Scalar {
                data_type: to.clone(),
                value: Value::Integer(time / each),
            })
        }
        Type::Date | Type::Timestamp { .. } if is_exact(&text, to) => {
            let value = ScalarValue::Utf8(Some(text))
                .cast_to(&DataType::from(to))
                .ok()?;
            let scalar = scalar::to_fragment(&value)?;
            (scalar.data_type == *to && !scalar.is_null()).then_some(scalar)
        }
        _ => None,
    }
}

/// Whether a date has no time of day, and a timestamp no finer fraction of a second than its type: they would be cut
/// off.
fn is_exact(text: &str, to: &Type) -> bool {
    let unit = match to {
        Type::Timestamp { unit, .. } => *unit,
        _ => return !text.contains([':', '.']),
    };
    let fraction = text.split_once('.').map_or("", |(_, fraction)| fraction);
    let end = fraction.find(|c: char| !c.is_ascii_digit());
    let digits = fraction[..end.unwrap_or(fraction.len())].trim_end_matches('0');
    let most = match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    };
    digits.len() <= most
}

/// What is between the quotes.
pub(super) fn unquoted(text: &str) -> Option<String> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(inner.replace("''", "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_values_fit() {
        let decimal = Type::Decimal {
            precision: 5,
            scale: 2,
        };
        let read = |text: &str, to: &Type| {
            let written = match text.starts_with('\'') {
                true => LiteralForm::Text,
                false => LiteralForm::Number { negative: false },
            };
            let source = LiteralSource {
                literal: 0,
                written,
                data_type: to.clone(),
            };
            read(text, &source, to).map(|scalar| scalar.to_string())
        };
        assert_eq!(read("127", &Type::Int8).as_deref(), Some("127"));
        assert_eq!(read("128", &Type::Int8), None);
        assert_eq!(read("1.0", &Type::Int8).as_deref(), Some("1"));
        assert_eq!(read("1.5", &Type::Int8), None);
        assert_eq!(read("1.5", &decimal).as_deref(), Some("1.50"));
        assert_eq!(read("999.990", &decimal).as_deref(), Some("999.99"));
        assert_eq!(read("1000", &decimal), None);
        assert_eq!(read("1.005", &decimal), None);
        assert_eq!(read("'5'", &Type::Int8), None);
        assert_eq!(read("'2024-02-30'", &Type::Date), None);
        assert!(read("'2024-02-29'", &Type::Date).is_some());
        assert_eq!(read("'2024-02-29 00:00:01'", &Type::Date), None);
        let timestamp = Type::Timestamp {
            unit: TimeUnit::Microsecond,
            zone: None,
        };
        assert!(read("'2024-02-29 00:00:00.1234560'", &timestamp).is_some());
        assert_eq!(read("'2024-02-29 00:00:00.1234567'", &timestamp), None);
        assert_eq!(read("5", &Type::String), None);
        assert_eq!(read("'it''s'", &Type::String).as_deref(), Some("'it''s'"));
        assert_eq!(read(&"9".repeat(39), &Type::Int64), None);
    }
}
