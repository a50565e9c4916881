//! `time_bucket`: when the bucket begins in which a time is.
//!
//! ```text
//! time_bucket(INTERVAL '7 days',   TIMESTAMP '2024-01-07 03:04')                     2024-01-01 00:00:00
//! time_bucket(INTERVAL '2 months', DATE '2024-02-07')                                2024-01-01
//! time_bucket(INTERVAL '7 days',   DATE '2024-01-07', INTERVAL '2 days')             2024-01-03    buckets shifted
//! time_bucket(INTERVAL '7 days',   DATE '2024-01-07', DATE '2024-01-04')             2024-01-04    one begins there
//! ```
//!
//! Without the third argument a bucket of months begins with the year 2000, another one with Monday, 2000-01-03.
//!
//! **Adds** what DataFusion does not have, as DuckDB does it.

use super::FAILING;
use super::part::{DAY, Part, month_begin, months_later, out_of_range};
use chrono::{DateTime, Utc};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::compute::cast_with_options;
use datafusion::arrow::datatypes::{
    DataType, Int64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// 2000-01-03, a Monday, in microseconds.
const MONDAY: i64 = 10_959 * DAY;

/// January 2000, counted as [`Part::number`] counts months.
const JANUARY: i64 = 24_000;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TimeBucket {
    signature: Signature,
}

impl Default for TimeBucket {
    fn default() -> Self {
        TimeBucket {
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &str {
        "time_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        use DataType::{Date32, Duration, Interval, Timestamp};
        let interval = Interval(IntervalUnit::MonthDayNano);
        let time_of = |of: &DataType| match of {
            Date32 | Timestamp(TimeUnit::Nanosecond, None) => Some(of.clone()),
            Timestamp(_, zone) => Some(Timestamp(TimeUnit::Microsecond, zone.clone())),
            of if of.is_string() || of.is_null() => Some(Timestamp(TimeUnit::Microsecond, None)),
            _ => None,
        };
        let (width, time, third) = match types {
            [width, time] => (width, time, None),
            [width, time, third] => (width, time, Some(third)),
            _ => return plan_err!("time_bucket takes two or three arguments"),
        };
        let is_width = width.is_null() || width.is_string();
        let is_width = is_width || matches!(width, Interval(_) | Duration(_));
        let mut coerced = time_of(time).filter(|_| is_width);
        let third = match third {
            Some(Interval(_) | Duration(_)) => Some(Some(interval.clone())),
            Some(origin) => {
                let origin = time_of(origin);
                // A bucket of dates begins at a time if its origin is one, and in a zone if it is in one.
                if let (Some(Date32 | Timestamp(_, None)), Some(Timestamp(_, zone))) =
                    (&coerced, &origin)
                    && (coerced == Some(Date32) || zone.is_some())
                {
                    coerced.clone_from(&origin);
                }
                Some(origin)
            }
            None => None,
        };
        match (coerced, third) {
            (Some(time), None) => Ok(vec![interval, time]),
            (Some(time), Some(Some(third))) => Ok(vec![interval, time, third]),
            _ => plan_err!("time_bucket takes an interval and a date or timestamp"),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types[1].clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [width, rest @ ..] = &args.args[..] else {
            unreachable!("the signature has an argument")
        };
        let mut rest = rest.iter().map(|arg| arg.to_array(args.number_rows));
        let times = rest.next().expect("the signature has two arguments")?;
        let times = micros(&times)?;
        let third = rest.next().transpose()?;
        let third = third.as_ref().map(Third::of).transpose()?;
        // Mostly there is one width for all.
        let (widths, step) = match width {
            ColumnarValue::Scalar(width) => (width.to_array()?, 0),
            ColumnarValue::Array(widths) => (Arc::clone(widths), 1),
        };
        let widths = widths.as_primitive::<IntervalMonthDayNanoType>();
        let mut last = None;
        let bucket_of = |row: usize| {
            let at = row * step;
            let is_null = widths.is_null(at) || times.is_null(row);
            if is_null || third.as_ref().is_some_and(|third| third.is_null(row)) {
                return Ok(None);
            }
            let width = match last {
                Some((of, width)) if of == at => width,
                _ => Width::of(widths.value(at))?,
            };
            last = Some((at, width));
            let time = times.value(row);
            let begin = match &third {
                None => width.begin(time, None)?,
                Some(Third::Origins(origins)) => width.begin(time, Some(origins.value(row)))?,
                Some(Third::Shifts(shifts)) => {
                    let shift = shifts.value(row);
                    let begin = width.begin(moved(time, shift, -1)?, None)?;
                    moved(begin, shift, 1)?
                }
            };
            Ok(Some(begin))
        };
        let begins = (0..times.len()).map(bucket_of);
        let begins = begins.collect::<Result<PrimitiveArray<TimestampMicrosecondType>>>()?;
        let zone = match args.return_type() {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => None,
        };
        let begins: ArrayRef = Arc::new(begins.with_timezone_opt(zone));
        let begins = cast_with_options(&begins, args.return_type(), &FAILING)?;
        Ok(ColumnarValue::Array(begins))
    }
}

/// The third argument.
enum Third {
    Origins(PrimitiveArray<Int64Type>),
    Shifts(PrimitiveArray<IntervalMonthDayNanoType>),
}

impl Third {
    fn of(column: &ArrayRef) -> Result<Self> {
        Ok(match column.data_type() {
            DataType::Interval(_) => Third::Shifts(column.as_primitive().clone()),
            _ => Third::Origins(micros(column)?),
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Third::Origins(origins) => origins.is_null(row),
            Third::Shifts(shifts) => shifts.is_null(row),
        }
    }
}

/// Times as microseconds since 1970, rounded down.
fn micros(times: &ArrayRef) -> Result<PrimitiveArray<Int64Type>> {
    if let DataType::Timestamp(TimeUnit::Nanosecond, _) = times.data_type() {
        let times = cast_with_options(times, &DataType::Int64, &FAILING)?;
        let times = times.as_primitive::<Int64Type>();
        return Ok(times.unary(|time| time.div_euclid(1_000)));
    }
    let unit = DataType::Timestamp(TimeUnit::Microsecond, None);
    let times = cast_with_options(times, &unit, &FAILING)?;
    let times = times.as_primitive::<TimestampMicrosecondType>();
    Ok(times.reinterpret_cast())
}

/// How long a bucket is.
#[derive(Debug, Clone, Copy)]
enum Width {
    Months(i64),
    Micros(i64),
}

impl Width {
    fn of(width: IntervalMonthDayNano) -> Result<Self> {
        let days = i64::from(width.days).checked_mul(DAY);
        let micros = days.and_then(|days| days.checked_add(width.nanoseconds / 1_000));
        let micros = micros.ok_or_else(out_of_range)?;
        match (i64::from(width.months), micros) {
            (0, micros) if micros > 0 => Ok(Width::Micros(micros)),
            (months, 0) if months > 0 => Ok(Width::Months(months)),
            (0, _) | (_, 0) => exec_err!("time_bucket takes a width that is longer than nothing"),
            _ => {
                exec_err!("time_bucket takes a width of months, or of days and times, not of both")
            }
        }
    }

    /// When the bucket begins in which the time is.
    fn begin(self, time: i64, origin: Option<i64>) -> Result<i64> {
        match self {
            Width::Micros(width) => {
                let origin = origin.unwrap_or(MONDAY);
                let since = time.checked_sub(origin).ok_or_else(out_of_range)?;
                let begin = time.checked_sub(since.rem_euclid(width));
                begin.filter(is_in_calendar).ok_or_else(out_of_range)
            }
            Width::Months(width) => {
                let of_origin = |origin| Part::Months(1).number(origin);
                let origin = origin.map_or(Ok(JANUARY), of_origin)?;
                let month = Part::Months(1).number(time)?;
                month_begin(month - (month - origin).rem_euclid(width))
            }
        }
    }
}

/// The time moved by an interval, forwards or backwards.
fn moved(time: i64, by: IntervalMonthDayNano, sign: i64) -> Result<i64> {
    let time = months_later(time, sign * i64::from(by.months))?;
    let days = i64::from(by.days).checked_mul(sign * DAY);
    let moved = days.and_then(|days| time.checked_add(days));
    let moved = moved.and_then(|moved| moved.checked_add(sign * (by.nanoseconds / 1_000)));
    moved.filter(is_in_calendar).ok_or_else(out_of_range)
}

/// Whether a time can be shown.
fn is_in_calendar(time: &i64) -> bool {
    let all =
        DateTime::<Utc>::MIN_UTC.timestamp_micros()..=DateTime::<Utc>::MAX_UTC.timestamp_micros();
    all.contains(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_begin_at_their_origin() {
        let day = |days: i64| MONDAY + days * DAY;
        let week = Width::Micros(7 * DAY);
        assert_eq!(week.begin(day(6), None).unwrap(), day(0));
        assert_eq!(week.begin(day(-1), None).unwrap(), day(-7));
        assert_eq!(week.begin(day(6), Some(day(5))).unwrap(), day(5));
        assert_eq!(week.begin(day(4), Some(day(5))).unwrap(), day(-2));
        // 2000-01-01, a Saturday.
        assert_eq!(Width::Months(3).begin(day(0), None).unwrap(), day(-2));
    }

    #[test]
    fn times_at_the_ends_of_the_range_are_errors() {
        let week = Width::Micros(7 * DAY);
        assert!(week.begin(i64::MIN, None).is_err());
        assert!(Width::Months(1).begin(i64::MIN, None).is_err());
        assert!(moved(i64::MAX, IntervalMonthDayNano::new(0, 1, 0), 1).is_err());
        assert!(moved(0, IntervalMonthDayNano::new(i32::MIN, 0, 0), -1).is_err());
    }
}
