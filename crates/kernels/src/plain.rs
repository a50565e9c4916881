//! Kernels over plain arrays.

use crate::isa::{Isa, dispatch};
use crate::{MASK_WORDS, VECTOR};

fn check_masks(rows: usize, masks: &[u64]) {
    assert_eq!(masks.len(), rows.div_ceil(64), "mask words of {rows} rows");
}

macro_rules! between_float {
    ($name:ident, $t:ty) => {
        /// Sets the bits of the values in `lo..=hi`, clears all others, and those beyond a ragged end.
        ///
        /// Comparison is that of PostgreSQL: `-0.0` equals `0.0`; NaN equals NaN and is greater than any number.
        /// So `hi` = NaN means no upper bound, `lo` = NaN only the NaNs. For an exclusive bound pass
        /// `lo.next_up()` or `hi.next_down()` (greater than infinity is `lo` = NaN). This is not the total order
        /// of IEEE 754, which tells the zeros, and NaNs of other sign or payload, apart.
        ///
        /// # Panics
        /// If `masks` has not one word for 64 rows begun.
        pub fn $name(self, values: &[$t], lo: $t, hi: $t, masks: &mut [u64]) {
            check_masks(values.len(), masks);
            // With no NaN among the bounds: outside is all but `lo <= v && v <= hi`, and NaN with it. Otherwise the
            // rows wanted are the complement of such a range.
            let (lo, hi, inside) = match (lo.is_nan(), hi.is_nan()) {
                (false, false) => (lo, hi, true),
                // All but the values below lo.
                (false, true) if lo == <$t>::NEG_INFINITY => return fill_rows(values.len(), masks),
                (false, true) => (<$t>::NEG_INFINITY, lo.next_down(), false),
                (true, true) => (<$t>::NEG_INFINITY, <$t>::INFINITY, false),
                (true, false) => return masks.fill(0),
            };
            dispatch!(self, $name(values, lo, hi, masks));
            if !inside {
                crate::not(masks);
                clear_end(values.len(), masks);
            }
        }
    };
}

fn fill_rows(rows: usize, masks: &mut [u64]) {
    masks.fill(u64::MAX);
    clear_end(rows, masks);
}

/// Clears the bits beyond the last row.
fn clear_end(rows: usize, masks: &mut [u64]) {
    if let (Some(last), 1..) = (masks.last_mut(), rows % 64) {
        *last &= !(u64::MAX << (rows % 64));
    }
}

/// Over plain values.
impl Isa {
    /// Sets the bits of the values in `lo..=hi`, clears all others, and those beyond a ragged end.
    ///
    /// # Panics
    /// If `masks` has not one word for 64 rows begun.
    pub fn between_i64(self, values: &[i64], lo: i64, hi: i64, masks: &mut [u64]) {
        check_masks(values.len(), masks);
        dispatch!(self, between_i64(values, lo, hi, masks));
    }

    between_float!(between_f64, f64);
    between_float!(between_f32, f32);

    /// Moves the selected values together, in order. Returns their number; what follows them in `out` is
    /// undefined.
    pub fn select_i64(
        self,
        values: &[i64; VECTOR],
        mask: &[u64; MASK_WORDS],
        out: &mut [i64; VECTOR],
    ) -> usize {
        dispatch!(self, select_i64(values, mask, out))
    }

    /// Moves the selected values together, in order. Returns their number; what follows them in `out` is
    /// undefined.
    pub fn select_u32(
        self,
        values: &[u32; VECTOR],
        mask: &[u64; MASK_WORDS],
        out: &mut [u32; VECTOR],
    ) -> usize {
        dispatch!(self, select_u32(values, mask, out))
    }

    /// Moves the selected bits together, in order: the validity of selected values. Returns their number; the
    /// bits that follow them in `out` are zero.
    pub fn select_bits(
        self,
        bits: &[u64; MASK_WORDS],
        mask: &[u64; MASK_WORDS],
        out: &mut [u64; MASK_WORDS],
    ) -> usize {
        dispatch!(self, select_bits(bits, mask, out))
    }

    /// The inverse of [`Isa::select_i64`]: puts the values, in order, into the rows whose bit is set, and `fill`
    /// into all others: non-null values, stored without gaps, to their rows. Returns the number of values taken.
    ///
    /// # Panics
    /// If `values` has fewer than the mask has bits.
    pub fn expand_i64(
        self,
        values: &[i64],
        mask: &[u64; MASK_WORDS],
        fill: i64,
        out: &mut [i64; VECTOR],
    ) -> usize {
        let selected = self.popcount(mask) as usize;
        dispatch!(self, expand_i64(&values[..selected], mask, fill, out));
        selected
    }

    /// The exact sum.
    pub fn sum_i64(self, values: &[i64]) -> i128 {
        dispatch!(self, sum_i64(values))
    }

    /// The least and the greatest value; `None` of no values.
    pub fn min_max_i64(self, values: &[i64]) -> Option<(i64, i64)> {
        if values.is_empty() {
            return None;
        }
        Some(dispatch!(self, min_max_i64(values)))
    }

    /// The sum in an order that depends on the number of values alone, so that every instruction set gives the
    /// same bits: 32 sums, the `i`-th over the values `i`, `i + 32`, `i + 64`, … in order; then sum `i` takes up sum
    /// `i + 16`, then `i + 8`, 4, 2 and 1.
    pub fn sum_f64(self, values: &[f64]) -> f64 {
        dispatch!(self, sum_f64(values))
    }
}
