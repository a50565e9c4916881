//! What the machine at hand can do: measured once, kept in a file, and measured again when it has become another one.
//!
//! ```text
//!  somebody needs it ─▶ kept? ── yes ─────────────────────────────▶ known
//!                         └── no ─▶ a thread that gives way measures ─┘ and keeps it
//!  until then, and where nobody is allowed to measure: what is usual
//! ```
//!
//! A machine that is given (`ERIS_MACHINE`) is known from the start. Then nothing is measured.
//!
//! A [`Profile`](eris_numa::Profile) says what lies between nodes, and what a core does:
//!
//! | number | measured how |
//! |---|---|
//! | bandwidth and latency of each pair of nodes | `eris_numa::measure` |
//! | scans by kernel and width | the kernels that queries use, over packed values from memory ([`mod@scans`]) |
//! | a copy | one core, within its node |
//! | copies from each node, by engine and block | what they add to a scan ([`mod@copies`]) |
//! | a message | commands from one thread to another, through the inboxes of crate `route` |
//! | a draw from a shared sequence, by way and number of threads | crate `atomics` |
//!
//! All of it takes at most [`LONGEST`]. Numbers that were measured while somebody else had the cores say little. So a
//! measurement begins with a look at whether the cores are free, and waits until they are. If they never are, nothing
//! is known for now, and nothing is kept.
//!
//! *Must not know* tables, queries, AEUs.

#![forbid(unsafe_code)]

pub mod copies;
mod draws;
mod here;
mod kept;
mod measure;
mod messages;
pub mod scans;

pub use draws::best_way;
pub use here::Here;
pub use kept::{Identity, Kept, KeptError, processor};
pub use measure::{LONGEST, Measuring, are_free, measure, profile};
