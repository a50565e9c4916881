//! Kinds of values, as texts look like them, and the kind of a whole column.
//!
//! ```text
//! Unknown ─┬─► Boolean ────────────────────┐
//!          ├─► Integer ──► Double ─────────┼─► Text
//!          └─► Date ──► Timestamp ──► Zoned┘
//! ```

use super::csv::Reading;
use super::values;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use eris_exact::types::ZONE;

/// What all values of a column look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// There is none but NULL.
    Unknown,
    Boolean,
    Integer,
    Double,
    Date,
    Timestamp,
    /// Timestamps with zone.
    Zoned,
    Text,
}

impl Kind {
    /// Of one text.
    fn of(text: &str, reading: &Reading) -> Kind {
        let trimmed = text.trim_ascii();
        if ["true", "false", "t", "f"]
            .iter()
            .any(|word| trimmed.eq_ignore_ascii_case(word))
        {
            Kind::Boolean
        } else if trimmed.parse::<i64>().is_ok() {
            Kind::Integer
        } else {
            Self::of_time(trimmed, reading).unwrap_or_else(|| {
                let digits = trimmed.bytes().any(|byte| byte.is_ascii_digit());
                if digits && values::float::<f64>(trimmed).is_some() {
                    Kind::Double
                } else {
                    Kind::Text
                }
            })
        }
    }

    /// Of one text that may be a date or a timestamp.
    pub fn of_time(text: &str, reading: &Reading) -> Option<Kind> {
        let date = match &reading.date_format {
            Some(format) => values::date_like(text, format),
            // A timestamp at midnight is none.
            None if text.len() <= 11 => values::date(text),
            None => None,
        };
        if date.is_some() {
            return Some(Kind::Date);
        }
        let timestamp = match &reading.timestamp_format {
            Some(format) => values::timestamp_like(text, format),
            None => values::timestamp(text),
        };
        timestamp.map(|(_, _, zoned)| if zoned { Kind::Zoned } else { Kind::Timestamp })
    }

    /// Of a column with one value more.
    pub fn with(self, text: &str, reading: &Reading) -> Kind {
        let number = matches!(self, Kind::Integer | Kind::Double);
        let of = Kind::of(text, reading);
        // Infinity and NaN are numbers among numbers only.
        if number && of == Kind::Text && values::float::<f64>(text).is_some() {
            return Kind::Double;
        }
        self.join(of)
    }

    /// The least kind that has all values of both.
    pub fn join(self, other: Kind) -> Kind {
        match (self, other) {
            (Kind::Unknown, kind) | (kind, Kind::Unknown) => kind,
            (a, b) if a == b => a,
            (Kind::Integer, Kind::Double) | (Kind::Double, Kind::Integer) => Kind::Double,
            (Kind::Date, Kind::Timestamp) | (Kind::Timestamp, Kind::Date) => Kind::Timestamp,
            (Kind::Date | Kind::Timestamp, Kind::Zoned)
            | (Kind::Zoned, Kind::Date | Kind::Timestamp) => Kind::Zoned,
            _ => Kind::Text,
        }
    }

    /// The type of such a column.
    pub fn data_type(self) -> DataType {
        match self {
            Kind::Unknown | Kind::Text => DataType::Utf8View,
            Kind::Boolean => DataType::Boolean,
            Kind::Integer => DataType::Int64,
            Kind::Double => DataType::Float64,
            Kind::Date => DataType::Date32,
            Kind::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
            Kind::Zoned => DataType::Timestamp(TimeUnit::Microsecond, Some(ZONE.into())),
        }
    }
}
