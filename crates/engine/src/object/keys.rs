//! Keys of a data object: from columns to what the index of a partition and the routing of rows want.
//!
//! ```text
//! one integer-like column     its 64-bit order             → the index's number, and the number that ranges are of
//! several, eight bytes at most one above the other          → the same
//! anything else               the bytes of all columns     → the index's bytes; the number is the eight behind what
//!                                                            most keys begin with
//! ```
//!
//! Why owners keep keys, and ranges are of these numbers: docs/decisions/0010.

mod cells;
mod shown;

pub(crate) use cells::KeyCells;

use crate::object::numbers::keys_of;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use eris_column::{Domain, from_integer};
use eris_index::key::KeyEncoder;
use eris_index::{IndexError, MAX_KEY};
use std::ops::{Bound, RangeBounds};

/// The keys of some rows.
#[derive(Debug)]
pub(crate) enum Keys {
    Words(Vec<u64>),
    /// Where each ends.
    Bytes(Vec<u8>, Vec<usize>),
}

/// Whether keys of columns of these types are numbers.
pub(crate) fn is_word<'a>(types: impl IntoIterator<Item = &'a DataType>) -> bool {
    word_bytes(types).is_some()
}

/// How many bytes the numbers have that keys of columns of these types are, if they are: those of several columns are
/// the same bytes as others would have, behind zeros.
pub(crate) fn word_bytes<'a>(types: impl IntoIterator<Item = &'a DataType>) -> Option<usize> {
    let mut types = types.into_iter();
    let first = types.next()?;
    let Some(second) = types.next() else {
        return (Domain::of(first) == Some(Domain::Integer)).then_some(8);
    };
    let widths = [first, second].into_iter().chain(types).map(|data_type| {
        let whole = data_type.is_integer() || data_type.is_temporal();
        match data_type {
            DataType::Boolean => Some(1),
            whole_type if whole => whole_type.primitive_width(),
            _ => None,
        }
    });
    let bytes = widths.sum::<Option<usize>>()?;
    (bytes <= 8).then_some(bytes)
}

impl Keys {
    /// Of `rows` rows from `first` on, whose key columns these are. None of them is NULL.
    pub fn of(columns: &[ArrayRef], first: usize, rows: usize) -> Self {
        let columns = columns.iter().map(|column| column.slice(first, rows));
        Keys::of_pieces(&[columns.collect()])
    }

    /// Of rows that come in pieces, one after the other.
    ///
    /// # Panics
    /// If there is no piece.
    pub fn of_pieces(pieces: &[Vec<ArrayRef>]) -> Self {
        let rows = pieces.iter().map(|columns| columns[0].len()).sum();
        if is_word(pieces[0].iter().map(|column| column.data_type())) {
            let mut words = Vec::with_capacity(rows);
            for columns in pieces {
                if columns.len() > 1 {
                    let first = words.len();
                    words.resize(first + columns[0].len(), 0);
                    let cells = columns.iter().map(KeyCells::of);
                    cells.for_each(|cells| cells.push_below(&mut words[first..]));
                    continue;
                }
                let numbers = keys_of(&columns[0]);
                words.extend(
                    numbers
                        .values()
                        .iter()
                        .map(|number| *number as u64 ^ 1 << 63),
                );
            }
            return Keys::Words(words);
        }
        let (mut encoder, mut ends) = (KeyEncoder::new(), Vec::with_capacity(rows));
        for columns in pieces {
            let cells: Vec<KeyCells> = columns.iter().map(KeyCells::of).collect();
            for row in 0..columns[0].len() {
                cells.iter().for_each(|cells| cells.push(row, &mut encoder));
                ends.push(encoder.bytes().len());
            }
        }
        Keys::Bytes(encoder.into_bytes(), ends)
    }

    /// The number by whose ranges rows are assigned to partitions. If keys are bytes, those of `common` are passed
    /// over.
    pub fn routing(&self, common: &[u8]) -> Vec<i64> {
        match self {
            Keys::Words(words) => words.iter().map(|word| (word ^ 1 << 63) as i64).collect(),
            Keys::Bytes(_, ends) => {
                let keys = (0..ends.len()).map(|row| self.bytes(row));
                keys.map(|key| routing_of(key, common)).collect()
            }
        }
    }

