//! Statements that show something: `SHOW …`, `DESCRIBE`, `SUMMARIZE`; and KILL and CALL, which act on what is shown.
//!
//! Most of them are queries over the system tables, written shorter.

mod call;
mod create;
mod describe;
mod list;
mod summarize;

pub(crate) use call::call;
pub(crate) use create::create_statement;
pub(crate) use describe::{describe, describe_query, described_query};
pub(crate) use list::list;
pub(crate) use summarize::summarize;

use crate::context::StatementContext;
use crate::error::SqlError;
use crate::running::outcome::Begun;
use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream;
use std::sync::Arc;

pub(crate) fn text(values: impl Iterator<Item = Option<String>>) -> ArrayRef {
    Arc::new(values.collect::<StringViewArray>())
}

/// One batch as the outcome of a statement.
pub(crate) fn rows_of<const N: usize>(columns: [(&str, ArrayRef); N]) -> Result<Begun, SqlError> {
    let columns = columns.map(|(name, column)| (name, column, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns);
    batch_of(batch.map_err(|error| SqlError::from_datafusion(error.into()))?)
}

fn batch_of(batch: RecordBatch) -> Result<Begun, SqlError> {
    let schema = batch.schema();
    Ok(Begun::Rows(Box::pin(RecordBatchStreamAdapter::new(
        schema,
        stream::iter([Ok(batch)]),
    ))))
}

/// `KILL [QUERY] id`.
pub(crate) fn kill(context: &StatementContext, id: u64) -> Result<Begun, SqlError> {
    context.services.queries.kill(id, context.session.id)?;
    Ok(Begun::Done { tag: "KILL" })
}
