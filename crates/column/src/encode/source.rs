//! Values of any integer-like type, as blocks of `i64`.

use crate::domain::SIGN;
use crate::floats::TotalOrder;
use arrow_buffer::{BooleanBuffer, NullBuffer};
use eris_kernels::VECTOR;

/// Values that can be read as integers whose order is theirs.
pub(super) trait ValueSource: Copy {
    /// Writes the values from `start` on.
    fn read(&self, start: usize, out: &mut [i64]);
}

macro_rules! slices {
    ($($t:ty: |$value:ident| $integer:expr;)*) => {$(
        impl ValueSource for &[$t] {
            #[inline]
            fn read(&self, start: usize, out: &mut [i64]) {
                let values = &self[start..][..out.len()];
                for (out, &$value) in out.iter_mut().zip(values) {
                    *out = $integer;
                }
            }
        }
    )*};
}
slices! {
    i8: |value| value as i64;
    i16: |value| value as i64;
    i32: |value| value as i64;
    i64: |value| value;
    u8: |value| value as i64;
    u16: |value| value as i64;
    u32: |value| value as i64;
    u64: |value| (value ^ SIGN) as i64;
    // Those that do not fit have been rejected, unless they are NULL.
    i128: |value| value as i64;
}

/// `false` as 0, `true` as 1.
#[derive(Clone, Copy)]
pub(super) struct Booleans<'a>(pub(super) &'a BooleanBuffer);

impl ValueSource for Booleans<'_> {
    fn read(&self, start: usize, out: &mut [i64]) {
        let bits = self.0.slice(start, out.len());
        for (out, word) in out.chunks_mut(64).zip(bits.bit_chunks().iter_padded()) {
            for (bit, out) in out.iter_mut().enumerate() {
                *out = (word >> bit & 1) as i64;
            }
        }
    }
}

/// Floats by their keys.
#[derive(Clone, Copy)]
pub(super) struct FloatKeys<'a, T>(pub(super) &'a [T]);

impl<T: TotalOrder> ValueSource for FloatKeys<'_, T> {
    #[inline]
    fn read(&self, start: usize, out: &mut [i64]) {
        let values = &self.0[start..][..out.len()];
        for (out, value) in out.iter_mut().zip(values) {
            *out = value.key();
        }
    }
}

/// A source read from start to end, in which each NULL has the value before it, and NULLs at the start the first value.
#[derive(Clone)]
pub(super) struct Filled<'a, S> {
    source: S,
    nulls: Option<&'a NullBuffer>,
    last: i64,
    row: usize,
}

impl<'a, S: ValueSource> Filled<'a, S> {
    /// `first` is the first value that is not NULL.
    pub(super) fn new(source: S, nulls: Option<&'a NullBuffer>, first: i64) -> Self {
        Filled {
            source,
            nulls,
            last: first,
            row: 0,
        }
    }

    /// The next values, at most a vector.
    pub(super) fn next(&mut self, out: &mut [i64]) {
        debug_assert!(out.len() <= VECTOR);
        self.source.read(self.row, out);
        if let Some(nulls) = self.nulls {
            let valid = nulls.inner().slice(self.row, out.len());
            for (out, valid) in out.chunks_mut(64).zip(valid.bit_chunks().iter_padded()) {
                if valid == u64::MAX {
                    self.last = out[63];
                    continue;
                }
                for (bit, value) in out.iter_mut().enumerate() {
                    let is_valid = valid >> bit & 1 == 1;
                    self.last = if is_valid { *value } else { self.last };
                    *value = self.last;
                }
            }
        }
        self.row += out.len();
    }
}