    /// Those at some positions.
    pub fn pick(&self, positions: &[u32]) -> Keys {
        let positions = positions.iter().map(|&position| position as usize);
        match self {
            Keys::Words(words) => Keys::Words(positions.map(|row| words[row]).collect()),
            Keys::Bytes(..) => {
                let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(positions.len()));
                for row in positions {
                    bytes.extend_from_slice(self.bytes(row));
                    ends.push(bytes.len());
                }
                Keys::Bytes(bytes, ends)
            }
        }
    }

    /// Those of several, one after the other. All are of one table.
    pub fn joined(all: &[&Keys]) -> Keys {
        let count = all.iter().map(|keys| keys.len()).sum();
        if let [Keys::Bytes(..), ..] = all {
            let (mut joined, mut ends) = (Vec::new(), Vec::with_capacity(count));
            for keys in all {
                for row in 0..keys.len() {
                    joined.extend_from_slice(keys.bytes(row));
                    ends.push(joined.len());
                }
            }
            return Keys::Bytes(joined, ends);
        }
        let mut joined = Vec::with_capacity(count);
        for keys in all {
            match keys {
                Keys::Words(words) => joined.extend_from_slice(words),
                Keys::Bytes(..) => unreachable!("keys of other columns"),
            }
        }
        Keys::Words(joined)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Keys::Words(words) => words.len(),
            Keys::Bytes(_, ends) => ends.len(),
        }
    }

    /// What they take.
    pub fn memory(&self) -> usize {
        match self {
            Keys::Words(words) => words.capacity() * size_of::<u64>(),
            Keys::Bytes(bytes, ends) => bytes.capacity() + ends.capacity() * size_of::<usize>(),
        }
    }

    pub fn bytes(&self, row: usize) -> &[u8] {
        match self {
            Keys::Words(_) => unreachable!("numbers have no bytes"),
            Keys::Bytes(bytes, ends) => {
                let start = row.checked_sub(1).map_or(0, |before| ends[before]);
                &bytes[start..ends[row]]
            }
        }
    }

    /// How many bytes all of them, and the first one of `other`, begin with.
    ///
    /// # Errors
    /// One is too long for an index.
    pub fn common(&self, other: &Keys) -> Result<usize, IndexError> {
        if self.len() == 0 {
            return Ok(usize::MAX);
        }
        let mut common = other.bytes(0);
        for row in 0..self.len() {
            let key = self.bytes(row);
            check_length(key.len())?;
            if !key.starts_with(common) {
                let same = key.iter().zip(common).take_while(|(a, b)| a == b);
                common = &common[..same.count()];
            }
        }
        Ok(common.len())
    }

    /// A key of columns of these types, for messages.
    pub fn shown(&self, row: usize, types: &[&DataType]) -> String {
        match self {
            Keys::Words(words) if types.len() == 1 => {
                let number = from_integer(types[0], (words[row] ^ 1 << 63) as i64);
                shown::display(&shown::number(types[0], number))
            }
            Keys::Words(words) => {
                let bytes = word_bytes(types.iter().copied()).expect("the keys are numbers");
                shown::all(types, &words[row].to_be_bytes()[8 - bytes..])
            }
            Keys::Bytes(..) => shown::all(types, self.bytes(row)),
        }
    }
}

/// The number whose order is that of the first eight bytes.
pub(crate) fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            first[..bytes.len()].copy_from_slice(bytes);
            u64::from_be_bytes(first)
        }
    }
}

/// Rejects keys that no index takes.
pub(crate) fn check_length(bytes: usize) -> Result<(), IndexError> {
    match bytes > MAX_KEY {
        true => Err(IndexError::KeyTooLong(bytes)),
        false => Ok(()),
    }
}

/// The number of a key's first eight bytes behind those of `common`, which most keys begin with.
pub(crate) fn routing_of(key: &[u8], common: &[u8]) -> i64 {
    match key.strip_prefix(common) {
        Some(rest) => (word(rest) ^ 1 << 63) as i64,
        None if key < common => i64::MIN,
        None => i64::MAX,
    }
}

/// The least key with a number: zeros at its end stand for nothing.
pub(crate) fn least(number: i64, common: &[u8]) -> Vec<u8> {
    let bytes = (number as u64 ^ 1 << 63).to_be_bytes();
    let end = bytes.iter().rposition(|byte| *byte != 0);
    [common, &bytes[..end.map_or(0, |last| last + 1)]].concat()
}

/// The keys between two.
#[derive(Clone, Debug)]
pub(crate) enum KeyRange {
    Words((Bound<u64>, Bound<u64>)),
    Bytes((Bound<Vec<u8>>, Bound<Vec<u8>>)),
}

impl KeyRange {
    /// Between the two bounds, each of which has one key. `is_word` tells what keys the index has, where there are no
    /// bounds.
    pub fn new(bounds: (Bound<Keys>, Bound<Keys>), is_word: bool) -> Self {
        fn word(keys: Keys) -> u64 {
            match keys {
                Keys::Words(words) => words[0],
                Keys::Bytes(..) => unreachable!("keys of other columns"),
            }
        }
        let (from, to) = bounds;
        match is_word {
            true => KeyRange::Words((from.map(word), to.map(word))),
            false => {
                let bytes = |keys: Keys| keys.bytes(0).to_vec();
                KeyRange::Bytes((from.map(bytes), to.map(bytes)))
            }
        }
    }

    /// Whether a key is one of these, whose bytes these are: of a number, the highest first.
    pub fn has(&self, key: &[u8]) -> bool {
        match self {
            KeyRange::Words(bounds) => {
                let bytes = key.try_into().expect("the bytes of a number");
                bounds.contains(&u64::from_be_bytes(bytes))
            }
            KeyRange::Bytes((from, to)) => {
                let bounds = (
                    from.as_ref().map(Vec::as_slice),
                    to.as_ref().map(Vec::as_slice),
                );
                <(Bound<&[u8]>, Bound<&[u8]>) as RangeBounds<[u8]>>::contains(&bounds, key)
            }
        }
    }

