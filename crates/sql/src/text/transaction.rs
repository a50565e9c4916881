//! BEGIN, COMMIT, ROLLBACK and their like: rejected, for a statement that is accepted in silence would promise what
//! does not hold. Why: docs/decisions/0009.

use crate::error::SqlError;
use datafusion::sql::sqlparser::ast::Statement;

/// Rejects statements that begin, end or divide a transaction.
pub(crate) fn reject(tree: &Statement) -> Result<(), SqlError> {
    let word = match tree {
        Statement::StartTransaction { begin: true, .. } => "BEGIN",
        Statement::StartTransaction { .. } => "START TRANSACTION",
        Statement::Commit { .. } => "COMMIT",
        Statement::Rollback { .. } => "ROLLBACK",
        Statement::Savepoint { .. } => "SAVEPOINT",
        Statement::ReleaseSavepoint { .. } => "RELEASE SAVEPOINT",
        _ => return Ok(()),
    };
    Err(
        SqlError::not_supported(format!("{word}: transactions of several statements")).with_hint(Some(
            "every statement takes effect as a whole or not at all; UPDATE … FROM and MERGE do several things in one",
        )),
    )
}
