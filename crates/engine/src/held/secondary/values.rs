//! Values of rows as keys of an index.

use super::KEY_BYTES;
use crate::object::keys::KeyCells;
use arrow_array::{Array, ArrayRef};
use eris_column::Domain;
use eris_home::IndexKind;
use eris_index::key::KeyEncoder;

/// Values of the columns of an index, a row each.
pub(crate) enum IndexedValues {
    /// Numbers of 64 bits, `None` for NULL.
    Words(Vec<Option<u64>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl IndexedValues {
    /// Of rows with these columns.
    pub fn of(columns: &[ArrayRef], kind: IndexKind) -> Self {
        let rows = columns[0].len();
        let has_null = |row: usize| columns.iter().any(|column| column.is_null(row));
        if let [one] = columns
            && Domain::of(one.data_type()) == Some(Domain::Integer)
        {
            let words = crate::object::numbers::keys_of(one);
            let words = words.values().iter().enumerate();
            let word =
                |(row, &word): (usize, &i64)| one.is_valid(row).then_some(word as u64 ^ 1 << 63);
            return IndexedValues::Words(words.map(word).collect());
        }
        let cells: Vec<KeyCells<'_>> = columns.iter().map(KeyCells::of).collect();
        let mut encoder = KeyEncoder::new();
        let bytes = (0..rows).map(|row| {
            if kind == IndexKind::Hashed && has_null(row) {
                return None;
            }
            encoder.clear();
            for (column, cells) in columns.iter().zip(&cells) {
                match column.is_null(row) {
                    true => {
                        encoder.push_null();
                    }
                    false => cells.push(row, encoder.push_present()),
                }
            }
            let bytes = encoder.bytes();
            Some(bytes[..bytes.len().min(KEY_BYTES)].to_vec())
        });
        IndexedValues::Bytes(bytes.collect())
    }

    /// Those of some of the rows.
    pub fn part(&self, rows: std::ops::Range<usize>) -> IndexedValues {
        match self {
            IndexedValues::Words(words) => IndexedValues::Words(words[rows].to_vec()),
            IndexedValues::Bytes(bytes) => IndexedValues::Bytes(bytes[rows].to_vec()),
        }
    }
}
