//! The fragment's own columns of some rows of a chunk.

use crate::columns::FragmentColumns;
use crate::lookup::KeyMap;
use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, Int64Array};
use arrow_buffer::NullBuffer;
use eris_column::{ColumnChunk, Domain, PICKED_ROWS, Selection, ZoneRange};
use eris_kernels::Isa;
use eris_store::Chunk;
use std::cell::OnceCell;
use std::sync::Arc;

/// Rows, whose values are gathered as they are asked for, each column once.
pub(super) struct GatheredColumns<'a> {
    pub(super) chunk: &'a Chunk,
    pub(super) columns: &'a FragmentColumns,
    pub(super) isa: Isa,
    chosen: ChosenRows<'a>,
    pub(super) rows: usize,
    integers: Vec<Option<Vec<i64>>>,
    arrays: Vec<Option<ArrayRef>>,
}

/// Which rows.
enum ChosenRows<'a> {
    Selected(&'a Selection),
    /// A few, which ascend; and the selection of them for whatever needs one.
    Few(&'a [u32], OnceCell<Selection>),
}

impl<'a> GatheredColumns<'a> {
    pub(super) fn new(
        chunk: &'a Chunk,
        columns: &'a FragmentColumns,
        isa: Isa,
        selection: &'a Selection,
    ) -> Self {
        let rows = selection.count();
        GatheredColumns::with(chunk, columns, isa, ChosenRows::Selected(selection), rows)
    }

    /// Of a few rows, which ascend.
    pub(super) fn of_few(
        chunk: &'a Chunk,
        columns: &'a FragmentColumns,
        isa: Isa,
        rows: &'a [u32],
    ) -> Self {
        let chosen = ChosenRows::Few(rows, OnceCell::new());
        GatheredColumns::with(chunk, columns, isa, chosen, rows.len())
    }

    fn with(
        chunk: &'a Chunk,
        columns: &'a FragmentColumns,
        isa: Isa,
        chosen: ChosenRows<'a>,
        rows: usize,
    ) -> Self {
        GatheredColumns {
            chunk,
            columns,
            isa,
            chosen,
            rows,
            integers: vec![None; columns.ids.len()],
            arrays: vec![None; columns.ids.len()],
        }
    }

    fn column(&self, column: usize) -> &'a ColumnChunk {
        self.chunk.column(self.columns.ids[column])
    }

    fn selection(&self) -> &Selection {
        match &self.chosen {
            ChosenRows::Selected(selection) => selection,
            ChosenRows::Few(rows, selection) => selection.get_or_init(|| {
                let mut selection = Selection::default();
                selection.reset_to(self.chunk.rows(), rows);
                selection
            }),
        }
    }

    /// Whether a column of strings holds codes in this chunk.
    pub(super) fn is_coded(&self, column: usize) -> bool {
        self.column(column).is_coded()
    }

    /// The range of a column of integers in this chunk.
    pub(super) fn range(&self, column: usize) -> Option<(i64, i64)> {
        match self.column(column).zone().range {
            ZoneRange::Integer(low, high) => Some((low, high)),
            // Only NULLs, whose slots hold 0.
            ZoneRange::Empty => Some((0, 0)),
            _ => None,
        }
    }

    pub(super) fn validity(&self, column: usize) -> Option<NullBuffer> {
        match self.column(column).nulls() {
            0 => None,
            _ => self.column(column).gather_validity(self.selection()),
        }
    }

    /// The integers or codes of a column.
    pub(super) fn integers(&mut self, column: usize) -> &[i64] {
        if self.integers[column].is_none() {
            let mut values = Vec::with_capacity(self.rows);
            let chunk = self.column(column);
            match self.chosen {
                ChosenRows::Few(rows, _) => chunk.take_integers(self.isa, rows, &mut values),
                ChosenRows::Selected(selection) => {
                    chunk.gather_integers(self.isa, selection, &mut values);
                }
            }
            self.integers[column] = Some(values);
        }
        self.loaded(column)
    }

    /// The same of a column that has been asked for.
    pub(super) fn loaded(&self, column: usize) -> &[i64] {
        self.integers[column].as_deref().expect("loaded before")
    }

    /// What a map says of the keys in a column.
    pub(super) fn numbers<T: From<u32>>(&mut self, column: usize, map: &KeyMap) -> Vec<T> {
        let mut numbers = Vec::with_capacity(self.rows);
        if self.columns.domains[column] == Domain::String && !self.is_coded(column) {
            map.numbers_of_strings(self.array(column).as_string_view(), &mut numbers);
        } else if let Some(order) = self.column(column).order() {
            // Not kept: hardly anybody needs the ordinals twice.
            let mut ordinals = Vec::with_capacity(self.rows);
            let chunk = self.column(column);
            match self.chosen {
                ChosenRows::Few(rows, _) => chunk.take_ordinals(self.isa, rows, &mut ordinals),
                ChosenRows::Selected(selection) => {
                    chunk.gather_ordinals(self.isa, selection, &mut ordinals);
                }
            }
            map.numbers_of_ordinals(order, &ordinals, &mut numbers);
        } else {
            map.numbers(self.integers(column), &mut numbers);
        }
        if map.has_zero_for_others()
            && let Some(valid) = self.validity(column)
        {
            let nulls = (0..valid.len()).filter(|&row| valid.is_null(row));
            nulls.for_each(|row| numbers[row] = T::from(0));
        }
        numbers
    }

    pub(super) fn floats(&self, column: usize) -> Vec<f64> {
        let mut values = Vec::with_capacity(self.rows);
        self.column(column)
            .gather_floats(self.isa, self.selection(), &mut values);
        values
    }

    /// A column, or the rows' ids.
    pub(super) fn array(&mut self, column: usize) -> &ArrayRef {
        if self.arrays[column].is_none() {
            self.arrays[column] = Some(match self.columns.is_row_id(column) {
                true => self.row_ids(),
                false => self.gather(column),
            });
        }
        self.arrays[column].as_ref().expect("just made")
    }

    fn row_ids(&self) -> ArrayRef {
        let ids = self.chunk.ids();
        let id = |row: usize| ids.get(row).0 as i64;
        Arc::new(match &self.chosen {
            ChosenRows::Few(rows, _) => rows.iter().map(|&row| id(row as usize)).collect(),
            ChosenRows::Selected(rows) => rows.iter_ones().map(id).collect::<Int64Array>(),
        })
    }

    fn gather(&self, column: usize) -> ArrayRef {
        let (chunk, data_type) = (self.column(column), &self.columns.data_types[column]);
        let dictionary = self.columns.dictionaries[column].as_ref();
        match self.chosen {
            ChosenRows::Few(rows, _) if rows.len() <= PICKED_ROWS => {
                let mut picked = [0; PICKED_ROWS];
                let places = picked.iter_mut().zip(rows);
                places.for_each(|(place, &row)| *place = row as usize);
                chunk.pick(&picked[..rows.len()], data_type, dictionary)
            }
            ChosenRows::Few(rows, _) => (chunk.take(self.isa, rows, data_type, dictionary))
                .unwrap_or_else(|| chunk.gather(self.isa, self.selection(), data_type, dictionary)),
            ChosenRows::Selected(rows) => chunk.gather(self.isa, rows, data_type, dictionary),
        }
    }
}
