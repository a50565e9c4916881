//! The rows of a relation in which keys occur more than once, those of each key side by side.
//!
//! ```text
//! rows as they came   17  4  17  9  4  17            key ── KeyMap ──▶ its number n
//! side by side        17 17  17  4  4   9            rows of the key: starts[n] .. starts[n + 1]
//! starts               0          3     5   6
//! ```
//!
//! A key's matches follow each other, so that their values lie in as few lines of the cache as they can.
//!
//! Why rows are paired here: docs/decisions/0020.

use super::combinations;
use crate::values::{Values, values};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::take::{take, take_record_batch};

/// Where the rows of each key are.
#[derive(Debug)]
pub(crate) struct Matches {
    /// Per key its first row, and behind the last key the number of rows.
    starts: Vec<u32>,
}

impl Matches {
    /// The keys of a relation, which are its first column, each once; where the rows of each are; and the rows, those
    /// of a key side by side.
    pub(super) fn group(rows: &RecordBatch) -> Result<(ArrayRef, Self, RecordBatch), ArrowError> {
        if let Values::Integers(keys) = values(rows.column(0))
            && keys.is_sorted()
        {
            let starts = runs(&keys);
            let first = UInt32Array::from(starts[..starts.len() - 1].to_vec());
            let keys = take(rows.column(0), &first, None)?;
            return Ok((keys, Matches { starts }, rows.clone()));
        }
        let (numbers, mut keys) = combinations::number(&[rows.column(0)]);
        let keys = keys.pop().expect("one column");
        let mut starts = vec![0; keys.len() + 1];
        for &number in &numbers {
            starts[number as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut order = vec![0; numbers.len()];
        for (row, &number) in numbers.iter().enumerate() {
            let place = &mut next[number as usize];
            order[*place as usize] = row as u32;
            *place += 1;
        }
        let rows = take_record_batch(rows, &UInt32Array::from(order))?;
        Ok((keys, Matches { starts }, rows))
    }

    /// The same behind a row that stands for no match, whose number is 0.
    pub(super) fn behind_no_match(self) -> Self {
        let others = self.starts.iter().map(|start| start + 1);
        Matches {
            starts: std::iter::once(0).chain(others).collect(),
        }
    }

    /// The first rows of keys by their numbers, and how many there are of each.
    pub(crate) fn ranges(&self, numbers: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let start = |&number: &u32| self.starts[number as usize];
        let starts: Vec<u32> = numbers.iter().map(start).collect();
        let count = |(&number, start): (&u32, &u32)| self.starts[number as usize + 1] - start;
        let counts = numbers.iter().zip(&starts).map(count).collect();
        (starts, counts)
    }
}

/// Where each run of equal values begins, and the number of values.
fn runs(values: &[i64]) -> Vec<u32> {
    let mut starts = Vec::new();
    let mut last = None;
    for (row, value) in values.iter().enumerate() {
        if last != Some(value) {
            starts.push(row as u32);
        }
        last = Some(value);
    }
    starts.push(values.len() as u32);
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Int64Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_schema::{DataType, Field, Schema};
    use std::sync::Arc;

    /// Per key, in ascending order, what its rows have beside it.
    fn grouped(keys: &[i64]) -> Vec<(i64, Vec<i64>)> {
        let field = |name| Field::new(name, DataType::Int64, false);
        let columns: [ArrayRef; 2] = [
            Arc::new(Int64Array::from(keys.to_vec())),
            Arc::new(Int64Array::from_iter_values(0..keys.len() as i64)),
        ];
        let schema = Arc::new(Schema::new(vec![field("k"), field("v")]));
        let rows = RecordBatch::try_new(schema, columns.to_vec()).unwrap();
        let (keys, matches, rows) = Matches::group(&rows).unwrap();
        let numbers: Vec<u32> = (0..keys.len() as u32).collect();
        let (starts, counts) = matches.ranges(&numbers);
        let of = |column: usize| rows.column(column).as_primitive::<Int64Type>().values();
        let keys = keys.as_primitive::<Int64Type>().values();
        let ranges = keys.iter().zip(starts.iter().zip(&counts));
        let mut all: Vec<(i64, Vec<i64>)> = ranges
            .map(|(&key, (&start, &count))| {
                let rows = start as usize..(start + count) as usize;
                assert!(of(0)[rows.clone()].iter().all(|own| *own == key));
                (key, of(1)[rows].to_vec())
            })
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn rows_in_the_order_of_their_keys_are_grouped_as_others_are() {
        let in_order = grouped(&[-4, -4, 2, 7, 7, 7]);
        assert_eq!(
            in_order,
            [(-4, vec![0, 1]), (2, vec![2]), (7, vec![3, 4, 5])]
        );
        let others = grouped(&[7, -4, 7, 2, -4, 7]);
        assert_eq!(others, [(-4, vec![1, 4]), (2, vec![3]), (7, vec![0, 2, 5])]);
        assert_eq!(grouped(&[]), []);
    }
}
