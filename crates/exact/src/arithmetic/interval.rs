//! Differences of timestamps, and intervals times and divided by numbers.
//!
//! ```text
//! '2024-03-01 10:00' - '2024-01-31 12:00'     29 days 22:00:00      days have 24 hours
//! 1 month 3 days * 1.5                         1 month 19 days 12:00:00
//! 1 month 3 days / 2                           16 days 12:00:00      half a month has 15 days
//! ```
//!
//! **Stands for** DataFusion's difference of timestamps, a duration: it shows as `PT2584800S`, has 718 hours, and there
//! is little that takes it. **Adds** `*` and `/` of intervals. All as in DuckDB.
//!
//! The operators are planned here, for DataFusion says already then which types they do not take.

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::kernels::arity::try_binary;
use datafusion::arrow::datatypes::{
    ArrowTimestampType, DataType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
    IntervalUnit, TimeUnit, TimestampMicrosecondType, TimestampNanosecondType,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility, cast as cast_expr,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use std::mem::swap;
use std::sync::{Arc, LazyLock};

/// What intervals are here.
pub(crate) const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

const DAY_MICROSECONDS: i64 = 86_400_000_000;
const MONTH_DAYS: f64 = 30.0;

/// Plans the operators.
#[derive(Debug)]
pub(crate) struct IntervalOperators;

impl ExprPlanner for IntervalOperators {
    fn plan_binary_op(
        &self,
        mut expr: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        let (Ok(left), Ok(right)) = (expr.left.get_type(schema), expr.right.get_type(schema))
        else {
            return Ok(PlannerResult::Original(expr));
        };
        let is_number = |of: &DataType| of.is_numeric() || of.is_null();
        let is_interval = |of: &DataType| matches!(of, DataType::Interval(_));
        let function = match expr.op {
            BinaryOperator::Minus if are_timestamps(&left, &right) => {
                let operands = vec![timestamp(expr.left, &left), timestamp(expr.right, &right)];
                return Ok(PlannerResult::Planned(DIFFERENCE.call(operands)));
            }
            BinaryOperator::Multiply if is_interval(&left) && is_number(&right) => &TIMES,
            BinaryOperator::Multiply if is_interval(&right) && is_number(&left) => {
                swap(&mut expr.left, &mut expr.right);
                &TIMES
            }
            BinaryOperator::Divide if is_interval(&left) && is_number(&right) => &DIVIDED,
            _ => return Ok(PlannerResult::Original(expr)),
        };
        let operands = vec![
            expr.left.cast_to(&INTERVAL, schema)?,
            expr.right.cast_to(&DataType::Float64, schema)?,
        ];
        Ok(PlannerResult::Planned(function.call(operands)))
    }
}

/// Whether it is a difference of timestamps.
pub(crate) fn is_difference(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.func == *DIFFERENCE)
}

/// Whether these are timestamps, one of them perhaps a date.
fn are_timestamps(left: &DataType, right: &DataType) -> bool {
    let is_timestamp = |of: &DataType| matches!(of, DataType::Timestamp(..));
    let is_day = |of: &DataType| matches!(of, DataType::Date32 | DataType::Date64);
    match is_timestamp(left) {
        true => is_timestamp(right) || is_day(right),
        false => is_day(left) && is_timestamp(right),
    }
}

/// An operand as timestamps of microseconds, or of nanoseconds. Those with a zone count from the same instant.
fn timestamp(operand: Expr, of: &DataType) -> Expr {
    use TimeUnit::{Microsecond, Nanosecond};
    let to = match of {
        DataType::Timestamp(Microsecond | Nanosecond, _) => return operand,
        DataType::Timestamp(_, zone) => DataType::Timestamp(Microsecond, zone.clone()),
        _ => DataType::Timestamp(Microsecond, None),
    };
    cast_expr(operand, to)
}

static DIFFERENCE: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(Operator::Minus));
static TIMES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(Operator::Multiply));
static DIVIDED: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| function(Operator::Divide));

fn function(op: Operator) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(IntervalOperator {
        op,
        signature: Signature::any(2, Volatility::Immutable),
    }))
}

/// A function that is shown as the operator that it is.
#[derive(Debug, PartialEq, Eq, Hash)]
struct IntervalOperator {
    op: Operator,
    signature: Signature,
}

impl ScalarUDFImpl for IntervalOperator {
    fn name(&self) -> &str {
        match self.op {
            Operator::Minus => "timestamp_difference",
            Operator::Multiply => "interval_times",
            _ => "interval_divided",
        }
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        Ok(format!("{} {} {}", args[0], self.op, args[1]))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let (left, right) = (args[0].schema_name(), args[1].schema_name());
        Ok(format!("{left} {} {right}", self.op))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(INTERVAL)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = &columns[..] else {
            unreachable!("the signature has two arguments")
        };
        let result: ArrayRef = match self.op {
            Operator::Minus => Arc::new(differences(left, right)?),
            Operator::Multiply => Arc::new(scaled(left, right, Ok)?),
            _ => Arc::new(scaled(left, right, |divisor| match divisor == 0.0 {
                true => Err(ArrowError::DivideByZero),
                false => Ok(1.0 / divisor),
            })?),
        };
        Ok(ColumnarValue::Array(result))
    }
}

type Intervals = PrimitiveArray<IntervalMonthDayNanoType>;

