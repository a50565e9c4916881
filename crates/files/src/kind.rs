//! Kinds of values, as texts look like them, and the kind of a whole column.
//!
//! ```text
//! Unknown ─┬─► Boolean ───────────────────────┐
//!          ├─► Integer ──► Double ──► Digits ─┤
//!          ├─► Date ──► Timestamp ──► Zoned ──┼─► String
//!          └─► Time ──────────────────────────┘
//! ```

use crate::values::{self, ValueFormats};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use eris_exact::types::ZONE;

/// What all values of a column look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    /// There is none but NULL.
    Unknown,
    Boolean,
    Integer,
    Double,
    Date,
    Time,
    Timestamp,
    /// Timestamps with zone.
    Zoned,
    /// Numbers that would lose a zero or a sign in front: postal codes, telephone numbers. So they are strings.
    Digits,
    String,
}

impl ValueKind {
    /// Of one text.
    fn of(text: &str, formats: &ValueFormats) -> ValueKind {
        let trimmed = text.trim_ascii();
        if ["true", "false", "t", "f"]
            .iter()
            .any(|word| trimmed.eq_ignore_ascii_case(word))
        {
            ValueKind::Boolean
        } else if would_lose_digits(trimmed) {
            ValueKind::Digits
        } else if trimmed.parse::<i64>().is_ok() {
            ValueKind::Integer
        } else {
            Self::of_time(trimmed, formats).unwrap_or_else(|| {
                let digits = trimmed.bytes().any(|byte| byte.is_ascii_digit());
                if digits && values::float::<f64>(trimmed).is_some() {
                    ValueKind::Double
                } else {
                    ValueKind::String
                }
            })
        }
    }

    /// Of one text that may be a date, a time or a timestamp.
    pub fn of_time(text: &str, formats: &ValueFormats) -> Option<ValueKind> {
        // A timestamp at midnight is no date.
        let may_be_date = formats.date_format.is_some() || text.len() <= 11;
        if may_be_date && formats.date(text).is_some() {
            return Some(ValueKind::Date);
        }
        // A day in front of it makes it a timestamp.
        if matches!(text.find(':'), Some(1 | 2)) && values::time(text).is_some() {
            return Some(ValueKind::Time);
        }
        let timestamp = formats.timestamp(text);
        timestamp.map(|(_, _, zoned)| {
            if zoned {
                ValueKind::Zoned
            } else {
                ValueKind::Timestamp
            }
        })
    }

    /// Of a column with one value more.
    pub fn with(self, text: &str, formats: &ValueFormats) -> ValueKind {
        let number = matches!(self, ValueKind::Integer | ValueKind::Double);
        let of = ValueKind::of(text, formats);
        // Infinity and NaN are numbers among numbers only.
        if number && of == ValueKind::String && values::float::<f64>(text).is_some() {
            return ValueKind::Double;
        }
        self.join(of)
    }

    /// The least kind that has all values of both.
    pub fn join(self, other: ValueKind) -> ValueKind {
        match (self, other) {
            (ValueKind::Unknown, kind) | (kind, ValueKind::Unknown) => kind,
            (a, b) if a == b => a,
            (ValueKind::Integer, ValueKind::Double) | (ValueKind::Double, ValueKind::Integer) => {
                ValueKind::Double
            }
            (ValueKind::Digits, ValueKind::Integer | ValueKind::Double)
            | (ValueKind::Integer | ValueKind::Double, ValueKind::Digits) => ValueKind::Digits,
            (ValueKind::Date, ValueKind::Timestamp) | (ValueKind::Timestamp, ValueKind::Date) => {
                ValueKind::Timestamp
            }
            (ValueKind::Date | ValueKind::Timestamp, ValueKind::Zoned)
            | (ValueKind::Zoned, ValueKind::Date | ValueKind::Timestamp) => ValueKind::Zoned,
            _ => ValueKind::String,
        }
    }

    /// The type of such a column.
    pub fn data_type(self) -> DataType {
        match self {
            ValueKind::Unknown | ValueKind::Digits | ValueKind::String => DataType::Utf8View,
            ValueKind::Boolean => DataType::Boolean,
            ValueKind::Integer => DataType::Int64,
            ValueKind::Double => DataType::Float64,
            ValueKind::Date => DataType::Date32,
            ValueKind::Time => DataType::Time64(TimeUnit::Microsecond),
            ValueKind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            ValueKind::Zoned => DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())),
        }
    }
}

/// Whether a text is a number with a sign or a zero in front that says nothing to a number.
fn would_lose_digits(text: &str) -> bool {
    let padded = match text.as_bytes() {
        [b'+', ..] => true,
        [b'0', digit, ..] => digit.is_ascii_digit(),
        _ => false,
    };
    padded && values::float::<f64>(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_would_lose_a_digit_are_none() {
        let formats = ValueFormats::default();
        for (texts, kind) in [
            (&["1", "-5", "0"][..], ValueKind::Integer),
            (&["0.5", "1e3", "-inf"], ValueKind::Double),
            (&["1", "007"], ValueKind::Digits),
            (&["+49 30", "1"], ValueKind::String),
            (&["+4930", "1.5"], ValueKind::Digits),
            (&["08075", "x"], ValueKind::String),
            (&["08:15", "23:00"], ValueKind::Time),
            (&["01-02-2024", "007"], ValueKind::String),
        ] {
            let of = texts
                .iter()
                .fold(ValueKind::Unknown, |kind, text| kind.with(text, &formats));
            assert_eq!(of, kind, "{texts:?}");
        }
    }
}
