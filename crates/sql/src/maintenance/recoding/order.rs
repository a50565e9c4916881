//! The order of a table's rows in which most of what is asked for lies together.
//!
//! ```text
//! region ◀─ nation ◀─ city        each city is in one nation, each nation in one region: a hierarchy in the data
//!    5        25       250        the longest one wins; rows are ordered by it, coarsest attribute first, then by key
//! ```
//!
//! An order that the table's definition gives wins over all. If the order of the keys keeps the values of an attribute
//! together, as that of days keeps years, it is such an order already, and is left alone.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::{
    SortColumn, cast, concat, filter_record_batch, is_not_null, lexsort_to_indices,
};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::arrow::record_batch::RecordBatch;
use std::collections::HashMap;
use std::hash::Hash;

/// An attribute has one value for so many rows, at least.
const ROWS_PER_VALUE: usize = 4;
/// And no more values than this.
const MOST_VALUES: usize = 1 << 16;

/// Keys in an order.
#[derive(Debug, PartialEq)]
pub(super) struct Ordered {
    pub keys: Vec<i64>,
    /// The columns by which they were put in order, the coarsest first; without any it is the keys' own order.
    pub attributes: Vec<usize>,
}

/// An attribute: per row the rank of its value among all its values.
struct Attribute {
    column: usize,
    ranks: Vec<u32>,
    values: usize,
}

/// The keys in such an order, that of the columns in `declared` if there are some; `None` if their own order is one and
/// they have no gaps, or if they are no keys.
pub(super) fn of(rows: &[RecordBatch], key: usize, declared: &[usize]) -> Option<Ordered> {
    let rows = rows.iter().map(|batch| with_key(batch, key));
    let rows: Vec<RecordBatch> = rows.collect::<Option<_>>()?;
    let columns = rows.first()?.num_columns();
    let whole = |column| whole(&rows, column);
    let keys = eris_fragment::integer_keys(&whole(key)?)?;
    if !declared.is_empty() {
        let ordered = in_order(&rows, declared, key)?;
        let is_natural = ordered
            .windows(2)
            .all(|pair| pair[1] == pair[0].wrapping_add(1));
        return (!is_natural).then(|| Ordered {
            keys: ordered,
            attributes: declared.to_vec(),
        });
    }
    let mut by_key: Vec<u32> = (0..keys.len() as u32).collect();
    by_key.sort_unstable_by_key(|&row| keys[row as usize]);
    let mut attributes = Vec::new();
    for column in (0..columns).filter(|&column| column != key) {
        attributes.extend(whole(column).and_then(|values| attribute(column, &values)));
    }
    let is_kept_together = |attribute: &Attribute| {
        let ranks = by_key.iter().map(|&row| attribute.ranks[row as usize]);
        let mut last = None;
        let runs = ranks
            .filter(|&rank| last.replace(rank) != Some(rank))
            .count();
        runs == attribute.values
    };
    let natural = attributes.iter().any(is_kept_together);
    let chain = match natural {
        true => Vec::new(),
        false => longest_chain(&mut attributes),
    };
    if chain.is_empty() {
        let (first, last) = (
            keys[*by_key.first()? as usize],
            keys[*by_key.last()? as usize],
        );
        let has_gaps = last.abs_diff(first) != keys.len() as u64 - 1;
        return has_gaps.then(|| Ordered {
            keys: by_key.iter().map(|&row| keys[row as usize]).collect(),
            attributes: Vec::new(),
        });
    }
    let mut ordered = by_key;
    // Stable, and therefore by key in the end.
    ordered.sort_by_cached_key(|&row| {
        let ranks = chain.iter().map(|&at| attributes[at].ranks[row as usize]);
        ranks.collect::<Vec<_>>()
    });
    Some(Ordered {
        keys: ordered.iter().map(|&row| keys[row as usize]).collect(),
        attributes: chain.iter().map(|&at| attributes[at].column).collect(),
    })
}

