//! DataFusion's words in the user's: types as SQL names them, constants as they are written, names as they are quoted.

use super::error_text::Told;
use super::{Mistake, SqlErrorKind};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, SchemaError};
use eris_exact::types::sql_name;
use std::fmt::Write;

/// A message with SQL's names of types in it.
pub(crate) fn in_sql(message: &str) -> String {
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(start) = rest.find(|c: char| c.is_ascii_uppercase()) {
        let at_word = !rest[..start].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let length = rest[start..]
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(rest.len() - start);
        let (before, word, behind) = (
            &rest[..start],
            &rest[start..start + length],
            &rest[start + length..],
        );
        out.push_str(before);
        rest = behind;
        match known(word) {
            Some(data_type) if at_word => match enclosed(rest) {
                // A constant such as Int64(5) or Utf8("x").
                Some((value, behind)) if is_constant(value) => {
                    out.push_str(&constant(value));
                    rest = behind;
                }
                _ => out.push_str(&sql_name(&data_type, None)),
            },
            None if at_word && word == "Decimal128" => {
                out.push_str("DECIMAL");
                if let Some((digits, behind)) = enclosed(rest) {
                    let _ = write!(out, "({})", digits.replace(' ', ""));
                    rest = behind;
                }
            }
            None if at_word && word == "Time64" => {
                let (unit, behind) = enclosed(rest).unwrap_or(("", rest));
                let name = if unit == "ns" { "TIME(9)" } else { "TIME" };
                out.push_str(name);
                rest = behind;
            }
            None if at_word && matches!(word, "FixedSizeBinary" | "Interval") => {
                let (given, behind) = enclosed(rest).unwrap_or(("", rest));
                out.push_str(match (word, given) {
                    ("Interval", _) => "INTERVAL",
                    (_, "16") => "UUID",
                    _ => "BLOB",
                });
                rest = behind;
            }
            None if at_word && word == "Timestamp" => {
                out.push_str("TIMESTAMP");
                if let Some((unit, behind)) = enclosed(rest) {
                    if unit.contains("UTC") {
                        out.push_str(" WITH TIME ZONE");
                    }
                    rest = behind;
                }
            }
            _ => out.push_str(word),
        }
    }
    out.push_str(rest);
    out
}

fn known(word: &str) -> Option<DataType> {
    Some(match word {
        "Boolean" => DataType::Boolean,
        "Int8" => DataType::Int8,
        "Int16" => DataType::Int16,
        "Int32" => DataType::Int32,
        "Int64" => DataType::Int64,
        "UInt8" => DataType::UInt8,
        "UInt16" => DataType::UInt16,
        "UInt32" => DataType::UInt32,
        "UInt64" => DataType::UInt64,
        "Float32" => DataType::Float32,
        "Float64" => DataType::Float64,
        "Utf8" | "LargeUtf8" | "Utf8View" => DataType::Utf8View,
        "Binary" | "LargeBinary" | "BinaryView" => DataType::BinaryView,
        "Date32" => DataType::Date32,
        _ => return None,
    })
}

/// What stands in parentheses at the beginning of a text, and what follows.
fn enclosed(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('(')?.split_once(')')
}

fn is_constant(text: &str) -> bool {
    let quoted = text.len() > 1 && text.starts_with('"') && text.ends_with('"');
    quoted || text == "NULL" || text == "true" || text == "false" || text.parse::<f64>().is_ok()
}

fn constant(text: &str) -> String {
    match text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
    {
        Some(text) => format!("'{text}'"),
        None => text.to_owned(),
    }
}

/// What is wrong with a name, and what to do about it.
pub(super) fn of_schema(error: &SchemaError) -> Option<Told> {
    match error {
        SchemaError::FieldNotFound {
            field,
            valid_fields,
        } => {
            let (mistake, message) = match &field.relation {
                Some(table)
                    if !valid_fields
                        .iter()
                        .any(|valid| valid.relation == field.relation) =>
                {
                    let name = &field.name;
                    let message =
                        format!("there is no \"{table}\" in FROM with a column \"{name}\"");
                    (Mistake::UndefinedTable, message)
                }
                Some(table) => {
                    let message = format!("\"{table}\" has no column \"{}\"", field.name);
                    (Mistake::UndefinedColumn, message)
                }
                None => {
                    let message = format!("there is no column \"{}\"", field.name);
                    (Mistake::UndefinedColumn, message)
                }
            };
            Some(Told {
                kind: SqlErrorKind::Invalid(mistake, message),
                hint: hint(field, valid_fields),
            })
        }
        SchemaError::AmbiguousReference { field } => {
            let name = &field.name;
            let message = format!("column \"{name}\" is ambiguous: several tables have it");
            Some(Told {
                kind: SqlErrorKind::Invalid(Mistake::AmbiguousColumn, message),
                hint: Some(format!("name the table as well: table.{name}")),
            })
        }
        SchemaError::DuplicateQualifiedField { qualifier, name } => {
            let message = format!(
                "column \"{qualifier}.{name}\" occurs twice: two tables in FROM have the same name"
            );
            Some(Told {
                kind: SqlErrorKind::Invalid(Mistake::DuplicateAlias, message),
                hint: Some("give one of them another with AS".to_owned()),
            })
        }
        SchemaError::DuplicateUnqualifiedField { .. } => None,
    }
}

