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
    let (first, rest) = arrays.split_first().expect("a key has columns");
    let mut numbers = values_numbered(first);
    for array in rest {
        let more = values_numbered(array);
        numbers = renumbered(numbers.iter().zip(&more));
    }
    let mut rows = Vec::new();
    for (row, &number) in numbers.iter().enumerate() {
        if number as usize == rows.len() {
            rows.push(row as u32);
        }
    }
    let rows = UInt32Array::from(rows);
    let distinct = arrays.iter().map(|array| take(array, &rows, None));
    let distinct = distinct.map(|array| array.expect("rows of the array"));
    (numbers, distinct.collect())
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
