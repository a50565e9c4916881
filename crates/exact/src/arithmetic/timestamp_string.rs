//! Timestamps as strings: `2024-02-29 13:05:00`, with a fraction of the second as far as there is one.
//!
//! **Stands for** Arrow's cast, which writes a `T` between day and time.

use crate::columns::of_column;
use datafusion::arrow::array::{Array, ArrayRef, StringViewBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use std::fmt::Write;
use std::sync::Arc;

/// The function that stands for a cast to a string.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TimestampString {
    signature: Signature,
}

impl Default for TimestampString {
    fn default() -> Self {
        TimestampString {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for TimestampString {
    fn name(&self) -> &str {
        "timestamp_text"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_column(&args, |column| Ok(strings(column)?))
    }
}

fn strings(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let options = FormatOptions::new()
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.9f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.9f"));
    let zone = match array.data_type() {
        DataType::Timestamp(_, Some(_)) => "+00",
        _ => "",
    };
    let formatter = ArrayFormatter::try_new(array, &options)?;
    let mut out = StringViewBuilder::with_capacity(array.len());
    let mut string = String::new();
    for row in 0..array.len() {
        if array.is_null(row) {
            out.append_null();
            continue;
        }
        string.clear();
        // Writing to a string fails only if the value cannot be shown.
        write!(string, "{}", formatter.value(row))
            .map_err(|_| ArrowError::CastError("a timestamp out of range".into()))?;
        let shown = string.trim_end_matches('0').trim_end_matches('.').len();
        string.truncate(shown);
        string.push_str(zone);
        out.append_value(&string);
    }
    Ok(Arc::new(out.finish()))
}
