//! Tasks: work in pieces that run to their end, name what they touch, and never wait.
//!
//! After Mühlig, *B-link-trees for DB/OS Co-Design*, Section 3. A [`Task`] is a command that names a resource
//! (docs/decisions/0040). So it travels as all commands do: in the outgoing buffers, by rank, in stretches that lie
//! where they arrived. It owns nothing, and memory is needed for it only while it waits at a latch.
//!
//! ```text
//! word 0 … 2   header: kind of task, rank, data object, who is answered
//! word 3       resource: number 48 bits │ home 16 bits
//! word 4 …     arguments, at most 12: two cache lines in all
//!
//! spawn ──▶ buffer of an AEU ── flush ──▶ inbox ──▶ stretch │ t0 │ t1 │ t2 │ t3 │ t4 │
//!                                                      runs ──┘         └── its lines are asked for
//! ```
//!
//! **Announcement.** The work says which cache lines a task will touch. They are asked for a few tasks ahead, so that
//! they have come when it runs. How many tasks ahead is tried out all the time; see [`Prefetch`].
//!
//! **Synchronisation.** A task says how it touches its resource, and is run when it may:
//!
//! | [`Access`] | who runs it |
//! |---|---|
//! | `Free` | whoever has it, at once: what it touches needs no order, or has one of its own |
//! | `Mapped` | the home of the resource, which alone touches it (*core mapping*) |
//! | `Read` | whoever has it; it writes nothing, and reads again if somebody has written meanwhile |
//! | `Write` | who holds the [`TaskLatch`], one at a time (*synchronise-task*) |
//!
//! A task that finds the latch held waits there itself. Its AEU goes on with other tasks, and who holds the latch runs
//! it afterwards. No AEU waits for another one.
//!
//! # Example
//!
//! Counters that any AEU may add to:
//!
//! ```
//! use eris_aeu::task::{Access, Options, Resource, Task, TaskContext, TaskLatch, TaskRuntime, Work};
//! use eris_numa::Topology;
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//! use std::time::Duration;
//!
//! #[derive(Default)]
//! struct Counter {
//!     latch: TaskLatch,
//!     value: [AtomicU64; 1],
//! }
//!
//! struct Counters(Vec<Counter>);
//!
//! const ADD: u16 = 1;
//! const GET: u16 = 2;
//!
//! impl Work for Counters {
//!     type Seen = u64;
//!
//!     fn lines(&self, task: &Task<'_>) -> &[AtomicU64] {
//!         &self.0[task.resource.number() as usize].value
//!     }
//!
//!     fn access(&self, task: &Task<'_>) -> Access<'_> {
//!         let latch = &self.0[task.resource.number() as usize].latch;
//!         match task.kind {
//!             GET => Access::Read(latch),
//!             _ => Access::Write(latch),
//!         }
//!     }
//!
//!     fn read(&self, task: &Task<'_>) -> u64 {
//!         self.lines(task)[0].load(Relaxed)
//!     }
//!
//!     fn run(&self, task: &Task<'_>, seen: Option<u64>, cx: &mut TaskContext<'_, '_>) {
//!         let value = seen.unwrap_or_else(|| {
//!             // Nobody else writes it meanwhile.
//!             let sum = self.read(task) + task.words[0];
//!             self.lines(task)[0].store(sum, Relaxed);
//!             sum
//!         });
//!         cx.answer(task, &[value]);
//!     }
//! }
//!
//! let counters = Counters((0..100).map(|_| Counter::default()).collect());
//! let runtime = TaskRuntime::start(&Topology::fake(1, 2), Options::default(), counters)?;
//! let mut session = runtime.session()?;
//! for round in 0..1000 {
//!     session.spawn(Task::new(ADD, Resource::new(round % 100), &[round]));
//! }
//! let mut answers = 0;
//! while answers < 1000 {
//!     let replies = session.receive(Duration::from_secs(10)).expect("nobody waits for ever");
//!     answers += replies.inspect(|reply| assert!(reply.words.is_ok())).count();
//! }
//! session.spawn(Task::new(GET, Resource::new(7), &[]));
//! let sum = session.receive(Duration::from_secs(10)).and_then(|mut replies| replies.next());
//! assert_eq!(sum.unwrap().words.unwrap(), [(0..10).map(|round| round * 100 + 7).sum::<u64>()]);
//! # drop(session);
//! runtime.shutdown();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod context;
mod distance;
mod home;
mod latch;
#[cfg(all(test, loom))]
mod model;
mod runner;
mod runtime;
mod slots;
mod statistics;
#[cfg(all(test, not(loom)))]
mod tests;
mod work;

pub use context::TaskContext;
pub use distance::Prefetch;
pub use home::Home;
pub use latch::TaskLatch;
pub use runner::Runner;
pub use runtime::{Options, Replies, Reply, TaskFailed, TaskRuntime, TaskSession};
pub use statistics::{KindStatistics, TaskStatistics};
pub use work::{Access, MOST_WORDS, Resource, Task, Work};
