//! Segments: the unit of ownership, transfer and re-coding.
//!
//! ```text
//! doors ─ sql ─ engine ─ route·aeu ─ exec ─ [store] ─ column·kernels
//! ```
//!
//! ```text
//! segment
//! ├─ chunks          sealed: 65,536 rows, every column encoded, immutable, shared by readers through `Arc`
//! ├─ append buffer   committed rows that do not fill a chunk yet, in levels of growing size
//! └─ uncommitted     rows of statements that have not committed; invisible, dropped without a trace on abort
//! ```
//!
//! A [`Segment`] belongs to one owner, which alone calls its `&mut` methods. Readers get a [`ChunkView`] per chunk:
//! shared, frozen, and bound to no latch. Versions are timestamps: a chunk knows when its rows were inserted, a
//! [`DeleteVector`] when they were deleted. A row keeps its [id](RowIds) wherever it is moved to. Rows that no snapshot
//! in use can see are left out whenever chunks are joined, and by a [`Rewrite`] of those that have lost most of theirs.
//! This crate must not know AEUs, fragments or SQL.

#![forbid(unsafe_code)]

mod adoption;
mod append_buffer;
mod chunk;
mod chunk_number;
mod chunk_part;
mod deletes;
mod extents;
mod hand_over;
mod join;
mod replay;
mod rewrite;
mod row_ids;
mod segment;
mod selected;
mod snapshot;
mod uncommitted;

pub use adoption::Adoption;
pub use chunk::{Chunk, ChunkView, InsertedRun};
pub use chunk_number::ChunkNumber;
pub use chunk_part::ChunkPart;
pub use deletes::{DeleteVector, DeletedRows};
pub use join::Recoder;
pub use replay::{CommittedRows, NewForms, ReadColumns, RestoredRows, StoredIn, StoredRows};
pub use rewrite::Rewrite;
pub use row_ids::RowIds;
pub use segment::{Committed, Segment, SegmentStatistics};
pub use snapshot::{SnapshotChunk, SnapshotChunks};
pub use uncommitted::{Encoder, StoreError};
