//! SHOW CREATE TABLE, SHOW CREATE VIEW.

use super::{rows_of, text};
use crate::catalog::TableOrView;
use crate::catalog::create_statement::{create_statement as statement_of, create_view_statement};
use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::running::outcome::Begun;
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::{ObjectName, ShowCreateObject};

/// `SHOW CREATE TABLE table`, `SHOW CREATE VIEW view`: the statement that makes it anew, without its rows.
pub(crate) fn create_statement(
    context: &StatementContext,
    kind: &ShowCreateObject,
    name: &ObjectName,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    let (full, text_of_it) = match kind {
        ShowCreateObject::Table => {
            let table = context.table(name, statement)?;
            (table.name.to_string(), statement_of(&table))
        }
        ShowCreateObject::View => {
            let full = context.resolve(name, statement)?;
            match context.catalog.contents().get(&full) {
                Some(TableOrView::View(view)) => (full.to_string(), create_view_statement(view)),
                Some(TableOrView::Table(_)) => {
                    return Err(SqlError::invalid(
                        Mistake::WrongObjectType,
                        format!("\"{full}\" is a table, not a view"),
                    ));
                }
                None => return Err(context.missing("view", &full, name, statement)),
            }
        }
        other => return Err(SqlError::not_supported(format!("SHOW CREATE {other}"))),
    };
    rows_of([
        ("name", text([Some(full)].into_iter())),
        ("statement", text([Some(text_of_it)].into_iter())),
    ])
}
