//! Intervals with a time of day: `INTERVAL '1 day 04:05:06'`.
//!
//! DataFusion reads constants of intervals itself, and knows no `04:05:06`. A CAST of the string does.

use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, Interval, Value};

/// The interval as a CAST, if it is written with a time of day, or as some time ago.
pub(crate) fn as_cast(interval: &Interval) -> Option<Expr> {
    let Expr::Value(value) = &*interval.value else {
        return None;
    };
    let Value::SingleQuotedString(text) = &value.value else {
        return None;
    };
    let is_clock = text.contains(':') || text.trim_end().to_ascii_lowercase().ends_with(" ago");
    (is_clock && interval.leading_field.is_none()).then(|| Expr::Cast {
        kind: CastKind::Cast,
        expr: interval.value.clone(),
        data_type: DataType::Interval {
            fields: None,
            precision: None,
        },
        array: false,
        format: None,
    })
}
