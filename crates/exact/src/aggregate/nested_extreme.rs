//! `max` and `min` of structs and lists, in the order of ORDER BY.
//!
//! **Stands for** what DataFusion's functions of the same names do with nested types. They pass over a value that has a
//! NULL in it.

use crate::comparison::nested::ORDER;
use datafusion::arrow::array::{Array, ArrayRef, UInt64Array, make_comparator, new_null_array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// The value so far, in an array of its own.
#[derive(Debug)]
pub(super) struct NestedExtreme {
    value: ArrayRef,
    is_max: bool,
}

impl NestedExtreme {
    pub fn new(data_type: &DataType, is_max: bool) -> Self {
        NestedExtreme {
            value: new_null_array(data_type, 1),
            is_max,
        }
    }

    fn better(&self, order: Ordering) -> bool {
        match self.is_max {
            true => order.is_gt(),
            false => order.is_lt(),
        }
    }
}

impl Accumulator for NestedExtreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = &values[0];
        let compare = make_comparator(values, values, ORDER)?;
        let mut known = (0..values.len()).filter(|row| values.is_valid(*row));
        let Some(first) = known.next() else {
            return Ok(());
        };
        let best = known.fold(first, |best, row| match self.better(compare(row, best)) {
            true => row,
            false => best,
        });
        let is_first = self.value.is_null(0);
        if is_first || self.better(make_comparator(values, &self.value, ORDER)?(best, 0)) {
            // A copy: a slice would keep the whole batch.
            self.value = take(values, &UInt64Array::from(vec![best as u64]), None)?;
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        ScalarValue::try_from_array(&self.value, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.value.get_array_memory_size()
    }
}

/// The same in a window whose frame leaves rows behind.
///
/// ```text
/// max of 5 3 4 1, frame of 3      5          5 3        5 4        4 1
///                                 what a later value excels never becomes the greatest, and is dropped
/// ```
#[derive(Debug)]
pub(super) struct SlidingNestedExtreme {
    converter: RowConverter,
    data_type: DataType,
    /// Values that are the best or will be, by the number of their row, as bytes in the order of the values.
    queue: VecDeque<(u64, OwnedRow)>,
    /// How many rows have come, and how many have left.
    came: u64,
    left: u64,
    is_max: bool,
}

impl SlidingNestedExtreme {
    pub fn new(data_type: &DataType, is_max: bool) -> Result<Self> {
        let field = SortField::new_with_options(data_type.clone(), ORDER);
        Ok(SlidingNestedExtreme {
            converter: RowConverter::new(vec![field])?,
            data_type: data_type.clone(),
            queue: VecDeque::new(),
            came: 0,
            left: 0,
            is_max,
        })
    }
}

impl Accumulator for SlidingNestedExtreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = self.converter.convert_columns(&values[..1])?;
        for row in 0..values[0].len() {
            if values[0].is_valid(row) {
                let value = rows.row(row);
                let excelled = |last: &OwnedRow| match self.is_max {
                    true => last.row() <= value,
                    false => last.row() >= value,
                };
                while self.queue.back().is_some_and(|(_, last)| excelled(last)) {
                    self.queue.pop_back();
                }
                self.queue.push_back((self.came, value.owned()));
            }
            self.came += 1;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.left += values[0].len() as u64;
        while self.queue.front().is_some_and(|(row, _)| *row < self.left) {
            self.queue.pop_front();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let Some((_, best)) = self.queue.front() else {
            return ScalarValue::try_from(&self.data_type);
        };
        let columns = self.converter.convert_rows([best.row()])?;
        ScalarValue::try_from_array(&columns[0], 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        let bytes = self.queue.iter().map(|(_, row)| row.row().data().len());
        size_of::<Self>()
            + self.queue.capacity() * size_of::<(u64, OwnedRow)>()
            + bytes.sum::<usize>()
    }
}
