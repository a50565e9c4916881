//! IEEE 754 total order as the order of integers. It is the order of Arrow's comparison kernels, hence of the SQL
//! above: NaN equals itself and is greater than ∞, and -0 is less than 0.
//!
//! ```text
//! bits      sign | exponent | fraction          as two's complement: right order for positive numbers,
//! key       sign | same bits, inverted when negative                 reversed for negative ones: so invert those
//! ```

use std::ops::Bound;

/// A float with its key.
pub(crate) trait TotalOrder: Copy + Send + Sync + 'static {
    /// The key: `a.key() < b.key()` exactly when `a` comes before `b`.
    fn key(self) -> i64;
    /// The inverse of [`TotalOrder::key`].
    fn from_key(key: i64) -> Self;
    /// The same value in double precision, NaNs with their sign and payload.
    fn widen(self) -> f64;
}

impl TotalOrder for f64 {
    #[inline(always)]
    fn key(self) -> i64 {
        let bits = self.to_bits() as i64;
        bits ^ ((bits >> 63) as u64 >> 1) as i64
    }
    #[inline(always)]
    fn from_key(key: i64) -> Self {
        f64::from_bits((key ^ ((key >> 63) as u64 >> 1) as i64) as u64)
    }
    fn widen(self) -> f64 {
        self
    }
}

impl TotalOrder for f32 {
    #[inline(always)]
    fn key(self) -> i64 {
        let bits = self.to_bits() as i32;
        (bits ^ ((bits >> 31) as u32 >> 1) as i32) as i64
    }
    #[inline(always)]
    fn from_key(key: i64) -> Self {
        let key = key as i32;
        f32::from_bits((key ^ ((key >> 31) as u32 >> 1) as i32) as u32)
    }
    fn widen(self) -> f64 {
        if self.is_nan() {
            // A cast may change a NaN's bits, and with them its place in the order.
            let bits = self.to_bits() as u64;
            f64::from_bits((bits >> 31) << 63 | 0x7ff << 52 | (bits & 0x7f_ffff) << 29)
        } else {
            self as f64
        }
    }
}

/// The keys of the `f64` within the bounds, as an inclusive range; `None` if there cannot be any.
pub(crate) fn key_range(low: Bound<f64>, high: Bound<f64>) -> Option<(i64, i64)> {
    let low = match low {
        Bound::Unbounded => i64::MIN,
        Bound::Included(low) => low.key(),
        Bound::Excluded(low) => low.key().checked_add(1)?,
    };
    let high = match high {
        Bound::Unbounded => i64::MAX,
        Bound::Included(high) => high.key(),
        Bound::Excluded(high) => high.key().checked_sub(1)?,
    };
    (low <= high).then_some((low, high))
}

/// The keys of the `f32` whose double-precision keys lie within `low..=high`; empty (first above second) if none does.
pub(crate) fn narrow(low: i64, high: i64) -> (i64, i64) {
    let near = |key: i64| {
        let wide = f64::from_key(key);
        let near = if wide.is_nan() {
            let bits = wide.to_bits();
            f32::from_bits(((bits >> 63) << 31 | 0xff << 23 | (bits >> 29 & 0x7f_ffff)) as u32)
        } else {
            wide as f32
        };
        // Rounded to the nearest, so that the one sought is this or its neighbour.
        (near.key(), near.widen().key())
    };
    let (near_low, widened) = near(low);
    let low = near_low + (widened < low) as i64;
    let (near_high, widened) = near(high);
    (low, near_high - (widened > high) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SPECIAL: [f64; 10] = [
        f64::NAN,
        f64::INFINITY,
        f64::MAX,
        f64::MIN_POSITIVE,
        0.0,
        -0.0,
        -1.5,
        f64::MIN,
        f64::NEG_INFINITY,
        1e-320,
    ];

    #[test]
    fn keys_order_special_values() {
        let mut values = SPECIAL.map(|value| [value, -value]).concat();
        values.sort_by(f64::total_cmp);
        assert!(values.is_sorted_by_key(|value| value.key()));
        for value in values {
            assert_eq!(f64::from_key(value.key()).to_bits(), value.to_bits());
        }
    }

    proptest! {
        #[test]
        fn narrowed_bounds_keep_exactly_the_same_values(bits in any::<u32>(), low in any::<u64>(), high in any::<u64>(), near in -2i64..=2) {
            let value = f32::from_bits(bits);
            prop_assert_eq!(f32::from_key(value.key()).to_bits(), bits);
            let near = value.widen().key().saturating_add(near);
            for (low, high) in [
                (f64::from_bits(low).key(), f64::from_bits(high).key()),
                (near, i64::MAX),
                (i64::MIN, near),
            ] {
                let expected = (low..=high).contains(&value.widen().key());
                let (narrow_low, narrow_high) = narrow(low, high);
                prop_assert_eq!((narrow_low..=narrow_high).contains(&value.key()), expected);
            }
        }
    }
}
