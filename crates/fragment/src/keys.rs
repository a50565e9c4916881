//! Key sets: what a semi-join sends to the data instead of its rows.

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Keeps the rows whose key is in a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The key column, a position in [`Fragment::columns`](crate::Fragment::columns).
    pub column: usize,
    /// The keys that pass.
    pub keys: KeySet,
}

/// A set of keys, in the cheapest form that fits it. Integer keys are the values of integer columns, days of dates,
/// units of times and timestamps or unscaled decimals.
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
    Strings(Vec<String>),
}

/// Calls a macro with the Arrow type of values that may be keys; leaves the function with `None` if they may not.
macro_rules! by_integer_type {
    ($data_type:expr, $call:ident) => {
        match $data_type {
            DataType::Int8 => $call!(Int8Type),
            DataType::Int16 => $call!(Int16Type),
            DataType::Int32 => $call!(Int32Type),
            DataType::Int64 => $call!(Int64Type),
            DataType::UInt8 => $call!(UInt8Type),
            DataType::UInt16 => $call!(UInt16Type),
            DataType::UInt32 => $call!(UInt32Type),
            DataType::Date32 => $call!(Date32Type),
            DataType::Time64(TimeUnit::Microsecond) => $call!(Time64MicrosecondType),
            DataType::Time64(TimeUnit::Nanosecond) => $call!(Time64NanosecondType),
            DataType::Timestamp(TimeUnit::Second, _) => $call!(TimestampSecondType),
            DataType::Timestamp(TimeUnit::Millisecond, _) => $call!(TimestampMillisecondType),
            DataType::Timestamp(TimeUnit::Microsecond, _) => $call!(TimestampMicrosecondType),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => $call!(TimestampNanosecondType),
            DataType::Decimal128(..=18, _) => $call!(Decimal128Type),
            _ => return None,
        }
    };
}
/// Keys that are compared one by one, at most.
const LISTED: usize = 150;

/// Bits of the largest bitmap, 512 KiB, unless …
const BITS: u64 = 4 << 20;
/// … there are at most so many for each key.
const BITS_PER_KEY: u64 = 64;

impl KeySet {
    /// The set of an array's values, none of which is NULL, and whether each occurs once; `None` for values that are no
    /// keys.
    pub fn of_values(values: &ArrayRef) -> Option<(Self, bool)> {
        if let DataType::Utf8View = values.data_type() {
            let mut texts: Vec<&str> = values.as_string_view().iter().flatten().collect();
            texts.sort_unstable();
            texts.dedup();
            let unique = texts.len() == values.len();
            let texts = texts.into_iter().map(ToOwned::to_owned).collect();
            return Some((KeySet::Strings(texts), unique));
        }
        macro_rules! of {
            ($kind:ty) => {
                of_integers(values.as_primitive::<$kind>().values(), |value| {
                    value as i64
                })
            };
        }
        Some(by_integer_type!(values.data_type(), of))
    }

    /// The set of the values of several arrays of one type, without NULL. It is a list of so many keys at most, or
    /// bits, if `bits` says that so many keys may take so many. Else it is the range of the keys. `None` for values
    /// that are no keys, and for more texts than a list has.
    pub fn of_pieces(
        pieces: &[ArrayRef],
        listed: usize,
        bits: impl Fn(usize, u64) -> bool,
    ) -> Option<Self> {
        let Some(first) = pieces.first() else {
            return Some(KeySet::Integers(Vec::new()));
        };
        if let DataType::Utf8View = first.data_type() {
            return of_texts_in_pieces(pieces, listed);
        }
        macro_rules! of {
            ($kind:ty) => {
                of_integers_in_pieces::<$kind>(pieces, |value| value as i64, listed, bits)
            };
        }
        by_integer_type!(first.data_type(), of)
    }

    /// The set of ascending integer keys: as a range or as bits, if they lie close enough together, for that is faster
    /// to scan with.
    pub fn of_sorted(keys: Vec<i64>) -> Self {
        let (Some(&first), Some(&last)) = (keys.first(), keys.last()) else {
            return KeySet::Integers(keys);
        };
        let width = last.abs_diff(first);
        if width == keys.len() as u64 - 1 {
            return KeySet::Range {
                low: first,
                high: last,
            };
        }
        let most = BITS.max(BITS_PER_KEY * keys.len() as u64);
        if keys.len() <= LISTED || width >= most {
            return KeySet::Integers(keys);
        }
        let words = bits(keys.iter().copied(), first, width);
        KeySet::Bitmap { first, words }
    }

    /// The number of keys.
    pub fn len(&self) -> u64 {
        match self {
            KeySet::Range { low, high } if low > high => 0,
            KeySet::Range { low, high } => high.abs_diff(*low).saturating_add(1),
            KeySet::Bitmap { words, .. } => words.iter().map(|w| w.count_ones() as u64).sum(),
            KeySet::Integers(keys) => keys.len() as u64,
            KeySet::Strings(keys) => keys.len() as u64,
        }
    }

