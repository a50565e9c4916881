//! The log: what commits have done, in their order, on a disk. And chunk files, which have the large chunks that it
//! refers to.
//!
//! ```text
//! engine ─[log]─ disk
//!
//! owners ── records ──▶ log buffers ──▶ log writer ── groups ──▶ log/000000000007.log
//!   │                   one per owner    one │          │
//!   │                                        │          └─ flushed: durable up to t10
//!   └─ large chunks ──▶ chunk buffer ──▶ chunk writer ─────────▶ chunks/000000000003.chunks
//! ```
//!
//! An owner appends what a commit does to a buffer of its own, without a latch, before the commit counts as complete.
//! The [`LogWriter`] gathers the buffers into groups. A group ends at a timestamp up to which all commits are
//! complete everywhere. So a statement over many owners and objects is in the log whole or not at all, and whoever
//! reads a log to any of its groups has the database as it was at that moment. (SiloR has epochs for that; timestamps
//! without gaps are epochs of one commit.)
//!
//! [`Room`] on the disk is reserved when rows are written. So a commit cannot fail for want of it.
//!
//! The [`ChunkWriter`] writes the stored forms of large chunks while statements run. The log writer has those flushed
//! that a group refers to, before it writes the group.
//!
//! What this crate must not know: what records and stored forms say.

#![forbid(unsafe_code)]

mod buffers;
mod bytes;
mod chunks;
mod directory;
mod ends;
mod error;
mod file;
mod group;
mod groups;
mod header;
mod next_file;
mod place;
mod reader;
mod room;
mod snapshot;
mod writer;

pub use buffers::{Entry, LogBuffer};
pub use bytes::{BadBytes, Bytes, put_bytes, put_number};
pub use chunks::{
    Chunk, ChunkBuffer, ChunkFileUse, ChunkFiles, ChunkInfo, ChunkSettings, ChunkWriter,
    ChunksWritten, Form, Rewrite, chunk_bytes,
};
pub use directory::{
    BallastInUse, Checked, Counted, Directory, Finding, ListedFile, ListedKind, Look, Manifest,
    OpenDatabase, OpenDirectory, Part, Remains, check,
};
pub use ends::{LastGroup, LogEnd, LogStart};
pub use error::LogError;
pub use group::{Group, Origin, Record};
pub use header::FORMAT;
pub use next_file::{LogFiles, NextFile};
pub use place::{DatabaseId, Place};
pub use reader::{Cut, LogRead, read_log};
pub use room::{NoRoom, Purpose, ReservedRoom, Room};
pub use snapshot::{SnapshotStart, SnapshotWriter, read_snapshot};
pub use writer::{LogSettings, LogWriter, RECORD_BYTES, Written};