/// The keys in the first column that are not known, in the order of the other columns and then their own; `None` if
/// they are no keys.
pub(super) fn late(rows: &[RecordBatch], is_known: impl Fn(i64) -> bool) -> Option<Vec<i64>> {
    let of_late = rows.iter().map(|batch| {
        let batch = with_key(batch, 0)?;
        let keys = eris_fragment::integer_keys(batch.column(0))?;
        let late: BooleanArray = keys.iter().map(|&key| Some(!is_known(key))).collect();
        filter_record_batch(&batch, &late).ok()
    });
    let rows: Vec<RecordBatch> = of_late.collect::<Option<_>>()?;
    let Some(first) = rows.first() else {
        return Some(Vec::new());
    };
    let attributes: Vec<usize> = (1..first.num_columns()).collect();
    in_order(&rows, &attributes, 0)
}

/// The keys in the order of some columns, and then their own.
fn in_order(rows: &[RecordBatch], by: &[usize], key: usize) -> Option<Vec<i64>> {
    let keys = eris_fragment::integer_keys(&whole(rows, key)?)?;
    let by = by.iter().copied().chain([key]);
    let by = by.map(|column| {
        let values = whole(rows, column)?;
        Some(SortColumn {
            values,
            options: None,
        })
    });
    let ordered = lexsort_to_indices(&by.collect::<Option<Vec<_>>>()?, None).ok()?;
    let ordered = ordered.values().iter().map(|&row| keys[row as usize]);
    Some(ordered.collect())
}

/// The rows that have a key.
fn with_key(batch: &RecordBatch, key: usize) -> Option<RecordBatch> {
    let valid = is_not_null(batch.column(key)).ok()?;
    filter_record_batch(batch, &valid).ok()
}

/// A column of all rows.
fn whole(rows: &[RecordBatch], column: usize) -> Option<ArrayRef> {
    let pieces = rows.iter().map(|batch| batch.column(column).as_ref());
    concat(&pieces.collect::<Vec<&dyn Array>>()).ok()
}

/// The longest chain of attributes of which each determines the one before: their places, the coarsest first.
fn longest_chain(attributes: &mut [Attribute]) -> Vec<usize> {
    attributes.sort_by_key(|attribute| attribute.values);
    let mut best: Vec<Vec<usize>> = Vec::new();
    for (at, attribute) in attributes.iter().enumerate() {
        let determined = (0..at).filter(|&other| determines(attribute, &attributes[other]));
        let longest = determined.max_by_key(|&other| best[other].len());
        let mut chain = longest.map_or_else(Vec::new, |other| best[other].clone());
        chain.push(at);
        best.push(chain);
    }
    best.into_iter().max_by_key(Vec::len).unwrap_or_default()
}

/// Whether rows with the same value of the one have the same value of the other.
fn determines(fine: &Attribute, coarse: &Attribute) -> bool {
    let mut of = vec![u32::MAX; fine.values];
    fine.ranks
        .iter()
        .zip(&coarse.ranks)
        .all(|(&fine, &coarse)| {
            let known = &mut of[fine as usize];
            if *known == u32::MAX {
                *known = coarse;
            }
            *known == coarse
        })
}

/// A column as an attribute, if it has few values, and more than one.
fn attribute(column: usize, values: &ArrayRef) -> Option<Attribute> {
    let most = MOST_VALUES.min(values.len() / ROWS_PER_VALUE);
    let (ranks, values) = match values.data_type() {
        DataType::Utf8View => ranked(values.as_string_view().iter(), most),
        DataType::Boolean => ranked(values.as_boolean().iter(), most),
        DataType::Date32 | DataType::Time64(_) | DataType::Timestamp(..) => {
            let days = match values.data_type() {
                DataType::Date32 => cast(values, &DataType::Int32).ok()?,
                _ => values.clone(),
            };
            ranked(
                cast(&days, &DataType::Int64)
                    .ok()?
                    .as_primitive::<Int64Type>()
                    .iter(),
                most,
            )
        }
        integer if integer.is_integer() => {
            let values = cast(values, &DataType::Int64).ok()?;
            ranked(values.as_primitive::<Int64Type>().iter(), most)
        }
        _ => None,
    }?;
    Some(Attribute {
        column,
        ranks,
        values,
    })
}

