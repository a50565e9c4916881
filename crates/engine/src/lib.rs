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
//!   SCAN to the participants ── router ── STAGE to an owner, COMMIT to all
//!        │                                         │
//!   ┌────▼─────────────────────────────────────────▼────┐
//!   │ Owner, one per AEU: partitions, dictionaries, tasks│
//!   └────┬───────────────────────────────────────────────┘
//!        ▼ BATCH… END
//!   lanes: streams with credits
//! ```
//!
//! It composes what is below it: a [`Partition`](partition) is a list of segments, a fragment becomes tasks that take turns,
//! a write is staged and then made visible by the sequencer. It must not know SQL or where fragments come from.

#![forbid(unsafe_code)]

mod balance;
mod clients;
mod error;
mod held;
mod key_index;
mod object;
mod protocol;
mod sequencer;
mod settings;
#[cfg(test)]
mod simulations;
mod tasks;

pub use balance::{Algorithm, Balanced, Balancer, Balancing};
pub use clients::engine::Engine;
pub use clients::inspect::{
    ChunkInspection, ColumnChunkInspection, DictionaryInspection, Inspection, SegmentInspection,
};
pub use clients::locate::{Located, Part};
pub use clients::partitions::PartitionStatus;
pub use clients::rows::{Computed, Found, Keeping, KeyBounds, RowChanges, RowClient};
pub use clients::writer::Writer;
pub use eris_column::KeyOrder;
pub use error::EngineError;
pub use held::partition::{Becomes, Compute};
pub use held::secondary::IndexKind;
pub use key_index::{KeyClient, KeyIndex, Moved, SegmentLoad, Shift, Shifted};
pub use object::data_object::Partitioning;
pub use object::indexes::IndexStatistics;
pub use object::statistics::{ColumnStatistics, ObjectStatistics};
pub use settings::Settings;
pub use tasks::collect::HeldSnapshot;
pub use tasks::reorganize::{
    IndexReorganization, ReorganizationCause, ReorganizationEffect, ReorganizationState,
};
