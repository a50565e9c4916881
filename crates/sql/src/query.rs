//! The rows of a running statement.

use crate::cancel::CancelToken;
use crate::error::{SqlError, SqlErrorKind};
use crate::progress::Progress;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use futures::future::BoxFuture;
use futures::{Stream, TryStreamExt};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};

/// Batches of one statement. An error is the last item, and makes what came before incomplete. Dropping the stream cancels
/// the statement.
pub struct QueryStream {
    schema: SchemaRef,
    receiver: mpsc::Receiver<Result<RecordBatch, SqlError>>,
    task: Task,
    progress: Progress,
}

impl QueryStream {
    pub(crate) fn new(
        schema: SchemaRef,
        receiver: mpsc::Receiver<Result<RecordBatch, SqlError>>,
        task: Task,
        progress: Progress,
    ) -> Self {
        QueryStream {
            schema,
            receiver,
            task,
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
        match ready!(self.receiver.poll_recv(cx)) {
            Some(batch) => Poll::Ready(Some(batch)),
            // The sender is gone: at the end, or because the task has panicked.
            None => self.task.poll_failure(cx).map(|failure| failure.map(Err)),
        }
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
        if let Some(handle) = &self.handle {
            self.token.cancel();
            handle.abort();
        }
    }
}

/// What a task's end other than by itself means for its statement.
pub(crate) fn panicked(error: JoinError) -> SqlError {
    if error.is_cancelled() {
        return eris_fragment::FragmentError::Cancelled.into();
    }
    let panic = error.into_panic();
    let message = (panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .or_else(|| panic.downcast_ref::<String>().cloned());
    SqlError::new(SqlErrorKind::Internal(
        message.unwrap_or_else(|| "a panic without message".into()),
    ))
}
