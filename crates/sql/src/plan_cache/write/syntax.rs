//! What a statement's expressions are, as they are written: constants, parts of a condition, columns.

use super::super::conditions::LiteralForm;
use crate::text::identifier::normalize;
use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Expr, Ident, UnaryOperator, Value};

/// Whether it is a constant.
pub(super) fn is_literal(expr: &Expr) -> bool {
    literal_value(expr).is_some()
}

/// Whether two values of one column are written so that their types are the same.
pub(super) fn is_written_alike(a: &Expr, b: &Expr) -> bool {
    let kind = |expr| literal_value(expr).map(|(_, written)| std::mem::discriminant(&written));
    kind(a) == kind(b)
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

/// The parts of a condition that must all hold.
pub(super) fn split(condition: Expr, conjuncts: &mut Vec<Expr>) {
    match condition {
        Expr::Nested(inner) => split(*inner, conjuncts),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            split(*left, conjuncts);
            split(*right, conjuncts);
        }
        other => conjuncts.push(other),
    }
}

/// The name of a column of the table, if it is one.
pub(super) fn column_name(alias: &Ident, expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(name) => Some(normalize(name)),
        Expr::CompoundIdentifier(parts) => match parts.as_slice() {
            [qualifier, name] if normalize(qualifier) == normalize(alias) => Some(normalize(name)),
            _ => None,
        },
        _ => None,
    }
}
