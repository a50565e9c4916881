//! Intervals: `1 year 2 months 3 days 04:05:06`, and all that Arrow reads, such as `1.5 hours`.
//!
//! **Stands for** Arrow's reading of intervals, which knows no `04:05:06` and no `ago`.

use super::no_value;
use datafusion::arrow::array::{ArrayRef, IntervalMonthDayNanoArray, StringViewArray};
use datafusion::arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use datafusion::arrow::datatypes::IntervalMonthDayNano;
use datafusion::arrow::error::ArrowError;
use std::sync::Arc;

/// Strings as intervals.
pub(super) fn read(strings: &StringViewArray, safe: bool) -> Result<ArrayRef, ArrowError> {
    let intervals = strings.iter().map(|string| match string {
        None => Ok(None),
        Some(string) => match interval(string) {
            None if !safe => Err(no_value(string, "INTERVAL")),
            interval => Ok(interval),
        },
    });
    let intervals = intervals.collect::<Result<IntervalMonthDayNanoArray, _>>()?;
    Ok(Arc::new(intervals))
}

/// The interval that is written so.
pub fn interval(string: &str) -> Option<IntervalMonthDayNano> {
    let mut words: Vec<&str> = string.split_ascii_whitespace().collect();
    let is_ago = words
        .last()
        .is_some_and(|word| word.eq_ignore_ascii_case("ago"));
    if is_ago {
        words.pop();
    }
    let clock = match words.last().filter(|word| word.contains(':')) {
        Some(word) => Some(clock(word)?),
        None => None,
    };
    if clock.is_some() {
        words.pop();
    }
    let mut interval = match (&words[..], clock) {
        ([], Some(_)) => IntervalMonthDayNano::ZERO,
        // A number alone could be anything.
        ([_], None) | ([], None) => return None,
        _ => parse_interval_month_day_nano(&words.join(" ")).ok()?,
    };
    interval.nanoseconds = interval.nanoseconds.checked_add(clock.unwrap_or(0))?;
    if is_ago {
        interval.months = interval.months.checked_neg()?;
        interval.days = interval.days.checked_neg()?;
        interval.nanoseconds = interval.nanoseconds.checked_neg()?;
    }
    Some(interval)
}

/// Nanoseconds of `[-]hours:minutes[:seconds[.fraction]]`; of hours there may be any number.
fn clock(word: &str) -> Option<i64> {
    let (sign, word) = match word.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, word.strip_prefix('+').unwrap_or(word)),
    };
    let (hours, rest) = word.split_once(':')?;
    let hours: i64 = hours.parse().ok().filter(|_| digits(hours))?;
    let below = super::time::nanoseconds(&format!("0:{rest}"))?;
    let nanoseconds = hours.checked_mul(3_600_000_000_000)?.checked_add(below)?;
    Some(sign * nanoseconds)
}

fn digits(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read_as_people_write_them() {
        let hour = 3_600_000_000_000;
        for (string, months, days, nanoseconds) in [
            (
                "1 year 2 months 3 days 04:05:06",
                14,
                3,
                4 * hour + 306_000_000_000,
            ),
            ("-04:05", 0, 0, -4 * hour - 300_000_000_000),
            ("100:00:00.5", 0, 0, 100 * hour + 500_000_000),
            ("1 day 2 hours ago", 0, -1, -2 * hour),
            ("1 week", 0, 7, 0),
        ] {
            let expected = IntervalMonthDayNano::new(months, days, nanoseconds);
            assert_eq!(interval(string), Some(expected), "{string}");
        }
        for string in [
            "",
            "5",
            "a week",
            "1 day 1:2:3:4",
            "04:65",
            "1 day x:05",
            "ago",
        ] {
            assert_eq!(interval(string), None, "{string}");
        }
    }
}
