//! Parts of a calendar, by their names.

use super::age;
use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveDateTime, Weekday};
use datafusion::common::{DataFusionError, Result, exec_datafusion_err};

const SECOND: i64 = 1_000_000;
pub(super) const DAY: i64 = 86_400 * SECOND;

/// A part of a calendar.
#[derive(Clone, Copy)]
pub(super) enum Part {
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
    pub fn named(name: &str) -> Result<Part> {
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

    /// Which one it is, counted from any.
    pub fn number(self, micros: i64) -> Result<i64> {
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

    /// When the one begins in which this time is.
    pub fn begin(self, micros: i64) -> Result<i64> {
        let number = self.number(micros)?;
        let first = match self {
            Part::Years(years) => month(12 * years * number),
            Part::IsoYear => {
                let year = i32::try_from(number).ok();
                year.and_then(|year| NaiveDate::from_isoywd_opt(year, 1, Weekday::Mon))
            }
            Part::Months(months) => month(months * number),
            Part::Week => return Ok((number * 7 - 3) * DAY),
            Part::Time(unit) => return Ok(number * unit),
        };
        midnight(first)
    }

    /// How many have passed.
    pub fn whole(self, start: i64, end: i64) -> Result<i64> {
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

/// The first day of a month, as [`Part::number`] counts them.
fn month(months: i64) -> Option<NaiveDate> {
    let year = i32::try_from(months.div_euclid(12)).ok()?;
    NaiveDate::from_ymd_opt(year, months.rem_euclid(12) as u32 + 1, 1)
}

/// When this month begins.
pub(super) fn month_begin(months: i64) -> Result<i64> {
    midnight(month(months))
}

fn midnight(day: Option<NaiveDate>) -> Result<i64> {
    let midnight = day.and_then(|day| day.and_hms_opt(0, 0, 0));
    let midnight = midnight.ok_or_else(out_of_range)?;
    Ok(midnight.and_utc().timestamp_micros())
}

/// The same day and time so many months later, or the last day of a shorter month.
pub(super) fn months_later(micros: i64, months: i64) -> Result<i64> {
    if months == 0 {
        return Ok(micros);
    }
    let time = at(micros)?;
    let number = u32::try_from(months.unsigned_abs()).ok().map(Months::new);
    let later = number.and_then(|number| match months > 0 {
        true => time.checked_add_months(number),
        false => time.checked_sub_months(number),
    });
    let later = later.ok_or_else(out_of_range)?;
    Ok(later.and_utc().timestamp_micros())
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

pub(super) fn out_of_range() -> DataFusionError {
    exec_datafusion_err!("a timestamp is out of range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_begin() {
        for (part, time, expected) in [
            ("year", "9999-12-31T23:59:59", "9999-01-01T00:00:00"),
            ("quarter", "2024-05-15T10:30:00", "2024-04-01T00:00:00"),
            ("month", "0001-01-31T10:30:00", "0001-01-01T00:00:00"),
            ("week", "9999-12-31T00:00:00", "9999-12-27T00:00:00"),
            ("week", "1969-12-28T23:00:00", "1969-12-22T00:00:00"),
            ("isoyear", "2021-01-01T00:00:00", "2019-12-30T00:00:00"),
            ("decade", "2024-05-15T00:00:00", "2020-01-01T00:00:00"),
            ("century", "1999-05-15T00:00:00", "1900-01-01T00:00:00"),
            ("hour", "1969-12-31T23:59:59", "1969-12-31T23:00:00"),
        ] {
            let of = |text: &str| {
                let time: DateTime<chrono::Utc> = format!("{text}Z").parse().unwrap();
                time.timestamp_micros()
            };
            let begin = Part::named(part).unwrap().begin(of(time)).unwrap();
            assert_eq!(begin, of(expected), "{part} {time}");
        }
    }
}
