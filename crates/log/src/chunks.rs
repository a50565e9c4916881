//! Chunk files: the stored form of large chunks, written once, before the commits that refer to them.
//!
//! ```text
//! owners ── chunk 7 · chunk 9 ──▶ chunk buffer ──▶ chunk writer ──▶ chunks/000000000003.chunks     flushed every 8 MiB
//!    └───── "rows of chunk 7" ──▶ log buffer ────▶ log writer ────▶ log/000000000007.log
//!                                                  │ before a group that refers to chunks: flush them
//! ```
//!
//! A chunk has a number that no other chunk of the database ever has. The log refers to it by that number, not by its
//! place. So files can be written anew without touching what refers to them, and an old file that somebody puts back
//! has nothing that could pass for something new.
//!
//! A load writes each byte once: rows of a large chunk are in a chunk file, and not in the log. They are written while
//! the statement runs. If it fails, nothing refers to them.
//!
//! Why one file at a time, flushed in small portions, and read by its heads: docs/decisions/0036.
//!
//! | module | |
//! |---|---|
//! | `entry` | what a chunk is in a file |
//! | `file` | a file: its header, and what it has |
//! | `files` | which chunk is where, and how much of each file is in use |
//! | `writer` | writing, in the background and before a group of the log |
//! | `rewrite` | files of which little is in use are written anew |

mod entry;
mod file;
mod files;
mod rewrite;
mod writer;

pub(crate) use file::CHUNKS;

pub use entry::{ChunkInfo, chunk_bytes};
pub use files::{ChunkFileUse, ChunkFiles};
pub use rewrite::Rewrite;
pub use writer::{Chunk, ChunkBuffer, ChunkSettings, ChunkWriter, ChunksWritten, Form};
