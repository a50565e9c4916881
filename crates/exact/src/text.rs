//! Values as strings and strings as values, for types that SQL writes in another way than Arrow.
//!
//! **Stands for** Arrow's casts between these types and strings. They take `10` for ten nanoseconds past midnight, and
//! show `10:00:01.500`.
//!
//! ```text
//!  CAST(s AS TIME)          read_value(s)          s a string; TRY_CAST gives NULL where CAST fails
//!  CAST(t AS VARCHAR)       value_text(t)
//!  CAST(l AS VARCHAR[])     element_text(l)        l a list of such values, or of timestamps
//!  u = 'a0eebc99-…'         u = read_value('a0eebc99-…')         u BLOB or UUID
//! ```
//!
//! DataFusion makes strings of BLOB and UUID values where a function takes strings, and takes their bytes. That is an
//! error here, as in DuckDB.

pub(crate) mod beside;
mod blob;
pub(crate) mod frame;
mod interval;
pub(crate) mod length;
pub(crate) mod random;
mod shown;
mod time;
mod uuid;

pub use blob::bytes as blob_bytes;
pub use shown::{TIMESTAMP, TIMESTAMP_ZONED, VALUE_FORMAT, formatter};
pub use time::nanoseconds;
pub use uuid::bytes as uuid_bytes;

use crate::arithmetic::rounding::before_cast;
use crate::columns::{ColumnFunction, of_column};
use crate::types::{UUID_BYTES, sql_name};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, ListArray, StringViewBuilder, Time64MicrosecondArray,
};
use datafusion::arrow::compute::{CastOptions, can_cast_types, cast, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Field, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType,
    Time64NanosecondType, TimeUnit,
};
use datafusion::arrow::error::ArrowError;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use eris_fragment::text::{write_blob, write_interval, write_time, write_uuid};
use std::fmt::{self, Write};
use std::sync::{Arc, LazyLock};

/// Whether values of the type and strings become each other here.
pub fn has_own_text(data_type: &DataType) -> bool {
    use DataType::{Interval, Time64};
    matches!(data_type, Time64(_) | Interval(IntervalUnit::MonthDayNano)) || is_binary(data_type)
}

/// BLOB or UUID.
pub(crate) fn is_binary(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary};
    matches!(
        data_type,
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_)
    )
}

fn is_uuid(data_type: &DataType) -> bool {
    *data_type == DataType::FixedSizeBinary(UUID_BYTES)
}

/// What is cast, to what, and whether it may fail.
fn cast_in(expr: &Expr) -> Option<(&Expr, &DataType, bool)> {
    match expr {
        Expr::Cast(Cast { expr, field }) => Some((expr, field.data_type(), false)),
        Expr::TryCast(TryCast { expr, field }) => Some((expr, field.data_type(), true)),
        _ => None,
    }
}

/// A cast that is written between strings and BLOB or UUID as the function that does it. Comes before DataFusion adds
/// casts of its own, of which those to BLOB take the bytes of a string as they are.
///
/// # Errors
/// Arrow has the cast, SQL has not.
pub(crate) fn rewrite_written(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some((operand, to, is_try)) = cast_in(&expr) else {
        return beside::rewrite(expr, schema);
    };
    // What has no type, such as a parameter, gets one later.
    let Ok(from) = operand.get_type(schema) else {
        return Ok(Transformed::no(expr));
    };
    if !is_castable(&from, to) {
        // Lists are not read from strings yet, and would not be NULL as a whole.
        if is_try && !from.is_nested() && !to.is_nested() {
            let null = ScalarValue::try_from(to)?;
            return Ok(Transformed::yes(Expr::Literal(null, None)));
        }
        let [from, to] = [&from, to].map(|of| sql_name(of, None));
        return plan_err!("Unsupported CAST from {from} to {to}");
    }
    match is_binary(&from) || is_binary(to) || from.is_nested() {
        true => {
            Ok(by_function(operand, &from, to, is_try)
                .map_or(Transformed::no(expr), Transformed::yes))
        }
        false => Ok(Transformed::no(expr)),
    }
}

/// A cast between strings and times or intervals as the function that does it, wherever it comes from.
///
/// # Errors
/// A BLOB or UUID would become a string without a CAST that is written.
pub(crate) fn rewrite(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Some((operand, to, is_try)) = cast_in(&expr) else {
        return Ok(Transformed::no(expr));
    };
    let from = operand.get_type(schema)?;
    if is_binary(&from) && to.is_string() {
        return plan_err!("Implicit CAST from {from} to {to}");
    }
    match is_binary(to) {
        true => Ok(Transformed::no(expr)),
        false => {
            Ok(by_function(operand, &from, to, is_try)
                .map_or(Transformed::no(expr), Transformed::yes))
        }
    }
}

