//! Keys of a data object: from columns to what the index of a partition and the routing of rows want.
//!
//! ```text
//! one integer-like column     its 64-bit order             → the index's number, and the number that ranges are of
//! anything else               the bytes of all columns     → the index's bytes; their first eight are the number
//! ```

use crate::scatter::keys_of;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::{DataType, TimeUnit};
use eris_column::{Domain, Home};
use eris_index::key::{Encoder, Fixed};
use eris_index::{Art, IndexError};
use eris_types::RowId;

/// The keys of some rows.
pub(crate) enum Keys {
    Words(Vec<u64>),
    /// Where each ends.
    Bytes(Vec<u8>, Vec<usize>),
}

/// Whether keys of these columns are numbers.
fn is_word(columns: &[ArrayRef]) -> bool {
    matches!(columns, [one] if Domain::of(one.data_type()) == Some(Domain::Integer))
}

impl Keys {
    /// Of `rows` rows from `first` on, whose key columns these are. None of them is NULL.
    pub fn of(columns: &[ArrayRef], first: usize, rows: usize) -> Self {
        let columns: Vec<ArrayRef> = columns
            .iter()
            .map(|column| column.slice(first, rows))
            .collect();
        if is_word(&columns) {
            let words = keys_of(&columns[0]).into_iter();
            return Keys::Words(words.map(|word| word as u64 ^ 1 << 63).collect());
        }
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(rows));
        let mut encoder = Encoder::new();
        for row in 0..rows {
            encoder.clear();
            columns
                .iter()
                .for_each(|column| push(&mut encoder, column, row));
            bytes.extend_from_slice(encoder.bytes());
            ends.push(bytes.len());
        }
        Keys::Bytes(bytes, ends)
    }

    /// The number by whose ranges rows are dealt to partitions.
    pub fn routing(&self) -> Vec<i64> {
        match self {
            Keys::Words(words) => words.iter().map(|word| (word ^ 1 << 63) as i64).collect(),
            Keys::Bytes(_, ends) => (0..ends.len())
                .map(|row| {
                    let mut first = [0; 8];
                    let key = self.bytes(row);
                    let common = key.len().min(8);
                    first[..common].copy_from_slice(&key[..common]);
                    (u64::from_be_bytes(first) ^ 1 << 63) as i64
                })
                .collect(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Keys::Words(words) => words.len(),
            Keys::Bytes(_, ends) => ends.len(),
        }
    }

    fn bytes(&self, row: usize) -> &[u8] {
        match self {
            Keys::Words(_) => unreachable!("numbers have no bytes"),
            Keys::Bytes(bytes, ends) => {
                let start = row.checked_sub(1).map_or(0, |before| ends[before]);
                &bytes[start..ends[row]]
            }
        }
    }
}

/// From keys to the rows that have them now, in one partition.
#[derive(Debug)]
pub(crate) enum PrimaryIndex {
    Words(Art<u64>),
    Bytes(Art<[u8]>),
}

