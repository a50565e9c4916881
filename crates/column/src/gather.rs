//! Selected values, decoded.

use crate::chunk::ColumnChunk;
use crate::data::{Data, Integers, Plain};
use crate::dictionary::Dictionary;
use crate::domain::{SIGN, wide_array};
use crate::floats::TotalOrder;
use crate::pick::{PICKED_ROWS, texts_of};
use crate::selection::Selection;
use arrow_array::types::*;
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, new_null_array};
use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};
use eris_kernels::{Isa, MASK_WORDS, VECTOR};
use std::ops::Range;
use std::sync::Arc;

impl ColumnChunk {
    /// The selected values, in the order of their rows, as an array of exactly `data_type`: the type that was encoded,
    /// or `Utf8View` for text and `BinaryView` for bytes. Text of codes is a gather of the dictionary's views, and of
    /// plain text one of the chunk's; no string is copied. All values of a plain chunk are lent, not copied: the array
    /// keeps the chunk's bytes alive.
    ///
    /// # Panics
    /// If the type is not one of the chunk's domain, or coded text comes without its dictionary.
    pub fn gather(
        &self,
        isa: Isa,
        selection: &Selection,
        data_type: &DataType,
        dictionary: Option<&Dictionary>,
    ) -> ArrayRef {
        assert_eq!(selection.rows(), self.rows, "a selection of another chunk");
        let count = selection.count();
        if count == 0 || self.nulls() == self.rows {
            return new_null_array(data_type, count);
        }
        if count <= PICKED_ROWS {
            let rows: Vec<usize> = selection.iter_ones().collect();
            return self.pick(&rows, data_type, dictionary);
        }
        let nulls = self.gather_validity(selection);
        match &self.data {
            Data::Integers(integers) => integers.gather(isa, selection, count, data_type, nulls),
            Data::Ordinals {
                ordinals, order, ..
            } => integer_array(count, data_type, nulls, |f| {
                let mut keys = [0; VECTOR];
                ordinals.for_each(isa, selection, |places| {
                    for (key, &place) in keys.iter_mut().zip(places) {
                        *key = order.keys()[place as usize];
                    }
                    f(&keys[..places.len()]);
                });
            }),
            Data::Codes(codes) => {
                let codes = codes.collect(isa, selection, count, |code| code as u32);
                texts_of(codes, nulls, data_type, dictionary)
            }
            Data::Float32(plain) => Arc::new(PrimitiveArray::<Float32Type>::new(
                plain.gather(isa, selection, count),
                nulls,
            )),
            Data::Float64(plain) => Arc::new(PrimitiveArray::<Float64Type>::new(
                plain.gather(isa, selection, count),
                nulls,
            )),
            Data::Wide(plain) => wide_array(data_type, plain.gather(isa, selection, count), nulls),
            Data::Strings(text) => {
                assert_eq!(data_type, &DataType::Utf8View, "the type of text");
                text.gather(isa, selection, count, nulls)
            }
            Data::Bytes(bytes) => {
                assert_eq!(data_type, &DataType::BinaryView, "the type of bytes");
                bytes.gather(isa, selection, count, nulls)
            }
        }
    }

    /// The values of consecutive rows, as [`ColumnChunk::gather`] has them.
    ///
    /// # Panics
    /// As there, and if there are no such rows.
    pub fn decode(
        &self,
        rows: Range<usize>,
        data_type: &DataType,
        dictionary: Option<&Dictionary>,
    ) -> ArrayRef {
        let mut selection = Selection::all(self.rows);
        selection.remove_range(0, rows.start);
        selection.remove_range(rows.end, self.rows);
        self.select(&selection, data_type, dictionary)
    }

    /// As [`ColumnChunk::gather`], in the best way that this machine has.
    ///
    /// # Panics
    /// As there.
    pub fn select(
        &self,
        selection: &Selection,
        data_type: &DataType,
        dictionary: Option<&Dictionary>,
    ) -> ArrayRef {
        self.gather(Isa::best(), selection, data_type, dictionary)
    }

    /// Appends the selected integers, or dictionary codes, in the order of their rows. That of a NULL is unspecified.
    ///
    /// # Panics
    /// If the chunk holds anything else.
    pub fn gather_integers(&self, isa: Isa, selection: &Selection, out: &mut Vec<i64>) {
        assert_eq!(selection.rows(), self.rows, "a selection of another chunk");
        match &self.data {
            Data::Integers(integers) | Data::Codes(integers) => {
                integers.for_each(isa, selection, |values| out.extend_from_slice(values));
            }
            Data::Ordinals {
                ordinals, order, ..
            } => ordinals.for_each(isa, selection, |places| {
                out.extend(places.iter().map(|&place| order.keys()[place as usize]));
            }),
            _ => panic!("integers asked of {:?}", self.domain()),
        }
    }

