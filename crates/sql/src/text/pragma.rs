//! `PRAGMA name = value`, which is `SET name = value` in DuckDB and SQLite.

use datafusion::sql::sqlparser::ast::{Expr, Set, Statement};

/// The statement, as SET if it assigns.
pub(crate) fn as_set(statement: Statement) -> Statement {
    match statement {
        Statement::Pragma {
            name,
            value: Some(value),
            is_eq: true,
        } => Statement::Set(Set::SingleAssignment {
            scope: None,
            hivevar: false,
            variable: name,
            values: vec![Expr::Value(value)],
        }),
        other => other,
    }
}
