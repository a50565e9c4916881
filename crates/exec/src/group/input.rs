//! What aggregates, keys and rows read of a window of rows.
//!
//! ```text
//! chunk ── selection ──▶ rows of the window ── keys with several rows ──▶ pairs, in pieces: the rows at hand
//!                                           └─ or none of these ────────▶ the rows at hand, all at once
//! ```

use super::gathered::GatheredColumns;
use crate::columns::FragmentColumns;
use crate::expr::{Expression, Frame};
use crate::lookup::{CombinationNumbers, Combinations, KeyMap};
use crate::pairs::{Pair, Pairs};
use crate::values::{Values, values};
use arrow_array::{ArrayRef, UInt32Array};
use arrow_buffer::NullBuffer;
use arrow_select::take::take;
use eris_column::Selection;
use eris_fragment::FragmentError;
use eris_kernels::Isa;
use eris_store::Chunk;

/// The rows of one window with what is joined to them, each column gathered once when it is asked for. There are none
/// at hand before [`Window::advance`].
pub(crate) struct Window<'a> {
    own: GatheredColumns<'a>,
    pub(crate) columns: &'a FragmentColumns,
    pub(crate) isa: Isa,
    /// The rows at hand.
    pub(crate) rows: usize,
    /// `None` if the rows at hand are those of the window.
    pairs: Option<Pairs>,
    /// All rows have been at hand.
    over: bool,
    integers: Vec<Option<Vec<i64>>>,
    arrays: Vec<Option<ArrayRef>>,
    /// Per lookup the places of the relation's rows.
    places: Vec<Option<Vec<u32>>>,
}

impl<'a> Window<'a> {
    pub(crate) fn new(
        chunk: &'a Chunk,
        columns: &'a FragmentColumns,
        isa: Isa,
        selection: &'a Selection,
    ) -> Self {
        Window::over(GatheredColumns::new(chunk, columns, isa, selection))
    }

    /// Of a few rows, which ascend.
    pub(crate) fn of_few(
        chunk: &'a Chunk,
        columns: &'a FragmentColumns,
        isa: Isa,
        rows: &'a [u32],
    ) -> Self {
        Window::over(GatheredColumns::of_few(chunk, columns, isa, rows))
    }

    fn over(mut own: GatheredColumns<'a>) -> Self {
        let columns = own.columns;
        let lookups = &columns.lookups;
        let mut places = vec![None; lookups.all.len()];
        let mut pairs = None;
        if lookups.have_several_matches() {
            let lookups = lookups.all.iter().enumerate();
            let ranges = lookups.filter_map(|(number, lookup)| {
                let matches = lookup.matches()?;
                let keys: Vec<u32> = own.numbers(lookup.column, lookup.of_keys(columns));
                Some((number, matches.ranges(&keys)))
            });
            let found = Pairs::new(ranges);
            match found.are_rows() {
                true => (found.into_places()).for_each(|(lookup, of)| places[lookup] = Some(of)),
                false => pairs = Some(found),
            }
        }
        Window {
            columns,
            isa: own.isa,
            rows: own.rows,
            own,
            pairs,
            over: false,
            integers: vec![None; columns.len()],
            arrays: vec![None; columns.len()],
            places,
        }
    }

    /// Brings the next rows to hand, `most` of them if rows are joined to several; whether there are any.
    pub(crate) fn advance(&mut self, most: usize) -> bool {
        let Some(pairs) = &mut self.pairs else {
            return self.own.rows > 0 && !std::mem::replace(&mut self.over, true);
        };
        if !pairs.advance(most) {
            return false;
        }
        self.rows = pairs.rows().len();
        self.integers.fill(None);
        self.arrays.fill(None);
        self.places.fill(None);
        for (lookup, places) in pairs.take_places() {
            self.places[lookup] = Some(places);
        }
        true
    }

    /// The row that comes after those that have been at hand; `None` if it has none that comes later.
    pub(crate) fn next(&self) -> Option<Pair> {
        self.pairs.as_ref().map(Pairs::next)
    }

    /// Goes on with a row.
    pub(crate) fn skip_to(&mut self, row: Pair) {
        if let Some(pairs) = &mut self.pairs {
            pairs.skip_to(row);
        }
    }