    /// Appends the selected floats, single ones widened, in the order of their rows. That of a NULL is unspecified.
    ///
    /// # Panics
    /// If the chunk holds anything else.
    pub fn gather_floats(&self, isa: Isa, selection: &Selection, out: &mut Vec<f64>) {
        assert_eq!(selection.rows(), self.rows, "a selection of another chunk");
        match &self.data {
            Data::Float32(plain) => plain.collect(isa, selection, f32::widen, out),
            Data::Float64(plain) => plain.collect(isa, selection, f64::widen, out),
            _ => panic!("floats asked of {:?}", self.domain()),
        }
    }

    /// The validity of the selected values; `None` if there is no NULL among them.
    pub fn gather_validity(&self, selection: &Selection) -> Option<NullBuffer> {
        self.validity.gather(selection)
    }
}

impl Integers {
    /// Calls `f` with the selected values, in order, in slices of at most 1,024.
    pub(crate) fn for_each(&self, isa: Isa, selection: &Selection, mut f: impl FnMut(&[i64])) {
        let mut values = [0; VECTOR];
        match self {
            Integers::Constant(value) => {
                values.fill(*value);
                let mut left = selection.count();
                while left > 0 {
                    let here = left.min(VECTOR);
                    f(&values[..here]);
                    left -= here;
                }
            }
            Integers::Packed(packed) => {
                let (masks, _) = selection.words().as_chunks::<MASK_WORDS>();
                for (vector, mask) in masks.iter().enumerate() {
                    if mask.iter().all(|&word| word == u64::MAX) {
                        packed.unpack(isa, vector, &mut values);
                        f(&values);
                    } else if mask.iter().any(|&word| word != 0) {
                        let count = packed.gather(isa, vector, mask, &mut values);
                        f(&values[..count]);
                    }
                }
            }
            Integers::Runs(runs) => {
                let mut filled = 0;
                runs.for_each(isa, |value, start, end| {
                    let mut left = selection.count_range(start, end);
                    while left > 0 {
                        let here = left.min(VECTOR - filled);
                        values[filled..][..here].fill(value);
                        (left, filled) = (left - here, filled + here);
                        if filled == VECTOR {
                            f(&values);
                            filled = 0;
                        }
                    }
                });
                f(&values[..filled]);
            }
            Integers::ShortRuns(runs) => runs.for_each(isa, selection, f),
            Integers::Framed(framed) => framed.for_each(isa, selection, f),
        }
    }

    pub(crate) fn collect<T>(
        &self,
        isa: Isa,
        selection: &Selection,
        count: usize,
        convert: impl Fn(i64) -> T + Copy,
    ) -> Vec<T> {
        let mut out = Vec::with_capacity(count);
        self.for_each(isa, selection, |values| {
            out.extend(values.iter().map(|&value| convert(value)));
        });
        out
    }

    fn gather(
        &self,
        isa: Isa,
        selection: &Selection,
        count: usize,
        data_type: &DataType,
        nulls: Option<NullBuffer>,
    ) -> ArrayRef {
        let values = |f: &mut dyn FnMut(&[i64])| self.for_each(isa, selection, f);
        integer_array(count, data_type, nulls, values)
    }
}

/// An array of integers of a type; `for_each` calls its argument with all values, in order, in slices.
pub(crate) fn integer_array(
    count: usize,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
    for_each: impl FnOnce(&mut dyn FnMut(&[i64])),
) -> ArrayRef {
    macro_rules! primitive {
        ($t:ty, $convert:expr) => {{
            let mut out = Vec::with_capacity(count);
            for_each(&mut |values| out.extend(values.iter().map(|&value: &i64| $convert(value))));
            primitive::<$t>(out, nulls, data_type)
        }};
    }
    match data_type {
        DataType::Boolean => {
            let mut words = Vec::with_capacity(count.div_ceil(64));
            let mut bits = 0;
            let mut filled = 0;
            for_each(&mut |values| {
                for &value in values {
                    bits |= (value as u64) << filled;
                    filled += 1;
                    if filled == 64 {
                        words.push(bits);
                        (bits, filled) = (0, 0);
                    }
                }
            });
            words.push(bits);
            let bits = BooleanBuffer::new(Buffer::from_vec(words), 0, count);
            Arc::new(BooleanArray::new(bits, nulls))
        }
        DataType::Int8 => primitive!(Int8Type, |value| value as i8),
        DataType::Int16 => primitive!(Int16Type, |value| value as i16),
        DataType::Int32 => primitive!(Int32Type, |value| value as i32),
        DataType::Int64 => primitive!(Int64Type, |value| value),
        DataType::UInt8 => primitive!(UInt8Type, |value| value as u8),
        DataType::UInt16 => primitive!(UInt16Type, |value| value as u16),
        DataType::UInt32 => primitive!(UInt32Type, |value| value as u32),
        DataType::UInt64 => primitive!(UInt64Type, |value| value as u64 ^ SIGN),
        DataType::Date32 => primitive!(Date32Type, |value| value as i32),
        DataType::Time64(TimeUnit::Microsecond) => primitive!(Time64MicrosecondType, |value| value),
        DataType::Time64(TimeUnit::Nanosecond) => primitive!(Time64NanosecondType, |value| value),
        DataType::Timestamp(TimeUnit::Second, _) => primitive!(TimestampSecondType, |value| value),
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            primitive!(TimestampMillisecondType, |value| value)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            primitive!(TimestampMicrosecondType, |value| value)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            primitive!(TimestampNanosecondType, |value| value)
        }
        DataType::Decimal128(..) => primitive!(Decimal128Type, |value| value as i128),
        other => panic!("integers asked for as {other}"),
    }
}

