//! Indexes of one owner: from keys to 64-bit values, ordered ([`Art`]) or hashed ([`HashIndex`]).
//!
//! ```text
//! doors ─ sql ─ engine ─ route·aeu ─ exec ─ store ─ column·kernels
//!                                             │
//!                                          [index: key → value, ordered or hashed; batches]
//! ──────────────────────────────────────────────────────────────
//!  types · telemetry · numa
//! ```
//!
//! *One owner.* Who writes has `&mut`, who reads has `&`; there is no latch, no version and no atomic. An index owns
//! all of its memory and holds no pointers into it, so that it is handed to another owner by moving it.
//!
//! *Batches.* A lookup in a large index is a chain of cache misses. Every operation therefore also comes for many keys
//! at once (`…_many`), and then the misses of different keys overlap: this is what a group of commands at an AEU is
//! for.
//!
//! *Memory with a home.* Nodes lie in huge-page slabs of the node's memory manager and are accounted to a data object.
//! Being denied memory is an error that leaves the index as it was.
//!
//! *Keys* of more than a number are strings of bytes that sort as SQL does: [`key`] makes them.
//!
//! What this crate must not know: tables, rows, versions. To it a value is 64 bits.
//!
//! Why 32-bit references, and a hash table of our own: docs/decisions/0011.

mod art;
mod hash;
pub mod key;
pub mod model;
mod prefetch;
mod slabs;

pub use art::{Art, Build, Key, MAX_KEY, NodeClass, Range, Reorganization, Samples, Visit};
pub use hash::HashIndex;
pub use slabs::Footprint;

use eris_numa::OutOfMemory;

/// An index cannot take what it was given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// The node or the budget has no memory left.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// Its nodes cannot be numbered any more: beyond some hundred millions of keys.
    #[error("the index cannot have more keys at one owner; spread them over more")]
    Full,
    /// A key is longer than [`MAX_KEY`].
    #[error("a key of {0} bytes is too long for an index; at most {MAX_KEY} are possible")]
    KeyTooLong(usize),
    /// A key to build from is not greater than the one before it.
    #[error("the keys of a new index do not ascend")]
    OutOfOrder,
}

/// A batch stopped at an entry that was rejected; the entries before it are in the index.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("entry {done} of a batch: {error}")]
pub struct BatchError {
    /// How many entries are in the index: the number of the one that was rejected.
    pub done: usize,
    /// Why it was rejected.
    #[source]
    pub error: IndexError,
}

/// Bytes of a cache line.
const LINE: usize = 64;
