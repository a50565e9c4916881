//! The engine: data objects, snapshots, writes and fragments over AEUs.
//!
//! ```text
//! doors ─ sql ─[engine]─ route·aeu ─ exec ─ store ─ column·kernels
//! ```
//!
//! ```text
//!   Engine::execute(fragment)                 Engine::writer(object)
//!        │ compiles, one run                       │ collects chunks
//!        ▼                                         ▼
//!   Scan to the participants ── router ── Insert to an owner, Commit to all
//!        │                                         │
//!   ┌────▼─────────────────────────────────────────▼────┐
//!   │ Owner, one per AEU: partitions, dictionaries, tasks│
//!   └────┬───────────────────────────────────────────────┘
//!        ▼ Batch… End
//!   result streams, with credits
//! ```
//!
//! It composes what is below it. A partition is a list of segments. A fragment becomes tasks, whose slices take turns.
//! Rows are written as uncommitted, and the sequencer makes them visible. It must not know SQL or where fragments come
//! from.

#![forbid(unsafe_code)]

mod balance;
mod clients;
mod durability;
mod error;
mod held;
mod home;
mod key_index;
mod object;
mod protocol;
mod recovery;
mod remote;
mod sequencer;
mod settings;
#[cfg(test)]
mod simulations;
mod tasks;

pub use balance::Balancer;
pub use clients::columns::{Column, ColumnError, ColumnPosition, ColumnSnapshot};
pub use clients::engine::Engine;
pub use clients::key_index::{KeyClient, KeyIndex, Shifted};
pub use clients::rows::{Keeping, RowChanges, RowClient};
pub use clients::writer::Writer;
pub use eris_column::KeyOrder;
pub use eris_home::{
    Algorithm, Appending, Balanced, Balancing, Becomes, ChunkInspection, ColumnChunkInspection,
    ColumnStatistics, Compute, Computed, DictionaryInspection, Found, HeldSnapshot, IndexKind,
    IndexReorganization, IndexStatistics, Inspection, KeyBounds, Moved, ObjectStatistics,
    PartitionStatus, Partitioning, ReorganizationCause, ReorganizationEffect, ReorganizationState,
    SegmentInspection, StoredPart,
};
pub use eris_log::Counted;
pub use error::EngineError;
pub use held::located::Located;
pub use key_index::measure::SegmentLoad;
pub use key_index::shift::Shift;
pub use recovery::{DatabaseCheck, DatabaseFinding, DatabaseSalvage, LostRows, check_database};
pub use settings::{DatabaseSettings, Settings, Synchronous};
