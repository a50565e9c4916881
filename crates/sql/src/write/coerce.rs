//! Values on their way into a table: cast to the column's type, or rejected by name, column and row.

use crate::catalog::{ColumnRules, Table};
use crate::error::values::violation_of_string;
use crate::error::{Mistake, SqlError, Violation};
use crate::write::row_rules::ComputedDefault;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use datafusion::arrow::compute::kernels::zip::zip;
use datafusion::arrow::compute::{self, is_not_null};
use datafusion::arrow::datatypes::{
    DataType, Field, Float32Type, Float64Type, Int64Type, IntervalUnit, Schema, SchemaRef, TimeUnit,
};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::ScalarValue;
use eris_exact::one_nan;
use eris_exact::text::{can_cast, has_own_text, try_cast, write_value};
use eris_exact::types::{UUID_BYTES, sql_name};
use std::fmt;
use std::sync::Arc;

/// Where a column's values come from.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// The column of the source at this position.
    Source(usize),
    /// The columns of the source at these positions, of different types. At most one of them has a value in each row.
    Sources(Vec<usize>),
    /// A constant for every row: the default, or NULL.
    Constant(ScalarValue),
    /// A default that may differ from row to row.
    Computed(ComputedDefault),
}

/// Rows of a source as rows of a table, which its rules have yet to be applied to. `first_row` counts from 1.
pub(super) fn rows(
    batch: &RecordBatch,
    table: &Table,
    targets: &[Target],
    first_row: u64,
) -> Result<RecordBatch, SqlError> {
    let fields = table.schema.fields().iter().zip(&table.rules);
    let columns = fields
        .zip(targets)
        .map(|((field, rules), target)| match target {
            Target::Source(position) => {
                let values = batch.column(*position);
                column(values, field, rules, &table.name, first_row)
            }
            Target::Sources(positions) => {
                let parts = positions.iter().map(|position| batch.column(*position));
                let parts = parts.map(|part| column(part, field, rules, &table.name, first_row));
                let together = parts.reduce(|all, part| together(&all?, &part?));
                together.expect("a column has at least one source")
            }
            Target::Constant(value) => value
                .to_array_of_size(batch.num_rows())
                .map_err(SqlError::from_datafusion),
            Target::Computed(default) => {
                let values = default.values(batch.num_rows());
                let values = values.map_err(SqlError::from_datafusion)?;
                column(&values, field, rules, &table.name, first_row)
            }
        });
    let columns = columns.collect::<Result<Vec<_>, SqlError>>()?;
    // NULLs are rejected together with what else is wrong with a row, so they must get that far.
    let schema = Arc::clone(&table.unruled);
    RecordBatch::try_new(schema, columns).map_err(|error| SqlError::from_datafusion(error.into()))
}

/// The values of one column, and of another where that has some.
fn together(all: &ArrayRef, part: &ArrayRef) -> Result<ArrayRef, SqlError> {
    let together = is_not_null(part).and_then(|is_part| zip(&is_part, part, all));
    together.map_err(|error| SqlError::from_datafusion(error.into()))
}

/// One column's values as its type. `table` is for messages.
///
/// # Errors
/// A type that cannot be cast, or the first value that does not fit.
pub(crate) fn column(
    array: &ArrayRef,
    field: &Field,
    rules: &ColumnRules,
    table: &dyn fmt::Display,
    first_row: u64,
) -> Result<ArrayRef, SqlError> {
    let (from, to) = (array.data_type(), field.data_type());
    let place = || format!("table \"{table}\", column \"{}\"", field.name());
    if *from == DataType::Null {
        return Ok(new_null_array(to, array.len()));
    }
    let cast = if from == to {
        Arc::clone(array)
    } else if is_assignable(from, to) {
        try_cast(array, to).map_err(|error| SqlError::from_datafusion(error.into()))?
    } else {
        return Err(SqlError::invalid(
            Mistake::DatatypeMismatch,
            format!(
                "{}: cannot store {} as {}",
                place(),
                sql_name(from, None),
                sql_name(to, rules.max_characters)
            ),
        ));
    };
    if let Some(row) = first_lost(array, &cast) {
        return Err(SqlError::constraint(
            match from.is_string() {
                true => {
                    violation_of_string(shown(array, row).trim_matches('\''), &sql_name(to, None))
                }
                false => Violation::Range,
            },
            format!(
                "{}: value {} in row {} does not fit {}",
                place(),
                shown(array, row),
                first_row + row as u64,
                sql_name(to, rules.max_characters)
            ),
        ));
    }
    if let Some(row) = rules.max_characters.and_then(|most| too_long(&cast, most)) {
        return Err(SqlError::constraint(
            Violation::Length,
            format!(
                "{}: value {} in row {} is too long for {}",
                place(),
                shown(array, row),
                first_row + row as u64,
                sql_name(to, rules.max_characters)
            ),
        ));
    }
    Ok(one_nan(&cast))
}

