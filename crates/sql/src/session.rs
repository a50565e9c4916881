//! A session: takes statements, gives outcomes.

pub(crate) mod database;
mod dispatch;
mod explain;
pub(crate) mod pipeline;
pub(crate) mod prepare;
pub(crate) mod prepared;
pub(crate) mod relations;
pub(crate) mod table_rows;

use crate::cancel::{CancelToken, STATEMENT};
use crate::context::SessionData;
use crate::context::StatementContext;
use crate::error::{SqlError, SqlErrorKind};
use crate::plan_cache::{self, ReadyWrite};
use crate::progress::{PROGRESS, Progress};
use crate::running::outcome::Begun;
use crate::running::outcome::Outcome;
use crate::running::queries;
use crate::running::query::{Direct, QueryStream, Task};
use crate::session::database::Database;
use crate::session::prepare::{Prepared, begin_prepared};
use crate::text::parameter::Parameter;
use crate::text::statement::{self, Statement};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::SendableRecordBatchStream;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, oneshot};

/// Runs statements, one after the other or side by side: each sees the newest snapshot at its start. It may be used from
/// any thread and any runtime; the work happens on the database's own threads and AEUs. Only the last step of a query that
/// needs no more than its fragment, such as adding up one number per AEU, is done by whoever reads its rows.
///
/// A session has settings and prepared statements of its own. Clones are the same session: what one sets, all see.
#[derive(Clone, Debug)]
pub struct Session {
    database: Database,
    data: Arc<SessionData>,
}

/// What a session can be asked to run.
pub(crate) enum Work {
    Statement(Statement),
    Prepared(Arc<Prepared>, Vec<Parameter>),
}

impl Work {
    /// Begins it where it is, if there is hardly anything to do above its fragment.
    fn recall_light(&self, context: &StatementContext) -> Option<SendableRecordBatchStream> {
        match self {
            Work::Statement(statement) => plan_cache::recall_light(context, statement),
            Work::Prepared(prepared, values) => prepared.recall_light(context, values),
        }
    }

    /// The write of single rows that it is, if that is known.
    fn recall_write(&self, context: &StatementContext) -> Option<ReadyWrite> {
        match self {
            Work::Statement(statement) => plan_cache::recall_write(context, statement),
            Work::Prepared(prepared, values) => prepared.recall_write(values),
        }
    }
}

/// Batches that may wait for their reader.
const WAITING: usize = 2;

impl Database {
    /// A new session.
    pub fn session(&self) -> Session {
        Session::new(self.clone())
    }
}

impl Session {
    pub(crate) fn new(database: Database) -> Self {
        let data = Arc::new(database.context().new_session());
        Session { database, data }
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
    /// whether all of it took effect or nothing; it is never a part. Who has to know uses its [`Canceller`] first.
    ///
    /// # Errors
    /// Whatever is wrong with it. A failed statement has left no trace.
    pub fn execute(&self, statement: impl Into<Statement>) -> Running<'_> {
        self.run(Work::Statement(statement.into()))
    }

