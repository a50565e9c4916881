//! `epoch_ms`, `epoch_us` and `epoch_ns`: a time since 1970, or how long an interval is, as a number.
//!
//! ```text
//! epoch_ms(TIMESTAMP '1970-01-01 00:00:01.5')    1500
//! epoch_ms(INTERVAL '1 month')                   2592000000      a month of 30 days, as intervals are compared
//! epoch_ms(1500)                                 1970-01-01 00:00:01.5
//! ```
//!
//! **Adds** what DataFusion does not have, as DuckDB does it.

use super::FAILING;
use crate::comparison::interval_length;
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast_with_options;
use datafusion::arrow::compute::kernels::arity::try_unary;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Int64Type, TimeUnit};
use datafusion::arrow::error::ArrowError;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::Arc;

/// One of the functions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ticks {
    name: &'static str,
    unit: TimeUnit,
    /// How many a unit has.
    nanoseconds: i64,
    signature: Signature,
}

impl Ticks {
    /// All of them.
    pub fn functions() -> [Self; 3] {
        [
            ("epoch_ms", TimeUnit::Millisecond, 1_000_000),
            ("epoch_us", TimeUnit::Microsecond, 1_000),
            ("epoch_ns", TimeUnit::Nanosecond, 1),
        ]
        .map(|(name, unit, nanoseconds)| Ticks {
            name,
            unit,
            nanoseconds,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    }
}

impl ScalarUDFImpl for Ticks {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        use DataType::{Date32, Int64, Interval, Null, Time64, Timestamp};
        let micros = Timestamp(TimeUnit::Microsecond, None);
        let of = match types {
            [Date32 | Null] => micros,
            [text] if text.is_string() => micros,
            [known @ (Timestamp(..) | Interval(_) | Time64(_))] => known.clone(),
            [number] if number.is_integer() && self.unit == TimeUnit::Millisecond => Int64,
            _ => return plan_err!("{} takes a date, a time or an interval", self.name()),
        };
        Ok(vec![of])
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(match types[0] {
            DataType::Int64 => DataType::Timestamp(TimeUnit::Microsecond, None),
            _ => DataType::Int64,
        })
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let times = args.args[0].to_array(args.number_rows)?;
        Ok(ColumnarValue::Array(match times.data_type() {
            DataType::Int64 => {
                let ticks =
                    cast_with_options(&times, &DataType::Timestamp(self.unit, None), &FAILING)?;
                cast_with_options(&ticks, args.return_type(), &FAILING)?
            }
            DataType::Interval(_) => Arc::new(self.of_intervals(&times)?) as ArrayRef,
            DataType::Time64(_) => {
                let nanos = DataType::Time64(TimeUnit::Nanosecond);
                let nanos = cast_with_options(&times, &nanos, &FAILING)?;
                let nanos = cast_with_options(&nanos, &DataType::Int64, &FAILING)?;
                let nanos = nanos.as_primitive::<Int64Type>();
                Arc::new(nanos.unary::<_, Int64Type>(|nanos| nanos / self.nanoseconds))
            }
            DataType::Timestamp(_, zone) => {
                let ticks = DataType::Timestamp(self.unit, zone.clone());
                let ticks = cast_with_options(&times, &ticks, &FAILING)?;
                cast_with_options(&ticks, &DataType::Int64, &FAILING)?
            }
            other => unreachable!("the function does not take {other}"),
        }))
    }
}

impl Ticks {
    fn of_intervals(&self, intervals: &ArrayRef) -> Result<Int64Array> {
        let lengths = interval_length(intervals)?;
        let lengths = lengths.as_primitive::<Decimal128Type>();
        Ok(try_unary::<_, _, Int64Type>(lengths, |nanoseconds| {
            i64::try_from(nanoseconds / i128::from(self.nanoseconds))
                .map_err(|_| ArrowError::ComputeError("an interval is out of range".to_owned()))
        })?)
    }
}
