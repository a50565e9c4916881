//! What aggregates and keys read of a window of rows.

use crate::columns::Columns;
use crate::expr::{Expression, Frame};
use crate::lookup::KeyMap;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, StringViewArray, UInt32Array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use arrow_select::take::take;
use eris_column::{Domain, Selection, ZoneRange};
use eris_fragment::FragmentError;
use eris_kernels::Isa;
use eris_store::Chunk;
use std::borrow::Cow;
use std::cell::OnceCell;

/// The selected rows of one window, gathered as they are asked for, each column once.
pub(crate) struct Window<'a> {
    pub(crate) chunk: &'a Chunk,
    pub(crate) columns: &'a Columns,
    pub(crate) isa: Isa,
    chosen: Chosen<'a>,
    pub(crate) rows: usize,
    integers: Vec<Option<Vec<i64>>>,
    arrays: Vec<Option<ArrayRef>>,
    /// Per lookup the places of the relation's rows.
    places: Vec<Option<Vec<u32>>>,
}

/// Which rows are in a window.
enum Chosen<'a> {
    Selected(&'a Selection),
    /// A few, which ascend; and the selection of them for whatever needs one.
    Few(&'a [u32], OnceCell<Selection>),
}

/// Values of one argument. Those of NULLs may be anything.
pub(crate) enum Values<'a> {
    /// As stored: see `eris_column::from_integer`.
    Integers(Cow<'a, [i64]>),
    Wide(Vec<i128>),
    Floats(Vec<f64>),
    /// Codes of a column's dictionary.
    Codes(Cow<'a, [i64]>),
    Texts(StringViewArray),
}

impl<'a> Window<'a> {
    pub(crate) fn new(
        chunk: &'a Chunk,
        columns: &'a Columns,
        isa: Isa,
        selection: &'a Selection,
    ) -> Self {
        let rows = selection.count();
        Window::with(chunk, columns, isa, Chosen::Selected(selection), rows)
    }

    /// Of a few rows, which ascend.
    pub(crate) fn of_few(
        chunk: &'a Chunk,
        columns: &'a Columns,
        isa: Isa,
        rows: &'a [u32],
    ) -> Self {
        let chosen = Chosen::Few(rows, OnceCell::new());
        Window::with(chunk, columns, isa, chosen, rows.len())
    }

    fn with(
        chunk: &'a Chunk,
        columns: &'a Columns,
        isa: Isa,
        chosen: Chosen<'a>,
        rows: usize,
    ) -> Self {
        Window {
            chunk,
            columns,
            isa,
            chosen,
            rows,
            integers: vec![None; columns.len()],
            arrays: vec![None; columns.len()],
            places: vec![None; columns.lookups.all.len()],
        }
    }

    fn column(&self, column: usize) -> &'a eris_column::ColumnChunk {
        self.chunk.column(self.columns.ids[column])
    }

    fn selection(&self) -> &Selection {
        match &self.chosen {
            Chosen::Selected(selection) => selection,
            Chosen::Few(rows, selection) => selection.get_or_init(|| {
                let mut selection = Selection::default();
                selection.reset_to(self.chunk.rows(), rows);
                selection
            }),
        }
    }

    /// Whether a column of text holds codes in this chunk.
    pub(crate) fn is_coded(&self, column: usize) -> bool {
        self.columns.joined(column).is_none() && self.column(column).is_coded()
    }

    /// The range of a column of integers in this chunk.
    pub(crate) fn range(&self, column: usize) -> Option<(i64, i64)> {
        if let Some((lookup, joined)) = self.columns.joined(column) {
            return self.columns.lookups.all[lookup].joined(joined).range();
        }
        match self.column(column).zone().range {
            ZoneRange::Integer(low, high) => Some((low, high)),
            // Only NULLs, whose slots hold 0.
            ZoneRange::Empty => Some((0, 0)),
            _ => None,
        }
    }

    pub(crate) fn validity(&mut self, column: usize) -> Option<NullBuffer> {
        if let Some((lookup, joined)) = self.columns.joined(column) {
            let joined = self.columns.lookups.all[lookup].joined(joined);
            return joined.validity(self.places(lookup));
        }
        match self.column(column).nulls() {
            0 => None,
            _ => self.column(column).gather_validity(self.selection()),
        }
    }

    /// Makes [`Window::integers`] of the column available.
    pub(crate) fn load_integers(&mut self, column: usize) {
        if self.integers[column].is_some() {
            return;
        }
        self.integers[column] = Some(
            if let Some((lookup, joined)) = self.columns.joined(column) {
                let joined = self.columns.lookups.all[lookup].joined(joined);
                joined.integers(self.places(lookup))
            } else {
                let (chunk, mut values) = (self.column(column), Vec::with_capacity(self.rows));
                match self.chosen {
                    Chosen::Few(rows, _) => chunk.take_integers(self.isa, rows, &mut values),
                    Chosen::Selected(selection) => {
                        chunk.gather_integers(self.isa, selection, &mut values);
                    }
                }
                values
            },
        );
    }

    /// What a map says of the keys in a column.
    pub(crate) fn numbers<T: From<u32>>(&mut self, column: usize, map: &KeyMap) -> Vec<T> {
        let mut numbers = Vec::with_capacity(self.rows);
        if self.columns.domains[column] == Domain::Text && !self.is_coded(column) {
            map.numbers_of_texts(self.array(column).as_string_view(), &mut numbers);
        } else if let Some(order) = self.column(column).order() {
            // Not kept: hardly anybody needs the ordinals twice.
            let mut ordinals = Vec::with_capacity(self.rows);
            let chunk = self.column(column);
            match self.chosen {
                Chosen::Few(rows, _) => chunk.take_ordinals(self.isa, rows, &mut ordinals),
                Chosen::Selected(selection) => {
                    chunk.gather_ordinals(self.isa, selection, &mut ordinals);
                }
            }
            map.numbers_of_ordinals(order, &ordinals, &mut numbers);
        } else {
            self.load_integers(column);
            map.numbers(self.integers(column), &mut numbers);
        }
        numbers
    }

    /// The places of a lookup's rows.
    fn places(&mut self, lookup: usize) -> &[u32] {
        if self.places[lookup].is_none() {
            let columns = self.columns;
            let found = &columns.lookups.all[lookup];
            self.places[lookup] = Some(self.numbers(found.column, found.places(columns)));
        }
        self.places[lookup].as_deref().expect("found above")
    }

    /// The integers or codes of a column that was loaded.
    pub(crate) fn integers(&self, column: usize) -> &[i64] {
        self.integers[column].as_deref().expect("loaded before")
    }

    pub(crate) fn floats(&mut self, column: usize) -> Vec<f64> {
        if self.columns.joined(column).is_some() {
            return match values(self.array(column)) {
                Values::Floats(floats) => floats,
                _ => unreachable!("floats asked of a column of others"),
            };
        }
        let mut values = Vec::with_capacity(self.rows);
        self.column(column)
            .gather_floats(self.isa, self.selection(), &mut values);
        values
    }

    pub(crate) fn array(&mut self, column: usize) -> &ArrayRef {
        if let Some((lookup, joined)) = self.columns.joined(column)
            && self.arrays[column].is_none()
        {
            let joined = self.columns.lookups.all[lookup].joined(joined);
            let places = UInt32Array::from(self.places(lookup).to_vec());
            let array = take(&joined.array, &places, None).expect("places of the relation's rows");
            self.arrays[column] = Some(array);
        }
        if self.arrays[column].is_some() {
            return self.arrays[column].as_ref().expect("just seen");
        }
        let array = self.column(column).gather(
            self.isa,
            self.selection(),
            &self.columns.data_types[column],
            self.columns.dictionaries[column].as_ref(),
        );
        self.arrays[column].insert(array)
    }

    pub(crate) fn evaluate(&mut self, expression: &Expression) -> Result<ArrayRef, FragmentError> {
        expression.evaluate(&self.frame(expression))
    }

    pub(crate) fn frame(&mut self, expression: &Expression) -> Frame {
        let mut columns = vec![None; self.columns.len()];
        for &column in &expression.columns {
            columns[column] = Some(self.array(column).clone());
        }
        Frame {
            rows: self.rows,
            columns,
        }
    }
}

/// The values of an array, in the form of their domain; decimals always wide.
pub(crate) fn values(array: &ArrayRef) -> Values<'static> {
    macro_rules! integers {
        ($kind:ty, $convert:expr) => {
            Values::Integers(
                array
                    .as_primitive::<$kind>()
                    .values()
                    .iter()
                    .map($convert)
                    .collect(),
            )
        };
    }
    match array.data_type() {
        DataType::Boolean => {
            Values::Integers(array.as_boolean().values().iter().map(i64::from).collect())
        }
        DataType::Int8 => integers!(Int8Type, |&value| value as i64),
        DataType::Int16 => integers!(Int16Type, |&value| value as i64),
        DataType::Int32 => integers!(Int32Type, |&value| value as i64),
        DataType::Int64 => integers!(Int64Type, |&value| value),
        DataType::UInt8 => integers!(UInt8Type, |&value| value as i64),
        DataType::UInt16 => integers!(UInt16Type, |&value| value as i64),
        DataType::UInt32 => integers!(UInt32Type, |&value| value as i64),
        DataType::UInt64 => integers!(UInt64Type, |&value| (value ^ 1 << 63) as i64),
        DataType::Date32 => integers!(Date32Type, |&value| value as i64),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => integers!(TimestampSecondType, |&value| value),
            TimeUnit::Millisecond => integers!(TimestampMillisecondType, |&value| value),
            TimeUnit::Microsecond => integers!(TimestampMicrosecondType, |&value| value),
            TimeUnit::Nanosecond => integers!(TimestampNanosecondType, |&value| value),
        },
        DataType::Float32 => {
            let floats = array.as_primitive::<Float32Type>().values();
            Values::Floats(floats.iter().map(|&value| value as f64).collect())
        }
        DataType::Float64 => Values::Floats(array.as_primitive::<Float64Type>().values().to_vec()),
        DataType::Decimal128(..) => {
            Values::Wide(array.as_primitive::<Decimal128Type>().values().to_vec())
        }
        DataType::Utf8View => Values::Texts(array.as_string_view().clone()),
        other => unreachable!("{other} is the type of no expression"),
    }
}
