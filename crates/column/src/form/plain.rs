//! The stored form of floats and of numbers of 16 bytes.
//!
//! ```text
//! constant    the value
//! values      least │ greatest │ section: the value of each row; that of a NULL may be anything
//! ```
//!
//! Values have 4, 8 or 16 bytes. The order of floats is the total one of IEEE 754.

use super::error::{FormError, ensure};
use super::reader::FormReader;
use super::writer::FormWriter;
use crate::data::Plain;
use crate::floats::TotalOrder;
use crate::object_memory::ObjectMemory;
use crate::resident;
use crate::validity::Validity;
use arrow_buffer::ArrowNativeType;
use eris_kernels::{Isa, MASK_WORDS, VECTOR};

/// Numbers that are stored as they are.
pub(super) trait Number: ArrowNativeType + eris_numa::Plain {
    fn store(self, out: &mut FormWriter<'_>);
    fn read(form: &mut FormReader<'_>) -> Result<Self, FormError>;
    /// Whether they are the same bit by bit.
    fn is(self, other: Self) -> bool;
    /// The range of the values that are not NULL.
    fn range(values: &[Self], validity: &Validity) -> Option<(Self, Self)>;
}

macro_rules! floats {
    ($($t:ty)*) => {$(
        impl Number for $t {
            fn store(self, out: &mut FormWriter<'_>) {
                out.bytes(&self.to_le_bytes());
            }
            fn read(form: &mut FormReader<'_>) -> Result<Self, FormError> {
                form.array().map(<$t>::from_le_bytes)
            }
            fn is(self, other: Self) -> bool {
                self.to_bits() == other.to_bits()
            }
            fn range(values: &[Self], validity: &Validity) -> Option<(Self, Self)> {
                let (min, max) = key_range(values, validity)?;
                Some((<$t>::from_key(min), <$t>::from_key(max)))
            }
        }
    )*};
}
floats!(f32 f64);

impl Number for i128 {
    fn store(self, out: &mut FormWriter<'_>) {
        out.bytes(&self.to_le_bytes());
    }

    fn read(form: &mut FormReader<'_>) -> Result<Self, FormError> {
        form.array().map(i128::from_le_bytes)
    }

    fn is(self, other: Self) -> bool {
        self == other
    }

    fn range(values: &[Self], validity: &Validity) -> Option<(Self, Self)> {
        let rows = values.iter().enumerate();
        let valid = rows.filter(|(row, _)| validity.is_valid(*row));
        valid.fold(None, |range, (_, &value)| {
            let (min, max) = range.unwrap_or((value, value));
            Some((value.min(min), value.max(max)))
        })
    }
}

/// The range of the keys of floats that are not NULL.
fn key_range<T: TotalOrder>(values: &[T], validity: &Validity) -> Option<(i64, i64)> {
    let isa = Isa::best();
    let mut range = None;
    let (mut keys, mut valid) = ([0; VECTOR], [0; VECTOR]);
    for (vector, values) in values.chunks(VECTOR).enumerate() {
        for (key, value) in keys.iter_mut().zip(values) {
            *key = value.key();
        }
        let here = match validity {
            Validity::All => &keys[..values.len()],
            Validity::None => &[],
            Validity::Bitmap(words) => {
                let mask = &words.as_chunks::<MASK_WORDS>().0[vector];
                let count = isa.select_i64(&keys, mask, &mut valid);
                &valid[..count]
            }
        };
        if let Some((least, greatest)) = isa.min_max_i64(here) {
            let (min, max) = range.unwrap_or((least, greatest));
            range = Some((least.min(min), greatest.max(max)));
        }
    }
    range
}

/// Writes the value of a constant, or values within a range.
pub(super) fn store<'a, T: Number>(plain: &'a Plain<T>, range: (T, T), out: &mut FormWriter<'a>) {
    match plain {
        Plain::Constant(value) => value.store(out),
        Plain::Values(values) => {
            range.0.store(out);
            range.1.store(out);
            out.section(values.inner());
        }
    }
}

/// Reads values, and their range.
pub(super) fn read<T: Number>(
    rows: usize,
    validity: &Validity,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<(Plain<T>, T, T), FormError> {
    let (least, greatest) = (T::read(form)?, T::read(form)?);
    let values = resident::numbers(form.section(rows * size_of::<T>(), home)?);
    let range = T::range(&values, validity);
    let right = range.is_some_and(|(min, max)| min.is(least) && max.is(greatest));
    ensure(right, "a range that is not that of the values")?;
    ensure(!least.is(greatest), "equal values that are no constant")?;
    Ok((Plain::Values(values), least, greatest))
}
