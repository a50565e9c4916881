//! Operations as tasks: a task for each of the last two nodes on the way, so that their memory has come when it runs.
//!
//! ```text
//! spawned ─▶ levels above 1 in one go ─▶ task at a node of level 1 ─▶ task at the leaf ─▶ answer
//!                                            │ ▲                        │ ▲
//!                                            └─┘ right                  └─┘ right, or held: later
//!
//! words    value │ level 8 bits, key's bytes 56 bits │ key … of at most 80 bytes, or the number of a longer one
//! ```
//! After Mühlig, *B-link-trees for DB/OS Co-Design*, Section 4. Its Algorithm 2 lacks *move right*: here each task
//! looks at both fences of its node. A task that finds its leaf held is spawned again, behind those that are there. To
//! split a node it waits for the parent, as threads do.
//!
//! A key that has no room in a task stays with the tree until the operation has ended.
//!
//! All operations of tasks and of threads may be mixed.

use crate::counts::Count;
use crate::key::Key;
use crate::long_keys::BEFORE_KEY;
use crate::node::Side;
use crate::tree::{Tree, value_of};
use eris_aeu::task::{Access, MOST_WORDS, Resource, Task, TaskContext, Work};
use eris_numa::OutOfMemory;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;

const GET: u16 = 1;
const PUT: u16 = 2;
const REMOVE: u16 = 3;

/// What a task does in a tree.
pub struct Operation<'k, K: Key + ?Sized = u64> {
    kind: u16,
    key: K::Ref<'k>,
    value: u64,
}

/// How an operation has ended: the value that the key had before it, if it was there.
pub type Outcome = Result<Option<u64>, OutOfMemory>;

impl<'k, K: Key + ?Sized> Operation<'k, K> {
    /// The value of a key.
    pub fn get(key: K::Ref<'k>) -> Self {
        Operation {
            kind: GET,
            key,
            value: 0,
        }
    }

    /// Puts an entry in.
    pub fn put(key: K::Ref<'k>, value: u64) -> Self {
        Operation {
            kind: PUT,
            key,
            value,
        }
    }

    /// Takes an entry out.
    pub fn remove(key: K::Ref<'k>) -> Self {
        Operation {
            kind: REMOVE,
            key,
            value: 0,
        }
    }

    /// Does it now, on this thread.
    ///
    /// # Errors
    /// There is no memory, or a key that is put in is too long.
    pub fn run(self, tree: &Tree<K>) -> Result<Option<u64>, K::Error> {
        let Operation { kind, key, value } = self;
        match kind {
            GET => Ok(tree.get(key)),
            PUT => tree.put(key, value),
            _ => Ok(tree.remove(key)),
        }
    }
}

impl<K: Key + ?Sized> Clone for Operation<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K: Key + ?Sized> Copy for Operation<'_, K> {}

