//! `date_diff(part, start, end)` and `date_sub(part, start, end)`: how many parts of a calendar lie between.
//!
//! ```text
//! date_diff('month', '2024-01-31', '2024-02-01')    1    a new month has begun once
//! date_sub('month', '2024-01-31', '2024-02-01')     0    no whole month has passed
//! ```
//!
//! **Adds** what DataFusion does not have, as DuckDB does it.

use super::age;
use chrono::{DateTime, Datelike, Days, NaiveDateTime};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::datatypes::{
    DataType, Int64Type, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, exec_datafusion_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Counted {
    /// Beginnings of parts.
    Begun,
    /// Whole parts.
    Whole,
}

/// One of the functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Difference {
    counted: Counted,
    aliases: Vec<String>,
    signature: Signature,
}

impl Difference {
    pub fn new(counted: Counted) -> Self {
        let alias = match counted {
            Counted::Begun => "datediff",
            Counted::Whole => "datesub",
        };
        Difference {
            counted,
            aliases: vec![alias.to_owned()],
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Difference {
    fn name(&self) -> &str {
        match self.counted {
            Counted::Begun => "date_diff",
            Counted::Whole => "date_sub",
        }
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let [_, start, end] = types else {
            return plan_err!("{} takes a part, a start and an end", self.name());
        };
        let is_time = |of: &&DataType| matches!(of, DataType::Time32(_) | DataType::Time64(_));
        let time = match [start, end].iter().any(is_time) {
            true => DataType::Time64(TimeUnit::Microsecond),
            false => DataType::Timestamp(TimeUnit::Microsecond, None),
        };
        Ok(vec![DataType::Utf8View, time.clone(), time])
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [part, times @ ..] = &args.args[..] else {
            unreachable!("the signature has three arguments")
        };
        let times = ColumnarValue::values_to_arrays(times)?;
        let [starts, ends] = [micros(&times[0]), micros(&times[1])];
        let count = |part: Part, row: usize| match (starts.is_valid(row), ends.is_valid(row)) {
            (true, true) => part
                .between(self.counted, starts.value(row), ends.value(row))
                .map(Some),
            _ => Ok(None),
        };
        let rows = 0..starts.len();
        let counts: Result<Int64Array> = match part {
            ColumnarValue::Scalar(name) => match name.try_as_str().flatten() {
                Some(name) => {
                    let part = Part::named(name)?;
                    rows.map(|row| count(part, row)).collect()
                }
                None => Ok(Int64Array::new_null(starts.len())),
            },
            ColumnarValue::Array(names) => {
                let names = names.as_string_view();
                rows.map(|row| match names.is_valid(row) {
                    true => count(Part::named(names.value(row))?, row),
                    false => Ok(None),
                })
                .collect()
            }
        };
        Ok(ColumnarValue::Array(Arc::new(counts?) as ArrayRef))
    }
}

/// Microseconds since 1970, or since midnight.
fn micros(times: &ArrayRef) -> Int64Array {
    match times.data_type() {
        DataType::Time64(_) => times
            .as_primitive::<Time64MicrosecondType>()
            .reinterpret_cast::<Int64Type>(),
        _ => times
            .as_primitive::<TimestampMicrosecondType>()
            .reinterpret_cast::<Int64Type>(),
    }
}

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// A part of a calendar.
#[derive(Clone, Copy)]
enum Part {
    /// So many years.
    Years(i64),
    /// Years of ISO 8601, which begin with a Monday.
    IsoYear,
    /// So many months, fewer than twelve.
    Months(i64),
    Week,
    /// So many microseconds.
    Time(i64),
}

impl Part {
    fn named(name: &str) -> Result<Part> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "millennium" | "millennia" | "millenia" | "millenium" | "millenniums" | "mil" => {
                Part::Years(1000)
            }
            "century" | "centuries" | "cent" | "c" => Part::Years(100),
            "decade" | "decades" | "dec" | "decs" => Part::Years(10),
            "year" | "years" | "yr" | "yrs" | "y" => Part::Years(1),
            "isoyear" => Part::IsoYear,
            "quarter" | "quarters" => Part::Months(3),
            "month" | "months" | "mon" | "mons" => Part::Months(1),
            "week" | "weeks" | "w" | "weekofyear" | "yearweek" => Part::Week,
            "day" | "days" | "d" | "dayofmonth" | "dow" | "isodow" | "dayofweek" | "weekday"
            | "doy" | "dayofyear" | "julian" => Part::Time(DAY),
            "hour" | "hours" | "hr" | "hrs" | "h" => Part::Time(3600 * SECOND),
            "minute" | "minutes" | "min" | "mins" | "m" => Part::Time(60 * SECOND),
            "second" | "seconds" | "sec" | "secs" | "s" | "epoch" => Part::Time(SECOND),
            "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" => Part::Time(1000),
            "microsecond" | "microseconds" | "us" | "usec" | "usecs" => Part::Time(1),
            _ => {
                return Err(exec_datafusion_err!(
                    "'{name}' is no part of a date or time"
                ));
            }
        })
    }