fn primitive<T: ArrowPrimitiveType>(
    values: Vec<T::Native>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
) -> ArrayRef {
    let array = PrimitiveArray::<T>::new(values.into(), nulls);
    Arc::new(array.with_data_type(data_type.clone()))
}

impl<T: Compress> Plain<T> {
    fn gather(&self, isa: Isa, selection: &Selection, count: usize) -> ScalarBuffer<T> {
        match self {
            Plain::Constant(value) => vec![*value; count].into(),
            Plain::Values(values) if count == values.len() => values.clone(),
            Plain::Values(_) => {
                let mut out = Vec::with_capacity(count);
                self.collect(isa, selection, |value| value, &mut out);
                out.into()
            }
        }
    }

    fn collect<U: Clone>(
        &self,
        isa: Isa,
        selection: &Selection,
        convert: impl Fn(T) -> U + Copy,
        out: &mut Vec<U>,
    ) {
        match self {
            Plain::Constant(value) => {
                out.resize(out.len() + selection.count(), convert(*value));
            }
            Plain::Values(values) => {
                let (masks, _) = selection.words().as_chunks::<MASK_WORDS>();
                for (vector, mask) in masks.iter().enumerate() {
                    let start = vector * VECTOR;
                    let here = start..values.len().min(start + VECTOR);
                    if mask.iter().all(|&word| word == u64::MAX) {
                        out.extend(values[here].iter().map(|&value| convert(value)));
                    } else if mask.iter().any(|&word| word != 0) {
                        T::compress(isa, values, here, mask, |value| out.push(convert(value)));
                    }
                }
            }
        }
    }
}

/// Numbers of which some are selected, by a kernel if there is one for numbers of their size.
pub(crate) trait Compress: ArrowNativeType {
    /// Calls `f` with the selected values of one vector, which are the given rows.
    fn compress(
        isa: Isa,
        values: &ScalarBuffer<Self>,
        rows: Range<usize>,
        mask: &[u64; MASK_WORDS],
        f: impl FnMut(Self),
    );
}

/// The kernel moves bits; whether they are an integer's or a float's does not matter to it.
macro_rules! compress {
    ($t:ty, $bits:ty, $kernel:ident) => {
        impl Compress for $t {
            fn compress(
                isa: Isa,
                values: &ScalarBuffer<Self>,
                rows: Range<usize>,
                mask: &[u64; MASK_WORDS],
                mut f: impl FnMut(Self),
            ) {
                let bits = ScalarBuffer::<$bits>::from(values.inner().clone());
                if let Some(bits) = bits[rows.clone()].as_array::<VECTOR>()
                    && eris_kernels::popcount(mask) >= DENSE
                {
                    let mut selected = [0; VECTOR];
                    let count = isa.$kernel(bits, mask, &mut selected);
                    selected[..count]
                        .iter()
                        .for_each(|&bits| f(<$t>::from_bits(bits as _)));
                } else {
                    each_selected(&values[rows], mask, f);
                }
            }
        }
    };
}
compress!(f32, u32, select_u32);
compress!(f64, i64, select_i64);

impl Compress for i128 {
    fn compress(
        _isa: Isa,
        values: &ScalarBuffer<Self>,
        rows: Range<usize>,
        mask: &[u64; MASK_WORDS],
        f: impl FnMut(Self),
    ) {
        each_selected(&values[rows], mask, f);
    }
}

/// From so many selected values of a vector on, a kernel that reads all is faster than a loop over those.
const DENSE: u64 = 128;

fn each_selected<T: Copy>(values: &[T], mask: &[u64; MASK_WORDS], mut f: impl FnMut(T)) {
    for (values, &word) in values.chunks(64).zip(mask) {
        let mut rest = word;
        while rest != 0 {
            f(values[rest.trailing_zeros() as usize]);
            rest &= rest - 1;
        }
    }
}
