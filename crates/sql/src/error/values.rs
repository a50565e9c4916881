//! Strings that are no values of a type.

use super::{Mistake, Violation};

/// What is wrong with a string that is no value of a type, which is called as in SQL. As in PostgreSQL, a number or
/// date that is written right is out of range.
pub(crate) fn mistake_of_string(value: &str, data_type: &str) -> Mistake {
    let value = value.trim();
    let is = |types: &[&str]| types.iter().any(|name| data_type.starts_with(name));
    if is(&["DATE", "TIME"]) {
        return match is_written_as_date(value) {
            true => Mistake::DatetimeOverflow,
            false => Mistake::InvalidDatetimeFormat,
        };
    }
    let is_number = match is(&["DECIMAL", "DOUBLE", "REAL"]) {
        true => value.parse::<f64>().is_ok(),
        false => is(&["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "U"]) && is_whole_number(value),
    };
    match is_number {
        true => Mistake::NumericOutOfRange,
        false => Mistake::InvalidTextRepresentation,
    }
}

/// The same of a string that shall be stored.
pub(crate) fn violation_of_string(value: &str, data_type: &str) -> Violation {
    match mistake_of_string(value, data_type) {
        Mistake::DatetimeOverflow => Violation::DatetimeRange,
        Mistake::InvalidDatetimeFormat => Violation::Datetime,
        Mistake::NumericOutOfRange => Violation::Range,
        _ => Violation::Text,
    }
}

fn is_whole_number(text: &str) -> bool {
    is_digits(text.strip_prefix(['+', '-']).unwrap_or(text))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Year, month and day, then perhaps a time, whatever the numbers are.
fn is_written_as_date(text: &str) -> bool {
    let (date, time) = text.split_once([' ', 'T']).unwrap_or((text, "0"));
    let is_time = |c: char| c.is_ascii_digit() || ":.+-Z".contains(c);
    date.split('-').count() == 3
        && date.split('-').all(is_digits)
        && time.starts_with(|c: char| c.is_ascii_digit())
        && time.chars().all(is_time)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PostgreSQL's codes for the same casts.
    #[test]
    fn what_is_written_right_is_out_of_range() {
        for (value, data_type, code) in [
            ("xx", "DATE", "22007"),
            ("2020-1", "DATE", "22007"),
            ("2020-13-01", "DATE", "22008"),
            ("2020-01-01 25:00:00", "TIMESTAMP", "22008"),
            ("2020-01-01 xx", "TIMESTAMP WITH TIME ZONE", "22007"),
            ("3000000000", "INTEGER", "22003"),
            ("-1.5", "INTEGER", "22P02"),
            ("+", "UINTEGER", "22P02"),
            ("12345", "DECIMAL(4,1)", "22003"),
            ("x", "DOUBLE", "22P02"),
            ("x", "BOOLEAN", "22P02"),
        ] {
            let mistake = mistake_of_string(value, data_type);
            assert_eq!(mistake.sqlstate().code(), code, "{value} as {data_type}");
            let violation = violation_of_string(value, data_type);
            assert_eq!(violation.sqlstate().code(), code, "{value} as {data_type}");
        }
    }
}
