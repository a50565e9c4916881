//! Predicates on encoded values.
//!
//! ```text
//! zone  ── excludes ─▶ clear              never reads a value
//!       ── covers ───▶ drop the NULLs
//!       └─ else reduce the predicate to the zone's range (IN → bitmap → range where possible), then
//!            packed       compare distances: one kernel call for all vectors; overwrites a full selection, else ANDs
//!            ordinals     the condition as one on the places of keys in their order, then as above
//!            runs         the same on the runs' values, once per run, short ones spread over the rows by a kernel
//!            framed       decode a vector and compare; if values never fall, find the range of rows by binary search
//!            floats       compare, unless zeros of both signs could be told apart by it: then compare keys
//!            text         call the test: on the selected strings, or on those of the chunk's dictionary
//! ```

use crate::chunk::ColumnChunk;
use crate::data::{Data, Integers, Plain};
use crate::floats::{TotalOrder, narrow};
use crate::predicate::{ColumnPredicate, Reduced};
use crate::selection::Selection;
use crate::zone::ZoneRange;
use arrow_buffer::ArrowNativeType;
use eris_kernels::{Isa, MASK_WORDS, VECTOR};
use std::sync::Arc;

impl ColumnChunk {
    /// Keeps the selected rows that pass. Vectors of which nothing is selected are not read.
    ///
    /// # Panics
    /// If the selection is of another number of rows, or the predicate is for another [`Domain`](crate::Domain).
    pub fn filter(&self, isa: Isa, predicate: &ColumnPredicate, selection: &mut Selection) {
        assert_eq!(selection.rows(), self.rows, "a selection of another chunk");
        match predicate {
            ColumnPredicate::Null => return self.validity.retain_nulls(selection),
            ColumnPredicate::NotNull => return self.validity.retain_valid(selection),
            ColumnPredicate::Never => return selection.clear(),
            _ => {}
        }
        match (&self.data, &self.zone.range) {
            (_, ZoneRange::Empty) => return selection.clear(),
            (Data::Integers(integers), &ZoneRange::Integer(min, max)) => {
                integers.filter(isa, predicate.reduce(min, max), selection);
            }
            (Data::Ordinals { .. }, ZoneRange::Integer(..)) => {
                self.filter_ordinals(isa, predicate, selection);
            }
            (Data::Codes(codes), &ZoneRange::Codes(min, max)) => {
                codes.filter(isa, predicate.reduce(min as i64, max as i64), selection);
            }
            (Data::Float32(plain), &ZoneRange::Float(min, max)) => {
                plain.filter(isa, predicate.reduce_floats(min, max), narrow, selection);
            }
            (Data::Float64(plain), &ZoneRange::Float(min, max)) => {
                let keys = |low, high| (low, high);
                plain.filter(isa, predicate.reduce_floats(min, max), keys, selection);
            }
            (Data::Strings(text), ZoneRange::Strings(..)) => match predicate {
                ColumnPredicate::StringTest(test) => text.filter(isa, test, selection),
                ColumnPredicate::StringSet(texts) => text.filter_set(isa, texts, selection),
                other => panic!("{other:?} asked of plain text"),
            },
            (_, range) => panic!("{predicate:?} asked of values in {range:?}"),
        }
        self.validity.retain_valid(selection);
    }

    /// How many of all rows pass: what [`ColumnChunk::filter`] would leave of a full selection. Without NULLs, a range
    /// of packed integers is counted without writing a selection.
    pub fn count(&self, isa: Isa, predicate: &ColumnPredicate) -> usize {
        if self.excludes(predicate) {
            return 0;
        }
        if self.covers(predicate) {
            return self.rows;
        }
        if let Some((Integers::Packed(packed), condition)) = self.reduce_integers(predicate)
            && self.nulls() == 0
        {
            match condition {
                Reduced::Between(low, high) => return packed.count_between(isa, low, high),
                Reduced::NotBetween(low, high) => {
                    return self.rows - packed.count_between(isa, low, high);
                }
                _ => {}
            }
        }
        let mut selection = Selection::all(self.rows);
        self.filter(isa, predicate, &mut selection);
        selection.count()
    }

    /// A condition on integers that are stored by an order.
    fn filter_ordinals(&self, isa: Isa, predicate: &ColumnPredicate, selection: &mut Selection) {
        let Data::Ordinals {
            ordinals,
            order,
            low,
            high,
        } = &self.data
        else {
            unreachable!("not stored by an order");
        };
        match predicate {
            ColumnPredicate::Ordinals { order: other, .. } => {
                assert!(Arc::ptr_eq(order, other), "ordinals of another order");
                ordinals.filter(isa, predicate.reduce(*low, *high), selection);
            }
            of_integers => {
                let predicate = of_integers.by_order(order);
                ordinals.filter(isa, predicate.reduce(*low, *high), selection);
            }
        }
    }

