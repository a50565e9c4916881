//! A session: takes statements, gives outcomes.

pub(crate) mod database;
mod dispatch;
mod explain;
pub(crate) mod pipeline;
pub(crate) mod prepare;
mod prepared;
mod prepared_rows;
pub(crate) mod prepared_statement;
pub(crate) mod relations;
pub(crate) mod salvage;
mod serving;
pub(crate) mod table_rows;

use crate::cancel::CancelToken;
use crate::context::{Frames, SessionData, StatementContext};
use crate::error::{SqlError, SqlErrorKind};
use crate::progress::Progress;
use crate::running::outcome::Outcome;
use crate::session::database::Database;
use crate::session::pipeline::Request;
use crate::text::statement::{self, Statement};
use eris_fragment::FragmentError;
use futures::future::BoxFuture;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Runs statements, one after the other or side by side: each sees the newest snapshot at its start. It may be used
/// from any thread and any runtime; the work happens on the database's own threads and AEUs. Only the last step of a
/// query that needs no more than its fragment, such as adding up one number per AEU, is done by whoever reads its rows.
///
/// A session has settings and prepared statements of its own. Clones are the same session: what one sets, all see.
#[derive(Clone, Debug)]
pub struct Session {
    database: Database,
    data: Arc<SessionData>,
    frames: Option<Arc<dyn Frames>>,
}

impl Database {
    /// A new session.
    pub fn session(&self) -> Session {
        Session::new(self.clone())
    }
}

impl Session {
    pub(crate) fn new(database: Database) -> Self {
        let data = Arc::new(database.context().new_session());
        Session {
            database,
            data,
            frames: None,
        }
    }

    /// The same session, whose statements may also read what the calling program has.
    ///
    /// A name without a schema means a table or view of the catalogue, and if there is none a frame. A view cannot read
    /// frames, for it outlives them.
    pub fn with_frames(&self, frames: Arc<dyn Frames>) -> Session {
        Session {
            frames: Some(frames),
            ..self.clone()
        }
    }

    /// The statements of a script.
    ///
    /// # Errors
    /// A script of more than 4 GiB.
    pub fn split(text: &str) -> Result<Vec<Statement>, SqlError> {
        statement::split(text)
    }

    /// Runs one statement, given as text or as part of a script. Returns when it is done or, with rows, has begun.
    /// Dropping the future or the rows cancels it: its AEUs stop within a chunk, and what it has written is undone,
    /// unless its commit is under way already. Whoever drops the future of a statement that writes therefore does not
    /// know whether all of it took effect or nothing; it is never a part. Who has to know uses its [`Canceller`] first.
    ///
    /// # Errors
    /// Whatever is wrong with it. A failed statement has left no trace.
    pub fn execute(&self, statement: impl Into<Statement>) -> Running<'_> {
        self.run(Request::text(statement.into()))
    }

    /// Not generic, so that the code of all this is made once, in this crate.
    pub(crate) fn run(&self, request: Request) -> Running<'_> {
        let progress = Progress::default();
        let token = CancelToken::new(self.data.variables().statement_timeout);
        Running {
            progress: progress.clone(),
            canceller: Canceller(token.clone()),
            served: Box::pin(self.serve(request, progress, token)),
        }
    }

    /// For a statement that begins now.
    pub(crate) fn context(&self) -> StatementContext {
        let context = self.database.context().of_session(&self.data);
        context.with_frames(self.frames.clone())
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

/// A statement on its way to its outcome: a future, which can be asked how far it is. It does nothing before it is
/// polled.
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
    pub(crate) fn new(token: CancelToken) -> Self {
        Canceller(token)
    }

    /// Sees to it that nothing of the statement takes effect, if that is still possible: then its future, or its rows,
    /// are of no use and should be dropped. `false`: it takes effect, or has, and its future will tell how.
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }

    /// The same for whoever does not hold the future or the rows: who waits for these gets the error that it was
    /// cancelled. `false`: it takes effect, or has.
    pub fn stop(&self) -> bool {
        self.0
            .stop(SqlErrorKind::Fragment(FragmentError::Cancelled))
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
