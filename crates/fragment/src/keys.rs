//! Key sets: what a semi-join sends to the data instead of its rows.

use serde::{Deserialize, Serialize};

/// Keeps the rows whose key is in a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The key column, a position in [`Fragment::columns`](crate::Fragment::columns).
    pub column: usize,
    /// The keys that pass.
    pub keys: KeySet,
}

/// A set of keys, in the cheapest form that fits it. Integer keys are the values of integer columns, days of dates,
/// units of timestamps or unscaled decimals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum KeySet {
    /// All keys from `low` to `high`, both included; empty when `low > high`.
    Range {
        /// The least key.
        low: i64,
        /// The greatest key.
        high: i64,
    },
    /// Key `first + i` is in the set when bit `i` is set: bit `i % 64` of word `i / 64`.
    Bitmap {
        /// The key of bit 0.
        first: i64,
        /// The bits.
        words: Vec<u64>,
    },
    /// Sorted, without duplicates.
    Integers(Vec<i64>),
    /// Sorted by bytes, without duplicates.
    Texts(Vec<String>),
}

impl KeySet {
    /// The number of keys.
    pub fn len(&self) -> u64 {
        match self {
            KeySet::Range { low, high } if low > high => 0,
            KeySet::Range { low, high } => high.abs_diff(*low).saturating_add(1),
            KeySet::Bitmap { words, .. } => words.iter().map(|w| w.count_ones() as u64).sum(),
            KeySet::Integers(keys) => keys.len() as u64,
            KeySet::Texts(keys) => keys.len() as u64,
        }
    }

    /// Whether no key is in the set.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
