//! What an AEU executes.

use crate::{AeuContext, Group, Headers, TaskId};
use eris_types::ObjectId;
use std::time::Duration;

/// The meaning of commands and tasks. One value per AEU, which owns the AEU's partitions; used by one thread at a time.
///
/// No method may block: what has to wait becomes a task that is suspended. A panic in any of them is caught.
pub trait Handler: Send + 'static {
    /// Work that takes longer than a command should: run in slices, suspended and resumed. It owns its state.
    type Task: Sliced;

    /// What travels as a parcel.
    type Parcel: Send + 'static;

    /// Executes all commands of one object, kind and rank that arrived in this step, in arrival order. Commands that
    /// are not taken from the group are dropped.
    fn execute(
        &mut self,
        object: ObjectId,
        kind: u16,
        commands: Group<'_, Self::Parcel>,
        cx: &mut AeuContext<'_, Self::Task, Self::Parcel>,
    );

    /// Runs one slice of a task: some tens of microseconds, so that commands do not wait long.
    fn run(
        &mut self,
        task: &mut Self::Task,
        cx: &mut AeuContext<'_, Self::Task, Self::Parcel>,
    ) -> Slice;

    /// Which kind of work commands are for the counters ([`WorkCounters`](eris_telemetry::WorkCounters)).
    fn work_of_commands(_kind: u16) -> usize {
        0
    }

    /// Called in a step that found nothing else to do: help others, compact. True if it did something, false if the AEU
    /// may go to sleep.
    fn idle(&mut self, cx: &mut AeuContext<'_, Self::Task, Self::Parcel>) -> bool;

    /// Something panicked, and only that statement must fail: tell whoever waits for it. The message is the panic's.
    fn panicked(
        &mut self,
        what: Panicked<'_, Self::Task, Self::Parcel>,
        message: &str,
        cx: &mut AeuContext<'_, Self::Task, Self::Parcel>,
    );
}

/// A task that runs in slices.
pub trait Sliced: Send + 'static {
    /// Which kind of work it is for the counters.
    fn work(&self) -> usize {
        0
    }
}

/// For handlers without tasks.
impl Sliced for () {}

/// How a slice of a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// There is more to do: queue it again.
    Again,
    /// It goes on after so much time, in which the AEU may sleep: work that is in no hurry, and in the way of clients
    /// otherwise.
    Rest(Duration),
    /// It waits for [`AeuContext::resume`].
    Suspend,
    /// It is finished, and is dropped.
    Done,
}

/// What was being done when a panic came up.
#[derive(Debug)]
pub enum Panicked<'a, T, P = ()> {
    /// A group of commands. Some may have been executed before.
    Group {
        /// The data object.
        object: ObjectId,
        /// The kind of the commands.
        kind: u16,
        /// The headers of all of them, in arrival order.
        headers: Headers<'a, P>,
    },
    /// A slice of a task, which is no longer in the queue. The task is as the panic left it.
    Task {
        /// Its former id.
        id: TaskId,
        /// The task.
        task: T,
    },
    /// The idle hook.
    Idle,
}
