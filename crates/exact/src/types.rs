//! SQL's names of types, for columns and for casts.
//!
//! **Stands for** DataFusion's reading of type names: it knows fewer of them, and gives timestamps nanoseconds.
//!
//! ```text
//! TINYINT, SMALLINT, INTEGER, BIGINT       Int8 … Int64      also INT2, INT4, INT8
//! UTINYINT … UBIGINT, … UNSIGNED           UInt8 … UInt64
//! REAL, FLOAT(1…24)                        Float32
//! DOUBLE [PRECISION], FLOAT, FLOAT(25…53)  Float64
//! DECIMAL(p, s), NUMERIC(p, s)             Decimal128(p, s)  p up to 38; DECIMAL is DECIMAL(18, 3), HUGEINT (38, 0)
//! VARCHAR[(n)], CHAR(n), TEXT              Utf8View          n characters at most; CHAR is not padded
//! BLOB, BYTEA                              BinaryView
//! UUID                                     FixedSizeBinary   16 bytes
//! INTERVAL                                 Interval          months, days and nanoseconds
//! DATE                                     Date32
//! TIME[(p)]                                Time64            microseconds, or nanoseconds for p from 7 on
//! TIMESTAMP[(p)] [WITH TIME ZONE]          Timestamp         microseconds, unless p says otherwise; zone UTC
//! ```

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::error::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{self, CharacterLength, ExactNumberInfo, TimezoneInfo};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use std::sync::Arc;

/// Bytes of a UUID, which nothing else has in plans: docs/decisions/0027.
pub const UUID_BYTES: i32 = 16;

/// The zone of TIMESTAMP WITH TIME ZONE; values are shown and read in it.
pub const ZONE: &str = "UTC";

/// A column's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnType {
    /// What its values are to Arrow.
    pub data_type: DataType,
    /// Most characters of a string.
    pub max_characters: Option<u64>,
}

/// The type with this name, or why there is none.
pub fn column_type(name: &ast::DataType) -> Result<ColumnType, String> {
    use ast::DataType as Sql;
    let mut max_characters = None;
    let data_type = match name {
        Sql::Boolean | Sql::Bool => DataType::Boolean,
        Sql::TinyInt(_) => DataType::Int8,
        Sql::SmallInt(_) | Sql::Int2(_) | Sql::Int16 => DataType::Int16,
        Sql::Int(_) | Sql::Integer(_) | Sql::Int4(_) | Sql::Int32 => DataType::Int32,
        Sql::BigInt(_) | Sql::Int8(_) | Sql::Int64 => DataType::Int64,
        Sql::UTinyInt | Sql::TinyIntUnsigned(_) | Sql::UInt8 => DataType::UInt8,
        Sql::USmallInt | Sql::SmallIntUnsigned(_) | Sql::Int2Unsigned(_) | Sql::UInt16 => {
            DataType::UInt16
        }
        Sql::IntUnsigned(_) | Sql::IntegerUnsigned(_) | Sql::Int4Unsigned(_) | Sql::UInt32 => {
            DataType::UInt32
        }
        Sql::UBigInt | Sql::BigIntUnsigned(_) | Sql::Int8Unsigned(_) | Sql::UInt64 => {
            DataType::UInt64
        }
        Sql::Real | Sql::Float4 | Sql::Float32 => DataType::Float32,
        Sql::Float(ExactNumberInfo::Precision(1..=24)) => DataType::Float32,
        Sql::Float(_) | Sql::Double(_) | Sql::DoublePrecision | Sql::Float8 | Sql::Float64 => {
            DataType::Float64
        }
        Sql::HugeInt => DataType::Decimal128(38, 0),
        Sql::Decimal(digits) | Sql::Numeric(digits) | Sql::Dec(digits) => decimal(digits)?,
        Sql::Varchar(length)
        | Sql::CharacterVarying(length)
        | Sql::CharVarying(length)
        | Sql::Nvarchar(length) => {
            max_characters = characters(length);
            DataType::Utf8View
        }
        Sql::Char(length) | Sql::Character(length) => {
            max_characters = Some(characters(length).unwrap_or(1));
            DataType::Utf8View
        }
        Sql::Text | Sql::String(None) => DataType::Utf8View,
        Sql::Blob(None) | Sql::Bytea | Sql::Binary(None) | Sql::Varbinary(None) => {
            DataType::BinaryView
        }
        Sql::Uuid => DataType::FixedSizeBinary(UUID_BYTES),
        Sql::Interval {
            fields: None,
            precision: None,
        } => DataType::Interval(IntervalUnit::MonthDayNano),
        Sql::Date | Sql::Date32 => DataType::Date32,
        Sql::Time(precision, zone) => time(*precision, *zone)?,
        Sql::Timestamp(precision, zone) => timestamp(*precision, *zone)?,
        Sql::Datetime(precision) => timestamp(*precision, TimezoneInfo::None)?,
        Sql::Custom(name, arguments) => match (
            name.to_string().to_ascii_lowercase().as_str(),
            arguments.as_slice(),
        ) {
            ("int1", []) => DataType::Int8,
            ("short", []) => DataType::Int16,
            ("long", []) => DataType::Int64,
            ("logical", []) => DataType::Boolean,
            ("bpchar", []) => DataType::Utf8View,
            ("timestamp_s", []) => DataType::Timestamp(TimeUnit::Second, None),
            ("timestamp_ms", []) => DataType::Timestamp(TimeUnit::Millisecond, None),
            ("timestamp_us", []) => DataType::Timestamp(TimeUnit::Microsecond, None),
            ("timestamp_ns", []) => DataType::Timestamp(TimeUnit::Nanosecond, None),
            ("time_ns", []) => DataType::Time64(TimeUnit::Nanosecond),
            ("utinyint", []) => DataType::UInt8,
            ("usmallint", []) => DataType::UInt16,
            ("uinteger" | "uint", []) => DataType::UInt32,
            ("ubigint", []) => DataType::UInt64,
            _ => return Err(format!("type {name}")),
        },
        other => return Err(format!("type {other}")),
    };
    Ok(ColumnType {
        data_type,
        max_characters,
    })
}

