//! `strptime(string, format)` and `try_strptime`: a string that is written so as a timestamp.
//!
//! ```text
//! strptime('31.12.2024 10', '%d.%m.%Y %H')     2024-12-31 10:00:00     what is not written is least
//! ```
//!
//! **Stands for** DataFusion's `to_timestamp` with a format, which drops an hour without minutes, takes `%f` for
//! nanoseconds, and ends in 2262. **Adds** the one that gives NULL for what is written otherwise.

use chrono::format::{Item, Parsed, StrftimeItems, parse};
use chrono::{NaiveDateTime, TimeDelta};
use datafusion::arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// One of the functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Strptime {
    /// NULL for what is written otherwise.
    safe: bool,
    signature: Signature,
}

impl Strptime {
    pub fn new(safe: bool) -> Self {
        let types = vec![DataType::Utf8View; 2];
        Strptime {
            safe,
            signature: Signature::exact(types, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Strptime {
    fn name(&self) -> &str {
        match self.safe {
            true => "try_strptime",
            false => "strptime",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Microsecond, None))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = ColumnarValue::values_to_arrays(&args.args)?;
        let (strings, formats) = (columns[0].as_string_view(), columns[1].as_string_view());
        let mut known: Option<(&str, Vec<Item<'_>>)> = None;
        let mut times = Vec::with_capacity(strings.len());
        for row in 0..strings.len() {
            if strings.is_null(row) || formats.is_null(row) {
                times.push(None);
                continue;
            }
            let (string, format) = (strings.value(row), formats.value(row));
            if known.as_ref().is_none_or(|(known, _)| *known != format) {
                known = Some((format, items(format)?));
            }
            let time = known.as_ref().and_then(|(_, items)| read(string, items));
            if time.is_none() && !self.safe {
                return exec_err!("'{string}' is not written as '{format}'");
            }
            times.push(time.map(|time| time.and_utc().timestamp_micros()));
        }
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(times));
        Ok(ColumnarValue::Array(times))
    }
}

/// The parts of a format. A fraction of a second is one of any length.
fn items(format: &str) -> Result<Vec<Item<'static>>> {
    let format = format.replace(".%f", "%.f");
    match StrftimeItems::new(&format).parse_to_owned() {
        Ok(items) => Ok(items),
        Err(_) => exec_err!("'{format}' is no format of a timestamp"),
    }
}

fn read(string: &str, items: &[Item<'_>]) -> Option<NaiveDateTime> {
    let mut parsed = Parsed::new();
    parse(&mut parsed, string, items.iter()).ok()?;
    if parsed.timestamp().is_some() {
        return parsed.to_naive_datetime_with_offset(0).ok();
    }
    // Each fails if the part was written, which then stays.
    let _ = parsed.set_hour12(12).and_then(|()| parsed.set_ampm(false));
    let _ = parsed.set_minute(0);
    let time = parsed.to_naive_time().ok()?;
    let date = parsed.to_naive_date().or_else(|_| {
        if parsed.year().is_none() && parsed.year_mod_100().is_none() {
            parsed.set_year(1900)?;
        }
        let _ = parsed.set_month(1);
        let _ = parsed.set_day(1);
        parsed.to_naive_date()
    });
    let offset = TimeDelta::seconds(parsed.offset().unwrap_or(0).into());
    date.ok()?.and_time(time).checked_sub_signed(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_written_is_least() {
        for (string, format, expected) in [
            ("2024-12-31 10", "%Y-%m-%d %H", Some("2024-12-31T10:00:00")),
            ("31.12.9999", "%d.%m.%Y", Some("9999-12-31T00:00:00")),
            ("12/2024", "%m/%Y", Some("2024-12-01T00:00:00")),
            ("10:30 PM", "%I:%M %p", Some("1900-01-01T22:30:00")),
            (
                "2024-01-02 03:04:05.123456",
                "%Y-%m-%d %H:%M:%S.%f",
                Some("2024-01-02T03:04:05.123456"),
            ),
            (
                "2024-01-02 03:04:05 +0200",
                "%Y-%m-%d %H:%M:%S %z",
                Some("2024-01-02T01:04:05"),
            ),
            ("0", "%s", Some("1970-01-01T00:00:00")),
            ("2024-13-01", "%Y-%m-%d", None),
            ("2024-01-01 rest", "%Y-%m-%d", None),
        ] {
            let items = items(format).unwrap();
            let expected = expected.map(|expected| expected.parse().unwrap());
            assert_eq!(read(string, &items), expected, "{string}");
        }
        assert!(items("%Q").is_err());
    }
}
