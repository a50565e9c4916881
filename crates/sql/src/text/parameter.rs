//! Values for the parameters of prepared statements.

use crate::error::values::mistake_of_string;
use crate::error::{Mistake, SqlError};
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::sql::sqlparser::ast::{self, UnaryOperator, Value};
use datafusion::sql::sqlparser::parser::Parser;
use eris_exact::text::{can_cast, has_own_text, try_cast};
use eris_exact::types::sql_name;
use eris_syntax::ErisDialect;

/// A value for a parameter. Numbers, text, booleans and options of them convert; everything else, such as dates and
/// decimals, is given as text or comes out of an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter(ScalarValue);

impl Parameter {
    /// NULL.
    pub const NULL: Parameter = Parameter(ScalarValue::Null);

    /// A value of an array.
    ///
    /// # Errors
    /// A type that no parameter can have, such as a list.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn of_array(array: &dyn Array, row: usize) -> Result<Parameter, SqlError> {
        let value = ScalarValue::try_from_array(array, row).map_err(SqlError::from_datafusion)?;
        let parameter = Parameter(value);
        parameter.literal()?;
        Ok(parameter)
    }

    /// A list of values, for `= ANY($1)` and its like.
    ///
    /// # Errors
    /// A type that no parameter can have.
    pub fn list(items: &ArrayRef) -> Result<Parameter, SqlError> {
        let values = (0..items.len()).map(|row| ScalarValue::try_from_array(items, row));
        let values = values
            .collect::<Result<Vec<_>, _>>()
            .map_err(SqlError::from_datafusion)?;
        let list = ScalarValue::new_list_nullable(&values, items.data_type());
        let parameter = Parameter(ScalarValue::List(list));
        parameter.literal()?;
        Ok(parameter)
    }

    /// The value of a constant whose type its kind alone says.
    pub(crate) fn of_constant(expr: &ast::Expr) -> Option<Parameter> {
        let (constant, sign) = match expr {
            ast::Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr,
            } => (&**expr, "-"),
            expr => (expr, ""),
        };
        let ast::Expr::Value(constant) = constant else {
            return None;
        };
        match (&constant.value, sign) {
            (Value::Number(digits, false), _) => {
                let number: i64 = format!("{sign}{digits}").parse().ok()?;
                Some(Parameter::from(number))
            }
            (Value::SingleQuotedString(text), "") => Some(Parameter::from(text.as_str())),
            (Value::Boolean(value), "") => Some(Parameter::from(*value)),
            _ => None,
        }
    }

    pub(crate) fn value(&self) -> &ScalarValue {
        &self.0
    }

    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    pub(crate) fn data_type(&self) -> DataType {
        self.0.data_type()
    }

    /// The same value as one of another type. A number is only converted if that changes nothing.
    ///
    /// # Errors
    /// It does not fit.
    pub(crate) fn cast(&self, to: &DataType, name: &str) -> Result<Parameter, SqlError> {
        let rejected = || {
            let given = sql_name(&self.data_type(), None);
            let to_name = sql_name(to, None);
            let mistake = match self.0.try_as_str() {
                Some(Some(value)) => mistake_of_string(value, &to_name),
                _ if self.data_type().is_numeric() && to.is_numeric() => Mistake::NumericOutOfRange,
                _ => Mistake::DatatypeMismatch,
            };
            SqlError::invalid(
                mistake,
                format!(
                    "parameter {name}: value {} of type {given} does not fit {to_name}",
                    self.shown(),
                ),
            )
        };
        let cast = cast_exactly(&self.0, to).ok_or_else(rejected)?;
        let exact = !self.data_type().is_numeric()
            || cast
                .cast_to(&self.data_type())
                .is_ok_and(|back| back == self.0);
        match exact {
            true => Ok(Parameter(cast)),
            false => Err(rejected()),
        }
    }

    fn shown(&self) -> String {
        match class(&self.data_type()) {
            ParameterClass::Text => format!("'{}'", self.0),
            _ => self.0.to_string(),
        }
    }

    /// The value as it would be written in a statement.
    pub(crate) fn literal(&self) -> Result<ast::Expr, SqlError> {
        let data_type = self.data_type();
        let number = |digits: String| match digits.strip_prefix('-') {
            Some(digits) => ast::Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr: Box::new(ast::Expr::value(Value::Number(digits.to_owned(), false))),
            },
            None => ast::Expr::value(Value::Number(digits, false)),
        };
        Ok(match &self.0 {
            ScalarValue::Null => ast::Expr::value(Value::Null),
            ScalarValue::Boolean(Some(value)) => ast::Expr::value(Value::Boolean(*value)),
            ScalarValue::Int64(Some(value)) => number(value.to_string()),
            ScalarValue::Utf8(Some(text))
            | ScalarValue::LargeUtf8(Some(text))
            | ScalarValue::Utf8View(Some(text)) => {
                ast::Expr::value(Value::SingleQuotedString(text.clone()))
            }
            ScalarValue::List(list) => {
                let items = list.value(0);
                let literals =
                    (0..items.len()).map(|row| Parameter::of_array(&items, row)?.literal());
                let array = ast::Expr::Array(ast::Array {
                    elem: literals.collect::<Result<_, _>>()?,
                    named: true,
                });
                if *items.data_type() == DataType::Null {
                    return Ok(array);
                }
                // The list may have no values, or only NULLs.
                ast::Expr::Cast {
                    kind: ast::CastKind::Cast,
                    expr: Box::new(array),
                    data_type: ast::DataType::Array(ast::ArrayElemTypeDef::SquareBracket(
                        Box::new(written(items.data_type())?),
                        None,
                    )),
                    array: false,
                    format: None,
                }
            }
            value => {
                let content = match value.is_null() {
                    true => Value::Null,
                    false => Value::SingleQuotedString(as_text(value)?),
                };
                ast::Expr::Cast {
                    kind: ast::CastKind::Cast,
                    expr: Box::new(ast::Expr::value(content)),
                    data_type: written(&data_type)?,
                    array: false,
                    format: None,
                }
            }
        })
    }
}

