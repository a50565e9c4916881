//! Constants of a statement, as they are written.

use datafusion::sql::sqlparser::ast::{self, Expr, UnaryOperator, Value};
use eris_fragment::Type;

/// A parameter's place in the text.
#[derive(Debug)]
pub(super) struct LiteralSource {
    /// Which of the text's constants it is.
    pub literal: usize,
    pub written: LiteralForm,
    /// That of the column.
    pub data_type: Type,
}

/// How a constant is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum LiteralForm {
    Number {
        negative: bool,
    },
    Text,
    /// `DATE '…'`
    Date,
}

/// Whether it is a constant.
pub(super) fn is_literal(expr: &Expr) -> bool {
    literal_value(expr).is_some()
}

/// A number, a text or a date that is written out.
pub(super) fn literal_value(expr: &Expr) -> Option<(&ast::ValueWithSpan, LiteralForm)> {
    let plain = |value: &ast::ValueWithSpan, negative| match &value.value {
        Value::Number(_, false) => Some(LiteralForm::Number { negative }),
        Value::SingleQuotedString(_) if !negative => Some(LiteralForm::Text),
        _ => None,
    };
    match expr {
        Expr::Value(value) => Some((value, plain(value, false)?)),
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => match expr.as_ref() {
            Expr::Value(value) => Some((value, plain(value, true)?)),
            _ => None,
        },
        Expr::TypedString(typed) if typed.data_type == ast::DataType::Date => {
            Some((&typed.value, LiteralForm::Date))
        }
        _ => None,
    }
}