impl<K: Key + ?Sized> fmt::Debug for Operation<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Operation { kind, key, value } = self;
        match *kind {
            GET => write!(f, "get {key:?}"),
            PUT => write!(f, "put {key:?}: {value}"),
            _ => write!(f, "remove {key:?}"),
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

/// The number of bytes that says that a key has no room in its task.
const LONG: u64 = u64::MAX >> 8;

/// The level of the node that a task is at, and how many bytes its key has.
fn level_and_bytes(task: &Task<'_>) -> (u8, u64) {
    (task.words[1] as u8, task.words[1] >> 8)
}

impl<K: Key + ?Sized> Tree<K> {
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
    ///
    /// It has to be spawned, once: by that its key is found, and then forgotten. A key of more than 80 bytes is copied.
    ///
    /// # Panics
    /// If a key that is to be put in is too long.
    #[inline]
    pub fn begin<R>(&self, operation: Operation<'_, K>, spawn: impl FnOnce(Task<'_>) -> R) -> R {
        let Operation { kind, key, value } = operation;
        match K::check(key) {
            Ok(()) => self.begin_at(kind, key, value, spawn),
            Err(error) if kind == PUT => panic!("{error}"),
            // No entry has it, nor this one.
            Err(_) => self.begin_at(kind, K::greatest(), value, spawn),
        }
    }

    #[inline]
    fn begin_at<R>(
        &self,
        kind: u16,
        key: K::Ref<'_>,
        value: u64,
        spawn: impl FnOnce(Task<'_>) -> R,
    ) -> R {
        let (number, level) = self.towards(self.root(), key);
        let mut words = [0; MOST_WORDS];
        let (count, bytes) = K::pack(key, &mut words[BEFORE_KEY..]).unwrap_or_else(|| {
            words[BEFORE_KEY] = self.long_keys.keep(key);
            (1, LONG)
        });
        words[0] = value;
        words[1] = u64::from(level) | bytes << 8;
        let resource = Resource::new(u64::from(number));
        spawn(Task::new(kind, resource, &words[..BEFORE_KEY + count]))
    }

    /// Goes down as long as nodes are likely to be in a cache: to level 1.
    #[inline]
    fn towards(&self, mut way: (u32, u8), key: K::Ref<'_>) -> (u32, u8) {
        while way.1 > 1 {
            match self.take_step(way, (key, 0), |_, _| ()) {
                ControlFlow::Continue(next) => way = next,
                ControlFlow::Break(()) => unreachable!("a leaf is below"),
            }
        }
        way
    }

    /// The level of the node that a task of this tree is at, which is its resource: leaves have level 0. Any AEU may
    /// run it. So whoever wants all that is done at a leaf to be done by one AEU sends the task there.
    #[inline]
    pub fn level_of(&self, task: &Task<'_>) -> u8 {
        level_and_bytes(task).0
    }

    /// Runs a task of this tree, once: for work that has more kinds of tasks. How the operation has ended, if this was
    /// the last one; or the next one is lent, to be spawned.
    #[inline]
    pub fn advance(&self, task: &Task<'_>, spawn: impl FnOnce(Task<'_>)) -> Option<Outcome> {
        let (_, bytes) = level_and_bytes(task);
        if bytes != LONG {
            return K::unpack(&task.words[BEFORE_KEY..], bytes as usize, |key| {
                self.advance_to(key, task, spawn)
            });
        }
        let number = task.words[BEFORE_KEY];
        let key = self.long_keys.get(number);
        let outcome = self.advance_to(K::lend(&key), task, spawn);
        if outcome.is_some() {
            self.long_keys.forget(number);
        }
        outcome
    }

    #[inline]
    fn advance_to(
        &self,
        key: K::Ref<'_>,
        task: &Task<'_>,
        spawn: impl FnOnce(Task<'_>),
    ) -> Option<Outcome> {
        let (level, bytes) = level_and_bytes(task);
        let here = (task.resource.number() as u32, level);
        let next = match (level, task.kind) {
            (0, PUT | REMOVE) => match self.change(here.0, task.kind, key, task.words[0]) {
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
        let mut words = [0; MOST_WORDS];
        let words = &mut words[..task.words.len()];
        words.copy_from_slice(task.words);
        words[1] = u64::from(next.1) | bytes << 8;
        spawn(Task {
            resource: Resource::new(u64::from(next.0)),
            words,
            ..*task
        });
        None
    }

    /// Changes a leaf, or says where the operation goes on.
    fn change(
        &self,
        number: u32,
        kind: u16,
        key: K::Ref<'_>,
        value: u64,
    ) -> ControlFlow<Outcome, (u32, u8)> {
        self.space.prepare();
        let Some(leaf) = self.space.node(number).try_hold() else {
            // Somebody else is there: the others first.
            return ControlFlow::Continue((number, 0));
        };
        match K::side(leaf.node, key, 0) {
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

impl<K: Key + ?Sized> Work for Tree<K> {
    type Seen = ();

    #[inline]
    fn lines(&self, task: &Task<'_>) -> &[AtomicU64] {
        &self.space.node(task.resource.number() as u32).words()[..K::AHEAD]
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
