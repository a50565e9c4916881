//! Durations as plans show them.

use std::fmt;
use std::time::Duration;

/// A duration, displayed in microseconds, milliseconds or seconds.
pub(crate) struct Time(pub Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_secs_f64() * 1e6;
        match micros {
            ..1e3 => write!(f, "{micros:.0} µs"),
            ..1e6 => write!(f, "{:.2} ms", micros / 1e3),
            _ => write!(f, "{:.3} s", micros / 1e6),
        }
    }
}
