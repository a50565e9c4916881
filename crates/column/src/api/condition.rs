//! Comparators, and what they mean for integers and codes.

use super::{Column, ColumnError};
use crate::predicate::ColumnPredicate;
use crate::value::ColumnValue;

/// How a scan compares a column's value (on the left) with the given one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparator {
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `>=`
    GreaterOrEqual,
    /// `>`
    Greater,
}

impl Comparator {
    /// Whether `left` compares so with `right`.
    pub fn holds<T: Ord + ?Sized>(self, left: &T, right: &T) -> bool {
        match self {
            Comparator::Less => left < right,
            Comparator::LessOrEqual => left <= right,
            Comparator::Equal => left == right,
            Comparator::NotEqual => left != right,
            Comparator::GreaterOrEqual => left >= right,
            Comparator::Greater => left > right,
        }
    }
}

/// A comparator and its comparative value. Strings compare byte by byte.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    /// How to compare.
    pub comparator: Comparator,
    /// What with.
    pub value: ColumnValue,
}

impl Condition {
    /// The condition as a predicate on the integers of the column.
    pub(super) fn predicate(&self, column: &Column) -> Result<ColumnPredicate, ColumnError> {
        let integer = column.integer(&self.value)?;
        Ok(match (&self.value, integer) {
            (ColumnValue::String(text), _) => {
                let values = column.dictionary.values().iter().flatten();
                let mut words = vec![0; column.dictionary.len().div_ceil(64)];
                for (code, value) in values.enumerate() {
                    let holds = self.comparator.holds(value, text.as_str());
                    words[code / 64] |= (holds as u64) << (code % 64);
                }
                ColumnPredicate::IntegerBitmap {
                    first: 0,
                    words: words.into(),
                }
            }
            (_, integer) => {
                let value = integer.expect("integers need no dictionary");
                match self.comparator {
                    Comparator::Less => match value.checked_sub(1) {
                        Some(high) => ColumnPredicate::Integers {
                            low: i64::MIN,
                            high,
                        },
                        None => ColumnPredicate::Never,
                    },
                    Comparator::LessOrEqual => ColumnPredicate::Integers {
                        low: i64::MIN,
                        high: value,
                    },
                    Comparator::Equal => ColumnPredicate::Integers {
                        low: value,
                        high: value,
                    },
                    Comparator::NotEqual => ColumnPredicate::NotIntegers {
                        low: value,
                        high: value,
                    },
                    Comparator::GreaterOrEqual => ColumnPredicate::Integers {
                        low: value,
                        high: i64::MAX,
                    },
                    Comparator::Greater => match value.checked_add(1) {
                        Some(low) => ColumnPredicate::Integers {
                            low,
                            high: i64::MAX,
                        },
                        None => ColumnPredicate::Never,
                    },
                }
            }
        })
    }
}
