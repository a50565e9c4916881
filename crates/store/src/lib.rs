//! Segments: the unit of ownership, transfer and re-coding.
//!
//! ```text
//! doors ─ sql ─ engine ─ route·aeu ─ exec ─ [store] ─ column·kernels
//! ```
//!
//! ```text
//! segment
//! ├─ chunks    sealed: 65,536 rows, every column encoded, immutable, shared by readers through `Arc`
//! ├─ tail      append buffer: committed rows that do not fill a chunk yet, in levels of growing size
//! └─ staged    rows of statements that have not committed; invisible, dropped without a trace on abort
//! ```
//!
//! A [`Segment`] belongs to one owner, which alone calls its `&mut` methods. Readers get a [`ChunkView`] per chunk: shared,
//! frozen, and bound to no latch. Versions are timestamps: a chunk knows when its rows began, a [`DeleteVector`] when they
//! ended. This crate must not know AEUs, fragments or SQL.

#![forbid(unsafe_code)]

mod chunk;
mod deletes;
mod segment;
mod staged;
mod tail;

pub use chunk::{Begin, Chunk, ChunkView};
pub use deletes::DeleteVector;
pub use segment::{Segment, SegmentStatistics};
pub use staged::{Encoder, StoreError};
pub use tail::Recoder;
