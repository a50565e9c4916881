//! `INSERT INTO t BY NAME SELECT …`: the query's columns go into those of the same names.

use crate::context::StatementContext;
use crate::error::{Mistake, SqlError};
use crate::plan::planning;
use crate::text::clause_tokens::BY_NAME;
use crate::text::statement::Statement;
use datafusion::sql::sqlparser::ast::{Ident, Insert, ObjectName, SetExpr};

/// Names the columns as the query does.
///
/// # Errors
/// Rows that are no query's, or what planning the query says.
pub(crate) async fn write_out(
    context: &StatementContext,
    insert: &mut Insert,
    statement: &Statement,
) -> Result<(), SqlError> {
    if !is_by_name(insert) {
        return Ok(());
    }
    let query = match &insert.source {
        Some(source) if !matches!(*source.body, SetExpr::Values(_)) => source.clone(),
        _ => {
            let message = "INSERT … BY NAME takes the names of a query's columns";
            return Err(SqlError::invalid(Mistake::Syntax, message)
                .with_hint(Some("INSERT INTO t BY NAME SELECT 1 AS a, 2 AS b")));
        }
    };
    let (_, plan, headers) = planning::logical(context, *query, statement).await?;
    let schema = headers.name(plan.schema().as_arrow());
    let names = schema.fields().iter().map(|field| {
        let name = Ident::with_quote('"', field.name().as_str());
        ObjectName::from(vec![name])
    });
    insert.columns = names.collect();
    Ok(())
}

/// Whether the columns are to be named by the query.
pub(crate) fn is_by_name(insert: &Insert) -> bool {
    match &insert.columns[..] {
        [name] => name
            .0
            .last()
            .and_then(|part| part.as_ident())
            .is_some_and(|name| name.value == BY_NAME),
        _ => false,
    }
}
