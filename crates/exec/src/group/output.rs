//! Groups as record batches.

use super::index::GroupIndex;
use super::interner::Interner;
use super::keys::{GroupKeys, KeyPart, KeySource, dictionary};
use crate::columns::FragmentColumns;
use crate::expr::{integers_to_array, unexpected};
use arrow_array::{
    ArrayRef, Float32Array, Float64Array, RecordBatch, RecordBatchOptions, StringViewArray,
    UInt32Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat;
use arrow_select::take::take;
use eris_column::{Domain, wide_array};
use eris_fragment::FragmentError;
use std::sync::Arc;

/// Rows of an output batch.
pub(super) const BATCH_ROWS: usize = 8_192;

/// One key of the grouping, of all groups in the order of their numbers.
pub(super) fn key_array(
    part: KeyPart,
    keys: &GroupKeys,
    index: &GroupIndex,
    interners: &[Interner],
    columns: &FragmentColumns,
) -> ArrayRef {
    let (key, interner) = (&keys.keys[part.key], &interners[part.key]);
    let groups = index.groups();
    let field = |number: usize| {
        let field = &keys.fields[number];
        (0..groups).map(move |group| field.unpack(index.key(group, keys)))
    };
    let data_type = match &key.source {
        KeySource::Expression(expression) => &expression.data_type,
        KeySource::Joined(combinations) => {
            let numbers = field(key.field).map(|number| number as u32);
            let numbers = UInt32Array::from_iter_values(numbers);
            return take(&combinations.arrays[part.column], &numbers, None).expect("their numbers");
        }
    };
    let valid = (0..groups).map(|group| !key.null.is_set(index.key(group, keys)));
    let nulls = Some(valid.collect::<NullBuffer>()).filter(|nulls| nulls.null_count() > 0);
    let floats = || field(key.field).map(|bits| f64::from_bits(bits as u64));
    match key.domain {
        Domain::Integer => integers_to_array(data_type, field(key.field).collect(), nulls),
        Domain::Float32 => {
            let values: Vec<f32> = floats().map(|value| value as f32).collect();
            Arc::new(Float32Array::new(values.into(), nulls))
        }
        Domain::Float64 => Arc::new(Float64Array::new(
            floats().collect::<Vec<_>>().into(),
            nulls,
        )),
        Domain::Wide => {
            let halves = field(key.field).zip(field(key.field + 1));
            let values = halves.map(|(low, high)| (high as i128) << 64 | low as u64 as i128);
            wide_array(data_type, values.collect(), nulls)
        }
        Domain::Bytes => unreachable!("no groups by bytes"),
        Domain::String => {
            let codes: Vec<u32> = field(key.field).map(|code| code as u32).collect();
            let codes = UInt32Array::new(codes.into(), nulls);
            let own: StringViewArray = interner.strings().iter().map(Some).collect();
            let strings = match dictionary(key, columns) {
                Some(dictionary) if interner.strings().is_empty() => dictionary.values().clone(),
                Some(dictionary) => {
                    let both = concat(&[dictionary.values(), &own]).expect("strings and strings");
                    arrow_array::cast::AsArray::as_string_view(&both).clone()
                }
                None => own,
            };
            take(&strings, &codes, None).expect("a code for each string")
        }
    }
}

/// The arrays, cut into batches.
pub(super) fn batches(
    schema: &SchemaRef,
    arrays: Vec<ArrayRef>,
    rows: usize,
) -> Result<Vec<RecordBatch>, FragmentError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let whole = RecordBatch::try_new_with_options(schema.clone(), arrays, &options);
    let whole = whole.map_err(unexpected)?;
    let starts = (0..rows).step_by(BATCH_ROWS);
    Ok(starts
        .map(|start| whole.slice(start, BATCH_ROWS.min(rows - start)))
        .collect())
}