/// The value as text that a cast reads again.
fn as_text(value: &ScalarValue) -> Result<String, SqlError> {
    match cast_exactly(value, &DataType::Utf8) {
        Some(ScalarValue::Utf8(Some(text))) => Ok(text),
        _ => Err(SqlError::not_supported(format!("parameter {value}"))),
    }
}

/// The value as CAST makes it of another type; none if it is none of that.
fn cast_exactly(value: &ScalarValue, to: &DataType) -> Option<ScalarValue> {
    let from = value.data_type();
    if !(has_own_text(&from) || has_own_text(to)) {
        return value.cast_to(to).ok();
    }
    if !(can_cast(&from, to) || from.is_null()) {
        return None;
    }
    let cast = try_cast(&value.to_array().ok()?, to).ok()?;
    let cast = ScalarValue::try_from_array(&cast, 0).ok()?;
    (cast.is_null() == value.is_null()).then_some(cast)
}

/// A type as the parser knows it.
fn written(data_type: &DataType) -> Result<ast::DataType, SqlError> {
    let name = sql_name(data_type, None);
    let stored = eris_fragment::Type::try_from(data_type).is_ok();
    let parser = Parser::new(&ErisDialect).try_with_sql(&name);
    let parsed = parser.and_then(|mut parser| parser.parse_data_type());
    parsed
        .ok()
        .filter(|_| stored)
        .ok_or_else(|| SqlError::not_supported(format!("a parameter of type {name}")))
}

/// Kinds of types between which nothing is converted by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterClass {
    Number,
    Text,
    Boolean,
    Time,
    Other,
}

pub(crate) fn class(data_type: &DataType) -> ParameterClass {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ParameterClass::Text,
        DataType::Boolean => ParameterClass::Boolean,
        data_type if data_type.is_numeric() => ParameterClass::Number,
        data_type if data_type.is_temporal() => ParameterClass::Time,
        _ => ParameterClass::Other,
    }
}

macro_rules! from {
    ($($native:ty => $variant:ident),+ $(,)?) => {
        $(
            impl From<$native> for Parameter {
                fn from(value: $native) -> Self {
                    Parameter(ScalarValue::$variant(Some(value.into())))
                }
            }

            impl From<Option<$native>> for Parameter {
                fn from(value: Option<$native>) -> Self {
                    value.map_or(Parameter::NULL, Parameter::from)
                }
            }
        )+
    };
}

from! {
    bool => Boolean,
    i8 => Int64,
    i16 => Int64,
    i32 => Int64,
    i64 => Int64,
    u8 => Int64,
    u16 => Int64,
    u32 => Int64,
    u64 => UInt64,
    f32 => Float64,
    f64 => Float64,
    &str => Utf8,
    String => Utf8,
}

/// The name of a parameter, if the expression is one.
pub(crate) fn placeholder(expr: &ast::Expr) -> Option<&str> {
    match expr {
        ast::Expr::Value(value) => match &value.value {
            Value::Placeholder(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_people_write_them() {
        for (value, written) in [
            (Parameter::from(5), "5"),
            (Parameter::from(-5i64), "-5"),
            (Parameter::from(i64::MIN), "-9223372036854775808"),
            (Parameter::from("it's"), "'it''s'"),
            (Parameter::from(true), "true"),
            (Parameter::from(None::<i32>), "NULL"),
            (Parameter::from(1.5), "CAST('1.5' AS DOUBLE)"),
            (Parameter::from(7u64), "CAST('7' AS UBIGINT)"),
        ] {
            assert_eq!(value.literal().unwrap().to_string(), written);
        }
    }

    #[test]
    fn constants_are_read_as_they_are_written() {
        for value in [5, 0, -5, i64::MAX, i64::MIN] {
            let value = Parameter::from(value);
            assert_eq!(
                Parameter::of_constant(&value.literal().unwrap()),
                Some(value)
            );
        }
        for value in [Parameter::from("it's"), Parameter::from(false)] {
            assert_eq!(
                Parameter::of_constant(&value.literal().unwrap()),
                Some(value)
            );
        }
        for value in [
            Parameter::from(1.5),
            Parameter::from(u64::MAX),
            Parameter::NULL,
        ] {
            assert_eq!(Parameter::of_constant(&value.literal().unwrap()), None);
        }
    }

    #[test]
    fn only_what_fits_is_cast() {
        let five = Parameter::from("5").cast(&DataType::Int32, "$1").unwrap();
        assert_eq!(five.data_type(), DataType::Int32);
        assert!(Parameter::from(300).cast(&DataType::Int8, "$1").is_err());
        assert!(Parameter::from(1.5).cast(&DataType::Int32, "$1").is_err());
        assert!(Parameter::from("x").cast(&DataType::Date32, "$1").is_err());
        assert!(
            Parameter::NULL
                .cast(&DataType::Date32, "$1")
                .unwrap()
                .is_null()
        );
    }
}
