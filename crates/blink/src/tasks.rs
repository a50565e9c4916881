//! Operations as tasks: a task for each of the last two nodes on the way, so that their memory has come when it runs.
//!
//! ```text
//! spawned ─▶ levels above 1 in one go ─▶ task at a node of level 1 ─▶ task at the leaf ─▶ answer
//!                                            │ ▲                        │ ▲
//!                                            └─┘ right                  └─┘ right, or held: later
//! ```
//! After Mühlig, *B-link-trees for DB/OS Co-Design*, Section 4. Its Algorithm 2 lacks *move right*: here each task
//! looks at both fences of its node. A task that finds its leaf held is spawned again, behind those that are there. To
//! split a node it waits for the parent, as threads do.
//!
//! All operations of tasks and of threads may be mixed.

use crate::counts::Count;
use crate::key::Key;
use crate::node::Side;
use crate::tree::{Tree, value_of};
use eris_aeu::task::{Access, Resource, Task, TaskContext, Work};
use eris_numa::OutOfMemory;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;

const GET: u16 = 1;
const PUT: u16 = 2;
const REMOVE: u16 = 3;

/// What a task does in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    kind: u16,
    key: u64,
    value: u64,
}

/// How an operation has ended: the value that the key had before it, if it was there.
pub type Outcome = Result<Option<u64>, OutOfMemory>;

impl Operation {
    /// The value of a key.
    pub fn get(key: u64) -> Self {
        Operation {
            kind: GET,
            key,
            value: 0,
        }
    }

    /// Puts an entry in.
    pub fn put(key: u64, value: u64) -> Self {
        Operation {
            kind: PUT,
            key,
            value,
        }
    }

    /// Takes an entry out.
    pub fn remove(key: u64) -> Self {
        Operation {
            kind: REMOVE,
            key,
            value: 0,
        }
    }
}

impl Operation {
    /// Does it now, on this thread.
    ///
    /// # Errors
    /// There is no memory.
    pub fn run(self, tree: &Tree) -> Outcome {
        let Operation { kind, key, value } = self;
        match kind {
            GET => Ok(tree.get(key)),
            PUT => tree.put(key, value),
            _ => Ok(tree.remove(key)),
        }
    }
}

/// What the words of an answer say: how the operation has ended, `None` if there was no memory.
///
/// # Panics
/// If they are no answer of a tree.
pub fn outcome_of(words: &[u64]) -> Option<Option<u64>> {
    match *words {
        [0] => Some(None),
        [1, value] => Some(Some(value)),
        [2] => None,
        _ => panic!("{words:?} is no answer of a tree"),
    }
}

