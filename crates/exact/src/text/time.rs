//! Times of day: `10:00`, `4:05:06.789`, also behind a day, which does not matter.

use super::no_value;
use chrono::NaiveDate;
use datafusion::arrow::array::{
    ArrayRef, StringViewArray, Time64MicrosecondArray, Time64NanosecondArray,
};
use datafusion::arrow::datatypes::TimeUnit;
use datafusion::arrow::error::ArrowError;
use std::sync::Arc;

/// Strings as times.
pub(super) fn read(
    strings: &StringViewArray,
    unit: TimeUnit,
    safe: bool,
) -> Result<ArrayRef, ArrowError> {
    let (each, name) = match unit {
        TimeUnit::Nanosecond => (1, "TIME(9)"),
        _ => (1_000, "TIME"),
    };
    let times = strings.iter().map(|string| match string {
        None => Ok(None),
        Some(string) => match nanoseconds(string) {
            None if !safe => Err(no_value(string, name)),
            time => Ok(time.map(|time| time / each)),
        },
    });
    let times = times.collect::<Result<Vec<_>, _>>()?;
    Ok(match unit {
        TimeUnit::Nanosecond => Arc::new(Time64NanosecondArray::from(times)),
        _ => Arc::new(Time64MicrosecondArray::from(times)),
    })
}

/// Nanoseconds since midnight; digits beyond them are cut off.
pub fn nanoseconds(string: &str) -> Option<i64> {
    let mut string = string.trim_ascii();
    if let Some((day, time)) = string.split_once([' ', 'T', 't']) {
        NaiveDate::parse_from_str(day, "%Y-%m-%d").ok()?;
        string = time.trim_ascii_start();
    }
    let (whole, fraction) = match string.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (string, None),
    };
    let mut parts = whole.split(':');
    let hour = number(parts.next()?, 23)?;
    let minute = number(parts.next()?, 59)?;
    let second = match parts.next() {
        Some(second) => number(second, 59)?,
        None if fraction.is_some() => return None,
        None => 0,
    };
    if parts.next().is_some() {
        return None;
    }
    let mut nanoseconds = ((hour * 60 + minute) * 60 + second) * 1_000_000_000;
    let mut unit = 100_000_000;
    for byte in fraction.unwrap_or_default().bytes() {
        nanoseconds += i64::from(char::from(byte).to_digit(10)?) * unit;
        unit /= 10;
    }
    Some(nanoseconds)
}

/// A number of one or two digits, `most` at most.
fn number(digits: &str, most: i64) -> Option<i64> {
    let is_number = matches!(digits.len(), 1 | 2) && digits.bytes().all(|b| b.is_ascii_digit());
    let number: i64 = digits.parse().ok().filter(|_| is_number)?;
    (number <= most).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (string, expected) in [
            ("00:00", 0),
            (" 1:2:3 ", 3_723_000_000_000),
            ("23:59:59.999999999", 86_399_999_999_999),
            ("10:00:00.5", 36_000_500_000_000),
            ("10:00:00.", 36_000_000_000_000),
            ("10:00:00.1234567894", 36_000_123_456_789),
            ("2024-02-29 10:00", 36_000_000_000_000),
            ("2024-02-29T10:00:00", 36_000_000_000_000),
        ] {
            assert_eq!(nanoseconds(string), Some(expected), "{string}");
        }
        for string in [
            "",
            "10",
            "24:00:00",
            "10:60",
            "10:00:60",
            "10:00.5",
            "-1:00",
            "10:00:00+02",
            "10:00 pm",
            "1:2:3:4",
            "10:0x",
            "2024-02-30 10:00",
            "100:00",
            "+1:00",
            "10:00:00.5x",
        ] {
            assert_eq!(nanoseconds(string), None, "{string}");
        }
    }
}
