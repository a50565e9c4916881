//! Text that is not codes of the column's dictionary, and bytes.

use crate::compressed::Compressed;
use crate::data::Integers;
use crate::encoding::Encoding;
use crate::predicate::{ColumnPredicate, StringTest};
use crate::selection::Selection;
use crate::value::ColumnValue;
use crate::zone::ZoneRange;
use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryViewType, ByteViewType, StringViewType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, GenericByteViewArray, StringArray, StringViewArray,
    UInt32Array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer};
use eris_kernels::Isa;
use eris_numa::Extent;
use std::fmt;
use std::sync::Arc;

/// What strings are made of.
pub(crate) trait StringKind: ByteViewType {
    /// Strings that lie one behind the other.
    fn array(
        offsets: OffsetBuffer<i32>,
        bytes: Buffer,
        nulls: Option<NullBuffer>,
    ) -> GenericByteViewArray<Self>;

    /// The string with these bytes, detached.
    fn value(bytes: Vec<u8>) -> ColumnValue;

    /// The range between these.
    fn range(min: &Self::Native, max: &Self::Native) -> ZoneRange;

    fn empty() -> &'static Self::Native;

    /// The string with these bytes, if they make one.
    fn of_bytes(bytes: &[u8]) -> Option<&Self::Native>;

    /// Whether strings that lie one behind the other, and end here, are strings.
    fn are_strings(bytes: &[u8], ends: &[usize]) -> bool;
}

impl StringKind for StringViewType {
    fn array(
        offsets: OffsetBuffer<i32>,
        bytes: Buffer,
        nulls: Option<NullBuffer>,
    ) -> StringViewArray {
        let strings = StringArray::try_new(offsets, bytes, nulls);
        StringViewArray::from(&strings.expect("text was stored"))
    }

    fn value(bytes: Vec<u8>) -> ColumnValue {
        ColumnValue::String(String::from_utf8(bytes).expect("text was stored"))
    }

    fn range(min: &str, max: &str) -> ZoneRange {
        ZoneRange::Strings(min.into(), max.into())
    }

    fn empty() -> &'static str {
        ""
    }

    fn of_bytes(bytes: &[u8]) -> Option<&str> {
        std::str::from_utf8(bytes).ok()
    }

    fn are_strings(bytes: &[u8], ends: &[usize]) -> bool {
        let text = Self::of_bytes(bytes);
        text.is_some_and(|text| ends.iter().all(|&end| text.is_char_boundary(end)))
    }
}

impl StringKind for BinaryViewType {
    fn array(
        offsets: OffsetBuffer<i32>,
        bytes: Buffer,
        nulls: Option<NullBuffer>,
    ) -> GenericByteViewArray<Self> {
        GenericByteViewArray::from(&BinaryArray::new(offsets, bytes, nulls))
    }

    fn value(bytes: Vec<u8>) -> ColumnValue {
        ColumnValue::Bytes(bytes)
    }

    fn range(min: &[u8], max: &[u8]) -> ZoneRange {
        ZoneRange::Bytes(min.into(), max.into())
    }

    fn empty() -> &'static [u8] {
        &[]
    }

    fn of_bytes(bytes: &[u8]) -> Option<&[u8]> {
        Some(bytes)
    }

    fn are_strings(_: &[u8], _: &[usize]) -> bool {
        true
    }
}

/// Text, or bytes.
pub(crate) enum Strings<T: StringKind> {
    /// The same string (empty if there are only NULLs) in all rows: one row, not NULL.
    Constant(GenericByteViewArray<T>),
    /// The distinct strings, in order of appearance, and for each row the number of its own.
    Dictionary {
        strings: GenericByteViewArray<T>,
        numbers: Integers,
    },
    Compressed(Compressed),
    /// All rows with their NULLs; views and strings lie in node-local memory.
    Values(GenericByteViewArray<T>),
}

impl<T: StringKind> fmt::Debug for Strings<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Strings({})", self.encoding())
    }
}

/// Above one in so many rows selected, testing every string is cheaper than gathering some.
const SPARSE: usize = 8;

impl<T: StringKind> Strings<T> {
    pub(crate) fn extents(&self, all: &mut Vec<Extent>) {
        match self {
            Strings::Constant(_) => {}
            Strings::Dictionary { strings, numbers } => {
                extents(strings, all);
                numbers.extents(all);
            }
            Strings::Compressed(compressed) => compressed.extents(all),
            Strings::Values(array) => extents(array, all),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Strings::Constant(_) => 0,
            Strings::Dictionary { strings, numbers } => bytes(strings) + numbers.bytes(),
            Strings::Compressed(compressed) => compressed.bytes(),
            Strings::Values(array) => bytes(array),
        }
    }

    /// Those of views and strings, which a copy shares.
    pub(crate) fn bytes_in_place(&self) -> usize {
        match self {
            Strings::Constant(_) | Strings::Compressed(_) => 0,
            Strings::Dictionary { strings, .. } => bytes(strings),
            Strings::Values(array) => bytes(array),
        }
    }

