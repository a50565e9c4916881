//! Where a statement is executed: by whoever asks for it if that is short, else in a task of the database's threads.
//!
//! ```text
//! client   Session::execute ── lookup ──┬── light ── run here ─────────────────────────▶ Outcome
//! task                                  └── pipeline::begin ── rows through a channel ──▶ Outcome
//! ```

use super::Session;
use super::pipeline::{self, Request};
use crate::cancel::{CancelToken, STATEMENT};
use crate::context::StatementContext;
use crate::error::{SqlError, SqlErrorKind};
use crate::plan_cache::{Attempt, NotShort, Short};
use crate::progress::{PROGRESS, Progress};
use crate::running::outcome::{Begun, Outcome};
use crate::running::queries;
use crate::running::query::{Direct, QueryStream, Task, Waiting, internal};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::physical_plan::SendableRecordBatchStream;
use eris_fragment::bytes_of;
use futures::{FutureExt, StreamExt};
use std::panic::AssertUnwindSafe;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{mpsc, oneshot};

/// Batches that may wait for their reader, of about a MiB each. With two, both woke each other at every batch.
const WAITING: usize = 16;

/// A statement that is being served.
struct Serving {
    context: StatementContext,
    running: queries::Running,
    progress: Progress,
    token: CancelToken,
}

/// What the task tells the session: rows come through a channel.
type Started = Outcome<(SchemaRef, mpsc::Receiver<Result<Waiting, SqlError>>)>;

impl Session {
    pub(super) async fn serve(
        &self,
        request: Request,
        progress: Progress,
        token: CancelToken,
    ) -> Result<Outcome, SqlError> {
        let context = self.context();
        let running = context.services.queries.begin(
            self.data.id,
            request.shown(),
            token.clone(),
            progress.clone(),
        );
        let serving = Serving {
            context: context.of_query(&running.query),
            running,
            progress,
            token,
        };
        // A timeout needs the timer of the database's threads.
        let may_run_here = serving.context.variables().statement_timeout.is_none();
        let found = match request.lookup(&serving.context) {
            Ok(short) if may_run_here && short.is_light() => match serving.run_here(short).await {
                Ok(Ok(begun)) => return serving.end_here(begun).await,
                Ok(Err(reason)) => Err(reason),
                Err(error) => {
                    serving.running.end(Some(error.clone()));
                    return Err(error);
                }
            },
            found => found,
        };
        let runtime = self.database.runtime();
        serving.run_in_task(runtime, request, found).await
    }
}

impl Serving {
    async fn run_here(&self, short: Short) -> Result<Attempt, SqlError> {
        let run = PROGRESS.scope(self.progress.clone(), short.run(&self.context, &self.token));
        // A panic ends the statement, not who asked for it.
        let attempt = AssertUnwindSafe(self.token.guard(run)).catch_unwind().await;
        attempt.unwrap_or_else(|panic| Err(internal(&*panic)))
    }

    async fn end_here(self, begun: Begun) -> Result<Outcome, SqlError> {
        if let Err(error) = self.context.settle_numbers().await {
            self.running.end(Some(error.clone()));
            return Err(error);
        }
        Ok(match begun {
            Begun::Rows(rows) => {
                let mut rows = Direct::new(rows, self.running, self.token);
                rows.start().await;
                Outcome::Rows(QueryStream::direct(rows, self.progress))
            }
            Begun::Count { rows, tag } => {
                self.running.query.add_rows(rows);
                self.running.end(None);
                Outcome::Count { rows, tag }
            }
            Begun::Done { tag } => {
                self.running.end(None);
                Outcome::Done { tag }
            }
        })
    }

    async fn run_in_task(
        self,
        runtime: &Handle,
        request: Request,
        found: Result<Short, NotShort>,
    ) -> Result<Outcome, SqlError> {
        let (reply, started) = oneshot::channel();
        let (progress, token) = (self.progress.clone(), self.token.clone());
        let served = async move {
            let begin = pipeline::begin(&self.context, &request, found);
            let begun = self.token.guard(begin).await;
            self.answer(begun, reply).await;
        };
        let served = PROGRESS.scope(progress.clone(), STATEMENT.scope(token.clone(), served));
        let mut task = Task::new(runtime.spawn(served), token);
        match started.await {
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

    /// Tells the session what the statement led to. The entry among the running statements ends before anybody can know
    /// that the statement has. If sending fails nobody is waiting: the future has been dropped.
    async fn answer(
        &self,
        begun: Result<Begun, SqlError>,
        reply: oneshot::Sender<Result<Started, SqlError>>,
    ) {
        let settled = self.context.settle_numbers().await;
        match begun.and_then(|begun| settled.map(|()| begun)) {
            Ok(Begun::Rows(stream)) => {
                let (sender, receiver) = mpsc::channel(WAITING);
                let started = Started::Rows((stream.schema(), receiver));
                if reply.send(Ok(started)).is_ok() {
                    let sent = self.token.guard(self.forward(stream, &sender)).await;
                    self.running.end(sent.as_ref().err().cloned());
                    if let Err(error) = sent {
                        let _ = sender.send(Err(error)).await;
                    }
                }
            }
            Ok(Begun::Count { rows, tag }) => {
                self.running.query.add_rows(rows);
                self.running.end(None);
                let _ = reply.send(Ok(Started::Count { rows, tag }));
            }
            Ok(Begun::Done { tag }) => {
                self.running.end(None);
                let _ = reply.send(Ok(Started::Done { tag }));
            }
            Err(error) => {
                self.running.end(Some(error.clone()));
                let _ = reply.send(Err(error));
            }
        }
    }

    /// Sends all rows, until the receiver is gone or there is an error.
    async fn forward(
        &self,
        mut stream: SendableRecordBatchStream,
        sender: &mpsc::Sender<Result<Waiting, SqlError>>,
    ) -> Result<(), SqlError> {
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(SqlError::from_datafusion)?;
            self.context.settle_numbers().await?;
            self.running.query.add_rows(batch.num_rows() as u64);
            let sent = self.hand_on(batch, sender).await;
            sent.map_err(|_| eris_fragment::FragmentError::Cancelled)?;
        }
        Ok(())
    }

    /// Puts a batch where its reader finds it, when there is room. If others have all memory for such batches, it waits
    /// alone. The error: there is no reader any more.
    async fn hand_on(
        &self,
        batch: RecordBatch,
        sender: &mpsc::Sender<Result<Waiting, SqlError>>,
    ) -> Result<(), SendError<()>> {
        let bytes = batch.columns().iter().map(bytes_of).sum();
        let room = self.context.services.waiting.try_reserve(bytes);
        let permit = match room {
            Ok(_) => sender.reserve().await?,
            Err(_) => {
                let mut all = sender.reserve_many(WAITING).await?;
                all.next().expect("there are as many")
            }
        };
        permit.send(Ok(Waiting {
            batch,
            _room: room.ok(),
        }));
        Ok(())
    }
}
