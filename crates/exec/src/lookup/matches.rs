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
use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::take::take_record_batch;

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
