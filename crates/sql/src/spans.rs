//! `nanoseconds(span)`: what a span of time is compared by.
//!
//! Intervals have months, days and nanoseconds, and would be compared part by part: 25 hours as less than a day, and so every
//! difference of timestamps, which has nanoseconds alone. As in PostgreSQL and DuckDB a month counts as 30 days here, and a day as 24
//! hours.

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Decimal128Array};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, IntervalDayTimeType, IntervalMonthDayNanoType,
    IntervalUnit, IntervalYearMonthType, TimeUnit,
};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast,
};
use std::sync::{Arc, LazyLock};

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 86_400 * SECOND;
const MONTH: i128 = 30 * DAY;

/// Digits of the longest span.
const DIGITS: DataType = DataType::Decimal128(38, 0);

static NANOSECONDS: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::from(Nanoseconds::default())));

/// Whether operands of these types are spans, or become such beside an interval: texts, NULL and parameters.
pub(crate) fn are_spans(types: &[DataType]) -> bool {
    let is_span = |data_type: &DataType| {
        use DataType::{Duration, Interval, Null};
        matches!(data_type, Interval(_) | Duration(_) | Null) || data_type.is_string()
    };
    let is_interval = |data_type: &DataType| matches!(data_type, DataType::Interval(_));
    types.iter().any(is_interval) && types.iter().all(is_span)
}

/// What such an operand is compared by.
pub(crate) fn nanoseconds(operand: Expr, data_type: &DataType) -> Expr {
    let span = match data_type {
        DataType::Interval(_) | DataType::Duration(_) => operand,
        _ => cast(operand, DataType::Interval(IntervalUnit::MonthDayNano)),
    };
    NANOSECONDS.call(vec![span])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Nanoseconds {
    signature: Signature,
}

impl Default for Nanoseconds {
    fn default() -> Self {
        Nanoseconds {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Nanoseconds {
    fn name(&self) -> &str {
        "nanoseconds"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DIGITS)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = matches!(args.args[0], ColumnarValue::Scalar(_));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let counted = counted(&args.args[0].to_array(rows)?)?;
        Ok(match is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&counted, 0)?),
            false => ColumnarValue::Array(counted),
        })
    }
}

fn counted(spans: &ArrayRef) -> Result<ArrayRef> {
    use DataType::{Duration, Interval};
    match spans.data_type() {
        Interval(IntervalUnit::MonthDayNano) => each::<IntervalMonthDayNanoType>(spans, |span| {
            let (months, days) = (i128::from(span.months), i128::from(span.days));
            months * MONTH + days * DAY + i128::from(span.nanoseconds)
        }),
        Interval(IntervalUnit::DayTime) => each::<IntervalDayTimeType>(spans, |span| {
            i128::from(span.days) * DAY + i128::from(span.milliseconds) * (SECOND / 1_000)
        }),
        Interval(IntervalUnit::YearMonth) => {
            each::<IntervalYearMonthType>(spans, |months| i128::from(months) * MONTH)
        }
        Duration(TimeUnit::Second) => {
            each::<DurationSecondType>(spans, |ticks| i128::from(ticks) * SECOND)
        }
        Duration(TimeUnit::Millisecond) => {
            each::<DurationMillisecondType>(spans, |ticks| i128::from(ticks) * (SECOND / 1_000))
        }
        Duration(TimeUnit::Microsecond) => {
            each::<DurationMicrosecondType>(spans, |ticks| i128::from(ticks) * 1_000)
        }
        Duration(TimeUnit::Nanosecond) => each::<DurationNanosecondType>(spans, i128::from),
        other => exec_err!("{other} is no span of time"),
    }
}

fn each<T: ArrowPrimitiveType>(
    spans: &ArrayRef,
    count: impl Fn(T::Native) -> i128,
) -> Result<ArrayRef> {
    let counted: Decimal128Array = spans.as_primitive::<T>().unary::<_, Decimal128Type>(count);
    Ok(Arc::new(counted.with_data_type(DIGITS)))
}
