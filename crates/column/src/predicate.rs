//! Conditions on the values of one column, in the form in which chunks evaluate them.

use crate::floats::{TotalOrder, key_range};
use crate::key_order::{KeyOrder, OrdinalSet};
use crate::zone::{Zone, ZoneRange};
use arrow_array::{BooleanArray, StringViewArray};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// A test of many strings at once. Its result has one value per string; NULL counts as false.
pub type StringTest = Arc<dyn Fn(&StringViewArray) -> BooleanArray + Send + Sync>;

/// A condition on one column. A NULL passes [`ColumnPredicate::Null`] and nothing else.
///
/// The values are those of the chunk's [`Domain`](crate::Domain): the variants on integers are for `Integer` chunks,
/// `Codes` for coded text, `StringTest` and `StringSet` for other text, `Floats` for both kinds of floats. Asking a
/// chunk of another domain is a mistake of the caller and panics; no chunk panics that holds only NULLs.
#[derive(Clone)]
pub enum ColumnPredicate {
    /// Nothing passes.
    Never,
    /// `low <= value <= high`
    Integers {
        /// Least value that passes.
        low: i64,
        /// Greatest value that passes.
        high: i64,
    },
    /// `value < low or value > high`
    NotIntegers {
        /// Least value that does not pass.
        low: i64,
        /// Greatest value that does not pass.
        high: i64,
    },
    /// `value - first` is the number of a set bit.
    IntegerBitmap {
        /// The value of bit 0.
        first: i64,
        /// Bit `i % 64` of word `i / 64` stands for `first + i`.
        words: Arc<[u64]>,
    },
    /// The value is one of these, which ascend strictly.
    IntegerSet(Arc<[i64]>),
    /// The number of a set bit is the value's ordinal in this order: for chunks that are stored by it.
    Ordinals {
        /// The order.
        order: Arc<KeyOrder>,
        /// The ordinals that pass.
        set: Arc<OrdinalSet>,
    },
    /// The number of a set bit is the value's code; codes without a bit do not pass.
    Codes(Arc<[u64]>),
    /// The value lies within the bounds, in IEEE 754 total order: `Excluded(0.0)..Unbounded` takes in NaN, and
    /// `Included(0.0)` leaves -0 out.
    Floats {
        /// Lower bound.
        low: Bound<f64>,
        /// Upper bound.
        high: Bound<f64>,
    },
    /// The test says true.
    StringTest(StringTest),
    /// The text is one of these, which ascend strictly in byte order.
    StringSet(Arc<[Box<str>]>),
    /// The value is NULL.
    Null,
    /// The value is not NULL.
    NotNull,
}

impl fmt::Debug for ColumnPredicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnPredicate::Never => write!(f, "never"),
            ColumnPredicate::Integers { low, high } => write!(f, "in {low}..={high}"),
            ColumnPredicate::NotIntegers { low, high } => write!(f, "not in {low}..={high}"),
            ColumnPredicate::IntegerBitmap { first, words } => {
                write!(f, "in bitmap of {} from {first}", words.len() * 64)
            }
            ColumnPredicate::IntegerSet(values) => write!(f, "in {} values", values.len()),
            ColumnPredicate::Ordinals { set, .. } => write!(f, "in {} ordinals", set.count()),
            ColumnPredicate::Codes(words) => {
                let codes: u32 = words.iter().map(|word| word.count_ones()).sum();
                write!(f, "in {codes} codes")
            }
            ColumnPredicate::Floats { low, high } => write!(f, "in {low:?}..{high:?}"),
            ColumnPredicate::StringTest(_) => write!(f, "text test"),
            ColumnPredicate::StringSet(texts) => write!(f, "in {} texts", texts.len()),
            ColumnPredicate::Null => write!(f, "is null"),
            ColumnPredicate::NotNull => write!(f, "is not null"),
        }
    }
}

