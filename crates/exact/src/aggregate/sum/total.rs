//! One exact sum, and the accumulator that keeps it.

use datafusion::arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, AsArray, PrimitiveArray};
use datafusion::arrow::compute::sum;
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, i256};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::AccumulatorArgs;
use eris_fragment::FragmentError;
use std::fmt;
use std::hash::Hash;

/// A type of numbers whose sums can overflow.
pub(super) trait Summand: ArrowPrimitiveType<Native: Number> + fmt::Debug + Send {}

impl<T: ArrowPrimitiveType<Native: Number> + fmt::Debug + Send> Summand for T {}

/// A native number.
pub(super) trait Number: ArrowNativeTypeOp + Eq + Hash {
    /// Every number of a smaller magnitude than 2^`ROOM` is one of the type.
    const ROOM: u32;

    /// The magnitude of none of these numbers is more than 2 to this power.
    fn bits(values: &[Self]) -> u32;
}

macro_rules! signed {
    ($($type:ty)*) => {$(
        impl Number for $type {
            const ROOM: u32 = <$type>::BITS - 1;

            fn bits(values: &[Self]) -> u32 {
                // The highest bit that differs from the one below it; cheap, and the compiler makes vectors of it.
                let all = values.iter().fold(0, |all, value| all | (value ^ (value << 1)));
                (<$type>::BITS - all.leading_zeros()).saturating_sub(1)
            }
        }
    )*};
}

signed!(i32 i64 i128);

impl Number for u64 {
    const ROOM: u32 = u64::BITS;

    fn bits(values: &[Self]) -> u32 {
        let all = values.iter().fold(0, |all, value| all | value);
        u64::BITS - all.leading_zeros()
    }
}

impl Number for i256 {
    const ROOM: u32 = 255;

    fn bits(_: &[Self]) -> u32 {
        Self::ROOM
    }
}

/// How far sums of some values can reach, whichever of the values they are made of.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reach {
    bits: u32,
    values: u64,
}

impl Reach {
    /// Extends it by some values; whether no sum can leave the type.
    pub fn stays_within<N: Number>(&mut self, values: &[N]) -> bool {
        self.bits = self.bits.max(N::bits(values));
        self.values += values.len() as u64;
        self.bits + (u64::BITS - self.values.leading_zeros()) <= N::ROOM
    }
}

/// The type that a sum has to fit.
pub(super) struct SumType<T: Summand> {
    pub data_type: DataType,
    /// The largest number of a decimal's digits; `None` if every number of the native type is one.
    most: Option<T::Native>,
    /// The aggregate, for messages.
    what: String,
}

impl<T: Summand> SumType<T> {
    pub fn new(args: &AccumulatorArgs<'_>, most: Option<T::Native>) -> Self {
        SumType {
            data_type: args.return_field.data_type().clone(),
            most,
            what: args.name.to_owned(),
        }
    }

    /// Whether a number that did not wrap is one of the type.
    pub fn holds(&self, value: T::Native) -> bool {
        self.most
            .is_none_or(|most| value.is_le(most) && value.is_ge(most.neg_wrapping()))
    }

    pub fn overflow(&self) -> DataFusionError {
        let what = self.what.clone();
        DataFusionError::External(Box::new(FragmentError::Overflow { what }))
    }

    /// The sum as a value; NULL where nothing was added.
    pub fn value(&self, total: Option<Total<T::Native>>) -> Result<ScalarValue> {
        if total.is_some_and(|total| total.wraps != 0 || !self.holds(total.low)) {
            return Err(self.overflow());
        }
        ScalarValue::new_primitive::<T>(total.map(|total| total.low), &self.data_type)
    }
}

impl<T: Summand> fmt::Debug for SumType<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as {}", self.what, self.data_type)
    }
}

/// A sum of any size: `wraps · 2^bits + low`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Total<N> {
    low: N,
    wraps: i64,
}

impl<N: ArrowNativeTypeOp> Total<N> {
    #[inline]
    pub fn add(&mut self, value: N) {
        self.wraps += add(&mut self.low, value);
    }

