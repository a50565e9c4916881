//! Operations as tasks: under a seeded schedule of AEUs, beside operations that are not tasks, while nodes split and
//! merge; and on threads.
//!
//! Each session has keys of its own, so that it knows what each operation has to find. Nodes are those of all. Keys are
//! numbers, or byte strings, of which some have no room in a task.

use eris_aeu::task::{
    Access, Options, Prefetch, Reply, Runner, Task, TaskContext, TaskRuntime, Work,
};
use eris_aeu::{BufferSizes, Faults, Port, Random, Simulation, Turn};
use eris_blink::{Key, Operation, Tree, outcome_of};
use eris_numa::{HugePages, Memory, NodeMemory, Topology};
use eris_types::{AeuId, NodeId, ObjectId};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const AEUS: usize = 3;
const SESSIONS: u64 = 3;
/// Keys of a session: enough for some levels.
const KEYS: u64 = 800;

/// Keys by their numbers, in the same order.
trait Numbered: Key<Owned: PartialEq> {
    fn tree() -> Tree<Self>;
    fn key(number: u64) -> Self::Owned;
    fn lent(key: &Self::Owned) -> Self::Ref<'_>;
}

fn memory() -> NodeMemory {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(1 << 30)).unwrap();
    memory.node(NodeId(0))
}

impl Numbered for u64 {
    fn tree() -> Tree {
        Tree::new(memory(), ObjectId(1)).unwrap()
    }

    fn key(number: u64) -> u64 {
        number
    }

    fn lent(key: &u64) -> u64 {
        *key
    }
}

impl Numbered for [u8] {
    fn tree() -> Tree<[u8]> {
        Tree::of_bytes(memory(), ObjectId(1)).unwrap()
    }

    fn key(number: u64) -> Vec<u8> {
        let bytes = [0, 3, 70, 75, 76, 77, 200][number as usize % 7];
        let mut key = number.to_be_bytes()[3..].to_vec();
        key.resize(5 + bytes, number as u8);
        key
    }

    fn lent(key: &Vec<u8>) -> &[u8] {
        key
    }
}

/// What is to be done with the key of a number.
#[derive(Clone, Copy)]
enum Asked {
    Put(u64, u64),
    Remove(u64),
    Get(u64),
}

impl Asked {
    fn number(self) -> u64 {
        match self {
            Asked::Put(number, _) | Asked::Remove(number) | Asked::Get(number) => number,
        }
    }

    fn of<K: Numbered + ?Sized>(self, key: &K::Owned) -> Operation<'_, K> {
        match self {
            Asked::Put(_, value) => Operation::put(K::lent(key), value),
            Asked::Remove(_) => Operation::remove(K::lent(key)),
            Asked::Get(_) => Operation::get(K::lent(key)),
        }
    }
}

/// What a session has put in, and what it waits for.
#[derive(Default)]
struct Known {
    entries: BTreeMap<u64, u64>,
    /// By callback: the key, and what is to be found.
    under_way: HashMap<u64, (u64, Option<u64>)>,
}

impl Known {
    /// An operation by chance, if nothing is under way with its key. At first keys are put in, then taken out, so that
    /// nodes split and merge.
    fn next(
        &mut self,
        session: u64,
        callback: u64,
        is_late: bool,
        random: &mut Random,
    ) -> Option<Asked> {
        let key = (random.below(KEYS as usize) as u64) * SESSIONS + session;
        if self.under_way.values().any(|(other, _)| *other == key) {
            return None;
        }
        let before = self.entries.get(&key).copied();
        let (often, seldom) = if is_late { (1, 9) } else { (8, 9) };
        let operation = match random.below(10) {
            at if at < often => {
                self.entries.insert(key, callback);
                Asked::Put(key, callback)
            }
            at if at < seldom => {
                self.entries.remove(&key);
                Asked::Remove(key)
            }
            _ => Asked::Get(key),
        };
        self.under_way.insert(callback, (key, before));
        Some(operation)
    }

    fn check(&mut self, reply: &Reply) {
        let expected = self.under_way.remove(&reply.callback);
        let (key, expected) = expected.expect("each operation is answered once");
        let words = reply.words.as_ref().expect("nothing panics");
        assert_eq!(outcome_of(words), Some(expected), "key {key}");
    }
}

fn check_all<K: Numbered + ?Sized>(tree: &Tree<K>, all: &BTreeMap<u64, u64>) {
    let entries = all.iter().map(|(key, value)| (K::key(*key), *value));
    assert!(
        tree.range(..).eq(entries),
        "what is there is what was put in"
    );
}

