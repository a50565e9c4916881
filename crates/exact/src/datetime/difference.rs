//! `date_diff(part, start, end)` and `date_sub(part, start, end)`: how many parts of a calendar lie between.
//!
//! ```text
//! date_diff('month', '2024-01-31', '2024-02-01')    1    a new month has begun once
//! date_sub('month', '2024-01-31', '2024-02-01')     0    no whole month has passed
//! ```
//!
//! **Adds** what DataFusion does not have, as DuckDB does it.

use super::part::Part;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use datafusion::arrow::datatypes::{
    DataType, Int64Type, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{Result, plan_err};
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

impl Counted {
    fn between(self, part: Part, start: i64, end: i64) -> Result<i64> {
        match self {
            Counted::Begun => Ok(part.number(end)? - part.number(start)?),
            Counted::Whole => part.whole(start, end),
        }
    }
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
            (true, true) => self
                .counted
                .between(part, starts.value(row), ends.value(row))
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

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

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
            let of = |counted: Counted| counted.between(part_of, start, end).unwrap();
            assert_eq!(
                (of(Counted::Begun), of(Counted::Whole)),
                (begun, whole),
                "{part}"
            );
        }
    }
}
