//! The B-link tree of [`shared`](super::shared), asked by tasks.
//!
//! A task at each AEU spawns the tasks of some hundred operations, and itself again behind them. What is done at a node
//! is done where the task before was, or, by *core mapping*, at the leaf's home.

use super::error::IndexBenchError;
use super::keys::{KeySequence, value};
use super::structure::{Structure, count_right, memory, no_memory};
use super::threads::share;
use crossbeam_utils::CachePadded;
use eris_aeu::task::{Access, Options, Resource, Task, TaskContext, TaskRuntime, Work};
use eris_atomics::SharedLock;
use eris_blink::{Operation, Outcome, Tree};
use eris_engine::Settings;
use eris_numa::Memory;
use eris_types::{AeuId, NodeId, ObjectId};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Operations that are spawned at a time.
const BURST: u64 = 256;
/// Words: the first number, and the one behind the last.
const INSERT: u16 = 100;
/// Words: the first position among the keys that are asked for, and the one behind the last.
const MIXED: u16 = 102;
/// Words: how many are left, the state of chance.
const LOOK_UP: u16 = 101;

struct Asked {
    tree: Tree,
    keys: KeySequence,
    /// Whether leaves have homes, which are AEUs by their numbers.
    is_mapped: bool,
    /// Keys of mixed operations.
    asked: SharedLock<Vec<u64>>,
    /// By AEU.
    counts: Vec<CachePadded<Counts>>,
    /// Entries for which there was no memory.
    denied: AtomicU64,
}

/// Written by one AEU.
#[derive(Default)]
struct Counts {
    ended: AtomicU64,
    /// Right values that were found.
    right: AtomicU64,
}

impl Asked {
    fn insert(&self, [first, end]: [u64; 2], cx: &mut TaskContext<'_, '_>) -> [u64; 2] {
        let some = first..end.min(first + BURST);
        for number in some.clone() {
            let key = self.keys.key(number);
            self.tree.begin(Operation::put(key, value(key)), |task| {
                cx.spawn(self.placed(task))
            });
        }
        [some.end, end]
    }

    fn mixed(&self, [first, end]: [u64; 2], cx: &mut TaskContext<'_, '_>) -> [u64; 2] {
        let some = first..end.min(first + BURST);
        let asked = self.asked.read();
        for at in some.clone() {
            let key = asked[at as usize];
            let operation = match at % 2 {
                0 => Operation::put(key, value(key)),
                _ => Operation::get(key),
            };
            self.tree
                .begin(operation, |task| cx.spawn(self.placed(task)));
        }
        [some.end, end]
    }

    fn look_up(&self, [left, mut state]: [u64; 2], cx: &mut TaskContext<'_, '_>) -> [u64; 2] {
        let some = left.min(BURST);
        for _ in 0..some {
            let key = self.keys.any(&mut state);
            self.tree
                .begin(Operation::get(key), |task| cx.spawn(self.placed(task)));
        }
        [left - some, state]
    }
}

impl Asked {
    /// The task of a leaf is sent to its home.
    #[inline]
    fn placed<'t>(&self, task: Task<'t>) -> Task<'t> {
        if !self.is_mapped || self.tree.level_of(&task) > 0 {
            return task;
        }
        let home = task.resource.number() % self.counts.len() as u64;
        let resource = task.resource.at(AeuId(home as u16));
        Task { resource, ..task }
    }

    fn count(&self, task: &Task<'_>, outcome: Outcome, aeu: AeuId) {
        let counts = &self.counts[aeu.index()];
        match outcome {
            Ok(found) => {
                let right = count_right(&[key_of(task)], &[found]);
                counts
                    .right
                    .store(counts.right.load(Relaxed) + right, Relaxed);
            }
            Err(_) => {
                self.denied.fetch_add(1, Relaxed);
            }
        }
        counts.ended.store(counts.ended.load(Relaxed) + 1, Relaxed);
    }
}

/// The key of a task of the tree.
fn key_of(task: &Task<'_>) -> u64 {
    *task.words.last().expect("it has words")
}

impl Work for Asked {
    type Seen = ();

    #[inline]
    fn lines(&self, task: &Task<'_>) -> &[AtomicU64] {
        match task.kind {
            INSERT | LOOK_UP | MIXED => &[],
            _ => self.tree.lines(task),
        }
    }

