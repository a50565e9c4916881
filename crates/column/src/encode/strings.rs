//! Text that is not coded by the column's dictionary, and bytes: a dictionary of the chunk, compressed, or as it is.

use super::{Encoder, integers};
use crate::compressed::Compressed;
use crate::dictionary::INLINE_BYTES;
use crate::error::EncodeError;
use crate::object_memory::ObjectMemory;
use crate::resident;
use crate::strings::{StringKind, Strings};
use arrow_array::builder::make_view;
use arrow_array::cast::AsArray;
use arrow_array::{Array, GenericByteViewArray, UInt32Array};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use fsst::Compressor;
use hashbrown::HashMap;

/// Bytes of strings in one buffer, which views address with 32 bits.
const BUFFER_BYTES: usize = 1 << 30;

/// Text of fewer bytes, views included, stays as it is: a symbol table alone takes up to 4 KiB.
const SMALL: usize = 16 << 10;

/// Rows from which it is guessed whether the others repeat, or compress.
const SAMPLE: usize = 2048;

/// Whether text in a form that takes longer to read is small enough beside plain: by a quarter.
fn pays(bytes: usize, plain: usize) -> bool {
    4 * bytes <= 3 * plain
}

impl Encoder<'_> {
    pub(super) fn strings<T: StringKind>(
        &mut self,
        array: &GenericByteViewArray<T>,
    ) -> Result<Strings<T>, EncodeError> {
        let mut rows = self.valid_rows();
        let constant = |string: &T::Native| {
            let array = GenericByteViewArray::from_iter_values([string]);
            Ok(Strings::Constant(array))
        };
        let Some(first) = rows.next() else {
            return constant(T::empty());
        };
        let bytes = |row| -> &[u8] { array.value(row).as_ref() };
        // Strings are in the order of their bytes.
        let (mut min, mut max) = (first, first);
        let (mut long, mut total) = (0, 0);
        let mut count = |string: &[u8]| {
            total += string.len();
            long += if string.len() > INLINE_BYTES {
                string.len()
            } else {
                0
            };
        };
        count(bytes(first));
        for row in rows {
            let string = bytes(row);
            count(string);
            if string < bytes(min) {
                min = row;
            } else if string > bytes(max) {
                max = row;
            }
        }
        self.range = T::range(array.value(min), array.value(max));
        if bytes(min) == bytes(max) {
            return constant(array.value(min));
        }
        let plain = self.rows * size_of::<u128>() + long;
        let text = match self.dictionary(array, plain)? {
            Some(text) => text,
            None => match self.compressed(array, plain, total)? {
                Some(text) => text,
                None => Strings::Values(views(array, self.nulls, self.home)?),
            },
        };
        Ok(text)
    }

    /// As numbers of the chunk's own strings, if these repeat enough.
    fn dictionary<T: StringKind>(
        &self,
        array: &GenericByteViewArray<T>,
        plain: usize,
    ) -> Result<Option<Strings<T>>, EncodeError> {
        if plain < SMALL {
            return Ok(None);
        }
        let mut known: HashMap<&[u8], u32> = HashMap::new();
        let mut firsts = Vec::new();
        let mut numbers = vec![0; self.rows];
        for (seen, row) in self.valid_rows().enumerate() {
            if seen == SAMPLE && 2 * known.len() > SAMPLE || 4 * known.len() > self.rows {
                return Ok(None);
            }
            let next = known.len() as u32;
            let number = known.entry(array.value(row).as_ref()).or_insert_with(|| {
                firsts.push(row as u32);
                next
            });
            numbers[row] = *number;
        }
        drop(known);
        let strings = arrow_select::take::take(array, &UInt32Array::from(firsts), None)?;
        let strings = views(strings.as_byte_view::<T>(), None, self.home)?;
        let (numbers, _) = integers::encode(self, &numbers[..])?;
        let text = Strings::Dictionary { strings, numbers };
        Ok(pays(text.bytes(), plain).then_some(text))
    }

    /// Compressed, if a sample promises enough.
    fn compressed<T: StringKind>(
        &self,
        array: &GenericByteViewArray<T>,
        plain: usize,
        total: usize,
    ) -> Result<Option<Strings<T>>, EncodeError> {
        if plain < SMALL || total > BUFFER_BYTES {
            return Ok(None);
        }
        let mut strings: Vec<&[u8]> = vec![b""; self.rows];
        for row in self.valid_rows() {
            strings[row] = array.value(row).as_ref();
        }
        let compressor = Compressor::train(&strings);
        let step = self.rows.div_ceil(SAMPLE);
        let sample = || strings.iter().step_by(step);
        let before: usize = sample().map(|string| string.len()).sum();
        let after: usize = sample()
            .map(|string| compressor.compress(string).len())
            .sum();
        // Symbols have to do it, not only the views that are not there: those take no time to read. Beside its bytes a
        // row takes two lengths.
        let estimate = (after as f64 / before.max(1) as f64 * total as f64) as usize;
        if !pays(after, before) || !pays(estimate + 2 * self.rows, plain) {
            return Ok(None);
        }
        let compressed = Compressed::encode(&compressor, &strings, plain * 3 / 4, self.home)?;
        Ok(compressed.map(Strings::Compressed))
    }
}

/// The array with views, the strings that they name, and its NULLs, given anew, in node-local memory.
fn views<T: StringKind>(
    array: &GenericByteViewArray<T>,
    nulls: Option<&NullBuffer>,
    home: ObjectMemory<'_>,
) -> Result<GenericByteViewArray<T>, EncodeError> {
    let bytes = |row: usize| -> &[u8] { array.value(row).as_ref() };
    let rows = || (0..array.len()).filter(|&row| nulls.is_none_or(|nulls| nulls.is_valid(row)));
    let long = |row: usize| Some(bytes(row)).filter(|text| text.len() > INLINE_BYTES);
    // First how many bytes go into each buffer, as they are allocated whole.
    let mut lengths = vec![0];
    for string in rows().filter_map(long) {
        let last = lengths.last_mut().expect("there is one");
        if *last + string.len() > BUFFER_BYTES && *last > 0 {
            lengths.push(string.len());
        } else {
            *last += string.len();
        }
    }
    let mut buffers = Vec::with_capacity(lengths.len());
    for &length in &lengths {
        buffers.push(home.allocate::<u8>(length)?);
    }
    let mut views = home.allocate::<u128>(array.len())?;
    let out = views.as_mut_slice::<u128>();
    let (mut block, mut offset) = (0, 0);
    for row in rows() {
        let string = bytes(row);
        if string.len() > INLINE_BYTES {
            if offset == lengths[block] {
                (block, offset) = (block + 1, 0);
            }
            buffers[block].as_mut_slice()[offset..][..string.len()].copy_from_slice(string);
        }
        out[row] = make_view(string, block as u32, offset as u32);
        offset += if string.len() > INLINE_BYTES {
            string.len()
        } else {
            0
        };
    }
    let views = ScalarBuffer::from(resident::bytes(views));
    let buffers: Vec<_> = buffers.into_iter().map(resident::bytes).collect();
    Ok(GenericByteViewArray::try_new(
        views,
        buffers,
        nulls.cloned(),
    )?)
}
