//! Numbers for people.

use std::time::Duration;

/// `1 row`, `2,556 rows`.
pub fn counted(number: u64, noun: &str) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{text} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A time with three digits or so.
pub fn duration(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 0.001 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s if s < 60.0 => format!("{s:.2} s"),
        s if s < 3600.0 => format!(
            "{:.0} min {:02.0} s",
            (s / 60.0).floor(),
            (s % 60.0).floor()
        ),
        s => format!(
            "{:.0} h {:02.0} min",
            (s / 3600.0).floor(),
            (s % 3600.0 / 60.0).floor()
        ),
    }
}

/// `512`, `3.2 k`, `60.0 M`, `1.5 G`.
pub fn short(number: u64) -> String {
    match number as f64 {
        n if n < 1e4 => number.to_string(),
        n if n < 1e6 => format!("{:.0} k", n / 1e3),
        n if n < 1e9 => format!("{:.1} M", n / 1e6),
        n => format!("{:.1} G", n / 1e9),
    }
}

/// `512 B`, `3.2 MB`.
pub fn bytes(number: u64) -> String {
    match number as f64 {
        n if n < 1e3 => format!("{number} B"),
        n if n < 1e6 => format!("{:.1} kB", n / 1e3),
        n if n < 1e9 => format!("{:.1} MB", n / 1e6),
        n if n < 1e12 => format!("{:.1} GB", n / 1e9),
        n => format!("{:.1} TB", n / 1e12),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        let texts = [0, 1, 999, 1_000, 59_986_052].map(|number| counted(number, "row"));
        assert_eq!(
            texts,
            [
                "0 rows",
                "1 row",
                "999 rows",
                "1,000 rows",
                "59,986,052 rows"
            ]
        );
    }

    #[test]
    fn times_have_the_unit_that_suits_them() {
        let texts = [250, 12_340, 2_500_000, 150_000_000, 7_320_000_000]
            .map(|us| duration(Duration::from_micros(us)));
        assert_eq!(
            texts,
            ["250 µs", "12.3 ms", "2.50 s", "2 min 30 s", "2 h 02 min"]
        );
    }

    #[test]
    fn amounts_are_short() {
        assert_eq!(
            [9_999, 12_345, 6_000_000].map(short),
            ["9999", "12 k", "6.0 M"]
        );
        assert_eq!([999, 2_500_000].map(bytes), ["999 B", "2.5 MB"]);
    }
}