/// Names shown in a hint.
const SHOWN: usize = 12;

fn hint(field: &Column, valid: &[Column]) -> Option<String> {
    let shown = |column: &Column| match (&column.relation, &field.relation) {
        (Some(table), Some(_)) => format!("{}.{}", table.table(), column.name),
        _ => column.name.clone(),
    };
    // What nobody can write is no column of the user's.
    let valid = || valid.iter().filter(|column| !column.name.ends_with('('));
    let names = valid().map(|column| column.name.as_str());
    if let Some(similar) = eris_types::most_similar(&field.name, names) {
        let column = valid().find(|column| column.name == similar)?;
        let quote = column
            .name
            .chars()
            .any(|c| c.is_uppercase() || !(c.is_alphanumeric() || c == '_'));
        let quoted = if quote {
            " (in quotes, for it is not all small letters)"
        } else {
            ""
        };
        return Some(format!("did you mean \"{}\"?{quoted}", shown(column)));
    }
    let mut names: Vec<String> = Vec::new();
    for name in valid().map(shown) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = if names.len() > SHOWN { ", …" } else { "" };
    names.truncate(SHOWN);
    (!names.is_empty()).then(|| format!("there are {}{more}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::TimeUnit;
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::{col, lit};

    /// Each type, as Arrow shows it in a message.
    #[test]
    fn types_are_as_in_sql() {
        let utc = Some("UTC".into());
        for data_type in [
            DataType::Boolean,
            DataType::Int8,
            DataType::Int16,
            DataType::Int32,
            DataType::Int64,
            DataType::UInt8,
            DataType::UInt16,
            DataType::UInt32,
            DataType::UInt64,
            DataType::Float32,
            DataType::Float64,
            DataType::Utf8,
            DataType::LargeUtf8,
            DataType::Utf8View,
            DataType::Date32,
            DataType::Decimal128(10, 2),
        ] {
            let message = format!("ü {data_type}, MyInt64 \"Table\"");
            let expected = format!("ü {}, MyInt64 \"Table\"", sql_name(&data_type, None));
            assert_eq!(in_sql(&message), expected);
        }
        for unit in [
            TimeUnit::Second,
            TimeUnit::Millisecond,
            TimeUnit::Microsecond,
            TimeUnit::Nanosecond,
        ] {
            let plain = DataType::Timestamp(unit, None);
            let zoned = DataType::Timestamp(unit, utc.clone());
            assert_eq!(
                in_sql(&format!("{plain} and {zoned}")),
                "TIMESTAMP and TIMESTAMP WITH TIME ZONE"
            );
        }
    }

    /// Each constant, as DataFusion shows it in a message.
    #[test]
    fn constants_are_as_in_sql() {
        for (constant, expected) in [
            (ScalarValue::Boolean(Some(true)), "true"),
            (ScalarValue::Int8(Some(-5)), "-5"),
            (ScalarValue::Int16(Some(5)), "5"),
            (ScalarValue::Int32(Some(5)), "5"),
            (ScalarValue::Int64(None), "NULL"),
            (ScalarValue::UInt8(Some(5)), "5"),
            (ScalarValue::UInt16(Some(5)), "5"),
            (ScalarValue::UInt32(Some(5)), "5"),
            (ScalarValue::UInt64(Some(5)), "5"),
            (ScalarValue::Float32(Some(1.5)), "1.5"),
            (ScalarValue::Float64(Some(1.5)), "1.5"),
            (ScalarValue::Utf8(Some("x".to_owned())), "'x'"),
            (ScalarValue::LargeUtf8(Some("x".to_owned())), "'x'"),
            (ScalarValue::Utf8View(Some("x".to_owned())), "'x'"),
        ] {
            let expr = (col("t.a") + lit(constant)).to_string();
            assert_eq!(in_sql(&expr), format!("t.a + {expected}"));
        }
    }
}