    fn access(&self, _: &Task<'_>) -> Access<'_> {
        Access::Free
    }

    fn read(&self, _: &Task<'_>) {}

    fn run(&self, task: &Task<'_>, _: Option<()>, cx: &mut TaskContext<'_, '_>) {
        let (next, is_last) = match (task.kind, task.words) {
            (INSERT, &[first, end]) => {
                let next = self.insert([first, end], cx);
                (next, first == end)
            }
            (MIXED, &[first, end]) => {
                let next = self.mixed([first, end], cx);
                (next, first == end)
            }
            (LOOK_UP, &[left, state]) => {
                let next = self.look_up([left, state], cx);
                (next, left == 0)
            }
            _ => {
                let spawned = |next: Task<'_>| cx.spawn(self.placed(next));
                if let Some(outcome) = self.tree.advance(task, spawned) {
                    self.count(task, outcome, cx.id());
                }
                return;
            }
        };
        match is_last {
            true => cx.answer(task, &[]),
            false => cx.spawn(Task {
                words: &next,
                ..*task
            }),
        }
    }
}

/// The tree and its AEUs.
pub struct Tasked {
    runtime: TaskRuntime<Asked>,
    memory: Memory,
    aeus: usize,
}

impl Tasked {
    pub fn new(
        settings: &Settings,
        keys: KeySequence,
        aeus: usize,
        is_mapped: bool,
    ) -> Result<Self, IndexBenchError> {
        let memory = memory(settings)?;
        let tree = Tree::new(memory.node(NodeId(0)), ObjectId(1)).map_err(no_memory)?;
        let work = Asked {
            tree,
            keys,
            is_mapped,
            asked: SharedLock::default(),
            counts: (0..aeus).map(|_| CachePadded::default()).collect(),
            denied: AtomicU64::new(0),
        };
        let failed = |error: String| IndexBenchError::Memory(error);
        let topology = settings.topology.clone().with_aeus(aeus);
        let topology = topology.map_err(|error| failed(error.to_string()))?;
        let runtime = TaskRuntime::start(&topology, Options::default(), work);
        Ok(Tasked {
            runtime: runtime.map_err(|error| failed(error.to_string()))?,
            memory,
            aeus,
        })
    }

    /// Has each AEU begin with a task, whose words `words` says, and waits until so many operations have ended since
    /// the beginning.
    fn run(
        &mut self,
        kind: u16,
        operations: u64,
        words: impl Fn(usize) -> [u64; 2],
    ) -> Result<(), IndexBenchError> {
        let failed = |error: String| IndexBenchError::Memory(error);
        let mut session = self
            .runtime
            .session()
            .map_err(|error| failed(error.to_string()))?;
        for aeu in 0..self.aeus {
            let at = Resource::new(0).at(AeuId(aeu as u16));
            session.spawn(Task::new(kind, at, &words(aeu)));
        }
        let mut ended = 0;
        while ended < self.aeus {
            let replies = session.receive(Duration::from_secs(600));
            let replies = replies.ok_or_else(|| failed("tasks do not end".to_owned()))?;
            for reply in replies {
                reply.words.map_err(|error| failed(error.to_string()))?;
                ended += 1;
            }
        }
        // Who has answered has spawned its last operations before.
        while self.sum(|counts| &counts.ended) < operations {
            thread::yield_now();
        }
        match self.runtime.work().denied.swap(0, Relaxed) {
            0 => Ok(()),
            denied => Err(failed(format!("no memory for {denied} entries"))),
        }
    }

    fn sum(&self, of: impl Fn(&Counts) -> &AtomicU64) -> u64 {
        let counts = self.runtime.work().counts.iter();
        counts.map(|counts| of(counts).load(Relaxed)).sum()
    }
}

impl Structure for Tasked {
    fn name(&self) -> &str {
        match self.runtime.work().is_mapped {
            true => "blink, tasks at homes",
            false => "blink, tasks",
        }
    }

    /// So many are under way together.
    fn batch(&self) -> usize {
        BURST as usize
    }

    fn insert(&mut self, numbers: Range<u64>) -> Result<(), IndexBenchError> {
        let operations = self.sum(|counts| &counts.ended) + (numbers.end - numbers.start);
        let aeus = self.aeus;
        self.run(INSERT, operations, |aeu| {
            let own = share(&numbers, aeu, aeus);
            [own.start, own.end]
        })
    }

    fn lookup(&mut self, seed: u64, count: u64) -> Result<u64, IndexBenchError> {
        let (before, aeus) = (self.sum(|counts| &counts.right), self.aeus);
        let operations = self.sum(|counts| &counts.ended) + count;
        self.run(LOOK_UP, operations, |aeu| {
            let own = share(&(0..count), aeu, aeus);
            [own.end - own.start, (seed << 32) + aeu as u64]
        })?;
        Ok(self.sum(|counts| &counts.right) - before)
    }

    fn mixed(&mut self, keys: &[u64]) -> Result<Option<u64>, IndexBenchError> {
        *self.runtime.work().asked.write() = keys.to_vec();
        let (before, aeus) = (self.sum(|counts| &counts.right), self.aeus);
        let count = keys.len() as u64;
        let operations = self.sum(|counts| &counts.ended) + count;
        self.run(MIXED, operations, |aeu| {
            let own = share(&(0..count), aeu, aeus);
            [own.start, own.end]
        })?;
        Ok(Some(self.sum(|counts| &counts.right) - before))
    }

    fn bytes(&mut self) -> Result<Option<u64>, IndexBenchError> {
        Ok(Some(self.memory.budget().used()))
    }
}
