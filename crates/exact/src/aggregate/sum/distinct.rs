//! SUM (DISTINCT …).

use super::total::{SumType, Summand, Total, for_each};
use datafusion::arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::common::{HashMap, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;
use std::sync::Arc;

/// The sum of the values that occur at all. Its state is the list of them.
#[derive(Debug)]
pub(super) struct DistinctSum<T: Summand> {
    target: SumType<T>,
    /// How often each value occurs.
    values: HashMap<T::Native, u64>,
    total: Total<T::Native>,
}

impl<T: Summand> DistinctSum<T> {
    pub fn new(target: SumType<T>) -> Self {
        DistinctSum {
            target,
            values: HashMap::default(),
            total: Total::default(),
        }
    }

    fn insert(&mut self, value: T::Native) {
        let times = self.values.entry(value).or_insert(0);
        if *times == 0 {
            self.total.add(value);
        }
        *times += 1;
    }

    fn remove(&mut self, value: T::Native) {
        let times = self.values.get_mut(&value).expect("was inserted before");
        *times -= 1;
        if *times == 0 {
            self.values.remove(&value);
            self.total.subtract(value);
        }
    }
}

impl<T: Summand> Accumulator for DistinctSum<T> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for_each(values[0].as_primitive::<T>(), |value| self.insert(value));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for_each(values[0].as_primitive::<T>(), |value| self.remove(value));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for list in states[0].as_list::<i32>().iter().flatten() {
            self.update_batch(&[list])?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = PrimitiveArray::<T>::from_iter_values(self.values.keys().copied());
        let values = values.with_data_type(self.target.data_type.clone());
        let list = SingleRowListArrayBuilder::new(Arc::new(values));
        Ok(vec![list.build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.target
            .value((!self.values.is_empty()).then_some(self.total))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<(T::Native, u64)>()
    }
}
