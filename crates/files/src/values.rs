//! Values from text, as SQL casts them: what is no value of the type is `None`.

use chrono::format::{Item, StrftimeItems};
use chrono::{NaiveDate, NaiveDateTime};

/// How texts are read as values.
#[derive(Clone, Debug)]
pub struct ValueFormats {
    /// What stands for NULL where it is not quoted.
    pub nulls: Vec<String>,
    /// How dates are written, if not as SQL writes them: `%d.%m.%Y`.
    pub date_format: Option<String>,
    /// How timestamps are written, if not as SQL writes them.
    pub timestamp_format: Option<String>,
}

impl Default for ValueFormats {
    fn default() -> Self {
        ValueFormats {
            nulls: vec![String::new()],
            date_format: None,
            timestamp_format: None,
        }
    }
}

impl ValueFormats {
    /// Days since 1970-01-01.
    pub(crate) fn date(&self, text: &str) -> Option<i32> {
        match &self.date_format {
            Some(format) => date_like(text, format),
            None => date(text),
        }
    }

    /// Seconds since 1970-01-01 00:00:00, nanoseconds, and whether the text names a zone.
    pub(crate) fn timestamp(&self, text: &str) -> Option<(i64, u32, bool)> {
        match &self.timestamp_format {
            Some(format) => timestamp_like(text, format),
            None => timestamp(text),
        }
    }
}

/// Whether a text is a format of dates or times, such as `%d.%m.%Y`.
pub fn is_time_format(text: &str) -> bool {
    text.contains('%') && StrftimeItems::new(text).all(|item| item != Item::Error)
}

/// Powers of ten that fit.
const POWERS: [i128; 39] = {
    let mut powers = [1; 39];
    let mut at = 1;
    while at < 39 {
        powers[at] = powers[at - 1] * 10;
        at += 1;
    }
    powers
};

pub(crate) fn boolean(text: &str) -> Option<bool> {
    let text = text.trim_ascii();
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is(&["true", "t", "1", "yes", "y"]) {
        Some(true)
    } else if is(&["false", "f", "0", "no", "n"]) {
        Some(false)
    } else {
        None
    }
}

/// A whole number; one with a fraction or exponent is rounded.
pub(crate) fn integer<T>(text: &str) -> Option<T>
where
    T: std::str::FromStr + TryFrom<i128>,
{
    match text.parse() {
        Ok(value) => Some(value),
        Err(_) => T::try_from(decimal(text, 38, 0)?).ok(),
    }
}

/// A whole number, however it is written; one with a fraction is none.
pub(crate) fn whole<T>(text: &str) -> Option<T>
where
    T: std::str::FromStr + TryFrom<i128>,
{
    const DIGITS: u8 = 18;
    let unit = POWERS[usize::from(DIGITS)];
    match text.parse() {
        Ok(value) => Some(value),
        Err(_) => match decimal(text, 38, DIGITS as i8)? {
            value if value % unit == 0 => T::try_from(value / unit).ok(),
            _ => None,
        },
    }
}

pub(crate) fn float<T: std::str::FromStr + Into<f64> + Copy>(text: &str) -> Option<T> {
    let text = text.trim_ascii();
    let value: T = text.parse().ok()?;
    // Digits that are too large are not infinity.
    (value.into().is_finite() || !text.bytes().any(|byte| byte.is_ascii_digit())).then_some(value)
}

/// A number as a multiple of `10^-scale`, rounded half away from zero, of at most `precision` digits.
pub(crate) fn decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let text = text.trim_ascii();
    let (negative, digits) = match text.as_bytes() {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let mut value: i128 = 0;
    let mut point: Option<i64> = None;
    let mut any = false;
    let mut exponent: i64 = 0;
    for (at, byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                any = true;
                // Digits that cannot matter any more are counted only.
                if value >= POWERS[37] {
                    if point.is_none() {
                        exponent += 1;
                    }
                } else {
                    value = value * 10 + i128::from(byte - b'0');
                    if let Some(digits) = &mut point {
                        *digits += 1;
                    }
                }
            }
            b'.' if point.is_none() => point = Some(0),
            b'e' | b'E' if any => {
                let written = std::str::from_utf8(&digits[at + 1..]).ok()?;
                exponent += written.parse::<i16>().map(i64::from).ok()?;
                break;
            }
            _ => return None,
        }
    }
    if !any {
        return None;
    }
    let shift = exponent - point.unwrap_or(0) + i64::from(scale);
    let value = if value == 0 {
        0
    } else if shift >= 0 {
        value.checked_mul(*POWERS.get(usize::try_from(shift).ok()?)?)?
    } else {
        match POWERS.get(usize::try_from(-shift).ok()?) {
            Some(&power) => (value + power / 2) / power,
            None => 0,
        }
    };
    (value < *POWERS.get(usize::from(precision)).unwrap_or(&i128::MAX)).then_some(if negative {
        -value
    } else {
        value
    })
}

