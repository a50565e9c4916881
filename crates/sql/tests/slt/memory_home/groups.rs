//! Partial aggregates of a fragment, all rows at once.

use super::expression::{Rows, convert, one_zero, unexpected};
use datafusion::arrow::array::types::{Decimal128Type, Float64Type};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, UInt32Array,
};
use datafusion::arrow::compute::{self, take};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use eris_fragment::{Aggregate, AggregateFunction, Expr, FragmentError};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// The columns of the groups: the keys, then a state for each aggregate.
pub fn columns(
    rows: &Rows<'_>,
    keys: &[Expr],
    aggregates: &[Aggregate],
) -> Result<Vec<ArrayRef>, FragmentError> {
    let keys = keys.iter().map(|key| Ok(one_zero(&rows.evaluate(key)?)));
    let keys: Vec<ArrayRef> = keys.collect::<Result<_, FragmentError>>()?;
    let (groups, firsts) = match keys.is_empty() {
        true => (vec![0; rows.count], None),
        false => {
            let (groups, firsts) = numbered(&keys, rows.count)?;
            (groups, Some(firsts))
        }
    };
    // Without keys there is one group, even without rows.
    let count = firsts.as_ref().map_or(1, UInt32Array::len);
    let mut columns = Vec::new();
    for key in &keys {
        let firsts = firsts.as_ref().expect("there are keys");
        columns.push(take(key, firsts, None).map_err(unexpected)?);
    }
    for aggregate in aggregates {
        columns.push(state(rows, aggregate, &groups, count)?);
    }
    Ok(columns)
}

/// The group of each row, and a row of each group.
fn numbered(keys: &[ArrayRef], rows: usize) -> Result<(Vec<usize>, UInt32Array), FragmentError> {
    let keys = row_keys(keys)?;
    let mut numbers: HashMap<&OwnedRow, usize> = HashMap::new();
    let mut firsts = Vec::new();
    let mut groups = Vec::with_capacity(rows);
    for (row, key) in keys.iter().enumerate() {
        let next = numbers.len();
        let number = *numbers.entry(key).or_insert_with(|| {
            firsts.push(row as u32);
            next
        });
        groups.push(number);
    }
    Ok((groups, UInt32Array::from(firsts)))
}

/// Columns as one comparable value per row.
pub fn row_keys(columns: &[ArrayRef]) -> Result<Vec<OwnedRow>, FragmentError> {
    let columns: Vec<ArrayRef> = columns.iter().map(one_zero).collect();
    let fields = columns
        .iter()
        .map(|column| SortField::new(column.data_type().clone()));
    let converter = RowConverter::new(fields.collect()).map_err(unexpected)?;
    let rows = converter.convert_columns(&columns).map_err(unexpected)?;
    Ok(rows.iter().map(|row| row.owned()).collect())
}

fn state(
    rows: &Rows<'_>,
    aggregate: &Aggregate,
    groups: &[usize],
    count: usize,
) -> Result<ArrayRef, FragmentError> {
    // What is left out must not be looked at: it may fail.
    let (rows, groups) = match &aggregate.filter {
        Some(filter) => {
            let places = super::expression::places(&rows.truth(filter)?);
            let groups = places.values().iter().map(|&row| groups[row as usize]);
            (&rows.pick(&places)?, groups.collect())
        }
        None => (rows, groups.to_vec()),
    };
    let input = aggregate.input.as_ref().map(|input| rows.evaluate(input));
    let input = input.transpose()?;
    let to = DataType::from(&aggregate.state);
    let Some(input) = input else {
        return counted(groups.iter().copied(), count, &to);
    };
    let valid = || (groups.iter().enumerate()).filter(|(row, _)| input.is_valid(*row));
    match aggregate.function {
        AggregateFunction::Count => counted(valid().map(|(_, group)| *group), count, &to),
        AggregateFunction::Min | AggregateFunction::Max => {
            let wanted = match aggregate.function {
                AggregateFunction::Min => Ordering::Less,
                _ => Ordering::Greater,
            };
            let keys = row_keys(std::slice::from_ref(&input))?;
            let mut best: Vec<Option<u32>> = vec![None; count];
            for (row, &group) in valid() {
                let best = &mut best[group];
                if best.is_none_or(|best| keys[row].cmp(&keys[best as usize]) == wanted) {
                    *best = Some(row as u32);
                }
            }
            let values = take(&input, &UInt32Array::from(best), None).map_err(unexpected)?;
            compute::cast(&values, &to).map_err(unexpected)
        }
        AggregateFunction::Sum => {
            let what = || {
                let name = |column: usize| rows.names[column].clone();
                let input = aggregate
                    .input
                    .as_ref()
                    .map(|input| input.named(&name).to_string());
                format!("SUM({})", input.unwrap_or_default())
            };
            let overflow = || FragmentError::Overflow { what: what() };
            let input = convert(&input, &to).map_err(|_| overflow())?;
            if to.is_floating() {
                let input = compute::cast(&input, &DataType::Float64).map_err(unexpected)?;
                let values = input.as_primitive::<Float64Type>();
                let mut sums = vec![None; count];
                for (row, &group) in valid() {
                    *sums[group].get_or_insert(0.0) += values.value(row);
                }
                let sums: ArrayRef = Arc::new(Float64Array::from(sums));
                return compute::cast(&sums, &to).map_err(unexpected);
            }
            let (precision, scale) = match to {
                DataType::Decimal128(precision, scale) => (precision, scale),
                _ => (38, 0),
            };
            let wide = DataType::Decimal128(38, scale);
            let input = compute::cast(&input, &wide).map_err(unexpected)?;
            let values = input.as_primitive::<Decimal128Type>();
            let mut sums: Vec<Option<i128>> = vec![None; count];
            for (row, &group) in valid() {
                let sum = sums[group].get_or_insert(0);
                *sum = sum.checked_add(values.value(row)).ok_or_else(overflow)?;
            }
            let sums = Decimal128Array::from(sums);
            let sums = sums
                .with_precision_and_scale(precision, scale)
                .map_err(unexpected)?;
            sums.validate_decimal_precision(precision)
                .map_err(|_| overflow())?;
            let sums: ArrayRef = Arc::new(sums);
            convert(&sums, &to).map_err(|_| overflow())
        }
    }
}

fn counted(
    groups: impl Iterator<Item = usize>,
    count: usize,
    to: &DataType,
) -> Result<ArrayRef, FragmentError> {
    let mut counts = vec![0i64; count];
    groups.for_each(|group| counts[group] += 1);
    let counts: ArrayRef = Arc::new(Int64Array::from(counts));
    compute::cast(&counts, to).map_err(unexpected)
}
