//! Tasks that add their words to a sum of their AEU.

use super::{Measured, TasksBenchError};
use crossbeam_utils::CachePadded;
use eris_aeu::task::{Access, Options, Prefetch, Resource, Task, TaskContext, TaskRuntime, Work};
use eris_numa::Topology;
use eris_types::AeuId;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Spawned at a time.
const BURST: u64 = 256;
const TASKS: u64 = 1_000_000;

/// Words: bursts left, words of each task, the AEU of the tasks.
const SPAWN: u16 = 1;
const ADD: u16 = 2;
/// Answers.
const END: u16 = 3;

#[derive(Default)]
struct Sums(Vec<CachePadded<AtomicU64>>);

impl Work for Sums {
    type Seen = ();

    fn lines(&self, _: &Task<'_>) -> &[AtomicU64] {
        &[]
    }

    fn access(&self, _: &Task<'_>) -> Access<'_> {
        Access::Free
    }

    fn read(&self, _: &Task<'_>) {}

    fn run(&self, task: &Task<'_>, _: Option<()>, cx: &mut TaskContext<'_, '_>) {
        match task.kind {
            ADD => {
                let sum = &self.0[cx.id().index()];
                let added = task
                    .words
                    .iter()
                    .fold(0, |sum: u64, word| sum.wrapping_add(*word));
                sum.store(sum.load(Relaxed).wrapping_add(added), Relaxed);
            }
            SPAWN => {
                let [left, words, aeu] = *task.words else {
                    unreachable!("it is spawned with three words");
                };
                let to = Resource::new(0).at(AeuId(aeu as u16));
                for number in 0..BURST {
                    let numbers = [number, left, words, aeu];
                    cx.spawn(Task {
                        kind: ADD,
                        resource: to,
                        words: &numbers[..words as usize],
                        ..*task
                    });
                }
                let next = [left - 1, words, aeu];
                match left {
                    1 => cx.spawn(Task {
                        kind: END,
                        resource: to,
                        ..*task
                    }),
                    _ => cx.spawn(Task {
                        words: &next,
                        ..*task
                    }),
                }
            }
            _ => cx.answer(task, &[self.0[cx.id().index()].load(Relaxed)]),
        }
    }
}

/// Nanoseconds of a task that is spawned at the AEU that runs it.
pub fn on_one(topology: &Topology, words: u64) -> Measured {
    measure(&some_aeus(topology, 1)?, words, AeuId(0))
}

/// Nanoseconds of a task that is spawned at another AEU.
pub fn to_another(topology: &Topology, words: u64) -> Measured {
    measure(&some_aeus(topology, 2)?, words, AeuId(1))
}

/// The same machine with so many AEUs.
pub fn some_aeus(topology: &Topology, aeus: usize) -> Result<Topology, TasksBenchError> {
    Ok(topology.clone().with_aeus(aeus)?)
}

fn measure(topology: &Topology, words: u64, to: AeuId) -> Measured {
    let work = Sums(
        topology
            .aeus()
            .iter()
            .map(|_| CachePadded::default())
            .collect(),
    );
    let options = Options {
        prefetch: Prefetch::Off,
        ..Options::default()
    };
    let runtime = TaskRuntime::start(topology, options, work)?;
    let mut session = runtime.session()?;
    let begun = Instant::now();
    let task = [TASKS / BURST, words, u64::from(to.0)];
    session.spawn(Task::new(SPAWN, Resource::new(0).at(AeuId(0)), &task));
    let replies = session.receive(Duration::from_secs(60));
    let sum = replies
        .and_then(|mut replies| replies.next())
        .ok_or(TasksBenchError::NoAnswer)?;
    let time = begun.elapsed();
    // The first word of each is its number within the burst.
    let expected = TASKS / BURST * (0..BURST).sum::<u64>();
    let is_right = sum.words.is_ok_and(|sum| words > 1 || sum == [expected]);
    assert!(is_right, "each task is run once");
    drop(session);
    runtime.shutdown();
    Ok(time.as_nanos() as f64 / TASKS as f64)
}
