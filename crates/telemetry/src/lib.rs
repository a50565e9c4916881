//! What every AEU does, counted by itself and merged on reading.
//!
//! ```text
//! doors ─ sql ─ engine ─ route·aeu ─ exec ─ store ─ column·kernels
//! ───────────────────────────────────────────────────────────────
//!  types · numa · [telemetry: AEU 0 │ AEU 1 │ AEU 2 │ …   one padded block of counters each
//!                             └───────┴─ snapshot ─┘      read by anyone, at any time]
//! ```
//!
//! A counter has one writer at a time, so that counting is a load, an addition and a store on a cache line of its own:
//! no locked instruction, and no line that travels between cores unless somebody reads.
//!
//! What this crate must not know: what a command or a task does. It keeps no time and takes no samples; who counts
//! nanoseconds measures them.

#![forbid(unsafe_code)]

mod counter;
mod counters;
mod crossed;
mod snapshot;
mod work;

pub use counter::Counter;
pub use counters::{AeuCounters, Telemetry};
pub use crossed::{Amount, Crossed, TRAFFIC_KINDS};
pub use snapshot::{AeuSnapshot, Snapshot};
pub use work::{WORK_KINDS, Work, WorkCounters, WorkSnapshot};

/// Number of command ranks that are counted apart: client, scan, reply, control, in this order.
pub const RANKS: usize = 4;
