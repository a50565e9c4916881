//! Numbers of bytes as people write them.

use std::fmt;
use std::str::FromStr;

/// A number of bytes, written as `2GB`, `512 MiB`, `1.5g` or `1073741824`. `KB`, `MB`, `GB` and `TB` are powers of
/// 1,000, `KiB` and so on of 1,024; a letter alone means the former. `Display` writes three digits, in powers of 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Text that is no number of bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no number of bytes; write it like 2GB, 512MiB or 1.5 GB")]
pub struct ParseBytesError(String);

/// Units by their first letter.
const UNITS: &str = "kmgtp";

impl FromStr for Bytes {
    type Err = ParseBytesError;

    fn from_str(text: &str) -> Result<Self, ParseBytesError> {
        let wrong = || ParseBytesError(text.to_owned());
        let trimmed = text.trim();
        let end = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'));
        let (number, unit) = trimmed.split_at(end.unwrap_or(trimmed.len()));
        let number = number.replace('_', "");
        let unit = unit.trim().to_ascii_lowercase();
        let (letter, base) = match unit.as_bytes() {
            [] | [b'b'] => (None, 1000.0),
            b"byte" | b"bytes" => (None, 1000.0),
            [letter] | [letter, b'b'] => (Some(*letter), 1000.0),
            [letter, b'i'] | [letter, b'i', b'b'] => (Some(*letter), 1024.0),
            _ => return Err(wrong()),
        };
        let Some(letter) = letter else {
            return number.parse().map(Bytes).map_err(|_| wrong());
        };
        let power = UNITS.find(char::from(letter)).ok_or_else(wrong)? as i32 + 1;
        let number: f64 = number.parse().map_err(|_| wrong())?;
        let bytes = (number * f64::powi(base, power)).round();
        // Beyond 2^53 nobody means every byte.
        if bytes.is_finite() && bytes < u64::MAX as f64 {
            Ok(Bytes(bytes as u64))
        } else {
            Err(wrong())
        }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1000 {
            return write!(f, "{} bytes", self.0);
        }
        let (mut number, mut power) = (self.0 as f64 / 1000.0, 0);
        // 999.95 would be written as 1000.
        while number >= 999.95 && power + 1 < UNITS.len() {
            number /= 1000.0;
            power += 1;
        }
        let unit = UNITS.as_bytes()[power].to_ascii_uppercase();
        let digits = match number {
            _ if number >= 99.95 => 0,
            _ if number >= 9.995 => 1,
            _ => 2,
        };
        let mut text = format!("{number:.digits$}");
        if text.contains('.') {
            text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
        }
        write!(f, "{text} {}B", char::from(unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_what_they_are_elsewhere() {
        for (text, bytes) in [
            ("0", 0),
            ("123", 123),
            ("123 bytes", 123),
            ("2GB", 2_000_000_000),
            ("2 gb", 2_000_000_000),
            ("2G", 2_000_000_000),
            (" 1.5KiB ", 1536),
            ("64MiB", 64 << 20),
            ("1_000 kB", 1_000_000),
            ("1TiB", 1 << 40),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in [
            "",
            "GB",
            "two GB",
            "-1GB",
            "1.5",
            "2XB",
            "1e400GB",
            "99999999999PB",
            "1 G B",
        ] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn three_digits_are_enough_to_read() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1 KB"),
            (1536, "1.54 KB"),
            (64 << 20, "67.1 MB"),
            (999_999, "1 MB"),
            (2_000_000_000, "2 GB"),
            (123_456_789_000, "123 GB"),
            (u64::MAX, "18447 PB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}