/// What a predicate comes down to for integers (or codes, or keys of floats) known to lie in a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Reduced<'a> {
    /// No value of the range passes.
    None,
    /// Every value of the range passes.
    All,
    /// Those within pass, both ends being in the range.
    Between(i64, i64),
    /// Those within do not pass, both ends being in the range.
    NotBetween(i64, i64),
    /// Those within one of these pass, which ascend, are apart from each other, and all have values of the range.
    Ranges(&'a [(i64, i64)]),
    /// Those whose bit is set pass.
    Bitmap { first: i64, words: &'a [u64] },
    /// These pass, all of which are in the range.
    Set(&'a [i64]),
}

impl ColumnPredicate {
    /// Whether no row of a chunk with this zone can pass.
    pub fn excludes(&self, zone: &Zone) -> bool {
        match (self, &zone.range) {
            (ColumnPredicate::Never, _) => true,
            (ColumnPredicate::Null, _) => zone.nulls == 0,
            (_, ZoneRange::Empty) => true,
            (ColumnPredicate::NotNull | ColumnPredicate::StringTest(_), _) => false,
            (ColumnPredicate::StringSet(texts), ZoneRange::Strings(min, max)) => {
                let above = texts.partition_point(|text| **text < **min);
                texts.get(above).is_none_or(|text| **text > **max)
            }
            (_, range) => self.reduce_zone(range) == Reduced::None,
        }
    }

    /// Whether every row of a chunk with this zone and `rows` rows passes.
    pub fn covers(&self, zone: &Zone, rows: usize) -> bool {
        match (self, &zone.range) {
            _ if rows == 0 => true,
            (ColumnPredicate::Null, _) => zone.nulls == rows,
            _ if zone.nulls > 0 => false,
            (ColumnPredicate::NotNull, _) => true,
            (
                ColumnPredicate::Never
                | ColumnPredicate::StringTest(_)
                | ColumnPredicate::StringSet(_),
                _,
            ) => false,
            (_, range) => self.reduce_zone(range) == Reduced::All,
        }
    }

    /// Whether no integer of a range passes.
    pub(crate) fn excludes_integers(&self, min: i64, max: i64) -> bool {
        self.reduce(min, max) == Reduced::None
    }

    /// Whether every integer of a range passes.
    pub(crate) fn covers_integers(&self, min: i64, max: i64) -> bool {
        self.reduce(min, max) == Reduced::All
    }

    fn reduce_zone(&self, range: &ZoneRange) -> Reduced<'_> {
        match *range {
            ZoneRange::Integer(min, max) => self.reduce(min, max),
            ZoneRange::Codes(min, max) => self.reduce(min as i64, max as i64),
            ZoneRange::Float(min, max) => self.reduce_floats(min, max),
            _ => panic!("{self:?} asked of values in {range:?}"),
        }
    }

    /// The predicate on integers or codes that all lie within `min..=max`.
    pub(crate) fn reduce(&self, min: i64, max: i64) -> Reduced<'_> {
        match self {
            ColumnPredicate::Integers { low, high } => between(*low, *high, min, max),
            ColumnPredicate::NotIntegers { low, high } => not_between(*low, *high, min, max),
            ColumnPredicate::IntegerBitmap { first, words } => bitmap(*first, words, min, max),
            ColumnPredicate::Codes(words) => bitmap(0, words, min, max),
            ColumnPredicate::Ordinals { set, .. } => set.reduce(min, max),
            ColumnPredicate::IntegerSet(values) => set(values, min, max),
            other => panic!("{other:?} asked of integers or codes"),
        }
    }

    /// The predicate on floats that all lie within `min..=max`, as one on their double-precision keys.
    pub(crate) fn reduce_floats(&self, min: f64, max: f64) -> Reduced<'_> {
        match self {
            ColumnPredicate::Floats { low, high } => match key_range(*low, *high) {
                None => Reduced::None,
                Some((low, high)) => between(low, high, min.key(), max.key()),
            },
            other => panic!("{other:?} asked of floats"),
        }
    }
}

pub(crate) fn between(low: i64, high: i64, min: i64, max: i64) -> Reduced<'static> {
    if low > high || high < min || low > max {
        Reduced::None
    } else if low <= min && max <= high {
        Reduced::All
    } else {
        Reduced::Between(low.max(min), high.min(max))
    }
}

fn not_between(low: i64, high: i64, min: i64, max: i64) -> Reduced<'static> {
    match between(low, high, min, max) {
        Reduced::None => Reduced::All,
        Reduced::All => Reduced::None,
        // What is left lies on one side: a range again. Neither end can overflow, as the other side is not empty.
        Reduced::Between(low, high) if low == min => Reduced::Between(high + 1, max),
        Reduced::Between(low, high) if high == max => Reduced::Between(min, low - 1),
        Reduced::Between(low, high) => Reduced::NotBetween(low, high),
        other => other,
    }
}