    /// The integers that are stored, and what a condition on the values comes down to for them; `None`: it is of
    /// another kind.
    pub(crate) fn reduce_integers<'a>(
        &self,
        predicate: &'a ColumnPredicate,
    ) -> Option<(&Integers, Reduced<'a>)> {
        if matches!(
            predicate,
            ColumnPredicate::Null | ColumnPredicate::NotNull | ColumnPredicate::Never
        ) {
            return None;
        }
        match (&self.data, &self.zone.range) {
            (Data::Integers(integers), &ZoneRange::Integer(min, max)) => {
                Some((integers, predicate.reduce(min, max)))
            }
            (
                Data::Ordinals {
                    ordinals,
                    order,
                    low,
                    high,
                },
                _,
            ) => match predicate {
                ColumnPredicate::Ordinals { order: other, .. } => {
                    assert!(Arc::ptr_eq(order, other), "ordinals of another order");
                    Some((ordinals, predicate.reduce(*low, *high)))
                }
                _ => None,
            },
            (Data::Codes(codes), &ZoneRange::Codes(min, max)) => {
                Some((codes, predicate.reduce(min as i64, max as i64)))
            }
            _ => None,
        }
    }
}

impl Integers {
    pub(crate) fn filter(&self, isa: Isa, condition: Reduced<'_>, selection: &mut Selection) {
        match condition {
            Reduced::None => return selection.clear(),
            Reduced::All => return,
            _ => {}
        }
        match self {
            Integers::Constant(_) => unreachable!("a single value passes or does not"),
            Integers::Packed(packed) => {
                let full = selection.known_full();
                packed.filter(isa, condition, full, selection.words_mut());
                if full {
                    selection.trim();
                }
            }
            Integers::Runs(runs) => runs.filter(isa, condition, selection),
            Integers::ShortRuns(runs) => runs.filter(isa, condition, selection),
            Integers::Framed(framed) => framed.filter(isa, condition, selection),
        }
    }
}

/// A float whose type has a kernel.
pub(crate) trait Between: TotalOrder {
    /// Sets the bits of the values in `low..=high`, neither being NaN; both zeros are equal. One word per 64 values.
    fn between(isa: Isa, values: &[Self], low: Self, high: Self, masks: &mut [u64]);
}

impl Between for f32 {
    fn between(isa: Isa, values: &[Self], low: Self, high: Self, masks: &mut [u64]) {
        isa.between_f32(values, low, high, masks);
    }
}

impl Between for f64 {
    fn between(isa: Isa, values: &[Self], low: Self, high: Self, masks: &mut [u64]) {
        isa.between_f64(values, low, high, masks);
    }
}

impl<T: Between + ArrowNativeType> Plain<T> {
    /// `narrow` turns a range of double-precision keys into one of keys of `T`.
    fn filter(
        &self,
        isa: Isa,
        condition: Reduced<'_>,
        narrow: impl Fn(i64, i64) -> (i64, i64),
        selection: &mut Selection,
    ) {
        let (low, high) = match condition {
            Reduced::None => return selection.clear(),
            Reduced::All => return,
            Reduced::Between(low, high) => narrow(low, high),
            other => unreachable!("{other:?} on floats"),
        };
        let Plain::Values(values) = self else {
            // The zone is one value, and yet not decided: it lies between the bounds of a wider type.
            return selection.clear();
        };
        if low > high {
            return selection.clear();
        }
        let (least, greatest) = (T::from_key(low), T::from_key(high));
        let is_nan = |value: T| value.widen().is_nan();
        let splits_zeros = low == ZERO_KEY || high == ZERO_KEY - 1;
        if is_nan(least) || is_nan(greatest) || splits_zeros {
            filter_values(values, selection, |values, masks| {
                let mut keys = [0; VECTOR];
                for (values, masks) in values.chunks(VECTOR).zip(masks.chunks_mut(MASK_WORDS)) {
                    for (key, value) in keys.iter_mut().zip(values) {
                        *key = value.key();
                    }
                    isa.between_i64(&keys[..values.len()], low, high, masks);
                }
            });
        } else {
            filter_values(values, selection, |values, masks| {
                T::between(isa, values, least, greatest, masks);
            });
        }
    }
}

/// The key of 0; that of -0 is the one before.
const ZERO_KEY: i64 = 0;

/// Runs a kernel that overwrites one mask word per 64 values, over all values at once if all are selected.
fn filter_values<T>(
    values: &[T],
    selection: &mut Selection,
    mut kernel: impl FnMut(&[T], &mut [u64]),
) {
    if selection.known_full() {
        let words = values.len().div_ceil(64);
        kernel(values, &mut selection.words_mut()[..words]);
        return;
    }
    let masks = selection.words_mut().chunks_mut(MASK_WORDS);
    for (values, mask) in values.chunks(VECTOR).zip(masks) {
        if mask.iter().all(|&word| word == 0) {
            continue;
        }
        let mut passed = [0; MASK_WORDS];
        kernel(values, &mut passed[..values.len().div_ceil(64)]);
        eris_kernels::and(mask, &passed);
    }
}
