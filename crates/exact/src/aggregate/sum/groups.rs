//! SUM of many groups at once.

use super::total::{Reach, SumType, Summand, add};
use datafusion::arrow::array::ArrowNativeTypeOp;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::accumulate::NullState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A sum per group. That a sum leaves its type is rare, so it is noted apart.
#[derive(Debug)]
pub(super) struct GroupSums<T: Summand> {
    target: SumType<T>,
    sums: Vec<T::Native>,
    /// How often the sums of some groups wrapped; never 0.
    wraps: BTreeMap<usize, i64>,
    /// Of all values so far.
    reach: Reach,
    /// Which groups have had a value.
    seen: NullState,
}

impl<T: Summand> GroupSums<T> {
    pub fn new(target: SumType<T>) -> Self {
        GroupSums {
            target,
            sums: Vec::new(),
            wraps: BTreeMap::new(),
            reach: Reach::default(),
            seen: NullState::new(),
        }
    }

    /// Takes the first groups' notes; whether there were any. The other groups move to the front.
    fn take_wraps(&mut self, emit: EmitTo) -> bool {
        let rest = match emit {
            EmitTo::All => BTreeMap::new(),
            EmitTo::First(groups) => {
                let rest = self.wraps.split_off(&groups);
                rest.into_iter()
                    .map(|(group, wraps)| (group - groups, wraps))
                    .collect()
            }
        };
        !std::mem::replace(&mut self.wraps, rest).is_empty()
    }
}

#[cold]
fn note(wraps: &mut BTreeMap<usize, i64>, group: usize, by: i64) {
    let all = wraps.entry(group).or_insert(0);
    *all += by;
    if *all == 0 {
        wraps.remove(&group);
    }
}

impl<T: Summand> GroupsAccumulator for GroupSums<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        all: usize,
    ) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        self.sums.resize(all, T::default_value());
        let (sums, wraps) = (&mut self.sums[..], &mut self.wraps);
        if self.reach.stays_within(values.values()) {
            self.seen
                .accumulate(groups, values, filter, all, |group, value| {
                    sums[group] = sums[group].add_wrapping(value);
                });
        } else {
            self.seen
                .accumulate(groups, values, filter, all, |group, value| {
                    let by = add(&mut sums[group], value);
                    if by != 0 {
                        note(wraps, group, by);
                    }
                });
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], all: usize) -> Result<()> {
        self.update_batch(states, groups, None, all)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let sums = emit.take_needed(&mut self.sums);
        let nulls = self.seen.build(emit);
        if self.take_wraps(emit) || !sums.iter().all(|&sum| self.target.holds(sum)) {
            return Err(self.target.overflow());
        }
        let sums = PrimitiveArray::<T>::new(sums.into(), nulls);
        Ok(Arc::new(sums.with_data_type(self.target.data_type.clone())))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit)?])
    }

    /// Each row as the sum of a group of its own.
    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let (_, values, nulls) = values[0].as_primitive::<T>().clone().into_parts();
        let passed = filter.map(|filter| {
            let passed = NullBuffer::new(filter.values().clone());
            NullBuffer::union(Some(&passed), filter.nulls()).unwrap_or(passed)
        });
        let nulls = NullBuffer::union(nulls.as_ref(), passed.as_ref());
        let states = PrimitiveArray::<T>::new(values, nulls);
        Ok(vec![Arc::new(
            states.with_data_type(self.target.data_type.clone()),
        )])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<T::Native>()
            + self.wraps.len() * size_of::<(usize, i64)>()
            + self.seen.size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::sum::ExactSum;
    use datafusion::arrow::array::{Decimal128Array, Int64Array};
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::logical_expr::AggregateUDFImpl;
    use datafusion::logical_expr::function::AccumulatorArgs;
    use datafusion::physical_expr::PhysicalExpr;
    use datafusion::physical_expr::expressions::Column;

    fn sums(data_type: DataType) -> Box<dyn GroupsAccumulator> {
        let field = Arc::new(Field::new("x", data_type, true));
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new("x", 0));
        let args = AccumulatorArgs {
            return_field: Arc::clone(&field),
            schema: &Schema::new(vec![Arc::clone(&field)]),
            ignore_nulls: false,
            order_bys: &[],
            is_reversed: false,
            name: "sum(x)",
            is_distinct: false,
            exprs: &[column],
            expr_fields: &[field],
        };
        ExactSum::default().create_groups_accumulator(args).unwrap()
    }

    fn integers(values: &[Option<i64>]) -> Vec<ArrayRef> {
        vec![Arc::new(Int64Array::from(values.to_vec()))]
    }

    #[test]
    fn a_sum_may_leave_its_type_in_between() {
        let mut sums = sums(DataType::Int64);
        let values = integers(&[Some(i64::MAX), Some(2), Some(1), Some(-1), None]);
        sums.update_batch(&values, &[1, 0, 1, 1, 2], None, 3)
            .unwrap();
        let result = sums.evaluate(EmitTo::All).unwrap();
        let expected = Int64Array::from(vec![Some(2), Some(i64::MAX), None]);
        assert_eq!(result.as_primitive(), &expected);
    }

    #[test]
    fn an_overflow_is_that_of_its_group_also_when_groups_move_up() {
        let mut sums = sums(DataType::Int64);
        let values = integers(&[Some(1), Some(i64::MIN), Some(-1), Some(i64::MAX)]);
        sums.update_batch(&values, &[0, 2, 2, 1], None, 3).unwrap();
        let first = sums.evaluate(EmitTo::First(2)).unwrap();
        assert_eq!(first.as_primitive(), &Int64Array::from(vec![1, i64::MAX]));
        let error = sums.evaluate(EmitTo::All).unwrap_err().to_string();
        assert!(error.contains("overflow in sum(x)"), "{error}");
    }

    #[test]
    fn decimals_end_with_their_digits() {
        let mut sums = sums(DataType::Decimal128(3, 0));
        let values = Decimal128Array::from(vec![999, 1]).with_precision_and_scale(3, 0);
        let values: Vec<ArrayRef> = vec![Arc::new(values.unwrap())];
        sums.merge_batch(&values, &[0, 1], 2).unwrap();
        sums.merge_batch(&values, &[1, 0], 2).unwrap();
        assert!(sums.state(EmitTo::All).is_err());
    }

    #[test]
    fn rows_become_states_where_the_filter_lets_them() {
        let filter = BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]);
        let values = integers(&[Some(5), Some(6), Some(7), None]);
        let states = sums(DataType::Int64).convert_to_state(&values, Some(&filter));
        let expected = Int64Array::from(vec![Some(5), None, None, None]);
        assert_eq!(states.unwrap()[0].as_primitive(), &expected);
    }
}