/// The function that casts an operand, if it is not Arrow that does.
fn by_function(operand: &Expr, from: &DataType, to: &DataType, is_try: bool) -> Option<Expr> {
    if from.is_string() && has_own_text(to) {
        let function = ScalarUDF::from(ReadValue::new(to.clone(), is_try));
        return Some(function.call(vec![operand.clone()]));
    }
    if let (DataType::List(from), DataType::List(to_element)) = (from, to)
        && to_element.data_type().is_string()
        && is_shown_otherwise(from.data_type())
    {
        let strings = ELEMENT_TEXT.call(vec![operand.clone()]);
        return Some(datafusion::logical_expr::cast(strings, to.clone()));
    }
    if !(to.is_string() && (has_own_text(from) || from.is_nested())) {
        return None;
    }
    let string = VALUE_TEXT.call(vec![operand.clone()]);
    Some(match to {
        DataType::Utf8View => string,
        other => datafusion::logical_expr::cast(string, other.clone()),
    })
}

/// Whether Arrow's cast means what SQL's does. Numbers are no dates and times, nor are these numbers: they would be
/// counts of some unit. A string is no list: it would be the only element.
fn is_castable(from: &DataType, to: &DataType) -> bool {
    let is_time = |of: &DataType| {
        use DataType::{Date32, Date64, Time32, Time64, Timestamp};
        matches!(of, Time32(_) | Time64(_) | Date32 | Date64 | Timestamp(..))
    };
    let is_interval = |of: &DataType| matches!(of, DataType::Interval(_) | DataType::Duration(_));
    let mixed = |a: &DataType, b: &DataType| {
        let number = a.is_numeric() || *a == DataType::Boolean;
        number && is_time(b)
            || is_binary(a) && !(is_binary(b) || b.is_string() || b.is_null())
            || is_interval(a) && !(is_interval(b) || b.is_string() || b.is_null())
            || is_uuid(a) != is_uuid(b) && is_binary(a) && is_binary(b)
    };
    if let (Some(from), Some(to)) = (element(from), element(to)) {
        return is_castable(from, to);
    }
    let becomes_element = element(to).is_some() && !from.is_null();
    !mixed(from, to) && !mixed(to, from) && !becomes_element
}

/// The type of a list's elements.
fn element(list: &DataType) -> Option<&DataType> {
    use DataType::{FixedSizeList, LargeList, List};
    match list {
        List(field) | LargeList(field) | FixedSizeList(field, _) => Some(field.data_type()),
        _ => None,
    }
}

/// Whether there is a cast from one type to another.
pub fn can_cast(from: &DataType, to: &DataType) -> bool {
    let by_text = from.is_string() && has_own_text(to)
        || to.is_string() && (has_own_text(from) || from.is_nested());
    by_text || is_castable(from, to) && can_cast_types(from, to)
}

/// The values as CAST makes them, NULL where a value is none of the type.
///
/// # Errors
/// There is no such cast, or a number has too many digits.
pub fn try_cast(array: &ArrayRef, to: &DataType) -> std::result::Result<ArrayRef, ArrowError> {
    if array.data_type().is_string() && has_own_text(to) {
        return read(array, to, true);
    }
    let from = array.data_type();
    if to.is_string() && (has_own_text(from) || from.is_nested()) {
        return cast(&strings(array)?, to);
    }
    let options = CastOptions {
        safe: true,
        ..CastOptions::default()
    };
    cast_with_options(&before_cast(array, to)?, to, &options)
}

/// Strings as values of a type that [has its own text](has_own_text). What is no value is an error, or NULL if `safe`.
pub(crate) fn read(
    strings: &ArrayRef,
    to: &DataType,
    safe: bool,
) -> std::result::Result<ArrayRef, ArrowError> {
    let strings = cast(strings, &DataType::Utf8View)?;
    let strings = strings.as_string_view();
    match to {
        DataType::Time64(unit) => time::read(strings, *unit, safe),
        DataType::Interval(_) => interval::read(strings, safe),
        uuid if is_uuid(uuid) => uuid::read(strings, safe),
        binary if is_binary(binary) => cast(&blob::read(strings, safe)?, binary),
        other => unreachable!("strings become {other} by Arrow's cast"),
    }
}