fn decimal(digits: &ExactNumberInfo) -> Result<DataType, String> {
    let (precision, scale) = match *digits {
        ExactNumberInfo::None => (18, 3),
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    match (u8::try_from(precision), i8::try_from(scale)) {
        (Ok(p @ 1..=38), Ok(s)) if s >= 0 && s as u8 <= p => Ok(DataType::Decimal128(p, s)),
        _ => Err(format!(
            "type DECIMAL({precision}, {scale}): at most 38 digits, of them 0 to all after the point"
        )),
    }
}

fn characters(length: &Option<CharacterLength>) -> Option<u64> {
    match length {
        Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
        Some(CharacterLength::Max) | None => None,
    }
}

fn timestamp(precision: Option<u64>, zone: TimezoneInfo) -> Result<DataType, String> {
    let unit = match precision {
        Some(0) => TimeUnit::Second,
        Some(1..=3) => TimeUnit::Millisecond,
        None | Some(4..=6) => TimeUnit::Microsecond,
        Some(7..=9) => TimeUnit::Nanosecond,
        Some(more) => {
            return Err(format!(
                "type TIMESTAMP({more}): at most 9 digits of a second"
            ));
        }
    };
    let zone = matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz).then(|| ZONE.into());
    Ok(DataType::Timestamp(unit, zone))
}

fn time(precision: Option<u64>, zone: TimezoneInfo) -> Result<DataType, String> {
    if !matches!(zone, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) {
        return Err("type TIME WITH TIME ZONE".to_owned());
    }
    match precision {
        None | Some(6) => Ok(DataType::Time64(TimeUnit::Microsecond)),
        Some(7..=9) => Ok(DataType::Time64(TimeUnit::Nanosecond)),
        Some(other) => Err(format!(
            "type TIME({other}): say TIME for 6 digits of a second, or TIME(9)"
        )),
    }
}

/// SQL's name of a column type.
pub fn sql_name(data_type: &DataType, max_characters: Option<u64>) -> String {
    let name = match data_type {
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INTEGER",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "UTINYINT",
        DataType::UInt16 => "USMALLINT",
        DataType::UInt32 => "UINTEGER",
        DataType::UInt64 => "UBIGINT",
        DataType::Float32 => "REAL",
        DataType::Float64 => "DOUBLE",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => match max_characters {
            Some(most) => return format!("VARCHAR({most})"),
            None => "VARCHAR",
        },
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BLOB",
        DataType::FixedSizeBinary(UUID_BYTES) => "UUID",
        DataType::Interval(IntervalUnit::MonthDayNano) => "INTERVAL",
        DataType::Date32 => "DATE",
        DataType::Decimal128(precision, scale) => return format!("DECIMAL({precision},{scale})"),
        DataType::Time64(TimeUnit::Microsecond) => "TIME",
        DataType::Time64(TimeUnit::Nanosecond) => "TIME(9)",
        DataType::Timestamp(unit, zone) => {
            let digits = match unit {
                TimeUnit::Second => "(0)",
                TimeUnit::Millisecond => "(3)",
                TimeUnit::Microsecond => "",
                TimeUnit::Nanosecond => "(9)",
            };
            let zone = if zone.is_some() {
                " WITH TIME ZONE"
            } else {
                ""
            };
            return format!("TIMESTAMP{digits}{zone}");
        }
        DataType::Null => "NULL",
        DataType::List(element) | DataType::LargeList(element) => {
            return format!("{}[]", sql_name(element.data_type(), None));
        }
        DataType::FixedSizeList(element, length) => {
            return format!("{}[{length}]", sql_name(element.data_type(), None));
        }
        DataType::Struct(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|field| named(field.name(), field.data_type()));
            return format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "));
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(entry) = entries.data_type() else {
                return data_type.to_string();
            };
            let parts = entry.iter().map(|part| sql_name(part.data_type(), None));
            return format!("MAP({})", parts.collect::<Vec<_>>().join(", "));
        }
        other => return other.to_string(),
    };
    name.to_owned()
}