    /// How many rows will have been at hand in the end; `None` if they cannot be counted.
    pub(crate) fn count(&self) -> Option<u64> {
        match &self.pairs {
            None => Some(self.own.rows as u64),
            Some(pairs) => pairs.count(),
        }
    }

    /// Whether a column of strings holds codes in this chunk.
    pub(crate) fn is_coded(&self, column: usize) -> bool {
        self.columns.joined(column).is_none() && self.own.is_coded(column)
    }

    /// The range of a column of integers in this chunk.
    pub(crate) fn range(&self, column: usize) -> Option<(i64, i64)> {
        match self.columns.joined(column) {
            Some((lookup, joined)) => self.columns.lookups.all[lookup].joined(joined).range(),
            None => self.own.range(column),
        }
    }

    pub(crate) fn validity(&mut self, column: usize) -> Option<NullBuffer> {
        if let Some((lookup, joined)) = self.columns.joined(column) {
            let joined = self.columns.lookups.all[lookup].joined(joined);
            return joined.validity(self.places(lookup));
        }
        let nulls = self.own.validity(column)?;
        Some(match &self.pairs {
            None => nulls,
            Some(pairs) => pairs.spread_nulls(&nulls),
        })
    }

    /// Makes [`Window::integers`] of the column available.
    pub(crate) fn load_integers(&mut self, column: usize) {
        if self.integers[column].is_some() {
            return;
        }
        if let Some((lookup, joined)) = self.columns.joined(column) {
            let joined = self.columns.lookups.all[lookup].joined(joined);
            self.integers[column] = Some(joined.integers(self.places(lookup)));
            return;
        }
        let own = self.own.integers(column);
        if let Some(pairs) = &self.pairs {
            self.integers[column] = Some(pairs.spread(own));
        }
    }

    /// The integers or codes of a column that was loaded.
    pub(crate) fn integers(&self, column: usize) -> &[i64] {
        match &self.integers[column] {
            Some(integers) => integers,
            None => self.own.loaded(column),
        }
    }

    /// The numbers of the combinations of a lookup's values.
    pub(crate) fn combinations(&mut self, of: &Combinations) -> Vec<i64> {
        match &of.numbers {
            CombinationNumbers::OfKeys(map) => self.numbers(of.column, map),
            CombinationNumbers::OfPlaces(table) => {
                let places = self.places(of.lookup).iter().map(|&place| place as usize);
                let mut numbers = Vec::with_capacity(places.len());
                table.each(places, &mut numbers);
                numbers
            }
        }
    }

    /// What a map says of the keys in a column.
    fn numbers<T: From<u32> + Copy>(&mut self, column: usize, map: &KeyMap) -> Vec<T> {
        let numbers = self.own.numbers(column, map);
        match &self.pairs {
            None => numbers,
            Some(pairs) => pairs.spread(&numbers),
        }
    }

    /// The places of a lookup's rows.
    fn places(&mut self, lookup: usize) -> &[u32] {
        if self.places[lookup].is_none() {
            let found = &self.columns.lookups.all[lookup];
            let places = self.numbers(found.column, found.of_keys(self.columns));
            self.places[lookup] = Some(places);
        }
        self.places[lookup].as_deref().expect("found above")
    }

    pub(crate) fn floats(&mut self, column: usize) -> Vec<f64> {
        if self.columns.joined(column).is_some() {
            return match values(self.array(column)) {
                Values::Floats(floats) => floats,
                _ => unreachable!("floats asked of a column of others"),
            };
        }
        let floats = self.own.floats(column);
        match &self.pairs {
            None => floats,
            Some(pairs) => pairs.spread(&floats),
        }
    }

    /// A column, or the rows' ids.
    pub(crate) fn array(&mut self, column: usize) -> &ArrayRef {
        if self.arrays[column].is_none() {
            let array = match (self.columns.joined(column), &self.pairs) {
                (Some((lookup, joined)), _) => {
                    let joined = self.columns.lookups.all[lookup].joined(joined);
                    let places = UInt32Array::from(self.places(lookup).to_vec());
                    take(&joined.array, &places, None).expect("places of the relation's rows")
                }
                (None, None) => self.own.array(column).clone(),
                (None, Some(pairs)) => {
                    let rows = UInt32Array::from(pairs.rows().to_vec());
                    take(self.own.array(column), &rows, None).expect("rows of the window")
                }
            };
            self.arrays[column] = Some(array);
        }
        self.arrays[column].as_ref().expect("just made")
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