fn simulate<K: Numbered + ?Sized>(seed: u64) -> u64 {
    let sizes = BufferSizes {
        outgoing: 64,
        aeu_inbox: 512,
        session_inbox: 1024,
    };
    let tree = Arc::new(K::tree());
    let mut runners = Runner::several(Tasks(tree.clone()), AEUS, Prefetch::Fixed(2)).into_iter();
    let faults = Faults {
        partial_flushes: 4,
        ..Faults::default()
    };
    let topology = Topology::fake(1, AEUS as u16);
    let mut simulation = Simulation::new(seed, &topology, sizes, faults, |_| {
        runners.next().expect("one for each AEU")
    });
    let all = Arc::new(Mutex::new(BTreeMap::new()));
    for session in 0..SESSIONS {
        let (tree, all) = (tree.clone(), all.clone());
        let (mut known, mut callback) = (Known::default(), 0);
        let script = move |port: &mut Port<()>, random: &mut Random| {
            for command in port.receive().into_iter().flatten() {
                known.check(&Reply::of(&command));
            }
            const OPERATIONS: u64 = 5_000;
            for _ in 0..random.below(30).min((OPERATIONS - callback) as usize) {
                callback += 1;
                let is_late = callback > OPERATIONS / 2;
                let Some(asked) = known.next(session, callback, is_late, random) else {
                    continue;
                };
                let key = K::key(asked.number());
                let operation: Operation<'_, K> = asked.of(&key);
                if random.one_in(8) {
                    // Now, and not by a task.
                    let (_, expected) = known.under_way.remove(&callback).expect("it was noted");
                    assert_eq!(operation.run(&tree).ok(), Some(expected));
                    continue;
                }
                let aeu = AeuId(random.below(AEUS) as u16);
                tree.begin(operation, |task| task.callback(callback).send(port, aeu));
            }
            port.flush();
            if callback < OPERATIONS || !known.under_way.is_empty() {
                return Turn::More;
            }
            all.lock().unwrap().append(&mut known.entries);
            Turn::Done
        };
        simulation.session(script).unwrap();
    }
    simulation.run(10_000_000);
    check_all(&tree, &all.lock().unwrap());
    let statistics = tree.statistics();
    assert!(
        statistics.splits > 0 && statistics.merges > 0,
        "{statistics:?}"
    );
    statistics.restarts + statistics.right_moves
}

/// The tree as work, shared with scripts.
struct Tasks<K: Key + ?Sized>(Arc<Tree<K>>);

impl<K: Key + ?Sized> Work for Tasks<K> {
    type Seen = ();

    fn lines(&self, task: &Task<'_>) -> &[AtomicU64] {
        self.0.lines(task)
    }

    fn access(&self, task: &Task<'_>) -> Access<'_> {
        self.0.access(task)
    }

    fn read(&self, _: &Task<'_>) {}

    fn run(&self, task: &Task<'_>, seen: Option<()>, cx: &mut TaskContext<'_, '_>) {
        self.0.run(task, seen, cx);
    }
}

fn simulate_all<K: Numbered + ?Sized>(most: u64) {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let seeds = match (number("ERIS_SEED"), number("ERIS_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, seeds) => 0..seeds.unwrap_or(most),
    };
    let many = seeds.end - seeds.start > 10;
    let moved: u64 = seeds.map(simulate::<K>).sum();
    assert!(
        moved > 0 || !many,
        "tasks have come to nodes that had changed"
    );
}

#[test]
fn operations_of_tasks_find_what_was_put_in() {
    simulate_all::<u64>(100);
}

#[test]
fn operations_of_tasks_find_byte_strings() {
    simulate_all::<[u8]>(50);
}

fn threads_and_tasks<K: Numbered + ?Sized>() {
    let topology = Topology::fake(2, 2);
    let runtime = TaskRuntime::start(&topology, Options::default(), K::tree()).unwrap();
    let all = std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let runtime = &runtime;
                scope.spawn(move || ask(session, runtime))
            })
            .collect();
        let mut all = BTreeMap::new();
        for session in sessions {
            all.append(&mut session.join().unwrap());
        }
        all
    });
    check_all(runtime.work(), &all);
    runtime.shutdown();
}

/// Asks by tasks and by this thread; the entries that it has put in.
fn ask<K: Numbered + ?Sized>(session: u64, runtime: &TaskRuntime<Tree<K>>) -> BTreeMap<u64, u64> {
    let (mut known, mut random) = (Known::default(), Random::new(session));
    let mut tasks = runtime.session().unwrap();
    let tree = runtime.work();
    for callback in 1..=40_000 {
        let late = callback > 20_000;
        let Some(asked) = known.next(session, callback, late, &mut random) else {
            continue;
        };
        let key = K::key(asked.number());
        let operation: Operation<'_, K> = asked.of(&key);
        if random.one_in(3) {
            let (_, expected) = known.under_way.remove(&callback).unwrap();
            assert_eq!(operation.run(tree).ok(), Some(expected));
        } else {
            tree.begin(operation, |task| tasks.spawn(task.callback(callback)));
        }
        while known.under_way.len() > 200 {
            let replies = tasks.receive(Duration::from_secs(60));
            let replies = replies.expect("answers");
            replies.for_each(|reply| known.check(&reply));
        }
    }
    while !known.under_way.is_empty() {
        let replies = tasks.receive(Duration::from_secs(60));
        let replies = replies.expect("answers");
        replies.for_each(|reply| known.check(&reply));
    }
    known.entries
}

#[test]
fn threads_and_tasks_share_a_tree() {
    threads_and_tasks::<u64>();
}

#[test]
fn threads_and_tasks_share_a_tree_of_byte_strings() {
    threads_and_tasks::<[u8]>();
}
