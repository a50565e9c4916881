//! The whole: engine, catalogue, and the threads on which DataFusion runs.

use crate::context::{Services, StatementContext};
use crate::error::{SqlError, SqlErrorKind};
use crate::maintenance::balance::Balance;
use crate::maintenance::checkpoints;
use crate::plan::planner;
use crate::statements::opening::{self, Reopened};
use eris_exact::Spill;
use eris_home::Home;
use futures::future::BoxFuture;
use std::sync::{Arc, Mutex, mpsc};
use std::{fmt, io, thread};
use tokio::runtime::{Builder, Handle, Runtime};

/// Bytes of a thread's stack: planning calls itself for every level of an expression. Only what is used is taken.
const STACK: usize = 64 << 20;

/// A database. Cheap to clone; it ends with its last clone and the last session. What its home keeps is there again
/// when it is opened the next time.
#[derive(Clone)]
pub struct Database(Arc<DatabaseState>);

struct DatabaseState {
    context: Arc<StatementContext>,
    /// Taken only by drop.
    runtime: Option<Runtime>,
}

impl Database {
    /// A database whose tables are in this home. Starts the threads above it: as many as the home has workers. They are
    /// threads of the operating system without a CPU of their own, apart from the workers' pinned ones. Why:
    /// docs/decisions/0005.
    ///
    /// If the home has kept definitions, tables, views and all else are there when this returns: it waits for that.
    ///
    /// # Errors
    /// The threads could not be started, or a definition could not be made again.
    pub fn open(home: Arc<dyn Home>) -> Result<Database, SqlError> {
        let database = Database::start(home)?;
        database.make_catalogue()?;
        let durability = database.home().durability();
        if durability.is_some_and(|durability| !durability.is_read_only()) {
            let home = Arc::clone(database.home());
            database.runtime().spawn(checkpoints::make_when_due(home));
        }
        Ok(database)
    }

    /// The same of what is left of a database, with as much of the catalogue as can be made.
    pub(super) fn open_remains(
        home: Arc<dyn Home>,
        may_have_lost: bool,
    ) -> Result<(Database, Reopened), SqlError> {
        let database = Database::start(home)?;
        let reopened = database.on_own_thread(move |context| {
            Box::pin(opening::open_remains(context, may_have_lost))
        })?;
        Ok((database, reopened))
    }

    fn start(home: Arc<dyn Home>) -> Result<Database, SqlError> {
        let spill = Spill::in_system_directory();
        let state = planner::state(&*home, &spill)?;
        let services = Services::new(Balance::start(&*home)?, spill, state, home.budget().limit());
        let context = Arc::new(StatementContext::new(home, services));
        let threads = context.home.worker_count().max(1);
        check_threads(threads).map_err(|error| {
            SqlError::new(SqlErrorKind::Internal(format!(
                "cannot start {threads} threads for queries: {error}"
            )))
            .with_hint(Some(
                "more are allowed by `ulimit -u unlimited` and `ulimit -v unlimited`".to_owned(),
            ))
        })?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("eris-sql")
            .thread_stack_size(STACK)
            .enable_time()
            .build()
            .map_err(|error| {
                SqlError::new(SqlErrorKind::Internal(format!("no threads: {error}")))
            })?;
        // Its end closes the runtime before the catalogue goes, also if the opening fails.
        Ok(Database(Arc::new(DatabaseState {
            context,
            runtime: Some(runtime),
        })))
    }

    /// Makes the catalogue as the home has kept it.
    fn make_catalogue(&self) -> Result<(), SqlError> {
        match self.home().definitions() {
            None => Ok(()),
            Some(_) => self.on_own_thread(|context| Box::pin(opening::open(context))),
        }
    }

    /// Waits, on whatever thread it is called, for the database's own.
    fn on_own_thread<T: Send + 'static>(
        &self,
        open: impl for<'a> FnOnce(&'a StatementContext) -> BoxFuture<'a, Result<T, SqlError>>
        + Send
        + 'static,
    ) -> Result<T, SqlError> {
        let context = Arc::clone(self.context());
        let (sender, made) = mpsc::channel();
        self.runtime().spawn(async move {
            let opened = open(&context).await;
            drop(context);
            // Whoever opens waits for it.
            let _ = sender.send(opened);
        });
        made.recv().unwrap_or_else(|_| {
            let reason = "the catalogue could not be made: its task has panicked";
            Err(SqlError::new(SqlErrorKind::Internal(reason.into())))
        })
    }

    /// Who holds the tables.
    pub fn home(&self) -> &Arc<dyn Home> {
        &self.0.context.home
    }

    /// Where operators put what does not fit into memory.
    pub fn spill(&self) -> &Spill {
        &self.0.context.services.spill
    }

    /// Waits until nothing goes on that joins and loads have begun in the background: columns of keys that are stored
    /// by another order.
    pub async fn finished(&self) {
        self.0.context.recodings.finished().await;
    }

    /// Makes all durable that was committed, where tables outlive the process. Nothing can be written any more. It
    /// blocks as long as that takes.
    ///
    /// # Errors
    /// The disk has failed.
    pub fn close(&self) -> Result<(), SqlError> {
        // What sequences note comes before the end.
        self.0.close_sequences();
        match self.home().durability() {
            Some(durability) => Ok(durability.close()?),
            None => Ok(()),
        }
    }

    pub(crate) fn context(&self) -> &Arc<StatementContext> {
        &self.0.context
    }

    pub(crate) fn runtime(&self) -> &Handle {
        self.0
            .runtime
            .as_ref()
            .expect("taken only by drop")
            .handle()
    }
}

/// Whether so many threads can be started: the runtime would panic without one of them.
fn check_threads(count: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        // All of them are there at once.
        let closed = gate.lock();
        let started = (0..count).try_for_each(|_| {
            let thread = thread::Builder::new().stack_size(STACK);
            thread.spawn_scoped(scope, || drop(gate.lock())).map(drop)
        });
        drop(closed);
        started
    })
}

impl DatabaseState {
    /// No number of a sequence is lost when a database is closed. If that cannot be noted, some are.
    fn close_sequences(&self) {
        if let Some(log) = self.context.catalog.log() {
            for sequence in self.context.catalog.contents().sequences() {
                let _ = sequence.close(log);
            }
        }
    }
}

impl Drop for DatabaseState {
    fn drop(&mut self) {
        // Statements that are still ending may keep the home for a while, and nobody else could open the database.
        // What sequences note comes before the end.
        self.close_sequences();
        if let Some(durability) = self.context.home.durability() {
            // Who wants to know closes it before.
            let _ = durability.close();
        }
        // The last clone may be dropped on a thread of another runtime, where waiting for threads is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        // Statements that are still ending may hold files; the process may not wait for them.
        self.context.services.spill.close();
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({:?})", self.0.context.catalog)
    }
}