/// From the right ones to the left ones. They are of microseconds or of nanoseconds.
fn differences(left: &ArrayRef, right: &ArrayRef) -> Result<Intervals> {
    type Micros = TimestampMicrosecondType;
    type Nanos = TimestampNanosecondType;
    let is_fine =
        |of: &ArrayRef| matches!(of.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, _));
    match (is_fine(left), is_fine(right)) {
        (false, false) => differences_of::<Micros, Micros, _>(left, right, |end, start| {
            let micros = i64::checked_sub(end, start).ok_or_else(out_of_range)?;
            let (days, rest) = (micros / DAY_MICROSECONDS, micros % DAY_MICROSECONDS);
            of_days(days, rest * 1_000)
        }),
        (false, true) => differences_of::<Micros, Nanos, _>(left, right, |end, start| {
            of_nanoseconds(i128::from(end) * 1_000 - i128::from(start))
        }),
        (true, false) => differences_of::<Nanos, Micros, _>(left, right, |end, start| {
            of_nanoseconds(i128::from(end) - i128::from(start) * 1_000)
        }),
        (true, true) => differences_of::<Nanos, Nanos, _>(left, right, |end, start| {
            of_nanoseconds(i128::from(end) - i128::from(start))
        }),
    }
}

fn differences_of<L, R, F>(left: &ArrayRef, right: &ArrayRef, difference: F) -> Result<Intervals>
where
    L: ArrowTimestampType,
    R: ArrowTimestampType,
    F: Fn(i64, i64) -> std::result::Result<IntervalMonthDayNano, ArrowError>,
{
    let (left, right) = (left.as_primitive::<L>(), right.as_primitive::<R>());
    Ok(try_binary(left, right, difference)?)
}

fn of_nanoseconds(all: i128) -> std::result::Result<IntervalMonthDayNano, ArrowError> {
    let day = i128::from(DAY_MICROSECONDS) * 1_000;
    // Of two timestamps, both fit.
    of_days((all / day) as i64, (all % day) as i64)
}

fn of_days(days: i64, nanoseconds: i64) -> std::result::Result<IntervalMonthDayNano, ArrowError> {
    let days = i32::try_from(days).map_err(|_| out_of_range())?;
    Ok(IntervalMonthDayNano::new(0, days, nanoseconds))
}

fn scaled(
    intervals: &ArrayRef,
    numbers: &ArrayRef,
    factor: impl Fn(f64) -> std::result::Result<f64, ArrowError>,
) -> Result<Intervals> {
    Ok(try_binary(
        intervals.as_primitive::<IntervalMonthDayNanoType>(),
        numbers.as_primitive::<Float64Type>(),
        |interval, number| {
            let parts = [
                f64::from(interval.months),
                f64::from(interval.days),
                interval.nanoseconds as f64 / 1e3,
            ];
            let factor = factor(number)?;
            of_parts(parts.map(|part| part * factor)).ok_or_else(out_of_range)
        },
    )?)
}

/// An interval of so many months, days and microseconds. What is left of a month are days, what is left of a day are
/// microseconds. `None` if there is no such interval.
pub(crate) fn of_parts([months, days, micros]: [f64; 3]) -> Option<IntervalMonthDayNano> {
    let (months, rest) = whole(months);
    let (days, rest) = whole(days + rest * MONTH_DAYS);
    let nanoseconds = (micros + rest * DAY_MICROSECONDS as f64).round_ties_even() * 1e3;
    let fits = |number: f64| number.abs() <= f64::from(i32::MAX);
    // The greatest integer is no DOUBLE: the next greater one is.
    let is_time = nanoseconds.abs() < i64::MAX as f64;
    (fits(months) && fits(days) && is_time)
        .then(|| IntervalMonthDayNano::new(months as i32, days as i32, nanoseconds as i64))
}

/// A number without its fraction, and its fraction. A third of three is one, whatever a DOUBLE says: what is beside an
/// integer by no more than a product may be wrong is that integer.
fn whole(number: f64) -> (f64, f64) {
    const WRONG: f64 = 4.0 * f64::EPSILON;
    let nearest = number.round();
    match (number - nearest).abs() <= WRONG * number.abs() {
        true => (nearest, 0.0),
        false => (number.trunc(), number.fract()),
    }
}

fn out_of_range() -> ArrowError {
    ArrowError::ComputeError("an interval is out of range".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_months_are_days_and_parts_of_days_are_time() {
        const HOUR: i64 = 3_600_000_000_000;
        for (parts, expected) in [
            ([0.5, 0.0, 0.0], Some((0, 15, 0))),
            ([1.5, 4.5, 27_000e6], Some((1, 19, 39 * HOUR / 2))),
            ([-0.5, 0.5, 0.0], Some((0, -14, -12 * HOUR))),
            ([3.0 * (1.0 / 3.0), 0.0, 0.0], Some((1, 0, 0))),
            ([0.0, 0.1 * 3.0, 0.0], Some((0, 0, 36 * HOUR / 5))),
            ([0.0, 0.0, 1.5], Some((0, 0, 2_000))),
            ([f64::NAN, 0.0, 0.0], None),
            ([3e9, 0.0, 0.0], None),
            ([0.0, 0.0, 1e16], None),
        ] {
            let expected = expected
                .map(|(months, days, nanos)| IntervalMonthDayNano::new(months, days, nanos));
            assert_eq!(of_parts(parts), expected, "{parts:?}");
        }
    }
}
