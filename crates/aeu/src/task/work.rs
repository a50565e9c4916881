//! What a task is, and what tasks work on.

use crate::task::{Home, TaskContext, TaskLatch};
use eris_route::{Endpoint, Header, Port, Rank};
use eris_types::{AeuId, ObjectId};
use std::fmt;
use std::sync::atomic::AtomicU64;

/// Arguments of a task: with header and resource they fill two cache lines.
pub const MOST_WORDS: usize = 12;

/// What a task touches: a number that means something to the [`Work`], and where it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Resource(u64);

const NUMBER_BITS: u32 = 48;
/// From here on kinds mean something to the runtime.
pub(crate) const KINDS_TAKEN: u16 = u16::MAX - 7;

impl Resource {
    /// A resource that tasks of any AEU touch: they run where they are spawned.
    ///
    /// # Panics
    /// If the number has more than 48 bits.
    pub fn new(number: u64) -> Self {
        assert!(
            number >> NUMBER_BITS == 0,
            "a resource's number has 48 bits"
        );
        Resource(number)
    }

    /// The same one at its home: tasks for it are sent there.
    pub fn at(self, home: AeuId) -> Self {
        Resource(self.number() | (u64::from(home.0) + 1) << NUMBER_BITS)
    }

    /// Its number.
    pub fn number(self) -> u64 {
        self.0 & ((1 << NUMBER_BITS) - 1)
    }

    /// Where tasks for it are sent; `None`: nowhere.
    pub fn home(self) -> Option<AeuId> {
        let home = self.0 >> NUMBER_BITS;
        (home > 0).then(|| AeuId((home - 1) as u16))
    }

    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Resource(bits)
    }
}

impl fmt::Debug for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resource {}", self.number())?;
        match self.home() {
            Some(home) => write!(f, " at {home}"),
            None => Ok(()),
        }
    }
}

/// A piece of work that runs to its end.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// Which function: means something to the [`Work`]. The eight highest numbers are taken.
    pub kind: u16,
    /// The priority. A task spawns none of a lower one.
    pub rank: Rank,
    /// For work on several structures: which one.
    pub object: ObjectId,
    /// What it touches.
    pub resource: Resource,
    /// The arguments, at most [`MOST_WORDS`]. Larger ones lie in memory that the work knows, and are named here.
    pub words: &'a [u64],
    /// Who is answered: the session that spawned the first of the tasks that led to this one.
    pub sender: Endpoint,
    /// How the sender knows what the answer is for.
    pub callback: u64,
}

impl<'a> Task<'a> {
    /// A task of the lowest priority whose answers are for callback 0. A session that spawns it becomes its sender;
    /// spawned by a task it has none, and is not answered.
    pub fn new(kind: u16, resource: Resource, words: &'a [u64]) -> Self {
        Task {
            kind,
            rank: Rank::Client,
            object: ObjectId(0),
            resource,
            words,
            sender: Endpoint::from_bits(u32::MAX),
            callback: 0,
        }
    }

    /// The same task with a callback.
    pub fn callback(self, callback: u64) -> Self {
        Task { callback, ..self }
    }

    /// Sends it to an AEU, by a port of the routing layer: for clients that have one instead of a
    /// [`TaskSession`](crate::task::TaskSession). Their endpoint becomes its sender.
    pub fn send(self, port: &mut Port<()>, to: AeuId) {
        let sender = port.endpoint();
        let task = Task { sender, ..self };
        let (to, outgoing) = (Endpoint::aeu(to), port.outgoing());
        task.check();
        let (header, resource) = (task.header(), task.resource.to_bits());
        outgoing.send_with_first(to, header, resource, task.words);
    }

    /// The task that a command is.
    #[inline(always)]
    pub(crate) fn of(header: &Header, words: &'a [u64]) -> Self {
        let (resource, words) = words.split_first().expect("a task names its resource");
        Task {
            kind: header.kind,
            rank: header.rank,
            object: header.object,
            resource: Resource::from_bits(*resource),
            words,
            sender: header.sender,
            callback: header.callback,
        }
    }

    pub(crate) fn header(&self) -> Header {
        Header {
            object: self.object,
            sender: self.sender,
            callback: self.callback,
            kind: self.kind,
            rank: self.rank,
        }
    }

    /// Whether it may be sent.
    ///
    /// # Panics
    /// See [`Task`].
    #[inline(always)]
    pub(crate) fn check(&self) {
        assert!(self.kind < KINDS_TAKEN, "kind {} is taken", self.kind);
        let count = self.words.len();
        assert!(count <= MOST_WORDS, "a task has {MOST_WORDS} words at most");
    }

    /// Lends the words of the command that this task is.
    pub(crate) fn with_words<R>(&self, send: impl FnOnce(&[u64]) -> R) -> R {
        self.check();
        let count = self.words.len();
        let mut words = [0; 1 + MOST_WORDS];
        words[0] = self.resource.to_bits();
        words[1..=count].copy_from_slice(self.words);
        send(&words[..=count])
    }
}

/// How a task touches its resource.
#[derive(Clone, Copy, Debug)]
pub enum Access<'a> {
    /// In a way that needs no order.
    Free,
    /// As the only one, at its home. A task that comes to another AEU is sent on, and may be overtaken then by one that
    /// was spawned later.
    Mapped(&'a Home),
    /// It reads, with others who read: [`Work::read`].
    Read(&'a TaskLatch),
    /// It reads and writes as the only one.
    Write(&'a TaskLatch),
}

/// Resources, and what tasks do with them. All AEUs share it.
///
/// A task that panics fails alone: its sender is told. What it has written stays, and the next task finds its resource
/// like that.
pub trait Work: Send + Sync + 'static {
    /// What a reader carries from the resource.
    type Seen;

    /// The memory that a task will touch: it is asked for before the task runs. Empty: none. If this panics, nothing is
    /// asked for.
    fn lines(&self, task: &Task<'_>) -> &[AtomicU64];

    /// How a task touches its resource. It is asked again whenever the task is looked at, and names the same home or
    /// latch each time. If it panics at first, the task fails; after the task has waited, its resource may stay held
    /// for ever.
    fn access(&self, task: &Task<'_>) -> Access<'_>;

    /// What a task with [`Access::Read`] takes from its resource. It may run several times, beside a writer, and see
    /// words of different times; what it returns then is thrown away. So it must do nothing else, come to its end and
    /// not panic, whatever it reads.
    fn read(&self, task: &Task<'_>) -> Self::Seen;

    /// Runs a task to its end. `seen` is what [`read`](Self::read) found, all of one time; with other accesses `None`.
    fn run(&self, task: &Task<'_>, seen: Option<Self::Seen>, cx: &mut TaskContext<'_, '_>);
}
