//! AVG of DECIMAL is a DOUBLE, as quotients are (`docs/decisions/0026`).
//!
//! **Stands for** DataFusion's function of the same name, which cuts the average after four digits more than the values
//! have. The sum stays exact here, and is divided once.
//!
//! ```text
//!  state   count of values | their sum, a DECIMAL of at least 13 digits more
//! ```
//!
//! Averages of intervals are [added](interval_total). All else is done by DataFusion's function: averages of
//! integers and floating-point numbers.

use super::interval_total::{self, Figure};
use super::sum::ExactSum;
use crate::arithmetic::interval::INTERVAL;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, make_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::arity::try_binary;
use datafusion::arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, Float64Type,
    Int64Type,
};
use datafusion::common::{ScalarValue, not_impl_err};
use datafusion::error::Result;
use datafusion::functions_aggregate::average::Avg;
use datafusion::functions_aggregate::count::Count;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Coercion, Documentation, EmitTo, GroupsAccumulator,
    ReversedUDAF, Signature, TypeSignature, TypeSignatureClass, Volatility,
};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The function.
#[derive(Debug)]
pub(crate) struct ExactAverage {
    other: Avg,
    signature: Signature,
}

impl Default for ExactAverage {
    fn default() -> Self {
        let other = Avg::default();
        let interval = Coercion::new_exact(TypeSignatureClass::Interval);
        let interval = TypeSignature::Coercible(vec![interval]);
        let types = vec![other.signature().type_signature.clone(), interval];
        ExactAverage {
            other,
            signature: Signature::one_of(types, Volatility::Immutable),
        }
    }
}

/// There is one such function.
impl PartialEq for ExactAverage {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ExactAverage {}

impl Hash for ExactAverage {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

fn is_interval(args: &AccumulatorArgs<'_>) -> bool {
    *args.expr_fields[0].data_type() == INTERVAL
}

/// The type of the sum; `None` if the values are no DECIMAL.
fn sum_type(values: &DataType) -> Option<DataType> {
    /// Digits of the number of rows.
    const ROWS: u8 = 13;
    match *values {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) => {
            Some(DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale))
        }
        DataType::Decimal128(digits, scale) if digits + ROWS <= DECIMAL128_MAX_PRECISION => {
            Some(DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale))
        }
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => {
            Some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale))
        }
        _ => None,
    }
}

/// What a function of the same values is told, that yields another type.
fn yielding<'a>(args: &AccumulatorArgs<'a>, data_type: DataType) -> AccumulatorArgs<'a> {
    AccumulatorArgs {
        return_field: Arc::new(Field::new(args.name, data_type, true)),
        schema: args.schema,
        ignore_nulls: args.ignore_nulls,
        order_bys: args.order_bys,
        is_reversed: args.is_reversed,
        name: args.name,
        is_distinct: args.is_distinct,
        exprs: args.exprs,
        expr_fields: args.expr_fields,
    }
}

/// The average of each group that has values.
fn averages(sums: &ArrayRef, counts: &ArrayRef) -> Result<Float64Array> {
    let (scale, whole) = match *sums.data_type() {
        DataType::Decimal128(digits, scale) => (scale, DataType::Decimal128(digits, 0)),
        DataType::Decimal256(digits, scale) => (scale, DataType::Decimal256(digits, 0)),
        ref other => unreachable!("{other} is no sum of DECIMAL"),
    };
    // Without its point a sum is mostly a DOUBLE as it is, and the quotient the nearest one.
    let whole = sums.to_data().into_builder().data_type(whole).build()?;
    let sums = cast(&make_array(whole), &DataType::Float64)?;
    let ones = 10_f64.powi(scale.into());
    Ok(try_binary(
        sums.as_primitive::<Float64Type>(),
        counts.as_primitive::<Int64Type>(),
        |sum, count| Ok(sum / (count as f64 * ones)),
    )?)
}

/// The average of all rows seen.
#[derive(Debug)]
struct Average {
    count: Box<dyn Accumulator>,
    sum: Box<dyn Accumulator>,
    sum_type: DataType,
}

impl Average {
    fn summands(&self, values: &[ArrayRef]) -> Result<[ArrayRef; 1]> {
        summands(values, &self.sum_type)
    }
}

/// Values as numbers of the sum's type.
fn summands(values: &[ArrayRef], sum_type: &DataType) -> Result<[ArrayRef; 1]> {
    let is_same = match (values[0].data_type(), sum_type) {
        (DataType::Decimal128(..), DataType::Decimal128(..)) => true,
        (from, to) => from == to,
    };
    Ok([match is_same {
        true => Arc::clone(&values[0]),
        false => cast(&values[0], sum_type)?,
    }])
}

