//! The operators that can be pushed down to the data (Section 4.2): scan, materialise, join-probe.

use super::{Column, ColumnError, ColumnPosition, Condition, Part, decode};
use crate::CHUNK_ROWS;
use crate::predicate::ColumnPredicate;
use crate::selection::Selection;
use crate::value::ColumnValue;
use eris_kernels::Isa;

/// A bitmap of join keys may have so many bits for each key; beyond, searching the sorted keys takes less memory.
const BITMAP_BITS_PER_KEY: u64 = 256;

impl Column {
    /// The positions at which all of one or two conditions hold: of the given ones, in their order, or of all,
    /// ascending.
    ///
    /// # Errors
    /// A value is of the wrong kind, a position does not exist, or there are no conditions or more than two.
    pub fn scan(
        &self,
        conditions: &[Condition],
        positions: Option<&[ColumnPosition]>,
    ) -> Result<Vec<ColumnPosition>, ColumnError> {
        if !(1..=2).contains(&conditions.len()) {
            return Err(ColumnError::Conditions(conditions.len()));
        }
        let predicates = conditions.iter().map(|condition| condition.predicate(self));
        self.positions(&predicates.collect::<Result<Vec<_>, _>>()?, positions)
    }

    /// The positions whose values are among the keys (the primary keys of a dimension's rows that passed): of the given
    /// ones, in their order, or of all, ascending.
    ///
    /// # Errors
    /// A key is of the wrong kind, or a position does not exist.
    pub fn join_probe(
        &self,
        keys: &[ColumnValue],
        positions: Option<&[ColumnPosition]>,
    ) -> Result<Vec<ColumnPosition>, ColumnError> {
        let integers = keys.iter().filter_map(|key| self.integer(key).transpose());
        let mut integers = integers.collect::<Result<Vec<i64>, _>>()?;
        integers.sort_unstable();
        integers.dedup();
        self.positions(&[key_set(integers)], positions)
    }

    /// The values at the positions, in their order, or all values.
    ///
    /// # Errors
    /// A position does not exist.
    pub fn materialize(
        &self,
        positions: Option<&[ColumnPosition]>,
    ) -> Result<Vec<ColumnValue>, ColumnError> {
        if let Some(positions) = positions {
            return positions
                .iter()
                .map(|&position| self.get(position))
                .collect();
        }
        let mut values = Vec::with_capacity(self.size() as usize);
        for chunk in 0..self.parts() {
            let value = |&integer: &i64| self.value(integer);
            match self.part(chunk) {
                Part::Open(integers) => values.extend(integers.iter().map(value)),
                Part::Sealed(chunk) => values.extend(decode(chunk).iter().map(value)),
            }
        }
        Ok(values)
    }

    fn positions(
        &self,
        predicates: &[ColumnPredicate],
        positions: Option<&[ColumnPosition]>,
    ) -> Result<Vec<ColumnPosition>, ColumnError> {
        let Some(positions) = positions else {
            let mut selection = Selection::default();
            let mut passed = Vec::new();
            for chunk in 0..self.parts() {
                let part = self.part(chunk);
                selection.reset_all(part.rows());
                part.filter(predicates, &mut selection);
                let position = |row| ColumnPosition((chunk * CHUNK_ROWS + row) as u64);
                passed.extend(selection.iter_ones().map(position));
            }
            return Ok(passed);
        };
        // Positions may come in any order and more than once. So: mark them by chunk, filter the chunks that have
        // marks, and read the marks again in the order of the list.
        let located = positions.iter().map(|&position| self.locate(position));
        let located = located.collect::<Result<Vec<_>, _>>()?;
        let mut selections: Vec<Option<Selection>> = vec![None; self.parts()];
        for &(chunk, row) in &located {
            let none = || Selection::none(self.part(chunk).rows());
            selections[chunk].get_or_insert_with(none).insert(row);
        }
        for (chunk, selection) in selections.iter_mut().enumerate() {
            if let Some(selection) = selection {
                self.part(chunk).filter(predicates, selection);
            }
        }
        let passes = |&(chunk, row): &(usize, usize)| {
            selections[chunk]
                .as_ref()
                .is_some_and(|selection| selection.contains(row))
        };
        let passed = positions
            .iter()
            .zip(&located)
            .filter(|(_, located)| passes(located));
        Ok(passed.map(|(&position, _)| position).collect())
    }
}

impl Part<'_> {
    fn filter(&self, predicates: &[ColumnPredicate], selection: &mut Selection) {
        let isa = Isa::best();
        for predicate in predicates {
            match self {
                Part::Sealed(chunk) => chunk.filter(isa, predicate, selection),
                Part::Open(values) => filter_values(isa, values, predicate, selection),
            }
        }
    }
}

/// The same for values that are not encoded.
fn filter_values(isa: Isa, values: &[i64], predicate: &ColumnPredicate, selection: &mut Selection) {
    let mut passed = vec![0; values.len().div_ceil(64)];
    match predicate {
        ColumnPredicate::Never => {}
        ColumnPredicate::Integers { low, high } => {
            isa.between_i64(values, *low, *high, &mut passed);
        }
        other => {
            let condition = other.reduce(i64::MIN, i64::MAX);
            for (word, values) in passed.iter_mut().zip(values.chunks(64)) {
                for (bit, &value) in values.iter().enumerate() {
                    *word |= (condition.holds(|| value) as u64) << bit;
                }
            }
        }
    }
    let words = &mut selection.words_mut()[..passed.len()];
    eris_kernels::and(words, &passed);
}

/// Keys that ascend strictly, as the predicate that is probed fastest.
fn key_set(keys: Vec<i64>) -> ColumnPredicate {
    let (Some(&first), Some(&last)) = (keys.first(), keys.last()) else {
        return ColumnPredicate::Never;
    };
    let span = last.abs_diff(first);
    if span / BITMAP_BITS_PER_KEY >= keys.len() as u64 {
        return ColumnPredicate::IntegerSet(keys.into());
    }
    let mut words = vec![0; (span / 64) as usize + 1];
    for key in keys {
        let bit = key.abs_diff(first);
        words[(bit / 64) as usize] |= 1u64 << (bit % 64);
    }
    ColumnPredicate::IntegerBitmap {
        first,
        words: words.into(),
    }
}