/// Strings as values of a type that [has its own text](has_own_text), as files are read: NULL for what is no value, and
/// for what would lose a part.
///
/// # Errors
/// They are no strings.
pub fn read_exactly(
    strings: &ArrayRef,
    to: &DataType,
) -> std::result::Result<ArrayRef, ArrowError> {
    let DataType::Time64(TimeUnit::Microsecond) = to else {
        return read(strings, to, true);
    };
    let finer = read(strings, &DataType::Time64(TimeUnit::Nanosecond), true)?;
    let micros = finer.as_primitive::<Time64NanosecondType>();
    let micros = micros.unary_opt(|time| (time % 1_000 == 0).then_some(time / 1_000));
    Ok(Arc::new(micros as Time64MicrosecondArray))
}

/// The error of a string that is no value of the type.
fn no_value(string: &str, data_type: &str) -> ArrowError {
    ArrowError::CastError(format!(
        "Cannot cast string '{string}' to value of {data_type} type"
    ))
}

/// Values of a type that [has its own text](has_own_text) as strings; lists, structs and maps as they are shown.
pub fn strings(values: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    let options = VALUE_FORMAT.with_display_error(false);
    let formatter = formatter(values, &options)?;
    let mut out = StringViewBuilder::with_capacity(values.len());
    let mut string = String::new();
    for row in 0..values.len() {
        if values.is_null(row) {
            out.append_null();
            continue;
        }
        string.clear();
        write!(string, "{}", formatter.value(row))
            .map_err(|_| ArrowError::CastError("a value that cannot be shown".to_owned()))?;
        out.append_value(&string);
    }
    Ok(Arc::new(out.finish()))
}

/// Writes a value of a type that [has its own text](has_own_text), which is not NULL.
///
/// # Errors
/// The writer's.
pub fn write_value(out: &mut dyn Write, values: &dyn Array, row: usize) -> fmt::Result {
    let mut out = out;
    match values.data_type() {
        DataType::Time64(TimeUnit::Nanosecond) => {
            let time = values.as_primitive::<Time64NanosecondType>().value(row);
            write_time(&mut out, time, eris_fragment::TimeUnit::Nanosecond)
        }
        DataType::Time64(_) => {
            let time = values.as_primitive::<Time64MicrosecondType>().value(row);
            write_time(&mut out, time, eris_fragment::TimeUnit::Microsecond)
        }
        DataType::Interval(_) => {
            let interval = values.as_primitive::<IntervalMonthDayNanoType>().value(row);
            let (months, days) = (interval.months, interval.days);
            write_interval(&mut out, months, days, interval.nanoseconds)
        }
        DataType::Binary => write_blob(&mut out, values.as_binary::<i32>().value(row)),
        DataType::LargeBinary => write_blob(&mut out, values.as_binary::<i64>().value(row)),
        DataType::BinaryView => write_blob(&mut out, values.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => {
            let bytes = values.as_fixed_size_binary().value(row);
            match bytes.try_into() {
                Ok(uuid) => write_uuid(&mut out, uuid),
                Err(_) => write_blob(&mut out, bytes),
            }
        }
        other => unreachable!("{other} is shown as Arrow shows it"),
    }
}

static VALUE_TEXT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let type_of = |_: &DataType| DataType::Utf8View;
    let function = ColumnFunction::scalar("value_text", type_of, |column| Ok(strings(column)?));
    Arc::new(function)
});

/// Whether SQL shows values in another way than Arrow.
fn is_shown_otherwise(data_type: &DataType) -> bool {
    let is_timestamp = matches!(data_type, DataType::Timestamp(..));
    has_own_text(data_type) || data_type.is_nested() || is_timestamp
}

static ELEMENT_TEXT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let type_of = |_: &DataType| DataType::new_list(DataType::Utf8View, true);
    let function = ColumnFunction::scalar("element_text", type_of, |column| {
        let (_, offsets, elements, nulls) = column.as_list::<i32>().clone().into_parts();
        let elements = match elements.data_type() {
            DataType::Timestamp(..) => before_cast(&elements, &DataType::Utf8View)?,
            _ => strings(&elements)?,
        };
        let field = Arc::new(Field::new_list_field(DataType::Utf8View, true));
        Ok(Arc::new(ListArray::new(field, offsets, elements, nulls)) as ArrayRef)
    });
    Arc::new(function)
});

/// `read_value(string)`: the value of a type that is written so.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ReadValue {
    to: DataType,
    /// NULL for what is no value.
    safe: bool,
    signature: Signature,
}

impl ReadValue {
    fn new(to: DataType, safe: bool) -> Self {
        ReadValue {
            to,
            safe,
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for ReadValue {
    fn name(&self) -> &str {
        "read_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        of_column(&args, |strings| Ok(read(strings, &self.to, self.safe)?))
    }
}
