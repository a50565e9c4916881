//! The autonomous execution unit (AEU): a worker that owns partitions and executes the commands sent to it.
//!
//! ```text
//! doors ─ sql ─ engine ─ route·[AEU] ─ exec ─ store ─ column·kernels
//! ```
//!
//! After Section 3.1 of *ERIS: A NUMA-Aware In-Memory Storage Engine*. An [`Aeu`] is a state machine: [`Aeu::step`]
//! does one round of its loop, without a thread or a blocking call in it. What a command means, the [`Handler`] knows.
//!
//! ```text
//!  inbox ─► group by (object, kind) ─► Handler::execute ──┬─► outboxes ─► flush
//!                                        spawn │ resume   │
//!                                              ▼          │
//!                              task queue ─► Handler::run ┤  a bounded number of slices
//!                                            Handler::idle┘  if nothing else was to do
//! ```
//!
//! A task that *rests* between its slices is queued again in time; meanwhile the AEU may sleep, or be stepped by
//! clients.
//!
//! Three things drive AEUs: [`Runtime`] gives each a pinned thread and a run token, which a client may take to step a
//! parked AEU in place. [`Simulation`] drives many in one thread by a seeded schedule. A test may call `step` itself.
//! Clients talk to AEUs through a [`Session`].
//!
//! Short pieces of work that name what they touch are in the module [`task`], with a handler that runs them.
//!
//! # What this crate must not know
//!
//! Operators, partitions, SQL: it is generic over the handler. An AEU never blocks.
//!
//! # Example
//!
//! A handler that adds numbers, and a session that asks for a sum:
//!
//! ```
//! use eris_aeu::{AeuContext, Group, Handler, Header, Panicked, Rank, Runtime, Slice};
//! use eris_numa::Topology;
//! use eris_route::{BufferSizes, Endpoint};
//! use eris_types::{AeuId, ObjectId};
//! use std::time::Duration;
//!
//! const ADD: u16 = 1;
//! const SUM: u16 = 2;
//! const FAILED: u16 = 3;
//!
//! struct Adder;
//!
//! impl Handler for Adder {
//!     type Task = ();
//!     type Parcel = ();
//!
//!     fn execute(&mut self, _: ObjectId, _: u16, commands: Group<'_>, cx: &mut AeuContext<'_, ()>) {
//!         for command in commands {
//!             let sum: u64 = command.words.iter().sum();
//!             let header = Header { kind: SUM, rank: Rank::Reply, sender: cx.endpoint(), ..command.header };
//!             cx.send(command.header.sender, header, &[sum], None);
//!         }
//!     }
//!
//!     fn run(&mut self, _: &mut (), _: &mut AeuContext<'_, ()>) -> Slice {
//!         Slice::Done
//!     }
//!
//!     fn idle(&mut self, _: &mut AeuContext<'_, ()>) -> bool {
//!         false
//!     }
//!
//!     fn panicked(&mut self, what: Panicked<'_, ()>, _: &str, cx: &mut AeuContext<'_, ()>) {
//!         if let Panicked::Group { headers, .. } = what {
//!             for header in headers {
//!                 let failed = Header { kind: FAILED, rank: Rank::Reply, sender: cx.endpoint(), ..*header };
//!                 cx.send(header.sender, failed, &[], None);
//!             }
//!         }
//!     }
//! }
//!
//! let runtime = Runtime::start(&Topology::fake(2, 1), BufferSizes::default(), |_place| Adder)?;
//! let mut session = runtime.session()?;
//! let (object, sender) = (ObjectId(7), session.endpoint());
//! let header = Header { kind: ADD, rank: Rank::Client, object, sender, callback: 99 };
//! session.port().outgoing().send(Endpoint::aeu(AeuId(1)), header, &[20, 22], None);
//! session.flush();
//!
//! let mut replies = session.receive(Duration::from_secs(10)).expect("a reply");
//! let reply = replies.next().expect("one command");
//! assert_eq!((reply.header.kind, reply.header.callback, reply.words), (SUM, 99, &[42][..]));
//! # drop(replies);
//! # drop(session);
//! runtime.shutdown();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod aeu;
mod context;
mod group;
mod handler;
mod random;
mod runtime;
mod session;
mod simulation;
mod spin;
mod sync;
pub mod task;
mod tasks;
mod throttle;
mod token;

pub use aeu::{Aeu, Step};
pub use context::AeuContext;
pub use eris_route::{BufferSizes, Command, Header, Port, Rank};
pub use group::{Group, Headers};
pub use handler::{Handler, Panicked, Slice, Sliced};
pub use random::Random;
pub use runtime::{Runtime, StartError};
pub use session::Session;
pub use simulation::{Faults, Script, Simulation, Turn};
pub use tasks::TaskId;
