//! Values that change from one execution of a write to the next.

use super::super::constant;
use super::super::literal::LiteralSource;
use super::super::{Asked, NotShort};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use eris_exact::scalar;
use eris_fragment::{Scalar, Type, Value};
use std::sync::Arc;

/// A value, and where it comes from.
#[derive(Debug)]
pub(in super::super) enum Operand {
    /// A constant of the text, as a value of the source's type.
    Literal(LiteralSource),
    /// A parameter, from 0, as a value of a column's type.
    Parameter(usize, Type),
    /// A parameter that is computed with: a number of its own type, which is this one.
    Number(usize, DataType),
}

/// The values of operands.
///
/// # Errors
/// One does not fit.
pub(in super::super) fn values(
    asked: Asked<'_>,
    operands: &[Operand],
) -> Result<Arc<[ScalarValue]>, NotShort> {
    let values = operands.iter().map(|operand| value(asked, operand));
    values.collect::<Option<_>>().ok_or(NotShort::Value)
}

fn value(asked: Asked<'_>, operand: &Operand) -> Option<ScalarValue> {
    match (asked, operand) {
        (Asked::Text(masked), Operand::Literal(source)) => {
            let value = constant::read(masked.literal(source.literal), source, &source.data_type)?;
            scalar::to_datafusion(&value)
        }
        (Asked::Prepared { values, .. }, Operand::Parameter(number, to)) => {
            let value = values.get(*number)?.value();
            if value.is_null() {
                return ScalarValue::try_from(&DataType::from(to)).ok();
            }
            scalar::to_datafusion(&exactly(value, to)?)
        }
        (Asked::Prepared { values, .. }, Operand::Number(number, data_type)) => {
            let value = values.get(*number)?.value();
            (!value.is_null() && value.data_type() == *data_type).then(|| value.clone())
        }
        _ => None,
    }
}

/// A parameter's value as one of a column's type, if it is one.
fn exactly(value: &ScalarValue, to: &Type) -> Option<Scalar> {
    let given = scalar::to_fragment(value)?;
    match (&given.value, to) {
        (Value::Boolean(_), Type::Boolean) | (Value::Float(_), Type::Float64) => Some(Scalar {
            data_type: to.clone(),
            ..given
        }),
        _ => constant::convert(value, to),
    }
}
