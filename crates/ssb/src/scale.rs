//! The scale factor and the cardinalities that follow from it (SSB paper, Figure 2).

use std::fmt;
use std::str::FromStr;

/// Days in the `date` table: 1992-01-01 to 1998-12-30, at every scale. The paper rounds seven years to 2,556 days.
pub(crate) const DAYS: u64 = 2_556;

/// A scale factor: 1 is about 6,000,000 fact rows (600 MB as text). From 0.001 to 1,000, fractions allowed.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Scale(f64);

/// A scale factor that cannot be generated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScaleError {
    /// Below the smallest scale at which every table has rows, above what the key types hold, or not a number.
    #[error("scale factor {0} is outside 0.001 to 1000")]
    OutOfRange(f64),
    /// Not a number at all.
    #[error("'{0}' is not a scale factor; it is a number from 0.001 to 1000")]
    NotANumber(String),
}

impl Scale {
    /// The smallest supported scale: two suppliers.
    pub const MIN: f64 = 0.001;
    /// The largest supported scale; up to here every key but `lo_orderkey` fits 32 bits.
    pub const MAX: f64 = 1000.0;

    /// # Errors
    /// If `factor` is not within [`Self::MIN`] and [`Self::MAX`].
    pub fn new(factor: f64) -> Result<Self, ScaleError> {
        if (Self::MIN..=Self::MAX).contains(&factor) {
            Ok(Self(factor))
        } else {
            Err(ScaleError::OutOfRange(factor))
        }
    }

    /// The scale factor as a number.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// Orders; each has one to seven rows in `lineorder`.
    pub(crate) fn orders(self) -> u64 {
        self.times(1_500_000)
    }

    pub(crate) fn customers(self) -> u64 {
        self.times(30_000)
    }

    pub(crate) fn suppliers(self) -> u64 {
        self.times(2_000)
    }

    /// Grows with the logarithm: a catalogue grows more slowly than its sales. Below one the logarithm would reach
    /// zero at once, so there it shrinks linearly like the others.
    pub(crate) fn parts(self) -> u64 {
        if self.0 < 1.0 {
            self.times(200_000)
        } else {
            200_000 * (1 + self.0.log2().floor() as u64)
        }
    }

    fn times(self, base: u64) -> u64 {
        (self.0 * base as f64).round() as u64
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Scale {
    type Err = ScaleError;

    fn from_str(text: &str) -> Result<Self, ScaleError> {
        let factor = text
            .trim()
            .parse()
            .map_err(|_| ScaleError::NotANumber(text.to_owned()))?;
        Self::new(factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cardinalities_are_those_of_the_paper() {
        let at = |factor| Scale::new(factor).unwrap();
        assert_eq!(at(1.0).parts(), 200_000);
        assert_eq!(at(2.0).parts(), 400_000);
        assert_eq!(at(10.0).parts(), 800_000);
        assert_eq!(at(1000.0).parts(), 2_000_000);
        assert_eq!(at(10.0).customers(), 300_000);
        assert_eq!(at(10.0).suppliers(), 20_000);
        assert_eq!(at(10.0).orders(), 15_000_000);
        assert_eq!(at(0.001).suppliers(), 2);
        assert_eq!(at(0.01).parts(), 2_000);
    }

    #[test]
    fn rejects_what_cannot_be_generated() {
        for bad in [0.0, -1.0, 0.0009, 1000.1, f64::NAN, f64::INFINITY] {
            assert!(Scale::new(bad).is_err(), "{bad}");
        }
        assert_eq!("0.1".parse::<Scale>().unwrap().factor(), 0.1);
        assert_eq!(
            "ten".parse::<Scale>(),
            Err(ScaleError::NotANumber("ten".to_owned()))
        );
    }
}
