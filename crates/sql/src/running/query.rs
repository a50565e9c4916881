//! The rows of a running statement.

use crate::cancel::CancelToken;
use crate::error::{SqlError, SqlErrorKind};
use crate::progress::Progress;
use crate::running::queries;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::SendableRecordBatchStream;
use eris_numa::Reservation;
use futures::future::BoxFuture;
use futures::{Stream, StreamExt, TryStreamExt};
use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};

/// Batches of one statement. An error is the last item, and makes what came before incomplete. Dropping the stream
/// cancels the statement.
pub struct QueryStream {
    schema: SchemaRef,
    rows: RowSource,
    progress: Progress,
}

/// A batch that waits for its reader.
pub(crate) struct Waiting {
    pub batch: RecordBatch,
    /// Its part of the memory for such batches. `None`: it waits alone.
    pub _room: Option<Reservation>,
}

/// Where the rows come from.
enum RowSource {
    Task {
        receiver: mpsc::Receiver<Result<Waiting, SqlError>>,
        task: Task,
    },
    Direct(Box<Direct>),
}

impl QueryStream {
    pub(crate) fn of_task(
        schema: SchemaRef,
        receiver: mpsc::Receiver<Result<Waiting, SqlError>>,
        task: Task,
        progress: Progress,
    ) -> Self {
        QueryStream {
            schema,
            rows: RowSource::Task { receiver, task },
            progress,
        }
    }

    pub(crate) fn direct(rows: Direct, progress: Progress) -> Self {
        QueryStream {
            schema: rows.rows.schema(),
            rows: RowSource::Direct(Box::new(rows)),
            progress,
        }
    }

    /// How far the statement is, also before this stream is read and after it has ended.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The columns of every batch.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// All batches.
    ///
    /// # Errors
    /// The first error; the rows before it are lost.
    pub fn collect(self) -> BoxFuture<'static, Result<Vec<RecordBatch>, SqlError>> {
        Box::pin(self.try_collect())
    }
}

impl Stream for QueryStream {
    type Item = Result<RecordBatch, SqlError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match &mut self.rows {
            RowSource::Task { receiver, task } => match ready!(receiver.poll_recv(cx)) {
                Some(waiting) => Poll::Ready(Some(waiting.map(|waiting| waiting.batch))),
                // The sender is gone: at the end, or because the task has panicked.
                None => task.poll_failure(cx).map(|failure| failure.map(Err)),
            },
            RowSource::Direct(direct) => direct.poll_next(cx),
        }
    }
}

/// Rows that are computed by whoever reads them, as far as that is not done where the data is.
pub(crate) struct Direct {
    rows: SendableRecordBatchStream,
    running: queries::Running,
    stopped: BoxFuture<'static, SqlError>,
    /// What came before anybody asked for it.
    first: Option<Option<Result<RecordBatch, SqlError>>>,
    has_ended: bool,
}

impl Direct {
    pub fn new(
        rows: SendableRecordBatchStream,
        running: queries::Running,
        token: CancelToken,
    ) -> Self {
        Direct {
            rows,
            running,
            stopped: Box::pin(async move { token.stopped().await }),
            first: None,
            has_ended: false,
        }
    }

    /// Looks for rows once: what takes no longer than a lookup is answered as of now, whenever its rows are read.
    pub async fn start(&mut self) {
        poll_fn(|cx| {
            if let Poll::Ready(first) = self.poll_next(cx) {
                self.first = Some(first);
            }
            Poll::Ready(())
        })
        .await;
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<RecordBatch, SqlError>>> {
        if self.has_ended {
            return Poll::Ready(self.first.take().flatten());
        }
        let next = match self.stopped.as_mut().poll(cx) {
            Poll::Ready(error) => {
                self.first = None;
                Some(Err(error))
            }
            Poll::Pending => {
                if let Some(first) = self.first.take() {
                    return Poll::Ready(first);
                }
                // A panic ends the statement, not its reader.
                let rows = &mut self.rows;
                let polled = catch_unwind(AssertUnwindSafe(|| rows.poll_next_unpin(cx)));
                match polled {
                    Ok(polled) => {
                        ready!(polled).map(|batch| batch.map_err(SqlError::from_datafusion))
                    }
                    Err(panic) => Some(Err(internal(&*panic))),
                }
            }
        };
        // The entry ends before anybody can know that the statement has.
        match &next {
            Some(Ok(batch)) => self.running.query.add_rows(batch.num_rows() as u64),
            Some(Err(error)) => self.running.end(Some(error.clone())),
            None => self.running.end(None),
        }
        self.has_ended = !matches!(next, Some(Ok(_)));
        Poll::Ready(next)
    }
}

impl fmt::Debug for QueryStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryStream")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

/// A statement's task: ends with its holder.
pub(crate) struct Task {
    /// `None` once it has ended.
    handle: Option<JoinHandle<()>>,
    token: CancelToken,
}

impl Task {
    pub fn new(handle: JoinHandle<()>, token: CancelToken) -> Self {
        Task {
            handle: Some(handle),
            token,
        }
    }

    /// Waits for its end; the panic that ended it, if one did.
    pub async fn failure(&mut self) -> Option<SqlError> {
        std::future::poll_fn(|cx| self.poll_failure(cx)).await
    }

    fn poll_failure(&mut self, cx: &mut Context<'_>) -> Poll<Option<SqlError>> {
        let Some(handle) = &mut self.handle else {
            return Poll::Ready(None);
        };
        let ended = ready!(Pin::new(handle).poll(cx));
        self.handle = None;
        Poll::Ready(ended.err().map(panicked))
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // What takes effect already goes on to its end, and holds its locks until then.
        if let Some(handle) = &self.handle
            && self.token.cancel()
        {
            handle.abort();
        }
    }
}

/// What a task's end other than by itself means for its statement.
pub(crate) fn panicked(error: JoinError) -> SqlError {
    if error.is_cancelled() {
        return eris_fragment::FragmentError::Cancelled.into();
    }
    internal(&*error.into_panic())
}

/// The error of a panic.
pub(crate) fn internal(panic: &(dyn Any + Send)) -> SqlError {
    let message = (panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .or_else(|| panic.downcast_ref::<String>().cloned());
    SqlError::new(SqlErrorKind::Internal(
        message.unwrap_or_else(|| "a panic without message".into()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::running::queries::{Queries, shortened};
    use datafusion::arrow::datatypes::Schema;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::executor::block_on;
    use futures::stream;
    use std::sync::Arc;

    #[test]
    fn rows_that_came_early_are_not_those_of_a_killed_statement() {
        let schema = Arc::new(Schema::empty());
        let queries = Arc::new(Queries::default());
        for is_killed in [false, true] {
            let token = CancelToken::new(None);
            let begun = shortened("SELECT 1");
            let running = queries.begin(7, begun, token.clone(), Progress::default());
            let batch = RecordBatch::new_empty(Arc::clone(&schema));
            let rows = stream::iter([Ok(batch)]);
            let rows = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&schema), rows));
            let mut direct = Direct::new(rows, running, token);
            block_on(direct.start());
            assert!(direct.first.is_some());
            let newest = queries.rows().last().unwrap().id;
            if is_killed {
                queries.kill(newest, 9).unwrap();
            }
            let mut next = || block_on(poll_fn(|cx| direct.poll_next(cx)));
            assert_eq!(next().unwrap().is_err(), is_killed);
            assert!(next().is_none());
            let state = if is_killed { "failed" } else { "finished" };
            assert_eq!(queries.rows().last().unwrap().state, state);
        }
    }
}
