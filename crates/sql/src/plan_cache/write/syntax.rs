//! What a statement's expressions are, as they are written: parts of a condition, columns.

use crate::text::identifier::normalize;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Ident};

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