    #[inline]
    pub fn subtract(&mut self, value: N) {
        let difference = self.low.sub_wrapping(value);
        let negative = value.is_lt(N::ZERO);
        if negative != difference.is_gt(self.low) {
            self.wraps += if negative { 1 } else { -1 };
        }
        self.low = difference;
    }
}

/// Adds, and says by how many times the range of the type the sum has become too small: -1, 0 or 1.
#[inline]
pub(super) fn add<N: ArrowNativeTypeOp>(low: &mut N, value: N) -> i64 {
    let sum = low.add_wrapping(value);
    let negative = value.is_lt(N::ZERO);
    // A sum is below what it began with just if something negative was added, unless it has wrapped.
    let wrapped = negative != sum.is_lt(*low);
    *low = sum;
    match (wrapped, negative) {
        (false, _) => 0,
        (true, false) => 1,
        (true, true) => -1,
    }
}

/// The values of an array that are not NULL.
pub(super) fn for_each<T: Summand>(values: &PrimitiveArray<T>, mut visit: impl FnMut(T::Native)) {
    match values.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => values.values().iter().copied().for_each(visit),
        Some(nulls) => nulls
            .valid_indices()
            .for_each(|index| visit(values.values()[index])),
    }
}

/// SUM without groups.
#[derive(Debug)]
pub(super) struct PlainSum<T: Summand> {
    target: SumType<T>,
    total: Total<T::Native>,
    values: u64,
}

impl<T: Summand> PlainSum<T> {
    pub fn new(target: SumType<T>) -> Self {
        PlainSum {
            target,
            total: Total::default(),
            values: 0,
        }
    }
}

impl<T: Summand> Accumulator for PlainSum<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        if Reach::default().stays_within(values.values()) {
            self.total.add(sum(values).unwrap_or_default());
        } else {
            for_each(values, |value| self.total.add(value));
        }
        self.values += (values.len() - values.null_count()) as u64;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        for_each(values, |value| self.total.subtract(value));
        self.values -= (values.len() - values.null_count()) as u64;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.target.value((self.values > 0).then_some(self.total))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_total_is_exact(added in prop::collection::vec((any::<i64>(), any::<bool>()), 0..50)) {
            let (mut signed, mut unsigned) = (Total::<i64>::default(), Total::<u64>::default());
            let (mut a, mut b) = (0i128, 0i128);
            for (value, forget) in added {
                if forget {
                    signed.subtract(value);
                    unsigned.subtract(value as u64);
                    (a, b) = (a - i128::from(value), b - i128::from(value as u64));
                } else {
                    signed.add(value);
                    unsigned.add(value as u64);
                    (a, b) = (a + i128::from(value), b + i128::from(value as u64));
                }
                prop_assert_eq!((i128::from(signed.wraps) << 64) + i128::from(signed.low), a);
                prop_assert_eq!((i128::from(unsigned.wraps) << 64) + i128::from(unsigned.low), b);
            }
        }

        #[test]
        fn what_stays_within_reach_does_not_wrap(
            batches in prop::collection::vec(prop::collection::vec((any::<i64>(), 0..64u32), 1..9), 1..5)
        ) {
            let (mut signed, mut unsigned) = (Reach::default(), Reach::default());
            let (mut least, mut most, mut all) = (0i128, 0i128, 0u128);
            for batch in batches {
                let values: Vec<i64> = batch.iter().map(|(value, by)| value >> by).collect();
                let positive: Vec<u64> = batch.iter().map(|(value, by)| (*value as u64) >> by).collect();
                least += values.iter().map(|&value| i128::from(value.min(0))).sum::<i128>();
                most += values.iter().map(|&value| i128::from(value.max(0))).sum::<i128>();
                all += positive.iter().map(|&value| u128::from(value)).sum::<u128>();
                let fits = i64::try_from(least).is_ok() && i64::try_from(most).is_ok();
                prop_assert!(!signed.stays_within(&values) || fits);
                prop_assert!(!unsigned.stays_within(&positive) || u64::try_from(all).is_ok());
            }
        }

        #[test]
        fn small_values_are_within_reach(values in prop::collection::vec(-(1i64 << 40)..1 << 40, 0..1000)) {
            prop_assert!(Reach::default().stays_within(&values));
        }
    }
}
