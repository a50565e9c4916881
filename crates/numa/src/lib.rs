//! The machine under the engine: its NUMA topology, pinning, node-local memory, and what its memory can deliver.
//!
//! ```text
//! doors ─ sql ─ engine ─ route·aeu ─ exec ─ store ─ column·kernels
//! ───────────────────────────────────────────────────────────────
//!  types · telemetry · [numa: topology → places for AEUs
//!                             memory   → one manager per node, one budget
//!                             measure  → bandwidth and latency per pair of nodes
//!                             profile  → the same as a file; links → as slow as it says
//!                             copy     → another node's memory, into blocks of one's own]
//! ```
//!
//! *Topology is a value.* [`Topology::detect`] reads this machine, [`Topology::fake`] makes one up, and nothing above
//! can tell them apart but by [`Topology::is_fake`]. With `ERIS_TOPOLOGY=4x2` a laptop has four logical nodes of two
//! AEUs and every NUMA path really runs, although all memory lies on one node.
//!
//! *Memory has a home.* Each node has a memory manager, [`NodeMemory`] (ERIS paper, Section 3.1). A [`Buffer`] belongs
//! to one data object and one node; whichever thread drops it, its bytes go back to its home. It may be given
//! away in parts.
//!
//! ```text
//! allocate(bytes)
//!   ≤   8 KiB  slot in a slab (64 KiB) of its size class, through a thread-local cache
//!   ≤ 512 KiB  run of 4 KiB units in a region
//!   >          a mapping of its own
//! region   2 MiB-aligned, a multiple of 2 MiB, bound to its node; unmapped as soon as nothing in it is in use
//! ```
//!
//! What this crate must not know: tables, chunks, commands. To it a data object is a number to which bytes are
//! accounted.

mod accounts;
mod affinity;
mod atomic_buffer;
mod budget;
mod buffer;
mod buffer_parts;
mod bytes;
mod caches;
mod cgroup;
mod classes;
mod clock;
mod copy;
mod copy_block;
mod detect;
mod error;
mod fake;
mod files;
mod heap;
mod links;
mod list;
mod local;
pub mod measure;
mod measured;
mod memory;
mod node;
#[cfg_attr(miri, expect(dead_code, reason = "Miri has no such mappings"))]
mod os;
mod paced;
mod pages;
mod placement;
mod profile;
mod slabs;
mod source;
mod speeds;
mod sysfs;
mod topology;

pub use accounts::{NodeAccount, NodeReservation};
pub use affinity::{PinError, current_cpu, give_way, pin_current_thread};
pub use atomic_buffer::AtomicBuffer;
pub use budget::{Budget, Cause, OutOfMemory, Reservation};
pub use buffer::{Buffer, Plain};
pub use buffer_parts::BufferParts;
pub use bytes::{Bytes, ParseBytesError};
pub use caches::{Cache, CacheKind};
pub use clock::thread_cpu_time;
pub use copy::CopyEngine;
pub use copy_block::CopyBlock;
pub use error::{TOPOLOGY_VARIABLE, TopologyError};
pub use links::Links;
pub use memory::{Memory, MemoryError, Usage};
pub use node::NodeMemory;
pub use paced::{Arrival, PacedLink};
pub use pages::{HugePool, PageSizes, TransparentHuge};
pub use placement::{Extent, Placement};
pub use profile::{CopySpeed, Link, MACHINE_VARIABLE, Profile, ProfileError};
pub use source::HugePages;
pub use speeds::{DrawCost, ScanKernel, ScanSpeed, Speeds};
pub use topology::{AeuPlace, Node, Topology};
