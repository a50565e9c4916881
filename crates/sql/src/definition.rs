//! The statement that makes a table again.

use crate::catalog::Table;
use crate::types::sql_name;
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::common::ScalarValue;
use eris_engine::Partitioning;

/// `CREATE TABLE …` with everything the table has, without semicolon.
pub(crate) fn create_table(table: &Table) -> String {
    let columns = table
        .schema
        .fields()
        .iter()
        .zip(&table.rules)
        .map(|(field, rules)| {
            let mut column = format!(
                "{} {}",
                identifier(field.name()),
                sql_name(field.data_type(), rules.max_characters)
            );
            if let Some(default) = &rules.default {
                column += &format!(" DEFAULT {}", literal(default));
            }
            if !field.is_nullable() {
                column += " NOT NULL";
            }
            column
        });
    let columns: Vec<_> = columns.collect();
    let mut text = format!(
        "CREATE TABLE {}({})",
        identifier(&table.name),
        columns.join(", ")
    );
    if let Partitioning::Range(column) = table.partitioning {
        let name = table.schema.field(column.index()).name();
        text += &format!(" WITH (partition_by = {})", quoted(name));
    }
    text
}

/// Words that are no names by themselves, here or in databases that read what is exported.
const RESERVED: [&str; 121] = [
    "all",
    "analyse",
    "analyze",
    "and",
    "any",
    "array",
    "as",
    "asc",
    "asymmetric",
    "authorization",
    "between",
    "binary",
    "both",
    "by",
    "case",
    "cast",
    "check",
    "collate",
    "collation",
    "column",
    "concurrently",
    "constraint",
    "create",
    "cross",
    "current_catalog",
    "current_date",
    "current_role",
    "current_schema",
    "current_time",
    "current_timestamp",
    "current_user",
    "default",
    "deferrable",
    "desc",
    "describe",
    "distinct",
    "do",
    "else",
    "end",
    "except",
    "exists",
    "false",
    "fetch",
    "for",
    "foreign",
    "freeze",
    "from",
    "full",
    "glob",
    "grant",
    "group",
    "having",
    "ilike",
    "in",
    "initially",
    "inner",
    "insert",
    "intersect",
    "into",
    "is",
    "isnull",
    "join",
    "lateral",
    "leading",
    "left",
    "like",
    "limit",
    "localtime",
    "localtimestamp",
    "map",
    "natural",
    "not",
    "notnull",
    "null",
    "offset",
    "on",
    "only",
    "or",
    "order",
    "outer",
    "overlaps",
    "partition",
    "pivot",
    "placing",
    "positional",
    "primary",
    "qualify",
    "references",
    "returning",
    "right",
    "row",
    "select",
    "semi",
    "session_user",
    "set",
    "show",
    "similar",
    "some",
    "struct",
    "summarize",
    "symmetric",
    "table",
    "tablesample",
    "then",
    "to",
    "trailing",
    "true",
    "union",
    "unique",
    "unpivot",
    "update",
    "user",
    "using",
    "values",
    "variadic",
    "verbose",
    "view",
    "when",
    "where",
    "window",
    "with",
];

/// A name as it has to be written: in double quotes, unless it is a plain word in lower case that SQL does not reserve.
pub(crate) fn identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if plain && !RESERVED.contains(&name) {
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