    fn between(self, counted: Counted, start: i64, end: i64) -> Result<i64> {
        match counted {
            Counted::Begun => Ok(self.number(end)? - self.number(start)?),
            Counted::Whole => self.whole(start, end),
        }
    }

    /// Which one it is, counted from any.
    fn number(self, micros: i64) -> Result<i64> {
        let year = |micros| at(micros).map(|time| i64::from(time.year()));
        Ok(match self {
            Part::Years(years) => year(micros)? / years,
            Part::IsoYear => at(micros)?.iso_week().year().into(),
            Part::Months(months) => (12 * year(micros)? + i64::from(at(micros)?.month0())) / months,
            // The first day of 1970 is a Thursday.
            Part::Week => (micros.div_euclid(DAY) + 3).div_euclid(7),
            Part::Time(unit) => micros.div_euclid(unit),
        })
    }

    fn whole(self, start: i64, end: i64) -> Result<i64> {
        if start > end {
            return Ok(-self.whole(end, start)?);
        }
        Ok(match self {
            Part::Years(years) => months(start, end)? / (12 * years),
            Part::IsoYear => months(start, end)? / 12,
            Part::Months(number) => months(start, end)? / number,
            Part::Week => (end - start) / (7 * DAY),
            Part::Time(unit) => (end - start) / unit,
        })
    }
}

/// Whole months. From a month's last day they end with the last day of a shorter one.
fn months(start: i64, end: i64) -> Result<i64> {
    let (mut start, end) = (at(start)?, at(end)?);
    let last = u32::from(end.num_days_in_month());
    let is_behind = start.day() > last || start.day() == last && start.time() < end.time();
    if end.day() == last && is_behind {
        let days = Days::new(u64::from(start.day() - last));
        let earlier = start.date().checked_sub_days(days);
        let earlier = earlier.ok_or_else(out_of_range)?;
        start = earlier.and_time(start.time());
    }
    Ok(age::between(start, end).months.into())
}

fn at(micros: i64) -> Result<NaiveDateTime> {
    let time = DateTime::from_timestamp_micros(micros);
    time.map(|time| time.naive_utc()).ok_or_else(out_of_range)
}

fn out_of_range() -> datafusion::error::DataFusionError {
    exec_datafusion_err!("a timestamp is out of range")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str) -> i64 {
        let time = format!("{text}Z").parse::<DateTime<chrono::Utc>>();
        time.expect("it is a time").timestamp_micros()
    }

    #[test]
    fn parts_begin_and_pass() {
        for (part, start, end, begun, whole) in [
            ("month", "2024-01-31T00:00:00", "2024-02-01T00:00:00", 1, 0),
            ("month", "2024-01-31T00:00:00", "2024-02-29T00:00:00", 1, 1),
            (
                "month",
                "2024-02-29T00:00:00",
                "2024-01-31T00:00:00",
                -1,
                -1,
            ),
            ("year", "2023-12-31T23:59:59", "2024-01-01T00:00:00", 1, 0),
            (
                "quarter",
                "2024-03-31T00:00:00",
                "2024-04-01T00:00:00",
                1,
                0,
            ),
            ("week", "2024-01-07T00:00:00", "2024-01-08T00:00:00", 1, 0),
            ("day", "1969-12-31T23:00:00", "1970-01-01T01:00:00", 1, 0),
            ("hour", "2024-01-01T10:59:00", "2024-01-01T11:01:00", 1, 0),
            (
                "century",
                "1999-12-31T00:00:00",
                "2000-01-01T00:00:00",
                1,
                0,
            ),
        ] {
            let part_of = Part::named(part).unwrap();
            let (start, end) = (micros(start), micros(end));
            let of = |counted| part_of.between(counted, start, end).unwrap();
            assert_eq!(
                (of(Counted::Begun), of(Counted::Whole)),
                (begun, whole),
                "{part}"
            );
        }
    }
}