/// Days since 1970-01-01.
pub(crate) fn date(text: &str) -> Option<i32> {
    let text = text.trim_ascii();
    match date_prefix(text.as_bytes()) {
        Some((days, [])) => Some(days),
        // With a time, which has to be midnight.
        Some(_) => {
            let (seconds, nanos, _) = timestamp(text)?;
            (nanos == 0 && seconds % 86_400 == 0).then_some((seconds / 86_400) as i32)
        }
        None => None,
    }
}

/// A date in front of a text, and what is behind it: year, month and day, separated by `-` or `/`.
fn date_prefix(text: &[u8]) -> Option<(i32, &[u8])> {
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (year, text) = digits(text, 6)?;
    let (separator, text) = text.split_first()?;
    if !matches!(separator, b'-' | b'/') {
        return None;
    }
    let (month, text) = digits(text, 2)?;
    let text = text.strip_prefix(&[*separator])?;
    let (day, text) = digits(text, 2)?;
    let year = if negative { -year } else { year };
    let days = days(i64::from(year), month as u32, day as u32)?;
    Some((days, text))
}

/// A number of one to `most` digits.
fn digits(text: &[u8], most: usize) -> Option<(i32, &[u8])> {
    let mut value = 0;
    let mut count = 0;
    while count < most && count < text.len() && text[count].is_ascii_digit() {
        value = value * 10 + i32::from(text[count] - b'0');
        count += 1;
    }
    (count > 0).then(|| (value, &text[count..]))
}

/// Days since 1970-01-01 of a day in the Gregorian calendar, which is taken to hold at all times.
fn days(year: i64, month: u32, day: u32) -> Option<i32> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let most = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if day == 0 || day > most {
        return None;
    }
    // Years that begin in March end with the day that may be missing.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((i64::from(month) + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    let of_days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    i32::try_from(era * 146_097 + of_days - 719_468).ok()
}

/// Seconds since 1970-01-01 00:00:00, nanoseconds, and whether the text names a zone; without one it is UTC.
pub(crate) fn timestamp(text: &str) -> Option<(i64, u32, bool)> {
    let (days, rest) = date_prefix(text.trim_ascii().as_bytes())?;
    let midnight = i64::from(days) * 86_400;
    let rest = match rest {
        [] => return Some((midnight, 0, false)),
        [b' ' | b'T' | b't', rest @ ..] => rest,
        _ => return None,
    };
    let (hour, rest) = digits(rest, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(b":")?, 2)?;
    let (second, mut rest) = match rest.strip_prefix(b":") {
        Some(rest) => digits(rest, 2)?,
        None => (0, rest),
    };
    let mut nanos = 0;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let length = fraction
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let mut unit = 100_000_000;
        for byte in &fraction[..length.min(9)] {
            nanos += u32::from(byte - b'0') * unit;
            unit /= 10;
        }
        rest = &fraction[length..];
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let offset = offset(rest.trim_ascii_start())?;
    let local = midnight + i64::from(hour * 3600 + minute * 60 + second);
    Some((
        local - i64::from(offset.unwrap_or(0)),
        nanos,
        offset.is_some(),
    ))
}

/// Seconds east of Greenwich: `Z`, `UTC`, `+02`, `+0200`, `+02:00`; `Some(None)` for an empty text.
fn offset(text: &[u8]) -> Option<Option<i32>> {
    if text.is_empty() {
        return Some(None);
    }
    if text.eq_ignore_ascii_case(b"z") || text.eq_ignore_ascii_case(b"utc") {
        return Some(Some(0));
    }
    let (sign, rest) = match text {
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, rest) = digits(rest, 2)?;
    let rest = rest.strip_prefix(b":").unwrap_or(rest);
    let (minutes, rest) = if rest.is_empty() {
        (0, rest)
    } else {
        digits(rest, 2)?
    };
    (rest.is_empty() && hours < 24 && minutes < 60)
        .then_some(Some(sign * (hours * 3600 + minutes * 60)))
}