/// The first row whose value the cast did not keep: it is NULL now, or an infinite number that it was not.
fn first_lost(array: &ArrayRef, cast: &ArrayRef) -> Option<usize> {
    let is_null = |row: &usize| cast.is_null(*row) && array.is_valid(*row);
    if cast.null_count() != array.null_count() {
        return (0..array.len()).find(is_null);
    }
    if let Some(row) = first_wrong_time(array, cast) {
        return Some(row);
    }
    let is_infinite = |row: usize| match cast.data_type() {
        DataType::Float32 => cast.as_primitive::<Float32Type>().value(row).is_infinite(),
        _ => cast.as_primitive::<Float64Type>().value(row).is_infinite(),
    };
    let was_infinite = |row: usize| match array.data_type() {
        DataType::Float32 => array.as_primitive::<Float32Type>().value(row).is_infinite(),
        DataType::Float64 => array.as_primitive::<Float64Type>().value(row).is_infinite(),
        from if from.is_string() => shown(array, row).to_lowercase().contains("inf"),
        _ => false,
    };
    let is_float = matches!(cast.data_type(), DataType::Float32 | DataType::Float64);
    let narrows = cast.data_type() != array.data_type();
    (0..if is_float && narrows { cast.len() } else { 0 })
        .find(|&row| cast.is_valid(row) && is_infinite(row) && !was_infinite(row))
}

/// The first row whose time is none of a day, or has more digits than were kept.
fn first_wrong_time(array: &ArrayRef, times: &ArrayRef) -> Option<usize> {
    let DataType::Time64(unit) = times.data_type() else {
        return None;
    };
    let counts = |times: &ArrayRef| {
        Some(
            compute::cast(times, &DataType::Int64)
                .ok()?
                .as_primitive::<Int64Type>()
                .clone(),
        )
    };
    let is_micros = *unit == TimeUnit::Microsecond;
    let day = if is_micros {
        86_400_000_000
    } else {
        86_400_000_000_000
    };
    let kept = counts(times)?;
    let wrong = kept
        .iter()
        .position(|time| time.is_some_and(|time| !(0..day).contains(&time)));
    if !is_micros || *array.data_type() != DataType::Time64(TimeUnit::Nanosecond) {
        return wrong;
    }
    let finer = counts(array)?;
    wrong.or_else(|| {
        finer
            .iter()
            .position(|time| time.is_some_and(|time| time % 1_000 != 0))
    })
}

/// Whether values of a type may be stored as another without a cast in the statement.
fn is_assignable(from: &DataType, to: &DataType) -> bool {
    // A date as a number would be the days since 1970.
    let is_mixed = from.is_temporal() && to.is_numeric() || from.is_numeric() && to.is_temporal();
    !is_mixed && !matches!(from, DataType::List(_) | DataType::Struct(_)) && can_cast(from, to)
}

/// The first text of more than `most` characters.
fn too_long(array: &ArrayRef, most: u64) -> Option<usize> {
    let texts = array.as_string_view_opt()?;
    // A text has at most as many characters as bytes, so most texts need no counting.
    let long = |text: &str| text.len() as u64 > most && text.chars().count() as u64 > most;
    texts.iter().position(|text| text.is_some_and(long))
}

/// A value for messages, shortened.
pub(crate) fn shown(array: &ArrayRef, row: usize) -> String {
    let text = text_of(array, row);
    let text = match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    };
    match array.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => format!("'{text}'"),
        _ => text,
    }
}

