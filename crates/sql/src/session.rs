//! A session: takes statements, gives outcomes.

use crate::cancel::{CancelToken, STATEMENT};
use crate::core::Begun;
use crate::database::Database;
use crate::error::{SqlError, SqlErrorKind};
use crate::progress::{PROGRESS, Progress};
use crate::query::{QueryStream, Task};
use crate::statement::{self, Statement};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::StreamExt;
use futures::future::BoxFuture;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

/// Runs statements, one after the other or side by side: each sees the newest snapshot at its start. It may be used from
/// any thread and any runtime; the work happens on the database's own threads and AEUs.
#[derive(Clone, Debug)]
pub struct Session {
    database: Database,
}

/// What a statement led to.
#[derive(Debug)]
pub enum Outcome {
    /// Rows, as they are computed.
    Rows(QueryStream),
    /// A number of rows that were written.
    Count {
        /// How many.
        rows: u64,
        /// `INSERT` or `CREATE TABLE AS`.
        tag: &'static str,
    },
    /// Nothing to be shown.
    Done {
        /// The kind of statement, such as `DROP TABLE`.
        tag: &'static str,
    },
}

/// Batches that may wait for their reader.
const WAITING: usize = 2;

impl Session {
    pub(crate) fn new(database: Database) -> Self {
        Session { database }
    }

    /// The statements of a script.
    ///
    /// # Errors
    /// A script of more than 4 GiB.
    pub fn split(text: &str) -> Result<Vec<Statement>, SqlError> {
        statement::split(text)
    }

    /// Runs one statement, given as text or as part of a script. Returns when it is done or, with rows, has begun.
    /// Dropping the future or the rows cancels it: its AEUs stop within a chunk, and what it has written is undone, unless
    /// its commit is under way already. Whoever drops the future of a statement that writes therefore does not know
    /// whether all of it took effect or nothing; it is never a part.
    ///
    /// # Errors
    /// Whatever is wrong with it. A failed statement has left no trace.
    pub fn execute(&self, statement: impl Into<Statement>) -> Running<'_> {
        self.run(statement.into())
    }

    /// Not generic, so that the code of all this is made once, in this crate.
    fn run(&self, statement: Statement) -> Running<'_> {
        let progress = Progress::default();
        Running {
            progress: progress.clone(),
            served: Box::pin(self.serve(statement, progress)),
        }
    }

    async fn serve(&self, statement: Statement, progress: Progress) -> Result<Outcome, SqlError> {
        let core = self.database.core().clone();
        let (reply, begun) = oneshot::channel();
        let token = CancelToken::default();
        let served = STATEMENT.scope(token.clone(), async move {
            match core.begin(&statement).await {
                Ok(Begun::Rows(stream)) => {
                    let (sender, receiver) = mpsc::channel(WAITING);
                    let begun = Started::Rows(stream.schema(), receiver);
                    if reply.send(Ok(begun)).is_ok() {
                        forward(stream, sender).await;
                    }
                }
                // Nobody is waiting if this fails: the future has been dropped.
                Ok(Begun::Count { rows, tag }) => {
                    let _ = reply.send(Ok(Started::Count(rows, tag)));
                }
                Ok(Begun::Done { tag }) => {
                    let _ = reply.send(Ok(Started::Done(tag)));
                }
                Err(error) => {
                    let _ = reply.send(Err(error));
                }
            }
        });
        let served = PROGRESS.scope(progress.clone(), served);
        let mut task = Task::new(self.database.runtime().spawn(served), token);
        match begun.await {
            Ok(Ok(Started::Rows(schema, receiver))) => Ok(Outcome::Rows(QueryStream::new(
                schema, receiver, task, progress,
            ))),
            Ok(Ok(Started::Count(rows, tag))) => Ok(Outcome::Count { rows, tag }),
            Ok(Ok(Started::Done(tag))) => Ok(Outcome::Done { tag }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(task.failure().await.unwrap_or_else(|| {
                SqlError::new(SqlErrorKind::Internal(
                    "the statement ended without an answer".into(),
                ))
            })),
        }
    }

    /// The database.
    pub fn database(&self) -> &Database {
        &self.database
    }
}

/// A statement on its way to its outcome: a future, which can be asked how far it is. It does nothing before it is polled.
#[must_use = "a statement does nothing unless it is awaited"]
pub struct Running<'a> {
    progress: Progress,
    served: BoxFuture<'a, Result<Outcome, SqlError>>,
}

impl Running<'_> {
    /// How far the statement is. A clone of it can be read while the future is awaited, and also by other threads.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }
}

impl Future for Running<'_> {
    type Output = Result<Outcome, SqlError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.served.as_mut().poll(cx)
    }
}

impl fmt::Debug for Running<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running")
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

/// What the task tells the session.
enum Started {
    Rows(SchemaRef, mpsc::Receiver<Result<RecordBatch, SqlError>>),
    Count(u64, &'static str),
    Done(&'static str),
}

/// Sends all rows, until the receiver is gone or an error has been sent.
async fn forward(
    mut stream: SendableRecordBatchStream,
    sender: mpsc::Sender<Result<RecordBatch, SqlError>>,
) {
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(SqlError::from_datafusion);
        let failed = batch.is_err();
        if sender.send(batch).await.is_err() || failed {
            break;
        }
    }
}