fn set(values: &[i64], min: i64, max: i64) -> Reduced<'_> {
    let start = values.partition_point(|&value| value < min);
    let end = values.partition_point(|&value| value <= max);
    match &values[start..end] {
        [] => Reduced::None,
        values @ [first, .., last] if last.abs_diff(*first) != values.len() as u64 - 1 => {
            Reduced::Set(values)
        }
        values => between(values[0], values[values.len() - 1], min, max),
    }
}

/// Often the bits of the range are one run of ones (one dictionary code, a hierarchy's keys) or of zeros: then
/// comparing beats probing.
fn bitmap(first: i64, words: &[u64], min: i64, max: i64) -> Reduced<'_> {
    // Bits `from..to` are those of the values in the range; those beyond the bitmap are 0.
    let bit = |value: i64| value as i128 - first as i128;
    let length = words.len() as i128 * 64;
    let from = bit(min).clamp(0, length) as usize;
    let to = (bit(max) + 1).clamp(0, length) as usize;
    let value = |bit: usize| (first as i128 + bit as i128) as i64;

    let Some(one) = first_bit(words, from, to, true) else {
        return Reduced::None;
    };
    let last_one = last_bit(words, one, to, true).expect("at least the first one");
    let Some(zero) = first_bit(words, one, last_one, false) else {
        return between(value(one), value(last_one), min, max);
    };
    if value(one) == min && value(last_one) == max {
        let last_zero = last_bit(words, zero, last_one, false).expect("at least the first zero");
        if first_bit(words, zero, last_zero, true).is_none() {
            return Reduced::NotBetween(value(zero), value(last_zero));
        }
    }
    Reduced::Bitmap { first, words }
}

/// The first bit in `from..to` that is `wanted`.
fn first_bit(words: &[u64], from: usize, to: usize, wanted: bool) -> Option<usize> {
    let flip = if wanted { 0 } else { u64::MAX };
    let mut bit = from;
    while bit < to {
        let rest = (words[bit / 64] ^ flip) >> (bit % 64);
        if rest != 0 {
            return Some(bit + rest.trailing_zeros() as usize).filter(|&bit| bit < to);
        }
        bit = (bit / 64 + 1) * 64;
    }
    None
}

/// The last bit in `from..to` that is `wanted`.
fn last_bit(words: &[u64], from: usize, to: usize, wanted: bool) -> Option<usize> {
    let flip = if wanted { 0 } else { u64::MAX };
    let mut end = to;
    while end > from {
        let word = (end - 1) / 64;
        let rest = (words[word] ^ flip) << (63 - (end - 1) % 64);
        if rest != 0 {
            return Some(end - 1 - rest.leading_zeros() as usize).filter(|&bit| bit >= from);
        }
        end = word * 64;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_bits_become_comparisons() {
        let codes = |bits: &[usize]| {
            let mut words = vec![0u64; 3];
            for bit in bits {
                words[bit / 64] |= 1 << (bit % 64);
            }
            ColumnPredicate::Codes(words.into())
        };
        assert_eq!(codes(&[70]).reduce(0, 100), Reduced::Between(70, 70));
        let middle = codes(&[62, 63, 64, 65]);
        assert_eq!(middle.reduce(0, 63), Reduced::Between(62, 63));
        assert_eq!(middle.reduce(62, 64), Reduced::All);
        let ends = codes(&[62, 65]);
        assert_eq!(ends.reduce(63, 64), Reduced::None);
        assert_eq!(ends.reduce(62, 65), Reduced::NotBetween(63, 64));
        assert_eq!(codes(&[191]).reduce(192, 900), Reduced::None);
        assert!(matches!(
            codes(&[1, 3, 5]).reduce(1, 5),
            Reduced::Bitmap { .. }
        ));
    }

    #[test]
    fn extremes_do_not_overflow() {
        let (min, max) = (i64::MIN, i64::MAX);
        assert_eq!(not_between(min, 5, min, max), Reduced::Between(6, max));
        assert_eq!(not_between(5, max, min, max), Reduced::Between(min, 4));
        assert_eq!(not_between(min, max, min, max), Reduced::None);
        assert_eq!(not_between(3, 2, min, max), Reduced::All);
        let set = ColumnPredicate::IntegerSet([min, max].into());
        assert_eq!(set.reduce(min, max), Reduced::Set(&[min, max]));
        assert_eq!(set.reduce(0, max), Reduced::Between(max, max));
        let bitmap = ColumnPredicate::IntegerBitmap {
            first: max,
            words: [3].into(),
        };
        assert_eq!(bitmap.reduce(min, max), Reduced::Between(max, max));
    }
}
