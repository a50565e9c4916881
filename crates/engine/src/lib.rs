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

mod ask;
mod balance;
mod build;
mod bulk;
#[cfg(test)]
mod change_simulation;
mod check;
mod client;
mod coding;
mod collect;
mod create_index;
mod dictionaries;
mod ended;
mod engine;
mod error;
mod exchange;
#[cfg(test)]
mod index_simulation;
mod indexes;
mod inspect;
mod key_index;
#[cfg(test)]
mod key_simulation;
mod keys;
mod load;
mod locate;
mod moves;
mod object;
mod owner;
mod partition;
mod partitions;
mod path;
mod pick;
mod protocol;
mod ranges;
mod recode;
mod reorganize;
mod routed;
#[cfg(test)]
mod routed_simulation;
#[cfg(test)]
mod row_simulation;
mod rows;
mod run;
mod scan;
mod scatter;
mod secondary;
mod sequencer;
mod settings;
#[cfg(test)]
mod sharing;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod simulation;
mod stage;
mod statistics;
mod stream;
#[cfg(test)]
mod together_simulation;
mod unique;
#[cfg(test)]
mod unique_simulation;
mod walk;
mod writer;

pub use balance::{Algorithm, Balanced, Balancer, Balancing};
pub use collect::HeldSnapshot;
pub use engine::Engine;
pub use eris_column::KeyOrder;
pub use error::EngineError;
pub use indexes::IndexStatistics;
pub use inspect::{
    ChunkInspection, ColumnChunkInspection, DictionaryInspection, Inspection, SegmentInspection,
};
pub use key_index::{KeyClient, KeyIndex, Moved, SegmentLoad, Shift, Shifted};
pub use locate::{Located, Part};
pub use object::Partitioning;
pub use partition::{Becomes, Compute};
pub use partitions::PartitionStatus;
pub use reorganize::{
    IndexReorganization, ReorganizationCause, ReorganizationEffect, ReorganizationState,
};
pub use rows::{Computed, Found, Keeping, KeyBounds, RowChanges, RowClient};
pub use secondary::IndexKind;
pub use settings::Settings;
pub use statistics::{ColumnStatistics, ObjectStatistics};
pub use writer::Writer;
