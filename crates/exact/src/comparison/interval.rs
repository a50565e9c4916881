//! `nanoseconds(interval)`: what an interval of time is compared by.
//!
//! **Stands for** Arrow's comparison of intervals, part by part: months, days, nanoseconds. By it 25 hours are less
//! than a day, and so is every difference of timestamps, which has nanoseconds alone. As in PostgreSQL and DuckDB a
//! month counts as 30 days here, and a day as 24 hours.

use crate::columns::ColumnFunction;
use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Decimal128Array};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalUnit, IntervalYearMonthType, TimeUnit,
};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{Expr, ScalarUDF, cast};
use std::sync::{Arc, LazyLock};

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;
const MONTH: i128 = 30 * DAY;

/// Digits of the longest interval.
const DIGITS: DataType = DataType::Decimal128(38, 0);

static NANOSECONDS: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ColumnFunction::scalar("nanoseconds", |_| DIGITS, counted)));

/// Whether operands of these types are intervals, or become such beside one: durations, strings, NULL and parameters.
pub(super) fn are_intervals(types: &[DataType]) -> bool {
    let is_interval = |data_type: &DataType| matches!(data_type, DataType::Interval(_));
    let becomes_one = |data_type: &DataType| {
        use DataType::{Duration, Interval, Null};
        matches!(data_type, Interval(_) | Duration(_) | Null) || data_type.is_string()
    };
    types.iter().any(is_interval) && types.iter().all(becomes_one)
}

/// What such an operand is compared by.
pub(super) fn nanoseconds(operand: Expr, data_type: &DataType) -> Expr {
    let interval = match data_type {
        DataType::Interval(_) | DataType::Duration(_) => operand,
        _ => cast(operand, DataType::Interval(IntervalUnit::MonthDayNano)),
    };
    NANOSECONDS.call(vec![interval])
}

/// How long intervals are: DECIMAL(38, 0).
pub(crate) fn counted(intervals: &ArrayRef) -> Result<ArrayRef> {
    use DataType::{Duration, Interval};
    match intervals.data_type() {
        Interval(IntervalUnit::MonthDayNano) => {
            each::<IntervalMonthDayNanoType>(intervals, |interval| {
                let (months, days) = (i128::from(interval.months), i128::from(interval.days));
                months * MONTH + days * DAY + i128::from(interval.nanoseconds)
            })
        }
        Interval(IntervalUnit::DayTime) => each::<IntervalDayTimeType>(intervals, |interval| {
            i128::from(interval.days) * DAY + i128::from(interval.milliseconds) * (SECOND / 1_000)
        }),
        Interval(IntervalUnit::YearMonth) => {
            each::<IntervalYearMonthType>(intervals, |months| i128::from(months) * MONTH)
        }
        Duration(TimeUnit::Second) => {
            each::<DurationSecondType>(intervals, |ticks| i128::from(ticks) * SECOND)
        }
        Duration(TimeUnit::Millisecond) => {
            each::<DurationMillisecondType>(intervals, |ticks| i128::from(ticks) * (SECOND / 1_000))
        }
        Duration(TimeUnit::Microsecond) => {
            each::<DurationMicrosecondType>(intervals, |ticks| i128::from(ticks) * 1_000)
        }
        Duration(TimeUnit::Nanosecond) => each::<DurationNanosecondType>(intervals, i128::from),
        other => exec_err!("{other} is no interval of time"),
    }
}

fn each<T: ArrowPrimitiveType>(
    intervals: &ArrayRef,
    count: impl Fn(T::Native) -> i128,
) -> Result<ArrayRef> {
    let counted: Decimal128Array = intervals
        .as_primitive::<T>()
        .unary::<_, Decimal128Type>(count);
    Ok(Arc::new(counted.with_data_type(DIGITS)))
}
