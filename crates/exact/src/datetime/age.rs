//! `age(end, start)`: the time between two timestamps in years, months and days, as a calendar counts them.
//!
//! ```text
//! age('2024-03-15', '2023-01-20')    1 year 1 month 26 days
//! ```
//!
//! Days that are borrowed are those of the earlier timestamp's month, as in PostgreSQL and DuckDB.
//!
//! **Adds** what DataFusion does not have.

use chrono::{DateTime, Datelike, NaiveDateTime, Timelike};
use datafusion::arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use datafusion::arrow::datatypes::{
    DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_datafusion_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Age {
    signature: Signature,
}

impl Default for Age {
    fn default() -> Self {
        let timestamp = DataType::Timestamp(TimeUnit::Microsecond, None);
        Age {
            signature: Signature::exact(vec![timestamp; 2], Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Age {
    fn name(&self) -> &str {
        "age"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let ends = columns[0].as_primitive::<TimestampMicrosecondType>();
        let starts = columns[1].as_primitive::<TimestampMicrosecondType>();
        let ages = ends.iter().zip(starts.iter());
        let ages = ages.map(|pair| match pair {
            (Some(end), Some(start)) => Ok(Some(between(at(start)?, at(end)?))),
            _ => Ok(None),
        });
        let ages = ages.collect::<Result<IntervalMonthDayNanoArray>>()?;
        Ok(ColumnarValue::Array(Arc::new(ages) as ArrayRef))
    }
}

fn at(micros: i64) -> Result<NaiveDateTime> {
    let time = DateTime::from_timestamp_micros(micros);
    let time = time.map(|time| time.naive_utc());
    time.ok_or_else(|| exec_datafusion_err!("age: a timestamp is out of range"))
}

pub(super) fn between(start: NaiveDateTime, end: NaiveDateTime) -> IntervalMonthDayNano {
    if end < start {
        let IntervalMonthDayNano {
            months,
            days,
            nanoseconds,
        } = between(end, start);
        return IntervalMonthDayNano::new(-months, -days, -nanoseconds);
    }
    let months = |time: NaiveDateTime| 12 * time.year() + time.month0() as i32;
    let nanoseconds = |time: NaiveDateTime| {
        i64::from(time.num_seconds_from_midnight()) * 1_000_000_000 + i64::from(time.nanosecond())
    };
    let mut month_count = months(end) - months(start);
    let mut day_count = end.day() as i32 - start.day() as i32;
    let mut rest = nanoseconds(end) - nanoseconds(start);
    if rest < 0 {
        rest += 86_400_000_000_000;
        day_count -= 1;
    }
    if day_count < 0 {
        day_count += i32::from(start.num_days_in_month());
        month_count -= 1;
    }
    IntervalMonthDayNano::new(month_count, day_count, rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::NaiveDate;

    #[test]
    fn months_are_those_of_the_calendar() {
        let day = |year, month, day| NaiveDate::from_ymd_opt(year, month, day).unwrap();
        let at = |date: NaiveDate, hour| date.and_hms_opt(hour, 0, 0).unwrap();
        for (start, end, expected) in [
            (
                at(day(2023, 1, 20), 0),
                at(day(2024, 3, 15), 0),
                (13, 26, 0),
            ),
            (at(day(2024, 2, 28), 0), at(day(2024, 3, 1), 0), (0, 2, 0)),
            (at(day(2024, 1, 31), 12), at(day(2024, 3, 1), 0), (1, 0, 12)),
            (at(day(2024, 3, 1), 0), at(day(2024, 2, 28), 0), (0, -2, 0)),
        ] {
            let (months, days, hours) = expected;
            let nanoseconds = hours * 3_600_000_000_000;
            let expected = IntervalMonthDayNano::new(months, days, nanoseconds);
            assert_eq!(between(start, end), expected, "{start} {end}");
        }
    }
}