/// Microseconds since midnight; none of a text with more digits of a second.
pub(crate) fn time(text: &str) -> Option<i64> {
    let nanos = eris_exact::text::nanoseconds(text)?;
    (nanos % 1_000 == 0).then_some(nanos / 1_000)
}

/// A date written like `%d.%m.%Y`.
pub(crate) fn date_like(text: &str, format: &str) -> Option<i32> {
    let date = NaiveDate::parse_from_str(text.trim_ascii(), format).ok()?;
    let epoch = NaiveDate::from_ymd_opt(1970, 1, 1)?;
    i32::try_from(date.signed_duration_since(epoch).num_days()).ok()
}

/// A timestamp written like `%d.%m.%Y %H:%M`.
pub(crate) fn timestamp_like(text: &str, format: &str) -> Option<(i64, u32, bool)> {
    let text = text.trim_ascii();
    if let Ok(zoned) = chrono::DateTime::parse_from_str(text, format) {
        return Some((zoned.timestamp(), zoned.timestamp_subsec_nanos(), true));
    }
    let local = NaiveDateTime::parse_from_str(text, format).ok()?.and_utc();
    Some((local.timestamp(), local.timestamp_subsec_nanos(), false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(integer::<i32>(" 12 "), Some(12));
        assert_eq!(integer::<i32>("-2.5"), Some(-3));
        assert_eq!(integer::<i8>("1e2"), Some(100));
        for rejected in ["", "abc", "1,000", "0x1F", "128", "-", ".", "1.2.3"] {
            assert_eq!(integer::<i8>(rejected), None, "{rejected}");
        }
        assert_eq!(integer::<u64>("18446744073709551615"), Some(u64::MAX));
        assert_eq!(whole::<i32>("1.0"), Some(1));
        assert_eq!(whole::<u64>("18446744073709551615.0"), Some(u64::MAX));
        assert_eq!(whole::<i64>("-1.2e3"), Some(-1200));
        for rejected in ["1.5", "-0.000001", "1e-1", "3e9", "true", ""] {
            assert_eq!(whole::<i32>(rejected), None, "{rejected}");
        }
        assert_eq!(integer::<u8>("-1"), None);
        assert_eq!(decimal("12.345", 5, 2), Some(1235));
        assert_eq!(decimal("-0.005", 5, 2), Some(-1));
        assert_eq!(decimal("999.99", 5, 2), Some(99_999));
        assert_eq!(decimal("999.995", 5, 2), None);
        assert_eq!(decimal(&"9".repeat(38), 38, 0), Some(POWERS[37] * 10 - 1));
        assert_eq!(decimal(&"9".repeat(39), 38, 0), None);
        assert_eq!(decimal("1e-40", 38, 10), Some(0));
        assert_eq!(decimal("0e99", 38, 10), Some(0));
        assert_eq!(float::<f64>("1e400"), None);
        assert_eq!(float::<f64>("-Infinity"), Some(f64::NEG_INFINITY));
        assert!(float::<f32>("NaN").is_some_and(f32::is_nan));
    }

    #[test]
    fn days_and_times() {
        assert_eq!(date("1970-01-01"), Some(0));
        assert_eq!(date("2000/2/29"), Some(11_016));
        assert_eq!(date("1969-12-31 00:00:00"), Some(-1));
        assert_eq!(date("0001-01-01"), Some(-719_162));
        for rejected in [
            "1900-02-29",
            "2020-13-01",
            "2020-1",
            "01.02.2020",
            "2020-01/02",
            "2020-01-02 01:00",
            "20200102",
        ] {
            assert_eq!(date(rejected), None, "{rejected}");
        }
        assert_eq!(
            timestamp("1970-01-02T00:00:01.5Z"),
            Some((86_401, 500_000_000, true))
        );
        assert_eq!(timestamp("1970-01-01 01:30+01:30"), Some((0, 0, true)));
        assert_eq!(
            timestamp("1969-12-31 23:59:59.25"),
            Some((-1, 250_000_000, false))
        );
        for rejected in ["2020-01-01 24:00", "2020-01-01 10", "2020-01-01 10:00 CET"] {
            assert_eq!(timestamp(rejected), None, "{rejected}");
        }
        assert_eq!(date_like("31.12.1999", "%d.%m.%Y"), date("1999-12-31"));
        assert_eq!(
            timestamp_like("31/12/99 23:59", "%d/%m/%y %H:%M"),
            timestamp("1999-12-31 23:59")
        );
    }
}