    /// Not generic, so that the code of all this is made once, in this crate.
    pub(crate) fn run(&self, work: Work) -> Running<'_> {
        let progress = Progress::default();
        let token = CancelToken::new(self.data.variables().statement_timeout);
        Running {
            progress: progress.clone(),
            canceller: Canceller(token.clone()),
            served: Box::pin(self.serve(work, progress, token)),
        }
    }

    async fn serve(
        &self,
        work: Work,
        progress: Progress,
        token: CancelToken,
    ) -> Result<Outcome, SqlError> {
        let context = self.context();
        let (reply, begun) = oneshot::channel();
        let text = match &work {
            Work::Statement(statement) => queries::shortened(statement.text()),
            Work::Prepared(prepared, _) => Arc::clone(prepared.shown()),
        };
        let running =
            context
                .services
                .queries
                .begin(self.data.id, text, token.clone(), progress.clone());
        let context = context.of_query(&running.query);
        if context.variables().statement_timeout.is_none()
            && let Some(rows) =
                PROGRESS.sync_scope(progress.clone(), || work.recall_light(&context))
        {
            let mut rows = Direct::new(rows, running, token);
            rows.start().await;
            return Ok(Outcome::Rows(QueryStream::direct(rows, progress)));
        }
        if context.variables().statement_timeout.is_none()
            && let Some(write) = work.recall_write(&context)
        {
            // A panic ends the statement, not who asked for it.
            let written = AssertUnwindSafe(token.guard(write.run(&context, &token)))
                .catch_unwind()
                .await;
            match written.unwrap_or_else(|panic| Err(crate::running::query::internal(&*panic))) {
                Ok(Some(Begun::Rows(rows))) => {
                    let mut rows = Direct::new(rows, running, token);
                    rows.start().await;
                    return Ok(Outcome::Rows(QueryStream::direct(rows, progress)));
                }
                Ok(Some(Begun::Count { rows, tag })) => {
                    running.query.add_rows(rows);
                    running.end(None);
                    return Ok(Outcome::Count { rows, tag });
                }
                Ok(Some(Begun::Done { tag })) => {
                    running.end(None);
                    return Ok(Outcome::Done { tag });
                }
                Ok(None) => {}
                Err(error) => {
                    running.end(Some(error.clone()));
                    return Err(error);
                }
            }
        }
        let served = STATEMENT.scope(token.clone(), async move {
            let token = STATEMENT.get();
            let begun = match &work {
                Work::Statement(statement) => {
                    token.guard(pipeline::begin(&context, statement)).await
                }
                Work::Prepared(prepared, values) => {
                    token
                        .guard(begin_prepared(&context, prepared, values))
                        .await
                }
            };
            // The entry ends before anybody can know that the statement has.
            match begun {
                Ok(Begun::Rows(stream)) => {
                    let (sender, receiver) = mpsc::channel(WAITING);
                    let begun = Started::Rows((stream.schema(), receiver));
                    if reply.send(Ok(begun)).is_ok() {
                        let sent = token.guard(forward(stream, &sender, &running)).await;
                        running.end(sent.as_ref().err().cloned());
                        if let Err(error) = sent {
                            // Nobody is waiting if this fails.
                            let _ = sender.send(Err(error)).await;
                        }
                    }
                }
                // Nobody is waiting if these fail: the future has been dropped.
                Ok(Begun::Count { rows, tag }) => {
                    running.query.add_rows(rows);
                    running.end(None);
                    let _ = reply.send(Ok(Started::Count { rows, tag }));
                }
                Ok(Begun::Done { tag }) => {
                    running.end(None);
                    let _ = reply.send(Ok(Started::Done { tag }));
                }
                Err(error) => {
                    running.end(Some(error.clone()));
                    let _ = reply.send(Err(error));
                }
            }
        });
        let served = PROGRESS.scope(progress.clone(), served);
        let mut task = Task::new(self.database.runtime().spawn(served), token);
        match begun.await {
            Ok(Ok(Started::Rows((schema, receiver)))) => Ok(Outcome::Rows(QueryStream::of_task(
                schema, receiver, task, progress,
            ))),
            Ok(Ok(Started::Count { rows, tag })) => Ok(Outcome::Count { rows, tag }),
            Ok(Ok(Started::Done { tag })) => Ok(Outcome::Done { tag }),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(task.failure().await.unwrap_or_else(|| {
                SqlError::new(SqlErrorKind::Internal(
                    "the statement ended without an answer".into(),
                ))
            })),
        }
    }

    /// For a statement that begins now.
    pub(crate) fn context(&self) -> StatementContext {
        self.database.context().of_session(&self.data)
    }

    /// What it remembers.
    #[cfg(test)]
    pub(crate) fn data(&self) -> Arc<SessionData> {
        Arc::clone(&self.data)
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
    canceller: Canceller,
    served: BoxFuture<'a, Result<Outcome, SqlError>>,
}

impl Running<'_> {
    /// How far the statement is. A clone of it can be read while the future is awaited, and also by other threads.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// A way to cancel it from elsewhere.
    pub fn canceller(&self) -> &Canceller {
        &self.canceller
    }
}

/// Cancels a statement, and tells whether that came in time.
#[derive(Clone, Debug)]
pub struct Canceller(CancelToken);

impl Canceller {
    /// Sees to it that nothing of the statement takes effect, if that is still possible: then its future, or its rows, are of no use
    /// and should be dropped. `false`: it takes effect, or has, and its future will tell how.
    pub fn cancel(&self) -> bool {
        self.0.cancel()
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

/// What the task tells the session: rows come through a channel.
type Started = Outcome<(SchemaRef, mpsc::Receiver<Result<RecordBatch, SqlError>>)>;

/// Sends all rows, until the receiver is gone or there is an error.
async fn forward(
    mut stream: SendableRecordBatchStream,
    sender: &mpsc::Sender<Result<RecordBatch, SqlError>>,
    running: &queries::Running,
) -> Result<(), SqlError> {
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(SqlError::from_datafusion)?;
        running.query.add_rows(batch.num_rows() as u64);
        if sender.send(Ok(batch)).await.is_err() {
            return Err(eris_fragment::FragmentError::Cancelled.into());
        }
    }
    Ok(())
}
