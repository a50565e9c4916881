//! `date_trunc` of any timestamp, and to any part of a calendar.
//!
//! **Stands for** DataFusion's function of the same name. It counts in nanoseconds, which end in 2262, and knows no
//! decades, centuries and millennia. All that it can is left to it, for it is fast.

use super::FAILING;
use super::part::Part;
use crate::types::ZONE;
use datafusion::arrow::array::{ArrayRef, AsArray, TimestampMicrosecondArray};
use datafusion::arrow::compute::cast_with_options;
use datafusion::arrow::datatypes::{DataType, FieldRef, TimeUnit, TimestampMicrosecondType};
use datafusion::common::Result;
use datafusion::functions::datetime::date_trunc;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature,
};
use std::sync::Arc;

/// The function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Truncated {
    other: Arc<ScalarUDF>,
}

impl Default for Truncated {
    fn default() -> Self {
        Truncated {
            other: date_trunc(),
        }
    }
}

impl ScalarUDFImpl for Truncated {
    fn name(&self) -> &str {
        self.other.name()
    }

    fn aliases(&self) -> &[String] {
        self.other.aliases()
    }

    fn signature(&self) -> &Signature {
        self.other.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.other.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.other.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let own = part(&args).zip(micros(&args));
        match (self.other.invoke_with_args(args.clone()), own) {
            (Err(_), Some((Ok(part), times))) => {
                let begins = begins(part, &times?)?;
                let begins = cast_with_options(&begins, args.return_type(), &FAILING)?;
                Ok(ColumnarValue::Array(begins))
            }
            (result, _) => result,
        }
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.other.output_ordering(input)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.other.documentation()
    }
}

/// The part that is asked for; `None` if it is no constant.
fn part(args: &ScalarFunctionArgs) -> Option<Result<Part>> {
    let ColumnarValue::Scalar(name) = &args.args[0] else {
        return None;
    };
    name.try_as_str().flatten().map(Part::named)
}

/// Timestamps whose days have 24 hours, as microseconds.
fn micros(args: &ScalarFunctionArgs) -> Option<Result<ArrayRef>> {
    let times = &args.args[1];
    match times.data_type() {
        DataType::Timestamp(_, zone) if zone.as_deref().is_none_or(|zone| zone == ZONE) => {
            let micros = DataType::Timestamp(TimeUnit::Microsecond, zone.clone());
            let column = times.to_array(args.number_rows);
            let cast = |column: ArrayRef| Ok(cast_with_options(&column, &micros, &FAILING)?);
            Some(column.and_then(cast))
        }
        _ => None,
    }
}

fn begins(part: Part, times: &ArrayRef) -> Result<ArrayRef> {
    let times = times.as_primitive::<TimestampMicrosecondType>();
    let begins = times
        .iter()
        .map(|time| time.map(|time| part.begin(time)).transpose());
    let begins = begins.collect::<Result<TimestampMicrosecondArray>>()?;
    Ok(Arc::new(begins.with_timezone_opt(times.timezone())))
}
