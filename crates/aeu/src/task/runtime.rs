//! AEUs that run tasks, and clients that spawn them.

use crate::task::Prefetch;
use crate::task::context::{ANSWER, FAILED};
use crate::task::runner::{Runner, Shared};
use crate::task::statistics::TaskStatistics;
use crate::task::work::{Task, Work};
use crate::{Runtime, Session, StartError};
use eris_numa::Topology;
use eris_route::{BufferSizes, Command, FlushState, Received, RouteError};
use eris_types::AeuId;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// How tasks are run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// How many tasks ahead memory is asked for.
    pub prefetch: Prefetch,
    /// Buffers on the way of tasks.
    pub sizes: BufferSizes,
}

/// AEUs that run the tasks of some work. While there are none they sleep.
pub struct TaskRuntime<W: Work> {
    runtime: Runtime<Runner<W>>,
    shared: Arc<Shared<W>>,
}

impl<W: Work> TaskRuntime<W> {
    /// Starts an AEU at every place of the topology.
    ///
    /// # Errors
    /// A thread cannot be started, or not be bound to its CPU.
    pub fn start(topology: &Topology, options: Options, work: W) -> Result<Self, StartError> {
        let shared = Arc::new(Shared::new(work, topology.aeus().len()));
        let runner = |_| Runner::new(shared.clone(), options.prefetch);
        let runtime = Runtime::start(topology, options.sizes, runner)?;
        Ok(TaskRuntime { runtime, shared })
    }

    /// A client.
    ///
    /// # Errors
    /// There are too many.
    pub fn session(&self) -> Result<TaskSession, RouteError> {
        Ok(TaskSession {
            session: self.runtime.session()?,
            aeus: self.runtime.topology().aeus().len(),
            spawned: 0,
        })
    }

    /// The resources.
    pub fn work(&self) -> &W {
        &self.shared.work
    }

    /// What each AEU has done.
    pub fn statistics(&self) -> Vec<TaskStatistics> {
        let aeus = self.runtime.topology().aeus();
        aeus.iter()
            .map(|place| self.shared.counters(place.aeu).read())
            .collect()
    }

    /// Ends the AEUs. Tasks that have arrived, and those that they spawn, are run before.
    pub fn shutdown(self) {
        self.runtime.shutdown();
    }
}

/// Tasks without a home go to an AEU so many at a time, so that they come as groups.
const IN_A_ROW: usize = 32;

/// A client that spawns tasks and takes their answers. Dropping it throws away what was not flushed.
pub struct TaskSession {
    session: Session<()>,
    aeus: usize,
    /// Tasks without a home.
    spawned: usize,
}

impl TaskSession {
    /// Spawns a task: it runs at the home of its resource, otherwise at some AEU. It leaves with the next flush, or
    /// when there are many.
    pub fn spawn(&mut self, task: Task<'_>) {
        let aeu = task.resource.home().unwrap_or_else(|| {
            self.spawned += 1;
            AeuId((self.spawned / IN_A_ROW % self.aeus) as u16)
        });
        task.send(self.session.port(), aeu);
    }

    /// Sends what was spawned, as far as there is room.
    pub fn flush(&mut self) -> FlushState {
        self.session.flush()
    }

    /// Sends what was spawned, and waits for room at most so long; true if all has left.
    pub fn flush_blocking(&mut self, timeout: Duration) -> bool {
        self.session.flush_blocking(timeout)
    }

    /// Sends what was spawned, and waits for answers at most so long.
    pub fn receive(&mut self, timeout: Duration) -> Option<Replies<'_>> {
        self.session.receive(timeout).map(Replies)
    }
}

/// Answers, in the order in which they came.
pub struct Replies<'a>(Received<'a>);

/// An answer of a task.
#[derive(Debug)]
pub struct Reply {
    /// The callback of the task that was spawned.
    pub callback: u64,
    /// What the task has answered.
    pub words: Result<Vec<u64>, TaskFailed>,
}

/// A task has panicked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("a task panicked: {message}")]
pub struct TaskFailed {
    /// What the panic says.
    pub message: String,
}

impl Iterator for Replies<'_> {
    type Item = Reply;

    fn next(&mut self) -> Option<Reply> {
        self.0.next().map(|command| Reply::of(&command))
    }
}

impl Reply {
    /// The answer that a command to a client is.
    pub fn of(command: &Command<'_>) -> Self {
        let words = match command.header.kind {
            FAILED => {
                let (len, bytes) = command.words.split_first().unwrap_or((&0, &[]));
                let bytes: Vec<u8> = bytes.iter().flat_map(|word| word.to_le_bytes()).collect();
                let message = bytes.get(..*len as usize).unwrap_or_default();
                let message = String::from_utf8_lossy(message).into_owned();
                Err(TaskFailed { message })
            }
            kind => {
                debug_assert_eq!(kind, ANSWER, "clients are sent answers alone");
                Ok(command.words.to_vec())
            }
        };
        Reply {
            callback: command.header.callback,
            words,
        }
    }
}
