//! The stored form of strings that are no codes, and of bytes.
//!
//! ```text
//! constant      length │ bytes
//! plain         buffers │ length of each │ section: the rows' views, 16 bytes each │ a section for each buffer
//! dictionary    strings │ these as `plain` │ kind of integers: 1 byte │ integers: the number of each row
//! fsst          symbols: 1 byte │ 8 bytes each │ compressed bytes │ sizes │ lengths │ section: the compressed bytes
//!
//! sizes, lengths    least │ greatest - least │ packed values: compressed bytes of each row, bytes of its string
//! ```
//!
//! Views are Arrow's. The range is not stored, unlike that of numbers: it is found while the strings are looked at, and
//! they may be long.

use super::error::{FormError, ensure};
use super::reader::FormReader;
use super::writer::FormWriter;
use super::{integers, kinds, packed};
use crate::compressed::{Compressed, TEXT};
use crate::object_memory::ObjectMemory;
use crate::packed::Packed;
use crate::resident;
use crate::strings::{StringKind, Strings};
use crate::validity::Validity;
use crate::zone::ZoneRange;
use arrow_array::{Array, GenericByteViewArray};
use arrow_buffer::{Buffer as ArrowBuffer, NullBuffer};
use eris_kernels::Isa;
use hashbrown::HashSet;

const NO_TEXT: &str = "text that is not UTF-8";

/// The number of the encoding.
pub(super) fn kind<T: StringKind>(strings: &Strings<T>) -> u8 {
    match strings {
        Strings::Constant(_) => kinds::CONSTANT,
        Strings::Dictionary { .. } => kinds::DICTIONARY,
        Strings::Compressed(_) => kinds::FSST,
        Strings::Values(_) => kinds::PLAIN,
    }
}

pub(super) fn store<'a, T: StringKind>(
    strings: &'a Strings<T>,
    rows: usize,
    out: &mut FormWriter<'a>,
) {
    match strings {
        Strings::Constant(array) => {
            let string: &[u8] = array.value(0).as_ref();
            out.number(string.len() as u64);
            out.bytes(string);
        }
        Strings::Dictionary { strings, numbers } => {
            out.number(strings.len() as u64);
            store_views(strings, out);
            out.byte(integers::kind(numbers));
            let last = strings.len() as i64 - 1;
            integers::store(numbers, (0, last), rows, out);
        }
        Strings::Compressed(compressed) => {
            let symbols = compressed.symbols();
            out.byte(symbols.len() as u8);
            symbols.for_each(|symbol| out.bytes(&symbol));
            out.number(compressed.codes().len() as u64);
            store_lengths(compressed.sizes(), out);
            store_lengths(compressed.lengths(), out);
            out.section(compressed.codes());
        }
        Strings::Values(array) => store_views(array, out),
    }
}

fn store_views<'a, T: StringKind>(array: &'a GenericByteViewArray<T>, out: &mut FormWriter<'a>) {
    let buffers = array.data_buffers();
    out.number(buffers.len() as u64);
    buffers
        .iter()
        .for_each(|buffer| out.number(buffer.len() as u64));
    out.section(array.views().inner());
    buffers.iter().for_each(|buffer| out.section(buffer));
}

fn store_lengths<'a>(lengths: &'a Packed, out: &mut FormWriter<'a>) {
    let (least, greatest) = lengths.range(Isa::best()).expect("there are rows");
    out.number(least as u64);
    out.number((greatest - least) as u64);
    packed::store(lengths, least, out);
}

/// A constant, of a string or of only NULLs.
pub(super) fn constant<T: StringKind>(string: &T::Native) -> Strings<T> {
    Strings::Constant(GenericByteViewArray::from_iter_values([string]))
}

/// Reads a constant, and its range.
pub(super) fn read_constant<T: StringKind>(
    form: &mut FormReader<'_>,
) -> Result<(Strings<T>, ZoneRange), FormError> {
    let length = form.length()?;
    let constant = form.bytes(length, |bytes| {
        T::of_bytes(bytes).map(|string| (constant(string), T::range(string, string)))
    })?;
    constant.ok_or(FormError::Damaged(NO_TEXT))
}

/// Reads strings that are not all equal, and their range.
pub(super) fn read<T: StringKind>(
    kind: u8,
    rows: usize,
    validity: &Validity,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<(Strings<T>, ZoneRange), FormError> {
    match kind {
        kinds::PLAIN => {
            let array = read_views(rows, validity.null_buffer(rows), form, home)?;
            let valid = (0..rows).filter(|&row| validity.is_valid(row));
            let range = range_of::<T>(valid.map(|row| array.value(row)))?;
            Ok((Strings::Values(array), range))
        }
        kinds::DICTIONARY => read_dictionary(rows, validity, form, home),
        kinds::FSST => read_compressed(rows, validity, form, home),
        other => Err(FormError::Encoding(other)),
    }
}

/// The range of strings, of which two have to be different.
fn range_of<'a, T: StringKind>(
    mut strings: impl Iterator<Item = &'a T::Native>,
) -> Result<ZoneRange, FormError> {
    let bytes = |string: &'a T::Native| -> &'a [u8] { string.as_ref() };
    let first = strings
        .next()
        .ok_or(FormError::Damaged("strings that are all NULL"))?;
    let (mut min, mut max) = (first, first);
    for string in strings {
        if bytes(string) < bytes(min) {
            min = string;
        } else if bytes(string) > bytes(max) {
            max = string;
        }
    }
    ensure(
        bytes(min) != bytes(max),
        "equal values that are no constant",
    )?;
    Ok(T::range(min, max))
}

