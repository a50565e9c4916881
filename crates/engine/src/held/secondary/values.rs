//! Values of rows as keys of an index.

use crate::object::indexes::key_bytes;
use crate::object::keys::KeyCells;
use arrow_array::{Array, ArrayRef};
use eris_column::Domain;
use eris_home::IndexKind;
use eris_index::key::KeyEncoder;
use std::ops::Range;

/// Values of the columns of an index, a row each.
pub(crate) enum IndexedValues {
    /// Numbers of 64 bits, `None` for NULL.
    Words(Vec<Option<u64>>),
    Bytes(ByteValues),
}

/// Byte strings, one behind the other.
#[derive(Default)]
pub(crate) struct ByteValues {
    bytes: Vec<u8>,
    /// Where each ends, and whether it is there.
    ends: Vec<(usize, bool)>,
}

impl ByteValues {
    fn push(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.ends.push((self.bytes.len(), value.is_some()));
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The value of a row, unless it is left out.
    pub fn get(&self, row: usize) -> Option<&[u8]> {
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before].0);
        let (end, is_there) = self.ends[row];
        is_there.then(|| &self.bytes[begin..end])
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        (0..self.len()).map(|row| self.get(row))
    }

    fn part(&self, rows: Range<usize>) -> ByteValues {
        let mut part = ByteValues::default();
        rows.for_each(|row| part.push(self.get(row)));
        part
    }
}

impl IndexedValues {
    /// Of rows with these columns.
    pub fn of(columns: &[ArrayRef], kind: IndexKind) -> Self {
        if kind != IndexKind::Shared
            && let [one] = columns
            && Domain::of(one.data_type()) == Some(Domain::Integer)
        {
            let words = crate::object::numbers::keys_of(one);
            let words = words.values().iter().enumerate();
            let word =
                |(row, &word): (usize, &i64)| one.is_valid(row).then_some(word as u64 ^ 1 << 63);
            return IndexedValues::Words(words.map(word).collect());
        }
        let mut values = ByteValues::default();
        each_in_bytes(columns, kind, |_, value| values.push(value));
        IndexedValues::Bytes(values)
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        match self {
            IndexedValues::Words(words) => words.len(),
            IndexedValues::Bytes(bytes) => bytes.len(),
        }
    }

    /// The bytes of each row, of which none is left out.
    pub fn all_bytes(&self) -> impl Iterator<Item = &[u8]> {
        let IndexedValues::Bytes(bytes) = self else {
            unreachable!("values of other columns");
        };
        bytes.iter().map(|bytes| bytes.expect("NULL has a place"))
    }

    /// Those of some of the rows.
    pub fn part(&self, rows: Range<usize>) -> IndexedValues {
        match self {
            IndexedValues::Words(words) => IndexedValues::Words(words[rows].to_vec()),
            IndexedValues::Bytes(bytes) => IndexedValues::Bytes(bytes.part(rows)),
        }
    }
}

/// Shows the bytes of each row with these columns; `None`: it is left out.
pub(crate) fn each_in_bytes(
    columns: &[ArrayRef],
    kind: IndexKind,
    mut show: impl FnMut(usize, Option<&[u8]>),
) {
    let has_null = |row: usize| columns.iter().any(|column| column.is_null(row));
    let cells: Vec<KeyCells<'_>> = columns.iter().map(KeyCells::of).collect();
    let mut encoder = KeyEncoder::new();
    let most = key_bytes(kind);
    for row in 0..columns[0].len() {
        if kind == IndexKind::Hashed && has_null(row) {
            show(row, None);
            continue;
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
        show(row, Some(&bytes[..bytes.len().min(most)]));
    }
}