impl Accumulator for Average {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.count.update_batch(values)?;
        self.sum.update_batch(&self.summands(values)?)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.count.retract_batch(values)?;
        self.sum.retract_batch(&self.summands(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.count.supports_retract_batch() && self.sum.supports_retract_batch()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.count.merge_batch(&states[..1])?;
        self.sum.merge_batch(&states[1..])
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut state = self.count.state()?;
        state.extend(self.sum.state()?);
        Ok(state)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = self.sum.evaluate()?.to_array()?;
        let count = self.count.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&averages(&sum, &count)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.count.size() + self.sum.size()
    }
}

/// The averages of many groups.
struct GroupAverages {
    counts: Box<dyn GroupsAccumulator>,
    sums: Box<dyn GroupsAccumulator>,
    sum_type: DataType,
}

impl GroupsAccumulator for GroupAverages {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        all: usize,
    ) -> Result<()> {
        self.counts.update_batch(values, groups, filter, all)?;
        let values = summands(values, &self.sum_type)?;
        self.sums.update_batch(&values, groups, filter, all)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], all: usize) -> Result<()> {
        self.counts.merge_batch(&states[..1], groups, all)?;
        self.sums.merge_batch(&states[1..], groups, all)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let counts = self.counts.evaluate(emit)?;
        Ok(Arc::new(averages(&self.sums.evaluate(emit)?, &counts)?))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let mut state = self.counts.state(emit)?;
        state.extend(self.sums.state(emit)?);
        Ok(state)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let mut state = self.counts.convert_to_state(values, filter)?;
        let values = summands(values, &self.sum_type)?;
        state.extend(self.sums.convert_to_state(&values, filter)?);
        Ok(state)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.counts.size() + self.sums.size()
    }
}

impl AggregateUDFImpl for ExactAverage {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn aliases(&self) -> &[String] {
        self.other.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        if arguments[0] == INTERVAL {
            return Ok(INTERVAL);
        }
        match sum_type(&arguments[0]) {
            Some(_) => Ok(DataType::Float64),
            None => self.other.return_type(arguments),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if is_interval(&args) {
            return match args.is_distinct {
                true => not_impl_err!("avg(DISTINCT INTERVAL)"),
                false => Ok(interval_total::of_rows(Figure::Average)),
            };
        }
        let Some(sum_type) = sum_type(args.expr_fields[0].data_type()) else {
            return self.other.accumulator(args);
        };
        let sum = yielding(&args, sum_type.clone());
        Ok(Box::new(Average {
            count: Count::new().accumulator(yielding(&args, DataType::Int64))?,
            sum: ExactSum::default().accumulator(sum)?,
            sum_type,
        }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        if *args.input_fields[0].data_type() == INTERVAL {
            return Ok(interval_total::state_fields(args.name));
        }
        let Some(sum_type) = sum_type(args.input_fields[0].data_type()) else {
            return self.other.state_fields(args);
        };
        let of = |data_type: DataType| Arc::new(Field::new(args.name, data_type, true));
        let yielding = |return_field: FieldRef| StateFieldsArgs {
            name: args.name,
            input_fields: args.input_fields,
            return_field,
            ordering_fields: args.ordering_fields,
            is_distinct: args.is_distinct,
        };
        let mut fields = Count::new().state_fields(yielding(of(DataType::Int64)))?;
        fields.extend(ExactSum::default().state_fields(yielding(of(sum_type)))?);
        Ok(fields)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        match sum_type(args.expr_fields[0].data_type()) {
            Some(_) => !args.is_distinct,
            None if is_interval(&args) => !args.is_distinct,
            None => self.other.groups_accumulator_supported(args),
        }
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        if is_interval(&args) {
            return Ok(interval_total::of_groups(Figure::Average));
        }
        let Some(sum_type) = sum_type(args.expr_fields[0].data_type()) else {
            return self.other.create_groups_accumulator(args);
        };
        let count = yielding(&args, DataType::Int64);
        let sum = yielding(&args, sum_type.clone());
        Ok(Box::new(GroupAverages {
            counts: Count::new().create_groups_accumulator(count)?,
            sums: ExactSum::default().create_groups_accumulator(sum)?,
            sum_type,
        }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if is_interval(&args) {
            return match args.is_distinct {
                true => not_impl_err!("avg(DISTINCT INTERVAL)"),
                false => Ok(interval_total::of_rows(Figure::Average)),
            };
        }
        let Some(sum_type) = sum_type(args.expr_fields[0].data_type()) else {
            return self.other.create_sliding_accumulator(args);
        };
        let sum = yielding(&args, sum_type.clone());
        let count = yielding(&args, DataType::Int64);
        Ok(Box::new(Average {
            count: Count::new().create_sliding_accumulator(count)?,
            sum: ExactSum::default().create_sliding_accumulator(sum)?,
            sum_type,
        }))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.other.reverse_expr()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.other.order_sensitivity()
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.other.documentation()
    }
}
