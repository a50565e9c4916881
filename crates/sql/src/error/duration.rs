//! How long something takes, in words.

use std::fmt;
use std::time::Duration;

/// Units of time by their names, in milliseconds.
pub(crate) const UNITS: [(&str, u64); 4] =
    [("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)];

/// A time span in the largest unit in which it is whole; 0 is `none`.
pub(crate) struct Milliseconds(pub Duration);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = self.0.as_millis() as u64;
        if time == 0 {
            return write!(f, "none");
        }
        let (unit, scale) = (UNITS.iter())
            .find(|(_, scale)| time.is_multiple_of(*scale))
            .expect("all are whole milliseconds");
        write!(f, "{}{unit}", time / scale)
    }
}
