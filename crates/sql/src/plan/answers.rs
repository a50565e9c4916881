//! Answers what a query has to know of its own tables before it can be written out: see
//! [`questions`](crate::text::questions).

use crate::catalog::CATALOG;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::plan::planning;
use crate::plan::resolve::NameScope;
use crate::text::questions::{Answer, KnownColumn, Question, Questions};
use crate::text::statement::Statement;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, TableReference};
use datafusion::sql::sqlparser::ast::{Ident, Query};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};

/// What may be done for an answer.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum MayRead {
    /// Rows may be read: the statement is about to run.
    Rows,
    /// Only columns: the query is kept, and its rows may be others when it runs.
    Columns,
}

/// Writes out what needs to know columns or values.
///
/// # Errors
/// A column that is not there, or what planning the tables says.
pub(crate) fn write_out<'a>(
    context: &'a StatementContext,
    query: &'a mut Query,
    names: &'a NameScope,
    may_read: MayRead,
    statement: &'a Statement,
) -> BoxFuture<'a, Result<(), SqlError>> {
    async move {
        let mut questions = Questions::default();
        while let Some(question) = questions.first(query)? {
            let answer = match question {
                Question::Columns(asked) => {
                    let planned = planning::logical_at(context, asked, names, statement);
                    let (_, plan, _) = planned.await?;
                    Answer::Columns(columns(plan.schema()))
                }
                Question::ColumnsIfKnown(asked) => {
                    match planning::logical_at(context, asked, names, statement).await {
                        Ok((_, plan, _)) => Answer::Columns(columns(plan.schema())),
                        Err(_) => Answer::Unknown,
                    }
                }
                Question::Values(_) if may_read == MayRead::Columns => {
                    let error = SqlError::not_supported("PIVOT in a view without a list of values");
                    return Err(error.with_hint(Some("name the values: ON a IN ('x', 'y')")));
                }
                Question::Values(asked) => {
                    Answer::Values(values(context, asked, names, statement).await?)
                }
            };
            questions.settle(query, answer)?;
        }
        Ok(())
    }
    .boxed()
}

fn columns(schema: &DFSchema) -> Vec<KnownColumn> {
    let columns = schema.iter().map(|(table, field)| {
        let name = Ident::with_quote('"', field.name());
        KnownColumn {
            path: table
                .map(path)
                .into_iter()
                .flatten()
                .chain([name])
                .collect(),
            name: field.name().clone(),
        }
    });
    columns.collect()
}

fn path(table: &TableReference) -> Vec<Ident> {
    let catalog = table.catalog().filter(|catalog| *catalog != CATALOG);
    let parts = catalog
        .into_iter()
        .chain(table.schema())
        .chain([table.table()]);
    parts.map(|part| Ident::with_quote('"', part)).collect()
}

/// The strings of a query's only column.
async fn values(
    context: &StatementContext,
    query: Query,
    names: &NameScope,
    statement: &Statement,
) -> Result<Vec<String>, SqlError> {
    let plan = planning::plan_at(context, query, names, statement).await?;
    let mut stream = plan.run()?;
    let mut values = Vec::new();
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(SqlError::from_datafusion)?;
        let column = cast(batch.column(0), &DataType::Utf8)
            .map_err(|error| SqlError::from_datafusion(error.into()))?;
        let strings = column.as_string::<i32>();
        values.extend(strings.iter().flatten().map(str::to_owned));
    }
    Ok(values)
}
