//! The statement that makes a table again.

use crate::catalog::Table;
use crate::types::sql_name;
use datafusion::common::ScalarValue;
use datafusion::arrow::util::display::array_value_to_string;
use eris_engine::Partitioning;

/// `CREATE TABLE …` with everything the table has, without semicolon.
pub(crate) fn create_table(table: &Table) -> String {
    let columns = table.schema.fields().iter().zip(&table.rules).map(|(field, rules)| {
        let mut column = format!("{} {}", identifier(field.name()), sql_name(field.data_type(), rules.max_characters));
        if let Some(default) = &rules.default {
            column += &format!(" DEFAULT {}", literal(default));
        }
        if !field.is_nullable() {
            column += " NOT NULL";
        }
        column
    });
    let columns: Vec<_> = columns.collect();
    let mut text = format!("CREATE TABLE {}({})", identifier(&table.name), columns.join(", "));
    if let Partitioning::Range(column) = table.partitioning {
        let name = table.schema.field(column.index()).name();
        text += &format!(" WITH (partition_by = {})", quoted(name));
    }
    text
}

/// A name as it has to be written: in double quotes, unless it is a plain word in lower case that could not be a keyword.
pub(crate) fn identifier(name: &str) -> String {
    use datafusion::sql::sqlparser::keywords::ALL_KEYWORDS;
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    let keyword = ALL_KEYWORDS.binary_search(&name.to_ascii_uppercase().as_str()).is_ok();
    if plain && !keyword {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A constant as SQL writes it.
fn literal(value: &ScalarValue) -> String {
    let shown = || {
        let array = value.to_array().ok()?;
        array_value_to_string(&array, 0).ok()
    };
    match value {
        value if value.is_null() => "NULL".to_owned(),
        ScalarValue::Boolean(Some(flag)) => flag.to_string().to_uppercase(),
        ScalarValue::Float32(Some(number)) if number.is_finite() => number.to_string(),
        ScalarValue::Float64(Some(number)) if number.is_finite() => number.to_string(),
        value if value.data_type().is_integer() => value.to_string(),
        ScalarValue::Decimal128(..) => shown().unwrap_or_default(),
        _ => quoted(&shown().unwrap_or_default()),
    }
}
