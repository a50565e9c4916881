//! Timestamps that are written without seconds: `2024-01-01 10:00`.
//!
//! **Stands for** Arrow's cast of strings to timestamps, which wants the seconds. PostgreSQL and DuckDB do not.

use crate::columns::ColumnFunction;
use datafusion::arrow::array::{ArrayRef, AsArray, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::logical_expr::ScalarUDF;
use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

/// The name of the function that comes before a cast of a string to a timestamp.
pub(crate) const WITH_SECONDS: &str = "with_seconds";

pub(crate) static SECONDS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let type_of = |_: &DataType| DataType::Utf8View;
    let function =
        ColumnFunction::scalar(WITH_SECONDS, type_of, |column| Ok(with_seconds(column)?));
    Arc::new(function)
});

/// The strings, those that lack the seconds of a time with `:00`.
pub(crate) fn with_seconds(strings: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let strings = cast(strings, &DataType::Utf8View)?;
    let views = strings.as_string_view();
    if !views.iter().flatten().any(|string| place(string).is_some()) {
        return Ok(strings);
    }
    let whole = views.iter().map(|string| string.map(completed));
    Ok(Arc::new(whole.collect::<StringViewArray>()))
}

fn completed(string: &str) -> Cow<'_, str> {
    match place(string) {
        Some(place) => format!("{}:00{}", &string[..place], &string[place..]).into(),
        None => string.into(),
    }
}

/// Where the seconds are missing: behind `day hour:minute`, at the end or before a zone.
fn place(string: &str) -> Option<usize> {
    let string = string.trim_end();
    let colon = string.find(':')?;
    let time = string[..colon].rfind([' ', 'T', 't'])? + 1;
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let hour = &string[time..colon];
    let minute = string.get(colon + 1..colon + 3)?;
    let is_time = matches!(hour.len(), 1 | 2) && digits(hour) && digits(minute);
    let behind = string[colon + 3..].chars().next();
    let is_end = matches!(behind, None | Some(' ' | '+' | '-' | 'Z' | 'z'));
    (is_time && is_end).then_some(colon + 3)
}

#[cfg(test)]
mod tests {
    use super::completed;

    #[test]
    fn seconds_are_added_where_they_are_missing() {
        for (string, expected) in [
            ("2024-01-01 10:00", "2024-01-01 10:00:00"),
            ("2024-01-01T10:05Z", "2024-01-01T10:05:00Z"),
            ("2024-01-01 10:00+02:00", "2024-01-01 10:00:00+02:00"),
            ("2024-01-01 10:00:07", "2024-01-01 10:00:07"),
            ("2024-01-01 10:00:07+02:00", "2024-01-01 10:00:07+02:00"),
            ("2024-01-01", "2024-01-01"),
            ("10:00", "10:00"),
            ("nonsense: é", "nonsense: é"),
            ("a é:é1", "a é:é1"),
        ] {
            assert_eq!(completed(string), expected);
        }
    }
}
