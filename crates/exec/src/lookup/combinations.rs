//! The combinations of values by which a relation's rows are grouped.
//!
//! Whatever the number of columns, a relation adds one small number to a row's group: that of its combination. Its
//! values are looked at only when groups are handed out.

use super::{KeyMap, NumberTable};
use crate::values::{Values, values};
use arrow_array::{Array, ArrayRef, StringViewArray, UInt32Array};
use arrow_buffer::NullBuffer;
use arrow_select::take::take;
use hashbrown::{HashMap, HashTable};
use std::hash::Hash;

/// Places of a table of values that may stand for one value each, per row.
const PLACES_PER_ROW: u64 = 4;

/// The combinations of some columns of a lookup.
#[derive(Debug)]
pub(crate) struct Combinations {
    /// Of combinations.
    pub(crate) numbers: CombinationNumbers,
    /// Which lookup of the fragment it is.
    pub(crate) lookup: usize,
    /// The key column.
    pub(crate) column: usize,
    /// The columns' values, one per combination.
    pub(crate) arrays: Vec<ArrayRef>,
}

/// What leads to numbers.
#[derive(Debug)]
pub(crate) enum CombinationNumbers {
    /// RelationKeys, each of which occurs once.
    OfKeys(KeyMap),
    /// The places of the relation's rows.
    OfPlaces(NumberTable),
}

/// The number of each row's combination, and the values of each combination, column by column.
pub(super) fn number(arrays: &[&ArrayRef]) -> (Vec<u32>, Vec<ArrayRef>) {
    let mut quick_first = arrays.to_vec();
    quick_first.sort_by_key(|array| !array.data_type().is_integer());
    let (first, rest) = quick_first.split_first().expect("a key has columns");
    let mut numbers = values_numbered(first);
    let mut rows = first_rows(&numbers);
    for array in rest {
        // Most often a relation is grouped by its key and by what depends on that.
        if !depends_on(array, &numbers, &rows) {
            let more = values_numbered(array);
            numbers = renumbered(numbers.iter().zip(&more));
            rows = first_rows(&numbers);
        }
    }
    let rows = UInt32Array::from(rows);
    let distinct = arrays.iter().map(|array| take(array, &rows, None));
    let distinct = distinct.map(|array| array.expect("rows of the array"));
    (numbers, distinct.collect())
}

/// The first row of each number.
fn first_rows(numbers: &[u32]) -> Vec<u32> {
    let mut rows = Vec::new();
    for (row, &number) in numbers.iter().enumerate() {
        if number as usize == rows.len() {
            rows.push(row as u32);
        }
    }
    rows
}

/// Whether rows of the same number have the same value; `first` has the first row of each number.
fn depends_on(array: &ArrayRef, numbers: &[u32], first: &[u32]) -> bool {
    let nulls = array.logical_nulls();
    let valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    macro_rules! all {
        ($value:expr) => {
            numbers.iter().enumerate().all(|(row, &number)| {
                let first = first[number as usize] as usize;
                row == first
                    || match (valid(row), valid(first)) {
                        (true, true) => $value(row) == $value(first),
                        (own, other) => own == other,
                    }
            })
        };
    }
    match values(array) {
        Values::Integers(values) => all!(|row: usize| values[row]),
        Values::Wide(values) => all!(|row: usize| values[row]),
        // Both zeros are equal.
        Values::Floats(values) => all!(|row: usize| (values[row] + 0.0).to_bits()),
        Values::Bytes(bytes) => all!(|row: usize| bytes.value(row)),
        Values::Strings(strings) => all!(|row: usize| strings.value(row)),
        Values::Codes(_) => unreachable!("an array holds no codes"),
    }
}

/// Numbers values in the order in which they are met.
fn renumbered<T: Hash + Eq>(values: impl Iterator<Item = T>) -> Vec<u32> {
    let mut numbers = HashMap::new();
    let number = |value| {
        let next = numbers.len() as u32;
        *numbers.entry(value).or_insert(next)
    };
    values.map(number).collect()
}

fn values_numbered(array: &ArrayRef) -> Vec<u32> {
    let nulls = array.logical_nulls();
    let valid = |row: usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    macro_rules! by {
        ($value:expr) => {
            renumbered((0..array.len()).map(|row| valid(row).then(|| $value(row))))
        };
    }
    match values(array) {
        Values::Integers(values) => {
            let (least, greatest) = values.iter().fold((i64::MAX, i64::MIN), |bounds, &value| {
                (bounds.0.min(value), bounds.1.max(value))
            });
            if nulls.is_none() && greatest.abs_diff(least) < PLACES_PER_ROW * values.len() as u64 {
                return counted(&values, least, greatest);
            }
            by!(|row: usize| values[row])
        }
        Values::Wide(values) => by!(|row: usize| values[row]),
        // Both zeros are equal.
        Values::Floats(values) => by!(|row: usize| (values[row] + 0.0).to_bits()),
        Values::Bytes(bytes) => by!(|row: usize| bytes.value(row)),
        Values::Strings(strings) => strings_numbered(&strings, nulls.as_ref()),
        Values::Codes(_) => unreachable!("an array holds no codes"),
    }
}

