//! The way of a statement.

use super::dispatch;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::running::outcome::Begun;
use crate::statements::files;
use crate::statements::show;
use crate::text::parse::parse;
use crate::text::statement::Statement;
use crate::{cancel, plan_cache};
use datafusion::sql::sqlparser::ast;

/// Begins a statement.
pub(crate) async fn begin(
    context: &StatementContext,
    statement: &Statement,
) -> Result<Begun, SqlError> {
    if let Some(rows) = plan_cache::recall(context, statement) {
        return Ok(Begun::Rows(rows));
    }
    if let Some(summary) = show::summarize(context, statement).await? {
        return Ok(summary);
    }
    if let Some(file_statement) = files::parse(statement)? {
        return files::run(context, file_statement, statement).await;
    }
    let tree = parse(statement)?;
    if let ast::Statement::Query(query) = &tree
        && let Some(rows) = plan_cache::learn(context, query, statement).await
    {
        return Ok(Begun::Rows(rows));
    }
    if let Some(write) = plan_cache::learn_write(context, &tree, statement).await
        && let Some(begun) = write.run(context, &cancel::current()).await?
    {
        return Ok(begun);
    }
    dispatch::begin_tree(context, tree, statement).await
}