impl PrimaryIndex {
    /// For keys of columns of these types.
    pub fn new<'a>(types: impl ExactSizeIterator<Item = &'a DataType>, home: Home<'_>) -> Self {
        let mut types = types;
        let word = types.len() == 1 && types.next().and_then(Domain::of) == Some(Domain::Integer);
        let memory = home.memory.clone();
        match word {
            true => PrimaryIndex::Words(Art::new(memory, home.object)),
            false => PrimaryIndex::Bytes(Art::new(memory, home.object)),
        }
    }

    /// Adds keys unless they are there, one after the other; per key the row that has it then. Stops at the first for which
    /// there is no room, and says why.
    pub fn insert(
        &mut self,
        keys: &Keys,
        id: impl Fn(usize) -> RowId,
    ) -> (Vec<Option<RowId>>, Option<IndexError>) {
        let mut present = vec![None; keys.len()];
        let inserted = match (self, keys) {
            (PrimaryIndex::Words(index), Keys::Words(words)) => {
                let entries = words.iter().enumerate();
                let entries: Vec<_> = entries.map(|(row, word)| (*word, id(row).0)).collect();
                index.insert_many(&entries, &mut present)
            }
            (PrimaryIndex::Bytes(index), keys) => {
                let entries = (0..keys.len()).map(|row| (keys.bytes(row), id(row).0));
                let entries: Vec<_> = entries.collect();
                index.insert_many(&entries, &mut present)
            }
            _ => unreachable!("keys of other columns"),
        };
        let failure = inserted.err().map(|failed| {
            present.truncate(failed.done);
            failed.error
        });
        let present = present.into_iter().map(|other| other.map(RowId));
        (present.collect(), failure)
    }

    /// Gives a key that is there to another row.
    pub fn replace(&mut self, keys: &Keys, row: usize, id: RowId) {
        let replaced = match (self, keys) {
            (PrimaryIndex::Words(index), Keys::Words(words)) => index.upsert(words[row], id.0),
            (PrimaryIndex::Bytes(index), keys) => index.upsert(keys.bytes(row), id.0),
            _ => unreachable!("keys of other columns"),
        };
        assert!(
            matches!(replaced, Ok(Some(_))),
            "replacing the value of a key needs no memory"
        );
    }

    /// The row that has the key.
    pub fn get(&self, keys: &Keys, row: usize) -> Option<RowId> {
        let found = match (self, keys) {
            (PrimaryIndex::Words(index), Keys::Words(words)) => index.get(words[row]),
            (PrimaryIndex::Bytes(index), keys) => index.get(keys.bytes(row)),
            _ => unreachable!("keys of other columns"),
        };
        found.map(RowId)
    }

    /// Gives back memory in which nothing is left.
    pub fn trim(&mut self) {
        match self {
            PrimaryIndex::Words(index) => index.trim(),
            PrimaryIndex::Bytes(index) => index.trim(),
        }
    }

    /// Removes a key.
    pub fn remove(&mut self, keys: &Keys, row: usize) {
        match (self, keys) {
            (PrimaryIndex::Words(index), Keys::Words(words)) => index.remove(words[row]),
            (PrimaryIndex::Bytes(index), keys) => index.remove(keys.bytes(row)),
            _ => unreachable!("keys of other columns"),
        };
    }
}

/// Appends a value of a column to a key.
pub(crate) fn push(encoder: &mut Encoder, column: &ArrayRef, row: usize) {
    fn value<T: ArrowPrimitiveType>(column: &ArrayRef, row: usize) -> T::Native {
        column.as_primitive::<T>().value(row)
    }
    fn fixed<T>(encoder: &mut Encoder, column: &ArrayRef, row: usize)
    where
        T: ArrowPrimitiveType,
        T::Native: Fixed,
    {
        encoder.push(value::<T>(column, row));
    }
    match column.data_type() {
        DataType::Boolean => {
            encoder.push(column.as_boolean().value(row));
        }
        DataType::Int8 => fixed::<Int8Type>(encoder, column, row),
        DataType::Int16 => fixed::<Int16Type>(encoder, column, row),
        DataType::Int32 => fixed::<Int32Type>(encoder, column, row),
        DataType::Int64 => fixed::<Int64Type>(encoder, column, row),
        DataType::UInt8 => fixed::<UInt8Type>(encoder, column, row),
        DataType::UInt16 => fixed::<UInt16Type>(encoder, column, row),
        DataType::UInt32 => fixed::<UInt32Type>(encoder, column, row),
        DataType::UInt64 => fixed::<UInt64Type>(encoder, column, row),
        DataType::Date32 => fixed::<Date32Type>(encoder, column, row),
        DataType::Timestamp(TimeUnit::Second, _) => {
            fixed::<TimestampSecondType>(encoder, column, row);
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            fixed::<TimestampMillisecondType>(encoder, column, row);
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            fixed::<TimestampMicrosecondType>(encoder, column, row);
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            fixed::<TimestampNanosecondType>(encoder, column, row);
        }
        // Both zeros are equal in SQL, and so are all NaN.
        DataType::Float32 => {
            let value = value::<Float32Type>(column, row) + 0.0;
            encoder.push(if value.is_nan() { f32::NAN } else { value });
        }
        DataType::Float64 => {
            let value = value::<Float64Type>(column, row) + 0.0;
            encoder.push(if value.is_nan() { f64::NAN } else { value });
        }
        DataType::Decimal128(precision, _) => {
            encoder.push_decimal(value::<Decimal128Type>(column, row), *precision);
        }
        DataType::Utf8View => {
            encoder.push_text(column.as_string_view().value(row));
        }
        other => unreachable!("{other} is no type of a key; checked when the object was made"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Int32Array, StringViewArray};
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
            let routing = Keys::of(&columns, 0, 4).routing();
            assert!(routing.is_sorted(), "{routing:?}");
            assert_eq!(Keys::of(&columns, 2, 2).routing(), routing[2..]);
        }
    }
}
