//! Operations as tasks: under a seeded schedule of AEUs, beside operations that are not tasks, while nodes split and
//! merge; and on threads.
//!
//! Each session has keys of its own, so that it knows what each operation has to find. Nodes are those of all.

use eris_aeu::task::{
    Access, Options, Prefetch, Reply, Runner, Task, TaskContext, TaskRuntime, Work,
};
use eris_aeu::{BufferSizes, Faults, Port, Random, Simulation, Turn};
use eris_blink::{Operation, Tree, outcome_of};
use eris_numa::{HugePages, Memory, Topology};
use eris_types::{AeuId, NodeId, ObjectId};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const AEUS: usize = 3;
const SESSIONS: u64 = 3;
/// Keys of a session: enough for some levels.
const KEYS: u64 = 800;

fn tree() -> Tree {
    let memory = Memory::new(&Topology::fake(1, 1), HugePages::Never, Some(1 << 30)).unwrap();
    Tree::new(memory.node(NodeId(0)), ObjectId(1)).unwrap()
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
    ) -> Option<Operation> {
        let key = (random.below(KEYS as usize) as u64) * SESSIONS + session;
        if self.under_way.values().any(|(other, _)| *other == key) {
            return None;
        }
        let before = self.entries.get(&key).copied();
        let (often, seldom) = if is_late { (1, 9) } else { (8, 9) };
        let operation = match random.below(10) {
            at if at < often => {
                self.entries.insert(key, callback);
                Operation::put(key, callback)
            }
            at if at < seldom => {
                self.entries.remove(&key);
                Operation::remove(key)
            }
            _ => Operation::get(key),
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

fn check_all(tree: &Tree, all: &BTreeMap<u64, u64>) {
    let entries = all.iter().map(|(key, value)| (*key, *value));
    assert!(
        tree.range(..).eq(entries),
        "what is there is what was put in"
    );
}

fn simulate(seed: u64) -> u64 {
    let sizes = BufferSizes {
        outgoing: 64,
        aeu_inbox: 512,
        session_inbox: 1024,
    };
    let tree = Arc::new(tree());
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
                let Some(operation) = known.next(session, callback, is_late, random) else {
                    continue;
                };
                if random.one_in(8) {
                    // Now, and not by a task.
                    let (_, expected) = known.under_way.remove(&callback).expect("it was noted");
                    assert_eq!(operation.run(&tree).unwrap(), expected);
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
struct Tasks(Arc<Tree>);

impl Work for Tasks {
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

#[test]
fn operations_of_tasks_find_what_was_put_in() {
    let number = |name: &str| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse::<u64>().ok())
    };
    let seeds = match (number("ERIS_SEED"), number("ERIS_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, seeds) => 0..seeds.unwrap_or(100),
    };
    let many = seeds.end - seeds.start > 10;
    let moved: u64 = seeds.map(simulate).sum();
    assert!(
        moved > 0 || !many,
        "tasks have come to nodes that had changed"
    );
}

#[test]
fn threads_and_tasks_share_a_tree() {
    let topology = Topology::fake(2, 2);
    let runtime = TaskRuntime::start(&topology, Options::default(), tree()).unwrap();
    let all = std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|session| {
                let runtime = &runtime;
                scope.spawn(move || {
                    let (mut known, mut random) = (Known::default(), Random::new(session));
                    let mut tasks = runtime.session().unwrap();
                    for callback in 1..=40_000 {
                        let late = callback > 20_000;
                        let Some(operation) = known.next(session, callback, late, &mut random)
                        else {
                            continue;
                        };
                        if random.one_in(3) {
                            let (_, expected) = known.under_way.remove(&callback).unwrap();
                            assert_eq!(operation.run(runtime.work()).unwrap(), expected);
                        } else {
                            let tree = runtime.work();
                            tree.begin(operation, |task| tasks.spawn(task.callback(callback)));
                        }
                        while known.under_way.len() > 200 {
                            let replies = tasks.receive(Duration::from_secs(60));
                            replies
                                .expect("answers")
                                .for_each(|reply| known.check(&reply));
                        }
                    }
                    while !known.under_way.is_empty() {
                        let replies = tasks.receive(Duration::from_secs(60));
                        replies
                            .expect("answers")
                            .for_each(|reply| known.check(&reply));
                    }
                    known.entries
                })
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
