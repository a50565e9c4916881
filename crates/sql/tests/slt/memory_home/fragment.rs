//! A fragment over batches: scan, filter, probes, lookups, output, one after the other.

use super::expression::{Rows, places, unexpected};
use super::groups;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, UInt32Array};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::{cast, take};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use eris_fragment::{Fragment, FragmentError, KeySet, Lookup, Output, integer_keys};
use std::collections::HashMap;
use std::sync::Arc;

/// What a fragment yields, if there is anything, of these rows of its columns; and how many rows have passed.
pub fn run(
    fragment: &Fragment,
    columns: Vec<ArrayRef>,
    count: usize,
    mut names: Vec<String>,
) -> Result<(Option<RecordBatch>, usize), FragmentError> {
    for lookup in &fragment.lookups {
        let fields = lookup.rows.schema();
        names.extend(
            fields
                .fields()
                .iter()
                .skip(1)
                .map(|field| field.name().clone()),
        );
    }
    let mut rows = Rows {
        columns,
        count,
        names: &names,
    };
    for condition in &fragment.filter {
        rows = rows.filter(condition)?;
    }
    for probe in &fragment.probes {
        rows = rows.pick(&places(&contained(
            &rows.columns[probe.column],
            &probe.keys,
        )))?;
    }
    for lookup in &fragment.lookups {
        rows = joined(rows, lookup)?;
    }
    let passed = rows.count;
    let (columns, count) = match &fragment.output {
        Output::Rows { columns, .. } => {
            let columns = columns.iter().map(|column| rows.evaluate(column));
            (columns.collect::<Result<Vec<_>, _>>()?, rows.count)
        }
        Output::Groups { keys, aggregates } => {
            let columns = groups::columns(&rows, keys, aggregates)?;
            let count = columns.first().map_or(1, |column| column.len());
            (columns, count)
        }
    };
    if count == 0 {
        return Ok((None, passed));
    }
    let fields = columns.iter().enumerate();
    let fields =
        fields.map(|(at, column)| Field::new(format!("c{at}"), column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    let batch = RecordBatch::try_new_with_options(schema, columns, &options);
    Ok((Some(batch.map_err(unexpected)?), passed))
}

/// Which values are in a set of keys. NULL never is.
fn contained(values: &ArrayRef, set: &KeySet) -> BooleanBuffer {
    let has = |key: i64| match set {
        KeySet::Range { low, high } => (*low..=*high).contains(&key),
        KeySet::Bitmap { first, words } => {
            let bit = key
                .checked_sub(*first)
                .and_then(|bit| usize::try_from(bit).ok());
            let word = bit.and_then(|bit| Some((words.get(bit / 64)?, bit % 64)));
            word.is_some_and(|(word, bit)| word >> bit & 1 == 1)
        }
        KeySet::Integers(keys) => keys.binary_search(&key).is_ok(),
        KeySet::Strings(_) => false,
    };
    match (set, integer_keys_of(values)) {
        (KeySet::Strings(keys), _) => {
            let strings = values.as_string_view();
            let has = |at: usize| {
                let key = strings.value(at);
                keys.binary_search_by(|other| other.as_str().cmp(key))
                    .is_ok()
            };
            BooleanBuffer::collect_bool(values.len(), |at| values.is_valid(at) && has(at))
        }
        (_, Some(keys)) => {
            BooleanBuffer::collect_bool(keys.len(), |at| values.is_valid(at) && has(keys[at]))
        }
        (_, None) => BooleanBuffer::new_unset(values.len()),
    }
}

/// Integers as keys; those of strings are none.
fn integer_keys_of(values: &ArrayRef) -> Option<Vec<i64>> {
    match values.data_type() {
        DataType::Utf8View => None,
        _ => integer_keys(values),
    }
}

/// A row for each row and each row of the relation that has its key; of an outer join, also for a row without one.
fn joined<'a>(rows: Rows<'a>, lookup: &Lookup) -> Result<Rows<'a>, FragmentError> {
    let values = &rows.columns[lookup.column];
    let of_relation = keys(lookup.keys());
    let mut places: HashMap<&Key, Vec<u32>> = HashMap::new();
    for (key, at) in of_relation.iter().zip(0..) {
        if let Some(key) = key {
            places.entry(key).or_default().push(at);
        }
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for (key, row) in keys(values).iter().zip(0..) {
        let matches = key.as_ref().and_then(|key| places.get(key));
        for &at in matches.into_iter().flatten() {
            left.push(row);
            right.push(Some(at));
        }
        if lookup.outer && matches.is_none() {
            left.push(row);
            right.push(None);
        }
    }
    let mut joined = rows.pick(&UInt32Array::from(left))?;
    let right = UInt32Array::from(right);
    for column in lookup.joined() {
        let column = take(column, &right, None);
        joined.columns.push(column.map_err(unexpected)?);
    }
    Ok(joined)
}

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Integer(i64),
    String(String),
}

/// The key of each row, unless it is NULL.
fn keys(values: &ArrayRef) -> Vec<Option<Key>> {
    let at = |at: usize, key: Key| values.is_valid(at).then_some(key);
    if let Some(keys) = integer_keys_of(values) {
        let keys = keys.into_iter().enumerate();
        return keys.map(|(row, key)| at(row, Key::Integer(key))).collect();
    }
    let strings = cast(values, &DataType::Utf8View).expect("keys are integers or strings");
    let strings = strings.as_string_view();
    let strings = (0..values.len()).map(|row| at(row, Key::String(strings.value(row).to_owned())));
    strings.collect()
}