impl Tree {
    /// Lends the task that an operation begins with, to be spawned by a session or by another task.
    ///
    /// ```
    /// # use eris_numa::{HugePages, Memory, Topology};
    /// use eris_aeu::task::{Options, TaskRuntime};
    /// use eris_blink::{Operation, Tree, outcome_of};
    /// # let topology = Topology::fake(1, 2);
    /// # let memory = Memory::new(&topology, HugePages::Never, Some(1 << 30)).unwrap();
    /// # let memory = memory.node(eris_types::NodeId(0));
    ///
    /// let tree = Tree::new(memory, eris_types::ObjectId(1))?;
    /// let runtime = TaskRuntime::start(&topology, Options::default(), tree)?;
    /// let mut session = runtime.session()?;
    /// let tree = runtime.work();
    /// for key in 0..1000 {
    ///     tree.begin(Operation::put(key, key * 2), |task| session.spawn(task));
    /// }
    /// let mut left = 1000;
    /// while left > 0 {
    ///     let replies = session.receive(std::time::Duration::from_secs(10)).expect("answers");
    ///     left -= replies.inspect(|reply| assert!(reply.words.is_ok())).count();
    /// }
    /// tree.begin(Operation::get(500), |task| session.spawn(task));
    /// let reply = session.receive(std::time::Duration::from_secs(10)).unwrap().next().unwrap();
    /// assert_eq!(outcome_of(&reply.words?), Some(Some(1000)));
    /// # drop(session);
    /// # runtime.shutdown();
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn begin<R>(&self, operation: Operation, spawn: impl FnOnce(Task<'_>) -> R) -> R {
        let Operation { kind, key, value } = operation;
        let (number, level) = self.towards(self.root(), key);
        let words = [key, value, u64::from(level)];
        spawn(Task::new(kind, Resource::new(u64::from(number)), &words))
    }

    /// Goes down as long as nodes are likely to be in a cache: to level 1.
    #[inline]
    fn towards(&self, mut way: (u32, u8), key: u64) -> (u32, u8) {
        while way.1 > 1 {
            match self.take_step(way, (key, 0), |_, _| ()) {
                ControlFlow::Continue(next) => way = next,
                ControlFlow::Break(()) => unreachable!("a leaf is below"),
            }
        }
        way
    }

    /// Runs a task of this tree: for work that has more kinds of tasks. How the operation has ended, if this was the
    /// last one; or the next one is lent, to be spawned.
    ///
    /// Any AEU may run it. Its resource is a node, and its third word the node's level: leaves have level 0. So whoever
    /// wants all that is done at a leaf to be done by one AEU sends the task there.
    #[inline]
    pub fn advance(&self, task: &Task<'_>, spawn: impl FnOnce(Task<'_>)) -> Option<Outcome> {
        let [key, value, level] = *task.words else {
            unreachable!("tasks of a tree have three words");
        };
        let here = (task.resource.number() as u32, level as u8);
        let next = match (here.1, task.kind) {
            (0, PUT | REMOVE) => match self.change(here.0, task.kind, key, value) {
                ControlFlow::Break(outcome) => return Some(outcome),
                ControlFlow::Continue(next) => next,
            },
            (_, GET | PUT | REMOVE) => {
                match self.take_step(here, (key, 0), |_, leaf| value_of(leaf, key)) {
                    ControlFlow::Break(found) => return Some(Ok(found)),
                    ControlFlow::Continue(next) => self.towards(next, key),
                }
            }
            (_, kind) => unreachable!("{kind} is no kind of a tree's tasks"),
        };
        spawn(Task {
            resource: Resource::new(u64::from(next.0)),
            words: &[key, value, u64::from(next.1)],
            ..*task
        });
        None
    }

    /// Changes a leaf, or says where the operation goes on.
    fn change(
        &self,
        number: u32,
        kind: u16,
        key: u64,
        value: u64,
    ) -> ControlFlow<Outcome, (u32, u8)> {
        self.space.prepare();
        let Some(leaf) = self.space.node(number).try_hold() else {
            // Somebody else is there: the others first.
            return ControlFlow::Continue((number, 0));
        };
        match u64::side(leaf.node, key, 0) {
            Side::Here => {}
            Side::Right => {
                self.counts.add(Count::RightMoves);
                return ControlFlow::Continue((leaf.node.meta().right(), 0));
            }
            Side::Elsewhere => {
                self.counts.add(Count::Restarts);
                drop(leaf);
                return ControlFlow::Continue(self.towards(self.root(), key));
            }
        }
        let leaf = (number, leaf);
        ControlFlow::Break(match kind {
            PUT => self.put_into(leaf, key, value).map(|(before, _)| before),
            _ => Ok(self.remove_from(leaf, key).0),
        })
    }
}

impl Work for Tree {
    type Seen = ();

    #[inline]
    fn lines(&self, task: &Task<'_>) -> &[AtomicU64] {
        self.space.node(task.resource.number() as u32).words()
    }

    /// Nodes are read by version, and written by who holds them: both are done here.
    fn access(&self, _: &Task<'_>) -> Access<'_> {
        Access::Free
    }

    fn read(&self, _: &Task<'_>) {}

    /// Answers by the words that [`outcome_of`] reads.
    fn run(&self, task: &Task<'_>, _: Option<()>, cx: &mut TaskContext<'_, '_>) {
        match self.advance(task, |next| cx.spawn(next)) {
            None => {}
            Some(Ok(None)) => cx.answer(task, &[0]),
            Some(Ok(Some(value))) => cx.answer(task, &[1, value]),
            Some(Err(_)) => cx.answer(task, &[2]),
        }
    }
}