/// Per row the rank of its value, and how many values there are.
fn ranked<T: Hash + Ord + Copy>(
    values: impl Iterator<Item = Option<T>>,
    most: usize,
) -> Option<(Vec<u32>, usize)> {
    let mut numbers = HashMap::new();
    let mut ranks = Vec::new();
    for value in values {
        let next = numbers.len() as u32;
        ranks.push(*numbers.entry(value).or_insert(next));
        if numbers.len() > most {
            return None;
        }
    }
    let mut distinct: Vec<(Option<T>, u32)> = numbers.into_iter().collect();
    distinct.sort_unstable();
    let mut rank_of = vec![0; distinct.len()];
    for (rank, (_, number)) in distinct.iter().enumerate() {
        rank_of[*number as usize] = rank as u32;
    }
    ranks
        .iter_mut()
        .for_each(|rank| *rank = rank_of[*rank as usize]);
    (distinct.len() > 1).then_some((ranks, distinct.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int32Array, Int64Array, StringViewArray};
    use std::sync::Arc;

    fn table(columns: Vec<(&str, ArrayRef)>) -> Vec<RecordBatch> {
        let whole = RecordBatch::try_from_iter(columns).unwrap();
        let half = whole.num_rows() / 2;
        vec![
            whole.slice(0, half),
            whole.slice(half, whole.num_rows() - half),
        ]
    }

    fn texts(of: impl Iterator<Item = String>) -> ArrayRef {
        Arc::new(StringViewArray::from_iter_values(of))
    }

    #[test]
    fn the_longest_hierarchy_orders_the_rows() {
        let keys = 0..1000i64;
        // 97 and 1000 have no common factor: values are all over the keys.
        let city = |key: i64| key * 97 % 40;
        let rows = table(vec![
            (
                "shade",
                texts(keys.clone().map(|key| format!("shade {}", key * 31 % 7))),
            ),
            (
                "k",
                Arc::new(Int64Array::from_iter_values(keys.clone())) as _,
            ),
            (
                "city",
                texts(keys.clone().map(|key| format!("city {:02}", city(key)))),
            ),
            (
                "land",
                texts(keys.clone().map(|key| format!("land {}", city(key) % 4))),
            ),
            ("name", texts(keys.clone().map(|key| format!("name {key}")))),
        ]);
        let ordered = of(&rows, 1, &[]).expect("a hierarchy");
        let mut expected: Vec<i64> = keys.collect();
        expected.sort_by_key(|&key| (city(key) % 4, city(key), key));
        assert_eq!(ordered.keys, expected);
        assert_eq!(ordered.attributes, [3, 2], "land, then city");
        // Shade 0 to 6 before city; names are unique.
        let declared = of(&rows, 1, &[0, 2]).expect("an order");
        expected.sort_by_key(|&key| (key * 31 % 7, city(key), key));
        assert_eq!(declared.keys, expected);
        assert_eq!(declared.attributes, [0, 2]);
        assert_eq!(of(&rows, 1, &[1]), None, "that of the keys");
        let by_name = of(&rows, 1, &[4]).expect("an order");
        expected.sort_by_key(|key| format!("name {key}"));
        assert_eq!(by_name.keys, expected);
    }

    #[test]
    fn an_order_of_keys_that_keeps_values_together_stays() {
        let days: Vec<i32> = (0..700)
            .map(|day| 20_240_000 + day / 28 * 100 + day % 28)
            .collect();
        let year = Int32Array::from_iter_values(days.iter().map(|day| day / 1000));
        let parity = Int32Array::from_iter_values(days.iter().map(|day| day % 2));
        let rows = |keys: Vec<i32>| {
            table(vec![
                ("k", Arc::new(Int32Array::from(keys)) as _),
                ("year", Arc::new(year.clone()) as _),
                ("parity", Arc::new(parity.clone()) as _),
            ])
        };
        let ordered = of(&rows(days.clone()), 0, &[]).expect("keys with gaps");
        assert_eq!(
            ordered.keys,
            days.iter().map(|&day| day as i64).collect::<Vec<_>>()
        );
        assert_eq!(
            of(&rows((0..700).collect()), 0, &[]),
            None,
            "nothing to be gained"
        );
    }

    #[test]
    fn without_attributes_keys_with_gaps_move_together() {
        let rows = table(vec![(
            "k",
            Arc::new(Int64Array::from(vec![900, -5, 7, 100])) as _,
        )]);
        let ordered = Ordered {
            keys: vec![-5, 7, 100, 900],
            attributes: vec![],
        };
        assert_eq!(of(&rows, 0, &[]), Some(ordered));
    }
}