fn read_views<T: StringKind>(
    rows: usize,
    nulls: Option<NullBuffer>,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<GenericByteViewArray<T>, FormError> {
    // Each has a length of a byte or more.
    let buffers = form.length()?;
    let mut lengths = Vec::with_capacity(buffers);
    for _ in 0..buffers {
        lengths.push(form.length()?);
    }
    let views = resident::numbers(form.section(rows * size_of::<u128>(), home)?);
    let buffers = lengths.into_iter().map(|length| form.section(length, home));
    let buffers: Result<Vec<ArrowBuffer>, FormError> =
        buffers.map(|buffer| buffer.map(resident::bytes)).collect();
    GenericByteViewArray::try_new(views, buffers?, nulls).map_err(FormError::Text)
}

fn read_dictionary<T: StringKind>(
    rows: usize,
    validity: &Validity,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<(Strings<T>, ZoneRange), FormError> {
    let count = form.number()?;
    ensure(
        count >= 2 && count <= rows as u64,
        "more strings than rows, or fewer than two",
    )?;
    let strings: GenericByteViewArray<T> = read_views(count as usize, None, form, home)?;
    let kind = form.byte()?;
    let (numbers, least, greatest) = integers::read(kind, rows, form, home)?;
    let last = count as i64 - 1;
    ensure(
        (least, greatest) == (0, last),
        "numbers that are not those of the strings",
    )?;
    let mut used = vec![false; count as usize];
    let mut left = used.len();
    let isa = Isa::best();
    numbers.for_each(isa, &validity.selection(rows), |numbers| {
        // Mostly the first vectors have all.
        if left > 0 {
            for &number in numbers {
                left -= usize::from(!std::mem::replace(&mut used[number as usize], true));
            }
        }
    });
    ensure(left == 0, "a string that no row has")?;
    let mut known: HashSet<&[u8]> = HashSet::with_capacity(count as usize);
    let new = |row: usize| known.insert(strings.value(row).as_ref());
    let distinct = (0..strings.len()).all(new);
    drop(known);
    ensure(distinct, "a string that is there twice")?;
    let range = range_of::<T>((0..strings.len()).map(|number| strings.value(number)))?;
    Ok((Strings::Dictionary { strings, numbers }, range))
}

fn read_compressed<T: StringKind>(
    rows: usize,
    validity: &Validity,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<(Strings<T>, ZoneRange), FormError> {
    let count = usize::from(form.byte()?);
    let mut symbols = Vec::with_capacity(count);
    for _ in 0..count {
        symbols.push(form.array()?);
    }
    let length = form.length()?;
    let sizes = read_lengths(rows, length, form, home)?;
    let lengths = read_lengths(rows, TEXT, form, home)?;
    let bytes = form.section(length, home)?;
    let compressed = Compressed::of_parts(&symbols, bytes, sizes, lengths, home)?;
    let compressed =
        compressed.ok_or(FormError::Damaged("codes that do not make up the strings"))?;
    let mut is_text = true;
    let mut range: Option<(Vec<u8>, Vec<u8>)> = None;
    compressed.for_each_vector(Isa::best(), |first, text, ends| {
        is_text &= T::are_strings(text, ends);
        let mut start = 0;
        for (row, &end) in (first..).zip(ends) {
            let string = &text[start..end];
            start = end;
            if !validity.is_valid(row) {
                continue;
            }
            match &mut range {
                None => range = Some((string.to_vec(), string.to_vec())),
                Some((min, _)) if string < &min[..] => *min = string.to_vec(),
                Some((_, max)) if string > &max[..] => *max = string.to_vec(),
                Some(_) => {}
            }
        }
    });
    ensure(is_text, NO_TEXT)?;
    let (min, max) = range.ok_or(FormError::Damaged("strings that are all NULL"))?;
    let ends = [T::of_bytes(&min), T::of_bytes(&max)];
    let ends = ends
        .into_iter()
        .map(|string| string.ok_or(FormError::Damaged(NO_TEXT)));
    let range = range_of::<T>(ends.collect::<Result<Vec<_>, _>>()?.into_iter())?;
    Ok((Strings::Compressed(compressed), range))
}

/// Reads bytes per row, of which each is at most so large.
fn read_lengths(
    rows: usize,
    most: usize,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<Packed, FormError> {
    let least = form.number()?;
    let greatest = least.checked_add(form.number()?);
    let greatest = greatest.filter(|&greatest| greatest <= most as u64);
    let greatest = greatest.ok_or(FormError::Damaged("a string longer than all together"))?;
    packed::read(rows, least as i64, greatest as i64, form, home)
}
