//! Timestamps as strings: `2024-02-29 13:05:00`, with a fraction of the second as far as there is one.
//!
//! **Stands for** Arrow's cast, which writes a `T` between day and time.

use crate::columns::ColumnFunction;
use datafusion::arrow::array::{Array, ArrayRef, StringViewBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::logical_expr::ScalarUDF;
use std::fmt::Write;
use std::sync::{Arc, LazyLock};

/// The function that stands for a cast to a string.
pub(super) static STRING: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let type_of = |_: &DataType| DataType::Utf8View;
    let function = ColumnFunction::scalar("timestamp_text", type_of, |column| Ok(strings(column)?));
    Arc::new(function)
});

/// Timestamps as such strings.
pub(super) fn strings(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
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