    /// Those of them whose numbers are at least `low` and less than `high`.
    pub fn clipped(&self, low: Option<i64>, high: Option<i64>, common: &[u8]) -> Self {
        match self {
            KeyRange::Words((from, to)) => {
                let word = |number: i64| number as u64 ^ 1 << 63;
                KeyRange::Words((
                    low.map_or(*from, |low| Bound::Included(word(low))),
                    high.map_or(*to, |high| Bound::Excluded(word(high))),
                ))
            }
            KeyRange::Bytes((from, to)) => KeyRange::Bytes((
                low.map_or_else(|| from.clone(), |low| Bound::Included(least(low, common))),
                high.map_or_else(|| to.clone(), |high| Bound::Excluded(least(high, common))),
            )),
        }
    }

    /// The numbers between which ranges of partitions have such keys, both included.
    pub fn routing(&self, common: &[u8]) -> (i64, i64) {
        let ends = match self {
            KeyRange::Words((from, to)) => {
                let number = |word: u64| (word ^ 1 << 63) as i64;
                let from = match from {
                    Bound::Included(word) | Bound::Excluded(word) => Some(number(*word)),
                    Bound::Unbounded => None,
                };
                let to = match to {
                    Bound::Included(word) => Some(number(*word)),
                    Bound::Excluded(word) => Some(number(word.saturating_sub(1))),
                    Bound::Unbounded => None,
                };
                (from, to)
            }
            KeyRange::Bytes((from, to)) => {
                let from = match from {
                    Bound::Included(bytes) | Bound::Excluded(bytes) => {
                        Some(routing_of(bytes, common))
                    }
                    Bound::Unbounded => None,
                };
                let to = match to {
                    Bound::Included(bytes) => Some(routing_of(bytes, common)),
                    Bound::Excluded(bytes) => {
                        let number = routing_of(bytes, common);
                        // No key before it has its number.
                        let is_least = least(number, common) == *bytes;
                        Some(number.saturating_sub(i64::from(is_least)))
                    }
                    Bound::Unbounded => None,
                };
                (from, to)
            }
        };
        (ends.0.unwrap_or(i64::MIN), ends.1.unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{
        BooleanArray, Date32Array, Int8Array, Int16Array, Int32Array, StringViewArray, UInt16Array,
    };
    use std::sync::Arc;

    #[test]
    fn routing_follows_the_order_of_keys() {
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![-7, 0, 5, i32::MAX]));
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["", "a", "ab", "b"]));
        for columns in [
            vec![numbers.clone()],
            vec![texts.clone()],
            vec![texts, numbers],
        ] {
            let routing = Keys::of(&columns, 0, 4).routing(&[]);
            assert!(routing.is_sorted(), "{routing:?}");
            assert_eq!(Keys::of(&columns, 2, 2).routing(&[]), routing[2..]);
        }
    }

    #[test]
    fn numbers_of_several_columns_have_the_bytes_that_others_would_have() {
        let columns: [ArrayRef; 5] = [
            Arc::new(Int16Array::from(vec![-300, -1, 0, 7, i16::MAX])),
            Arc::new(BooleanArray::from(vec![true, false, true, false, true])),
            Arc::new(Int8Array::from(vec![i8::MIN, -1, 0, 1, 5])),
            Arc::new(UInt16Array::from(vec![0, 1, 2, 40_000, u16::MAX])),
            Arc::new(Date32Array::from(vec![-9, 0, 1, 20_000, i32::MAX])),
        ];
        for chosen in [
            &[0, 1][..],
            &[2, 3, 0],
            &[4, 3, 1],
            &[1, 1],
            &[4, 4],
            &[3, 4, 0],
        ] {
            let columns: Vec<ArrayRef> = chosen.iter().map(|&at| columns[at].clone()).collect();
            let types: Vec<_> = columns.iter().map(|column| column.data_type()).collect();
            let Keys::Words(words) = Keys::of(&columns, 0, 5) else {
                panic!("{types:?}");
            };
            let bytes = word_bytes(types.iter().copied()).unwrap();
            for (row, key) in words.iter().enumerate() {
                let mut encoder = KeyEncoder::new();
                for column in &columns {
                    KeyCells::of(column).push(row, &mut encoder);
                }
                let key = key.to_be_bytes();
                assert_eq!(key[..8 - bytes], [0; 8][bytes..], "{types:?}");
                assert_eq!(&key[8 - bytes..], encoder.bytes(), "{types:?}");
            }
            let values = columns
                .iter()
                .map(|column| shown::display(&column.slice(3, 1)));
            let values: Vec<_> = values.collect();
            let keys = Keys::of(&columns, 3, 1);
            assert_eq!(keys.shown(0, &types), values.join(", "));
        }
        let wide = [&DataType::Int64, &DataType::Boolean];
        let float = [&DataType::Float32, &DataType::Int8];
        assert_eq!((word_bytes(wide), word_bytes(float)), (None, None));
    }
}
