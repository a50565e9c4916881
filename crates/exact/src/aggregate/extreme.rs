//! `max` and `min` of floating-point numbers by groups, where NaN is greater than any number.
//!
//! **Stands for** DataFusion's functions of the same names. Their groups compare by `>`, to which NaN is neither more
//! nor less: what they give depends on the order of the rows. All else is done by DataFusion.

use super::nested_extreme::{NestedExtreme, SlidingNestedExtreme};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, PrimitiveArray};
use datafusion::arrow::buffer::{BooleanBuffer, NullBuffer};
use datafusion::arrow::datatypes::{
    ArrowNativeTypeOp, ArrowPrimitiveType, DataType, FieldRef, Float32Type, Float64Type,
};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF,
    SetMonotonicity, Signature, StatisticsArgs,
};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The function.
#[derive(Debug)]
pub(crate) struct Extreme {
    other: Arc<dyn AggregateUDFImpl>,
    is_max: bool,
}

impl Extreme {
    /// `max`.
    pub fn greatest() -> Self {
        Extreme {
            other: Arc::new(Max::new()),
            is_max: true,
        }
    }

    /// `min`.
    pub fn least() -> Self {
        Extreme {
            other: Arc::new(Min::new()),
            is_max: false,
        }
    }
}

impl PartialEq for Extreme {
    fn eq(&self, other: &Self) -> bool {
        self.is_max == other.is_max
    }
}

impl Eq for Extreme {}

impl Hash for Extreme {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.is_max.hash(state);
    }
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn signature(&self) -> &Signature {
        self.other.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.other.return_type(types)
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.other.coerce_types(types)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = args.return_field.data_type();
        if data_type.is_nested() {
            return Ok(Box::new(NestedExtreme::new(data_type, self.is_max)));
        }
        self.other.accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let data_type = args.return_field.data_type();
        if data_type.is_nested() {
            let sliding = SlidingNestedExtreme::new(data_type, self.is_max)?;
            return Ok(Box::new(sliding));
        }
        self.other.create_sliding_accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.other.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.return_field.data_type().is_nested() && self.other.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(match args.return_field.data_type() {
            DataType::Float32 => Box::new(Groups::<Float32Type>::new(self.is_max)),
            DataType::Float64 => Box::new(Groups::<Float64Type>::new(self.is_max)),
            _ => return self.other.create_groups_accumulator(args),
        })
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.other.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.other.reverse_expr()
    }

    fn is_descending(&self) -> Option<bool> {
        self.other.is_descending()
    }

    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.other.value_from_stats(args)
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.other.set_monotonicity(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.other.documentation()
    }
}

/// The values of all groups; there is none for a group without values.
struct Groups<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    is_known: Vec<bool>,
    is_max: bool,
}

impl<T: ArrowPrimitiveType> Groups<T> {
    fn new(is_max: bool) -> Self {
        Groups {
            values: Vec::new(),
            is_known: Vec::new(),
            is_max,
        }
    }

    fn note(&mut self, group: usize, value: T::Native) {
        let known = &mut self.values[group];
        let order = value.compare(*known);
        let is_better = match self.is_max {
            true => order.is_gt(),
            false => order.is_lt(),
        };
        if is_better || !self.is_known[group] {
            *known = value;
            self.is_known[group] = true;
        }
    }
}

impl<T: ArrowPrimitiveType> GroupsAccumulator for Groups<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        all: usize,
    ) -> Result<()> {
        self.values.resize(all, T::Native::ZERO);
        self.is_known.resize(all, false);
        let values = values[0].as_primitive::<T>();
        for (row, group) in groups.iter().enumerate() {
            let is_left_out = |filter: &BooleanArray| filter.is_null(row) || !filter.value(row);
            if values.is_valid(row) && !filter.is_some_and(is_left_out) {
                self.note(*group, values.value(row));
            }
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], all: usize) -> Result<()> {
        self.update_batch(states, groups, None, all)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let values = emit.take_needed(&mut self.values);
        let known = emit.take_needed(&mut self.is_known);
        let nulls = NullBuffer::new(BooleanBuffer::from(known));
        Ok(Arc::new(PrimitiveArray::<T>::new(
            values.into(),
            Some(nulls),
        )))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit)?])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<T>();
        let chosen = |row: usize| filter.is_none_or(|of| of.is_valid(row) && of.value(row));
        let rows = 0..values.len();
        let kept = rows.map(|row| (values.is_valid(row) && chosen(row)).then(|| values.value(row)));
        Ok(vec![Arc::new(kept.collect::<PrimitiveArray<T>>())])
    }

    fn size(&self) -> usize {
        self.values.capacity() * size_of::<T::Native>() + self.is_known.capacity()
    }
}
