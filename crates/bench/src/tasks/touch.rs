//! Tasks that touch memory by chance.
//!
//! A resource has eight lines. A task reads one of them, or four of which each tells which one is next: as on the way
//! through a node. Which resource comes next does not depend on what was read. `adaptive` is timed while it tries out
//! what is best.

use super::spawn::some_aeus;
use super::{Measured, TasksBenchError, TasksOptions};
use crate::report::BenchReport;
use eris_aeu::Random;
use eris_aeu::task::{Access, Options, Prefetch, Resource, Task, TaskContext, TaskRuntime, Work};
use eris_numa::{AtomicBuffer, Memory, Topology};
use eris_types::{AeuId, NodeId, ObjectId};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const BURST: u64 = 256;
const TASKS: u64 = 1_000_000;
/// Words of a line, and of a resource.
const LINE: usize = 8;
const RESOURCE: usize = 8 * LINE;
const SIZES: [usize; 4] = [256 << 10, 16 << 20, 128 << 20, 1 << 30];
const LINES: [u64; 2] = [1, 4];
const POLICIES: [(&str, Prefetch); 8] = [
    ("off", Prefetch::Off),
    ("1", Prefetch::Fixed(1)),
    ("2", Prefetch::Fixed(2)),
    ("4", Prefetch::Fixed(4)),
    ("6", Prefetch::Fixed(6)),
    ("8", Prefetch::Fixed(8)),
    ("12", Prefetch::Fixed(12)),
    ("adaptive", Prefetch::Adaptive),
];

/// Words: bursts left, lines of each task, the state of chance.
const SPAWN: u16 = 1;
/// Words: how many lines.
const TOUCH: u16 = 2;

struct Resources {
    memory: Arc<AtomicBuffer>,
    /// How many, a power of two.
    count: u64,
    sum: AtomicU64,
}

impl Resources {
    fn words(&self, task: &Task<'_>) -> &[AtomicU64] {
        let first = task.resource.number() as usize * RESOURCE;
        &self.memory.words()[first..first + RESOURCE]
    }
}

impl Work for Resources {
    type Seen = ();

    fn lines(&self, task: &Task<'_>) -> &[AtomicU64] {
        match task.kind {
            TOUCH => &self.words(task)[..LINE * if task.words[0] == 1 { 1 } else { 8 }],
            _ => &[],
        }
    }

    fn access(&self, _: &Task<'_>) -> Access<'_> {
        Access::Free
    }

    fn read(&self, _: &Task<'_>) {}

    fn run(&self, task: &Task<'_>, _: Option<()>, cx: &mut TaskContext<'_, '_>) {
        if task.kind == TOUCH {
            let words = self.words(task);
            let (mut line, mut sum) = (0, 0);
            for _ in 0..task.words[0] {
                line = words[line * LINE].load(Relaxed) as usize % 8;
                sum += line as u64;
            }
            return self
                .sum
                .store(self.sum.load(Relaxed).wrapping_add(sum), Relaxed);
        }
        let [left, lines, mut state] = *task.words else {
            unreachable!("it is spawned with three words");
        };
        for _ in 0..BURST {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            cx.spawn(Task {
                kind: TOUCH,
                resource: Resource::new((state >> 32) & (self.count - 1)),
                words: &[lines],
                ..*task
            });
        }
        match left {
            0 => cx.answer(task, &[]),
            _ => cx.spawn(Task {
                words: &[left - 1, lines, state],
                ..*task
            }),
        }
    }
}

/// All sizes up to the one that is given, each with all policies in turn.
pub fn run(
    report: &mut BenchReport,
    topology: &Topology,
    memory: &Memory,
    options: TasksOptions,
) -> Result<(), TasksBenchError> {
    for bytes in SIZES.into_iter().filter(|bytes| *bytes <= options.bytes) {
        let buffer = memory.node(NodeId(0)).allocate(ObjectId(1), bytes)?;
        let buffer = Arc::new(AtomicBuffer::from(buffer));
        let mut random = Random::new(bytes as u64);
        for line in buffer.words().iter().step_by(LINE) {
            line.store(random.bits(), Relaxed);
        }
        for lines in LINES {
            let mut times = vec![Vec::new(); POLICIES.len()];
            for run in 0..options.runs {
                // Each run begins with another one: what comes first may find the caches otherwise.
                for at in (0..POLICIES.len()).map(|at| (at + run) % POLICIES.len()) {
                    let prefetch = POLICIES[at].1;
                    times[at].push(measure(topology, &buffer, lines, prefetch, run as u64)?);
                }
            }
            for ((distance, _), times) in POLICIES.iter().zip(times) {
                let params = [
                    ("bytes", json!(bytes)),
                    ("lines", json!(lines)),
                    ("distance", json!(distance)),
                ];
                report.row("prefetch", params, "ns/task", times, None);
            }
        }
    }
    Ok(())
}

fn measure(
    topology: &Topology,
    memory: &Arc<AtomicBuffer>,
    lines: u64,
    prefetch: Prefetch,
    seed: u64,
) -> Measured {
    let work = Resources {
        memory: memory.clone(),
        count: (memory.words().len() / RESOURCE) as u64,
        sum: AtomicU64::new(0),
    };
    let options = Options {
        prefetch,
        ..Options::default()
    };
    let runtime = TaskRuntime::start(&some_aeus(topology, 1)?, options, work)?;
    let mut session = runtime.session()?;
    let spawn = [TASKS / BURST, lines, seed];
    let begun = Instant::now();
    session.spawn(Task::new(SPAWN, Resource::new(0).at(AeuId(0)), &spawn));
    let replies = session.receive(Duration::from_secs(60));
    let answer = replies.and_then(|mut replies| replies.next());
    let time = begun.elapsed();
    answer.ok_or(TasksBenchError::NoAnswer)?;
    drop(session);
    runtime.shutdown();
    Ok(time.as_nanos() as f64 / TASKS as f64)
}
