//! Values as SQL writes them, where Arrow writes them in another way.

use crate::TimeUnit;
use std::fmt::{self, Write};

/// Digits of a second that are not zero at the end.
fn write_fraction(out: &mut impl Write, mut fraction: u64, mut digits: usize) -> fmt::Result {
    if fraction == 0 {
        return Ok(());
    }
    while fraction.is_multiple_of(10) {
        (fraction, digits) = (fraction / 10, digits - 1);
    }
    write!(out, ".{fraction:0digits$}")
}

/// A time of day: `04:05:06.5`.
pub fn write_time(out: &mut impl Write, since_midnight: i64, unit: TimeUnit) -> fmt::Result {
    let (of_second, digits) = match unit {
        TimeUnit::Second => (1, 0),
        TimeUnit::Millisecond => (1_000, 3),
        TimeUnit::Microsecond => (1_000_000, 6),
        TimeUnit::Nanosecond => (1_000_000_000, 9),
    };
    let seconds = since_midnight.div_euclid(of_second);
    let (hours, minutes) = (seconds.div_euclid(3600), seconds.rem_euclid(3600) / 60);
    write!(out, "{hours:02}:{minutes:02}:{:02}", seconds.rem_euclid(60))?;
    write_fraction(out, since_midnight.rem_euclid(of_second) as u64, digits)
}

/// Bytes: those that are printable ASCII as they are, others as `\\xAB`.
pub fn write_blob(out: &mut impl Write, bytes: &[u8]) -> fmt::Result {
    for &byte in bytes {
        match byte {
            b'\\' | b'\'' | b'"' | 0..=31 | 127..=255 => write!(out, "\\x{byte:02X}")?,
            _ => out.write_char(byte.into())?,
        }
    }
    Ok(())
}

/// A UUID: `a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11`.
pub fn write_uuid(out: &mut impl Write, uuid: [u8; 16]) -> fmt::Result {
    for (at, byte) in uuid.into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.write_char('-')?;
        }
        write!(out, "{byte:02x}")?;
    }
    Ok(())
}

/// An interval: `1 year 2 months 3 days 04:05:06.5`.
pub fn write_interval(
    out: &mut impl Write,
    months: i32,
    days: i32,
    nanoseconds: i64,
) -> fmt::Result {
    let mut separator = "";
    let parts = [(months / 12, "year"), (months % 12, "month"), (days, "day")];
    for (count, name) in parts.into_iter().filter(|(count, _)| *count != 0) {
        let plural = if count.abs() == 1 { "" } else { "s" };
        write!(out, "{separator}{count} {name}{plural}")?;
        separator = " ";
    }
    if nanoseconds == 0 && !separator.is_empty() {
        return Ok(());
    }
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let (seconds, fraction) = (
        nanoseconds.unsigned_abs() / 1_000_000_000,
        nanoseconds.unsigned_abs() % 1_000_000_000,
    );
    let (hours, minutes) = (seconds / 3600, seconds % 3600 / 60);
    write!(
        out,
        "{separator}{sign}{hours:02}:{minutes:02}:{:02}",
        seconds % 60
    )?;
    write_fraction(out, fraction, 9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_uuids() {
        let mut out = String::new();
        write_blob(&mut out, b"a\xAB\x00z\\'\" ~\x7F").unwrap();
        assert_eq!(out, r"a\xAB\x00z\x5C\x27\x22 ~\x7F");
        out.clear();
        write_uuid(&mut out, [0xA0; 16]).unwrap();
        assert_eq!(out, "a0a0a0a0-a0a0-a0a0-a0a0-a0a0a0a0a0a0");
    }

    #[test]
    fn intervals() {
        let shown = |months, days, nanoseconds| {
            let mut out = String::new();
            write_interval(&mut out, months, days, nanoseconds).unwrap();
            out
        };
        assert_eq!(shown(0, 0, 0), "00:00:00");
        assert_eq!(
            shown(14, 3, 14_706_000_000_000),
            "1 year 2 months 3 days 04:05:06"
        );
        assert_eq!(
            shown(-14, -1, -1_500_000_000),
            "-1 year -2 months -1 day -00:00:01.5"
        );
        assert_eq!(shown(0, 0, i64::MIN), "-2562047:47:16.854775808");
        assert_eq!(shown(i32::MIN, 0, 0), "-178956970 years -8 months");
    }

    #[test]
    fn times() {
        let shown = |value, unit| {
            let mut out = String::new();
            write_time(&mut out, value, unit).unwrap();
            out
        };
        assert_eq!(shown(0, TimeUnit::Microsecond), "00:00:00");
        assert_eq!(shown(14_706_500_000, TimeUnit::Microsecond), "04:05:06.5");
        assert_eq!(
            shown(86_399_999_999, TimeUnit::Microsecond),
            "23:59:59.999999"
        );
        assert_eq!(
            shown(1_000_000_040, TimeUnit::Nanosecond),
            "00:00:01.00000004"
        );
        assert_eq!(shown(7, TimeUnit::Second), "00:00:07");
    }
}