    pub(crate) fn encoding(&self) -> Encoding {
        match self {
            Strings::Constant(_) => Encoding::Constant,
            Strings::Dictionary { strings, .. } => Encoding::Dictionary {
                width: (usize::BITS - (strings.len() - 1).leading_zeros()) as u8,
            },
            Strings::Compressed(_) => Encoding::Fsst,
            Strings::Values(_) => Encoding::Plain,
        }
    }

    pub(crate) fn get(&self, row: usize) -> Vec<u8> {
        let string = |array: &GenericByteViewArray<T>, row| {
            let string: &[u8] = array.value(row).as_ref();
            string.to_vec()
        };
        match self {
            Strings::Constant(array) => string(array, 0),
            Strings::Dictionary { strings, numbers } => string(strings, numbers.get(row) as usize),
            Strings::Compressed(compressed) => compressed.get(row),
            Strings::Values(array) => string(array, row),
        }
    }

    /// The selected strings, of which there are `count`, with their validity.
    pub(crate) fn gather(
        &self,
        isa: Isa,
        selection: &Selection,
        count: usize,
        nulls: Option<NullBuffer>,
    ) -> ArrayRef {
        match self {
            Strings::Constant(array) => {
                let rows = UInt32Array::new(vec![0; count].into(), nulls);
                take(array, &rows)
            }
            Strings::Dictionary { strings, numbers } => {
                let numbers = numbers.collect(isa, selection, count, |number| number as u32);
                take(strings, &UInt32Array::new(numbers.into(), nulls))
            }
            Strings::Compressed(compressed) => {
                Arc::new(compressed.gather::<T>(isa, selection, count, nulls))
            }
            Strings::Values(array) if count == array.len() => Arc::new(array.clone()),
            Strings::Values(array) => {
                let mut rows = Vec::with_capacity(count);
                rows.extend(selection.iter_ones().map(|row| row as u32));
                take(array, &UInt32Array::from(rows))
            }
        }
    }
}

impl Strings<StringViewType> {
    pub(crate) fn filter(&self, isa: Isa, test: &StringTest, selection: &mut Selection) {
        match self {
            Strings::Constant(array) => {
                if !passed(test, array).value(0) {
                    selection.clear();
                }
            }
            Strings::Dictionary { strings, numbers } => {
                let passed = passed(test, strings);
                let words = passed.bit_chunks().iter_padded().collect();
                let condition = ColumnPredicate::Codes(words);
                let last = strings.len() as i64 - 1;
                numbers.filter(isa, condition.reduce(0, last), selection);
            }
            Strings::Compressed(compressed) => {
                compressed.filter(isa, selection, |strings| passed(test, strings));
            }
            Strings::Values(array) if selection.count() > array.len() / SPARSE => {
                let passed = passed(test, array);
                let bits = passed.bit_chunks();
                let mut words = bits.iter_padded();
                for word in selection.words_mut() {
                    *word &= words.next().unwrap_or(0);
                }
            }
            Strings::Values(array) => {
                let rows: Vec<usize> = selection.iter_ones().collect();
                let bits = Buffer::from_slice_ref(selection.words());
                let bits = BooleanBuffer::new(bits, 0, selection.rows());
                let chosen = arrow_select::filter::filter(array, &BooleanArray::new(bits, None))
                    .expect("strings can be filtered");
                let passed = passed(test, chosen.as_string_view());
                for (row, passed) in rows.into_iter().zip(&passed) {
                    if !passed {
                        selection.remove(row);
                    }
                }
            }
        }
    }

    /// Keeps the selected rows whose text is one of these, which ascend.
    pub(crate) fn filter_set(&self, isa: Isa, texts: &Arc<[Box<str>]>, selection: &mut Selection) {
        if let Strings::Compressed(compressed) = self
            && compressed.is_canonical(isa)
        {
            return compressed.filter_set(isa, texts, selection);
        }
        let texts = texts.clone();
        let test: StringTest = Arc::new(move |strings| {
            let known = |string: &str| texts.binary_search_by(|text| (**text).cmp(string)).is_ok();
            BooleanArray::from_unary(strings, known)
        });
        self.filter(isa, &test, selection);
    }
}

fn bytes<T: StringKind>(array: &GenericByteViewArray<T>) -> usize {
    let strings: usize = array.data_buffers().iter().map(|buffer| buffer.len()).sum();
    array.views().inner().len() + strings
}

fn extents<T: StringKind>(array: &GenericByteViewArray<T>, all: &mut Vec<Extent>) {
    all.push(Extent::of(array.views()));
    all.extend(array.data_buffers().iter().map(|buffer| Extent::of(buffer)));
}

fn take<T: StringKind>(array: &GenericByteViewArray<T>, rows: &UInt32Array) -> ArrayRef {
    arrow_select::take::take(array, rows, None).expect("all rows are in the array")
}

/// The strings for which the test says true.
fn passed(test: &StringTest, array: &StringViewArray) -> BooleanBuffer {
    let answer = test(array);
    assert_eq!(answer.len(), array.len(), "a test answers for each string");
    match answer.nulls() {
        None => answer.values().clone(),
        Some(nulls) => answer.values() & nulls.inner(),
    }
}