/// Numbers strings. Those of one dictionary have equal views if they are equal. So hardly one of them is looked at.
fn strings_numbered(strings: &StringViewArray, nulls: Option<&NullBuffer>) -> Vec<u32> {
    let mut by_view: HashTable<(u128, u32)> = HashTable::new();
    let mut by_string = HashMap::new();
    let mut next = 0;
    let mut fresh = || {
        next += 1;
        next - 1
    };
    let mut null = None;
    let number = |(row, &view): (usize, &u128)| {
        if nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return *null.get_or_insert_with(&mut fresh);
        }
        let hash = hash_of_view(view);
        if let Some(&(_, number)) = by_view.find(hash, |&(other, _)| other == view) {
            return number;
        }
        let number = *by_string
            .entry(strings.value(row))
            .or_insert_with(&mut fresh);
        by_view.insert_unique(hash, (view, number), |&(view, _)| hash_of_view(view));
        number
    };
    strings.views().iter().enumerate().map(number).collect()
}

/// Views are few in number, and looked up for each row: one multiplication has to do.
fn hash_of_view(view: u128) -> u64 {
    let (low, high) = (view as u64, (view >> 64) as u64);
    let product = u128::from(low ^ high.rotate_left(32)) * 0x9e37_79b9_7f4a_7c15;
    product as u64 ^ (product >> 64) as u64
}

/// The numbers of integers that lie close together.
fn counted(values: &[i64], least: i64, greatest: i64) -> Vec<u32> {
    let mut numbers = vec![u32::MAX; greatest.abs_diff(least) as usize + 1];
    let mut next = 0;
    let number = |value: &i64| {
        let number = &mut numbers[value.abs_diff(least) as usize];
        if *number == u32::MAX {
            *number = next;
            next += 1;
        }
        *number
    };
    values.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Float64Array, Int32Array, StringViewArray};
    use std::sync::Arc;

    /// The combinations as text, row by row, by way of their numbers.
    fn told(arrays: &[ArrayRef]) -> (usize, Vec<String>) {
        let arrays: Vec<&ArrayRef> = arrays.iter().collect();
        let (numbers, distinct) = number(&arrays);
        let text = |arrays: &[ArrayRef], row: usize| {
            let cell = |array: &ArrayRef| format!("{:?}", array.slice(row, 1));
            arrays.iter().map(cell).collect::<String>()
        };
        let rows = numbers
            .iter()
            .map(|&number| text(&distinct, number as usize));
        (distinct[0].len(), rows.collect())
    }

    #[test]
    fn combinations_are_those_of_the_rows() {
        let rows = 1000;
        let key: ArrayRef = Arc::new(Int32Array::from_iter((0..rows).map(|row| {
            let key = row % 40;
            (key != 7).then_some(key)
        })));
        let of_key = |row: i32| (row % 40 != 3).then(|| format!("depends on {}", row % 40 / 2));
        let of_key: ArrayRef = Arc::new((0..rows).map(of_key).collect::<StringViewArray>());
        let zeros = (0..rows).map(|row| if row % 80 < 40 { 0.0 } else { -0.0 });
        let zeros: ArrayRef = Arc::new(Float64Array::from_iter_values(zeros));
        let other =
            (0..rows).map(|row| (row % 3 != 0).then_some("a text of more than twelve bytes"));
        let other: ArrayRef = Arc::new(other.collect::<StringViewArray>());
        let as_they_are = |arrays: &[ArrayRef], row: usize| {
            let cell = |array: &ArrayRef| format!("{:?}", array.slice(row, 1));
            arrays.iter().map(cell).collect::<String>()
        };
        // The text depends on the number, and the other way round it does not.
        for (arrays, expected) in [
            (vec![key.clone(), of_key.clone()], 40),
            (vec![of_key.clone(), key.clone()], 40),
            (vec![of_key.clone()], 21),
            (vec![of_key.clone(), other.clone()], 42),
            (vec![key.clone(), of_key.clone(), other.clone()], 80),
            (vec![other, of_key], 42),
        ] {
            let (combinations, told) = told(&arrays);
            assert_eq!(combinations, expected);
            for (row, told) in told.iter().enumerate() {
                assert_eq!(*told, as_they_are(&arrays, row));
            }
        }
        assert_eq!(told(&[key, zeros]).0, 40, "both zeros are one");
    }
}
