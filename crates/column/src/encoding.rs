//! The names of the encodings.

use std::fmt;

/// How a column chunk is encoded. Displayed as in views, with the bits of a value: `constant`, `packed(12)`,
/// `run-length(3)`, `short-runs(16)`, `delta(4)`, `framed(9)`, `dictionary(7)`, `fsst`, `plain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Encoding {
    /// One value for all rows, or only NULLs.
    Constant,
    /// Frame of reference.
    Packed {
        /// Bits of a value.
        width: u8,
    },
    /// Runs of equal values.
    RunLength {
        /// Bits of a run's value.
        width: u8,
        /// Number of runs.
        runs: usize,
    },
    /// Runs of a few equal values.
    ShortRuns {
        /// Bits of a run's value.
        width: u8,
        /// Number of runs.
        runs: usize,
    },
    /// Mostly differences from the value before, in a frame for each vector.
    Delta {
        /// Bits of a value on average, rounded.
        width: u8,
    },
    /// Mostly distances from the least value of each vector.
    Framed {
        /// Bits of a value on average, rounded.
        width: u8,
    },
    /// Text as numbers of strings that the chunk has itself.
    Dictionary {
        /// Bits of a number.
        width: u8,
    },
    /// Text in symbols of up to eight bytes.
    Fsst,
    /// As in Arrow.
    Plain,
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Encoding::Constant => write!(f, "constant"),
            Encoding::Packed { width } => write!(f, "packed({width})"),
            Encoding::RunLength { width, .. } => write!(f, "run-length({width})"),
            Encoding::ShortRuns { width, .. } => write!(f, "short-runs({width})"),
            Encoding::Delta { width } => write!(f, "delta({width})"),
            Encoding::Framed { width } => write!(f, "framed({width})"),
            Encoding::Dictionary { width } => write!(f, "dictionary({width})"),
            Encoding::Fsst => write!(f, "fsst"),
            Encoding::Plain => write!(f, "plain"),
        }
    }
}
