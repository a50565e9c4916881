//! Values of a few rows, wherever they are: for whoever has found them by an index.
//!
//! A [selection](crate::Selection) costs a bit for every row of the chunk; positions cost the cache lines of their
//! rows.

use crate::chunk::ColumnChunk;
use crate::data::Data;
use crate::dictionary::Dictionary;
use crate::domain::wide_array;
use crate::gather::integer_array;
use crate::strings::{StringKind, Strings};
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{ArrayRef, GenericByteViewArray, PrimitiveArray, UInt32Array};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::DataType;
use std::sync::Arc;

/// So few values are read one by one: a vector would have to be cleared, and decoded whole, for each.
pub const PICKED_ROWS: usize = 8;

/// Rows whose values are handed on together.
const PIECE: usize = 64;

/// Hands on the values of rows, some at a time.
fn in_pieces(rows: &[usize], value: impl Fn(usize) -> i64, f: &mut dyn FnMut(&[i64])) {
    let mut values = [0; PIECE];
    for rows in rows.chunks(PIECE) {
        for (place, &row) in values.iter_mut().zip(rows) {
            *place = value(row);
        }
        f(&values[..rows.len()]);
    }
}

impl ColumnChunk {
    /// The values of the rows at these positions, in the order of the positions, as [`ColumnChunk::gather`] has them.
    ///
    /// # Panics
    /// As there, or if there is no such row.
    pub fn pick(
        &self,
        rows: &[usize],
        data_type: &DataType,
        dictionary: Option<&Dictionary>,
    ) -> ArrayRef {
        let last = rows.iter().max();
        assert!(
            last.is_none_or(|&row| row < self.rows),
            "rows of another chunk"
        );
        let nulls = self.pick_validity(rows.iter().copied());
        match &self.data {
            Data::Integers(integers) => integer_array(rows.len(), data_type, nulls, |f| {
                in_pieces(rows, |row| integers.get(row), f);
            }),
            Data::Ordinals {
                ordinals, order, ..
            } => integer_array(rows.len(), data_type, nulls, |f| {
                let key = |row| order.keys()[ordinals.get(row) as usize];
                in_pieces(rows, key, f);
            }),
            Data::Codes(codes) => {
                let codes = rows.iter().map(|&row| codes.get(row) as u32);
                texts_of(codes.collect(), nulls, data_type, dictionary)
            }
            Data::Float32(plain) => {
                let values = rows.iter().map(|&row| plain.get(row)).collect();
                Arc::new(PrimitiveArray::<Float32Type>::new(values, nulls))
            }
            Data::Float64(plain) => {
                let values = rows.iter().map(|&row| plain.get(row)).collect();
                Arc::new(PrimitiveArray::<Float64Type>::new(values, nulls))
            }
            Data::Wide(plain) => {
                let values = rows.iter().map(|&row| plain.get(row)).collect();
                wide_array(data_type, values, nulls)
            }
            Data::Strings(text) => {
                assert_eq!(data_type, &DataType::Utf8View, "the type of text");
                Arc::new(self.pick_strings(text, rows))
            }
            Data::Bytes(bytes) => {
                assert_eq!(data_type, &DataType::BinaryView, "the type of bytes");
                Arc::new(self.pick_strings(bytes, rows))
            }
        }
    }

    pub(crate) fn pick_strings<T: StringKind>(
        &self,
        strings: &Strings<T>,
        rows: &[usize],
    ) -> GenericByteViewArray<T> {
        let mut bytes = Vec::new();
        let lengths = rows.iter().map(|&row| {
            let string = match self.validity.is_valid(row) {
                true => strings.get(row),
                false => Vec::new(),
            };
            bytes.extend_from_slice(&string);
            string.len()
        });
        let offsets = OffsetBuffer::from_lengths(lengths);
        T::array(
            offsets,
            bytes.into(),
            self.pick_validity(rows.iter().copied()),
        )
    }

    pub(crate) fn pick_validity(&self, rows: impl Iterator<Item = usize>) -> Option<NullBuffer> {
        if self.nulls() == 0 {
            return None;
        }
        let valid: NullBuffer = rows.map(|row| self.validity.is_valid(row)).collect();
        Some(valid).filter(|valid| valid.null_count() > 0)
    }
}

/// The strings of codes.
pub(crate) fn texts_of(
    codes: Vec<u32>,
    nulls: Option<NullBuffer>,
    data_type: &DataType,
    dictionary: Option<&Dictionary>,
) -> ArrayRef {
    assert_eq!(data_type, &DataType::Utf8View, "the type of text");
    let dictionary = dictionary.expect("text is coded");
    let codes = UInt32Array::new(codes.into(), nulls);
    arrow_select::take::take(dictionary.values(), &codes, None)
        .expect("the dictionary has all codes")
}