/// A field of a struct. Its name has quotes if it needs them.
fn named(name: &str, data_type: &DataType) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let name = match name.chars().all(is_plain) && !name.is_empty() {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    };
    format!("{name} {}", sql_name(data_type, None))
}

/// A column type as the parser knows it.
pub fn ast_type(data_type: &DataType) -> ast::DataType {
    let parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(&sql_name(data_type, None));
    let parsed = parser.and_then(|mut parser| parser.parse_data_type());
    parsed.expect("every name that is shown is read again")
}

/// Makes casts understand the same names as columns.
#[derive(Debug)]
pub(crate) struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, name: &ast::DataType) -> Result<Option<FieldRef>> {
        let known = column_type(name).ok();
        Ok(known.map(|known| Arc::new(Field::new("", known.data_type, true))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Result<ColumnType, String> {
        let parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(name);
        column_type(&parser.unwrap().parse_data_type().unwrap())
    }

    #[test]
    fn every_name_that_is_shown_is_read_again() {
        let names = [
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "INTEGER",
            "BIGINT",
            "UTINYINT",
            "USMALLINT",
            "UINTEGER",
            "UBIGINT",
            "REAL",
            "DOUBLE",
            "VARCHAR",
            "VARCHAR(7)",
            "BLOB",
            "UUID",
            "INTERVAL",
            "DATE",
            "DECIMAL(12,2)",
            "TIME",
            "TIME(9)",
            "TIMESTAMP",
            "TIMESTAMP(0)",
            "TIMESTAMP(9)",
            "TIMESTAMP WITH TIME ZONE",
            "TIMESTAMP(3) WITH TIME ZONE",
        ];
        for name in names {
            let parsed = parse(name).unwrap();
            assert_eq!(sql_name(&parsed.data_type, parsed.max_characters), name);
        }
    }

    #[test]
    fn other_spellings() {
        for (name, same) in [
            ("INT UNSIGNED", "UINTEGER"),
            ("BIGINT UNSIGNED", "UBIGINT"),
            ("TINYINT UNSIGNED", "UTINYINT"),
            ("SMALLINT UNSIGNED", "USMALLINT"),
            ("DOUBLE PRECISION", "DOUBLE"),
            ("FLOAT", "DOUBLE"),
            ("FLOAT(24)", "REAL"),
            ("NUMERIC(5)", "DECIMAL(5,0)"),
            ("CHARACTER VARYING(3)", "VARCHAR(3)"),
            ("CHAR", "VARCHAR(1)"),
            ("TEXT", "VARCHAR"),
            ("BYTEA", "BLOB"),
            ("VARBINARY", "BLOB"),
            ("INT8", "BIGINT"),
            ("INT4", "INTEGER"),
            ("INT2", "SMALLINT"),
            ("INT1", "TINYINT"),
            ("SHORT", "SMALLINT"),
            ("LONG", "BIGINT"),
            ("STRING", "VARCHAR"),
            ("BPCHAR", "VARCHAR"),
            ("BOOL", "BOOLEAN"),
            ("LOGICAL", "BOOLEAN"),
            ("FLOAT4", "REAL"),
            ("FLOAT8", "DOUBLE"),
            ("NUMERIC", "DECIMAL(18,3)"),
            ("UINT", "UINTEGER"),
            ("DATETIME", "TIMESTAMP"),
            ("TIME(6)", "TIME"),
            ("TIME WITHOUT TIME ZONE", "TIME"),
            ("TIME_NS", "TIME(9)"),
            ("TIMESTAMP_MS", "TIMESTAMP(3)"),
            ("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"),
        ] {
            let parsed = parse(name).unwrap();
            assert_eq!(
                sql_name(&parsed.data_type, parsed.max_characters),
                same,
                "{name}"
            );
        }
    }

    #[test]
    fn what_cannot_be_stored_is_rejected() {
        for name in [
            "DECIMAL(39,2)",
            "DECIMAL(3,4)",
            "BLOB(10)",
            "INTERVAL YEAR",
            "TIME(3)",
            "TIME WITH TIME ZONE",
            "TIMESTAMP(10)",
            "INTEGER[]",
        ] {
            assert!(parse(name).is_err(), "{name}");
        }
    }
}
