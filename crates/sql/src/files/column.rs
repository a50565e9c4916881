//! The columns that a text file is read as, and what is said of a value or line that is none.

use super::failed;
use crate::error::SqlError;
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use eris_exact::types::sql_name;
use std::path::Path;
use std::sync::Arc;

/// A column of a text file: with the rules of a table's column if the file is copied into one.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub field: FieldRef,
    pub max_characters: Option<u64>,
}

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Misfit {
    /// It is no value of the column's type.
    Type,
    /// It is NULL, which the column must not be.
    Null,
    /// It has too many characters.
    Long,
}

/// The columns' schema.
pub(super) fn schema(columns: &[Column]) -> SchemaRef {
    let fields = columns.iter().map(|column| Arc::clone(&column.field));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// The error of a line. `line` counts from 1.
pub(super) fn bad_line(path: &Path, line: u64, what: impl std::fmt::Display) -> SqlError {
    failed(&path.to_string_lossy(), format!("line {line}: {what}"))
}

/// The error of a value. `number` counts columns from 1.
pub(super) fn bad_value(
    path: &Path,
    line: u64,
    number: usize,
    column: &Column,
    text: &str,
    misfit: Misfit,
) -> SqlError {
    let name = column.field.name();
    let data_type = sql_name(column.field.data_type(), column.max_characters);
    let shown = shortened(text);
    let (what, hint) = match misfit {
        Misfit::Null => (
            "NULL, but the column is NOT NULL".to_owned(),
            format!("give the column a value, or make column \"{name}\" nullable"),
        ),
        Misfit::Long => (
            format!("'{shown}' is too long for {data_type}"),
            format!("shorten it, or give column \"{name}\" a longer VARCHAR"),
        ),
        Misfit::Type if is_integer(text) && is_number(column.field.data_type()) => (
            format!("'{shown}' is out of range for {data_type}"),
            format!("give column \"{name}\" a larger type"),
        ),
        Misfit::Type => (
            format!("'{shown}' is no {data_type}"),
            type_hint(column.field.data_type(), &shown),
        ),
    };
    bad_line(path, line, format!("column {number} \"{name}\": {what}")).with_hint(Some(hint))
}

fn type_hint(data_type: &DataType, shown: &str) -> String {
    match data_type {
        DataType::Date32 => "dates are written 2001-12-31; for others say dateformat '%d.%m.%Y'".to_owned(),
        DataType::Timestamp(..) => {
            "timestamps are written 2001-12-31 23:59:59; for others say timestampformat '%d.%m.%Y %H:%M:%S'".to_owned()
        }
        _ => format!("correct the value; if it stands for a missing one, say NULL '{shown}'"),
    }
}

fn is_integer(text: &str) -> bool {
    let text = text.trim_ascii();
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() || matches!(data_type, DataType::Decimal128(..))
}

/// At most 60 characters of a text, on one line.
pub(super) fn shortened(text: &str) -> String {
    let mut shown: String = text
        .chars()
        .take(60)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(60).is_some() {
        shown.push('…');
    }
    shown
}
