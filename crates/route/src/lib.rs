//! The routing layer: how data commands travel between AEUs and client sessions.
//!
//! ```text
//! doors ─ sql ─ engine ─ [ROUTE]·aeu ─ exec ─ store ─ column·kernels
//! ```
//!
//! After Section 3.2 of *ERIS: A NUMA-Aware In-Memory Storage Engine*. Every endpoint (an AEU or a session) has one
//! [`Port`]. Sending writes into private buffers, one per target. A flush copies a whole buffer into the target's inbox
//! with one reservation. So the cost of an atomic operation and of the distance is paid per buffer, not per command.
//!
//! ```text
//!            sender's port                                     target's port
//!  send ──► unicast buffer per target ──────────┐
//!  multicast ─► one multicast buffer            │ flush      ┌─ inbox: two buffers ─┐
//!          └─► reference buffer per target ─────┴──────────► │ writable │ processed │ ──► receive
//!                                                   one CAS  └──────────┴───────────┘
//! ```
//!
//! Which AEU a command belongs to is answered by the partition tables: [`RangeTable`] for objects with a
//! partitioning key, [`AeuSet`] for objects without one. The one that owners publish is a [`SharedAeuSet`].
//!
//! # Back-pressure that cannot form a cycle
//!
//! Every command has a [`Rank`]: `Client < Scan < Reply < Control`. The rules, each checked where it can be:
//!
//! 1. Work done on behalf of a command of rank *r* sends only commands of rank *r* or above (asserted in debug builds
//!    by the AEU's context).
//! 2. Work of rank *r* may be put off only because commands of a rank **strictly above** *r* found no room. Equal
//!    rank is never waited for: such a command is kept by its sender, who goes on. So a handler answers one command
//!    with at most a constant number of equal rank (it forwards, it does not multiply).
//! 3. An inbox admits `Client` up to 50 % of its buffer, `Scan` 75 %, `Reply` 90 %, `Control` 100 %, so a lower rank
//!    cannot take the last room of a higher one. An AEU that puts off rank *r* tells senders to keep *r* and below
//!    ([`Port::admit_from`]), which carries the pressure back to the sessions.
//! 4. What is held for a *session* puts nobody's work off; it is bounded by the credits of the result stream.
//!
//! A chain of waits therefore climbs strictly in rank, ends at `Control`, which never waits, and is no cycle.
//!
//! # What this crate must not know
//!
//! What a command means, what a data object is, threads, time, and who executes anything.

mod command;
mod doorbell;
mod endpoint;
mod error;
mod inbox;
mod incoming;
mod multicast;
mod outgoing;
mod port;
mod range;
mod rank_buffer;
mod router;
mod set;
mod stretch;
mod sync;
mod wire;

#[cfg(all(test, loom))]
mod model;
#[cfg(all(test, not(loom)))]
mod tests;

pub use command::{Command, Header, OwnedCommand, Rank};
pub use doorbell::Bell;
pub use endpoint::Endpoint;
pub use error::{RangeError, RouteError};
pub use incoming::{Incoming, Received};
pub use outgoing::{FlushState, Outgoing, Traffic};
pub use port::Port;
pub use range::{RangeTable, Split};
pub use router::{BufferSizes, Router};
pub use set::{AeuSet, SharedAeuSet};
pub use stretch::{Piece, Stretch};