    /// Whether an integer key is in the set.
    pub fn has_integer(&self, key: i64) -> bool {
        match self {
            KeySet::Range { low, high } => (*low..=*high).contains(&key),
            KeySet::Bitmap { first, words } => {
                let bit = key.abs_diff(*first);
                let word = (key >= *first).then(|| words.get((bit / 64) as usize));
                word.flatten()
                    .is_some_and(|word| word >> (bit % 64) & 1 == 1)
            }
            KeySet::Integers(keys) => keys.binary_search(&key).is_ok(),
            KeySet::Strings(_) => false,
        }
    }

    /// Whether no key is in the set.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The set of integers in any order, and whether each occurs once.
fn of_integers<T: Copy>(values: &[T], key: impl Fn(T) -> i64 + Copy) -> (KeySet, bool) {
    let keys = || values.iter().map(|&value| key(value));
    let ends = (i64::MAX, i64::MIN);
    let (low, high) = keys().fold(ends, |(low, high), key| (low.min(key), high.max(key)));
    let width = high.abs_diff(low);
    // Many keys that are close enough together for bits are brought into order by these.
    if values.len() > LISTED && width < BITS_PER_KEY * values.len() as u64 {
        let words = bits(keys(), low, width);
        let set = KeySet::Bitmap { first: low, words };
        let len = set.len();
        let unique = len == values.len() as u64;
        if len == width + 1 {
            return (KeySet::Range { low, high }, unique);
        }
        // Else many of them occur more than once.
        if len > LISTED as u64 {
            return (set, unique);
        }
    }
    let mut keys: Vec<i64> = keys().collect();
    keys.sort_unstable();
    keys.dedup();
    let unique = keys.len() == values.len();
    (KeySet::of_sorted(keys), unique)
}

/// Calls a function with all keys of some arrays.
fn each_key<K: ArrowPrimitiveType>(
    pieces: &[ArrayRef],
    key: impl Fn(K::Native) -> i64,
    mut found: impl FnMut(i64),
) {
    for piece in pieces {
        let piece = piece.as_primitive::<K>();
        match piece.null_count() {
            0 => piece.values().iter().for_each(|&value| found(key(value))),
            _ => piece.iter().flatten().for_each(|value| found(key(value))),
        }
    }
}

fn of_integers_in_pieces<K: ArrowPrimitiveType>(
    pieces: &[ArrayRef],
    key: impl Fn(K::Native) -> i64 + Copy,
    listed: usize,
    bits: impl Fn(usize, u64) -> bool,
) -> Option<KeySet> {
    let (mut count, mut low, mut high) = (0, i64::MAX, i64::MIN);
    each_key::<K>(pieces, key, |key| {
        count += 1;
        (low, high) = (low.min(key), high.max(key));
    });
    if count <= listed {
        let mut keys = Vec::with_capacity(count);
        each_key::<K>(pieces, key, |key| keys.push(key));
        keys.sort_unstable();
        keys.dedup();
        return Some(KeySet::of_sorted(keys));
    }
    let width = high.abs_diff(low);
    if !bits(count, width) {
        return Some(KeySet::Range { low, high });
    }
    let mut words = vec![0u64; (width / 64 + 1) as usize];
    each_key::<K>(pieces, key, |key| {
        let bit = key.abs_diff(low) as usize;
        words[bit / 64] |= 1 << (bit % 64);
    });
    let set = KeySet::Bitmap { first: low, words };
    Some(match set.len() == width + 1 {
        true => KeySet::Range { low, high },
        false => set,
    })
}

fn of_texts_in_pieces(pieces: &[ArrayRef], listed: usize) -> Option<KeySet> {
    let mut texts = HashSet::new();
    for piece in pieces {
        let mut last = None;
        for text in piece.as_string_view().iter().flatten() {
            if last != Some(text) {
                texts.insert(text);
            }
            last = Some(text);
            if texts.len() > listed {
                return None;
            }
        }
    }
    let mut texts: Vec<String> = texts.into_iter().map(ToOwned::to_owned).collect();
    texts.sort_unstable();
    Some(KeySet::Strings(texts))
}

/// A bit for each key, from the least on, and as far as the width goes.
fn bits(keys: impl Iterator<Item = i64>, least: i64, width: u64) -> Vec<u64> {
    let mut words = vec![0u64; (width / 64 + 1) as usize];
    for key in keys {
        let bit = key.abs_diff(least) as usize;
        words[bit / 64] |= 1 << (bit % 64);
    }
    words
}

/// The values of an array as keys of a [`KeySet`]; `None` if they are no integers, or do not fit. Those of NULLs may be
/// anything.
pub fn integer_keys(values: &ArrayRef) -> Option<Vec<i64>> {
    macro_rules! keys {
        ($kind:ty) => {{
            let values = values.as_primitive::<$kind>().values().iter();
            values.map(|&value| value as i64).collect()
        }};
    }
    Some(by_integer_type!(values.data_type(), keys))
}
