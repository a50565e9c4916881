//! The stored form of packed values, and of the bits of rows.
//!
//! ```text
//! packed    width: 1 byte │ least - base │ words           of 512 values or more: a section, as in memory
//!                                          or distances    of fewer: one behind the other, from the lowest bit on
//! bits      a bit per row, from the lowest on, in whole bytes; beyond the rows: 0
//! ```
//!
//! A vector takes 128 bytes for each bit of a value, however few values it has. So few values are packed anew: a
//! statement that writes a few rows makes a record of some bytes.

use super::error::{FormError, ensure};
use super::reader::FormReader;
use super::writer::FormWriter;
use crate::object_memory::ObjectMemory;
use crate::packed::{Packed, packed_bytes};
use eris_kernels::{Isa, MASK_WORDS, VECTOR, pack};
use eris_numa::Buffer;

/// From so many values on, words are stored as they lie in memory.
pub(super) const WHOLE: usize = 512;

/// Bytes of so many values one behind the other.
fn dense_bytes(len: usize, width: u8) -> usize {
    (len * width as usize).div_ceil(8)
}

/// The first `len` values of a vector's words, one behind the other.
pub(super) fn dense(width: u8, words: &[u64], len: usize, out: &mut FormWriter<'_>) {
    let (mut bits, mut held) = (0u128, 0);
    for index in 0..len {
        bits |= u128::from(Isa::unpack_one(width, words, index)) << held;
        held += u32::from(width);
        while held >= 8 {
            out.byte(bits as u8);
            (bits, held) = (bits >> 8, held - 8);
        }
    }
    if held > 0 {
        out.byte(bits as u8);
    }
}

/// The words of a vector whose first `len` values were written by [`dense`].
pub(super) fn sparse(
    width: u8,
    len: usize,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<Buffer, FormError> {
    let mut values = [0; VECTOR];
    let spare = form.bytes(dense_bytes(len, width), |bytes| {
        let (mut bits, mut held) = (0u128, 0);
        let mut bytes = bytes.iter();
        for value in &mut values[..len] {
            while held < u32::from(width) {
                let byte = bytes.next().expect("as many bytes as values need");
                bits |= u128::from(*byte) << held;
                held += 8;
            }
            *value = bits as u64 & mask(width);
            (bits, held) = (bits >> width, held - u32::from(width));
        }
        bits
    })?;
    ensure(spare == 0, "bits behind the last value")?;
    let mut words = home.allocate::<u64>(MASK_WORDS * width as usize)?;
    pack(&values, width, words.as_mut_slice());
    Ok(words)
}

fn mask(width: u8) -> u64 {
    match width {
        0 => 0,
        width => u64::MAX >> (64 - width),
    }
}

/// Writes packed values; `least` is the least of them.
pub(super) fn store<'a>(packed: &'a Packed, least: i64, out: &mut FormWriter<'a>) {
    out.byte(packed.width());
    out.number(packed.distance(least));
    if packed.len() < WHOLE {
        dense(packed.width(), packed.words(), packed.len(), out);
    } else {
        out.section(packed.bytes_of_words());
    }
}

/// Reads `len` packed values, whose least is `least` and whose greatest is `greatest`; they prove to be.
pub(super) fn read(
    len: usize,
    least: i64,
    greatest: i64,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<Packed, FormError> {
    let width = form.byte()?;
    ensure(width <= 64, "a width of more than 64 bits")?;
    let base = i64::try_from(form.number()?).ok();
    let base = base.and_then(|distance| least.checked_sub(distance));
    let base = base.ok_or(FormError::Damaged("a base that is no integer"))?;
    let words = if len < WHOLE {
        sparse(width, len, form, home)?
    } else {
        form.section(packed_bytes(len, width), home)?
    };
    let packed = Packed::of_words(base, width, len, words);
    ensure(
        packed.has_range(Isa::best(), least, greatest),
        "a range that is not that of the values",
    )?;
    Ok(packed)
}

/// The bits of rows, which begin in words of whole vectors.
pub(super) fn store_bits(words: &[u64], rows: usize, out: &mut FormWriter<'_>) {
    let bytes = rows.div_ceil(8);
    let words = &words[..rows.div_ceil(64)];
    for (word, left) in words.iter().zip((1..=bytes).rev().step_by(8)) {
        out.bytes(&word.to_le_bytes()[..left.min(8)]);
    }
}

/// Bits of rows, as words.
pub(super) fn read_bits(
    rows: usize,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<Buffer, FormError> {
    let bytes = rows.div_ceil(8);
    if form.rest().len() < bytes {
        return Err(FormError::Short);
    }
    let mut words = home.allocate::<u64>(rows.div_ceil(VECTOR) * MASK_WORDS)?;
    form.bytes(bytes, |from| {
        words.as_mut_slice::<u8>()[..bytes].copy_from_slice(from);
    })?;
    let beyond = match rows % 8 {
        0 => 0,
        used => words.as_slice::<u8>()[bytes - 1] >> used,
    };
    ensure(beyond == 0, "bits behind the last row")?;
    Ok(words)
}