fn text_of(array: &ArrayRef, row: usize) -> String {
    if has_own_text(array.data_type()) && array.is_valid(row) {
        let mut text = String::new();
        return match write_value(&mut text, array, row) {
            Ok(()) => text,
            Err(_) => "?".to_owned(),
        };
    }
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array, &options);
    formatter.map_or_else(|_| "?".to_owned(), |shown| shown.value(row).to_string())
}

/// The values of a key's columns in a row, as messages of constraints show them.
pub(crate) fn displayed(columns: &[ArrayRef], row: usize) -> String {
    let values = columns.iter().map(|column| text_of(column, row));
    values.collect::<Vec<_>>().join(", ")
}

/// The schema of a table that can hold the rows of a query. Columns become nullable.
///
/// # Errors
/// A column without name of its own, or of a type that is not stored.
pub(crate) fn storable(schema: &Schema, table: &str) -> Result<SchemaRef, SqlError> {
    let fields = schema.fields().iter().map(|field| {
        let data_type = match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Null => DataType::Utf8View,
            DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
            DataType::FixedSizeBinary(bytes) if *bytes != UUID_BYTES => DataType::BinaryView,
            DataType::Time32(_) => DataType::Time64(TimeUnit::Microsecond),
            DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
            DataType::Duration(_) | DataType::Interval(_) => {
                DataType::Interval(IntervalUnit::MonthDayNano)
            }
            DataType::Dictionary(_, values) if **values == DataType::Utf8 => DataType::Utf8View,
            other => other.clone(),
        };
        if eris_fragment::Type::try_from(&data_type).is_err() {
            let name = field.name();
            let data_type = sql_name(&data_type, None);
            let message = format!("type {data_type} of column \"{name}\" of table \"{table}\"");
            return Err(SqlError::not_supported(message)
                .with_hint(Some("CAST the column to a type that is stored")));
        }
        Ok(Field::new(field.name(), data_type, true))
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    for (position, field) in fields.iter().enumerate() {
        if fields[..position]
            .iter()
            .any(|other| other.name() == field.name())
        {
            return Err(SqlError::invalid(
                Mistake::DuplicateColumn,
                format!("column \"{}\" occurs twice", field.name()),
            )
            .with_hint(Some("give one of them another name with AS")));
        }
    }
    Ok(Arc::new(Schema::new(fields)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Float64Array, Int64Array, StringArray};

    fn cast(
        array: impl Array + 'static,
        to: DataType,
        max_characters: Option<u64>,
    ) -> Result<ArrayRef, String> {
        let rules = ColumnRules {
            max_characters,
            ..ColumnRules::default()
        };
        let array: ArrayRef = Arc::new(array);
        column(&array, &Field::new("c", to, true), &rules, &"t", 11)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let numbers = || Int64Array::from(vec![Some(1), None, Some(300)]);
        assert_eq!(
            cast(numbers(), DataType::Int8, None).unwrap_err(),
            "table \"t\", column \"c\": value 300 in row 13 does not fit TINYINT"
        );
        assert_eq!(
            cast(numbers(), DataType::Int16, None).unwrap().null_count(),
            1
        );
        assert!(cast(Float64Array::from(vec![1e300]), DataType::Int64, None).is_err());
        assert!(cast(Float64Array::from(vec![f64::NAN]), DataType::Int64, None).is_err());
        assert_eq!(
            cast(StringArray::from(vec!["12x"]), DataType::Int32, None).unwrap_err(),
            "table \"t\", column \"c\": value '12x' in row 11 does not fit INTEGER"
        );
        assert!(
            cast(numbers(), DataType::Decimal128(3, 1), None)
                .unwrap_err()
                .contains("DECIMAL(3,1)")
        );
    }

    #[test]
    fn the_length_of_a_text_counts_characters() {
        let texts = || StringArray::from(vec!["äöü", "abcd"]);
        assert!(cast(texts(), DataType::Utf8View, Some(4)).is_ok());
        assert_eq!(
            cast(texts(), DataType::Utf8View, Some(3)).unwrap_err(),
            "table \"t\", column \"c\": value 'abcd' in row 12 is too long for VARCHAR(3)"
        );
    }
}
