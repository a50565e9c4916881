//! All that a durable database does with files, behind two small traits: [`Disk`] and [`File`].
//!
//! ```text
//!  a durable database ── Disk: names, directories, the lock ── RealDisk       a directory
//!                        File: bytes, length, flush         └─ SimulatedDisk  memory that forgets what was not flushed
//! ```
//!
//! # When something is durable
//!
//! ```text
//!  create, rename, remove ─▶ seen by all ─ flush_directory ─▶ the name is durable
//!  write, set_len         ─▶ seen by all ─ flush           ─▶ bytes and length are durable
//! ```
//!
//! Both are needed, and a rename comes last: a new file is written, flushed, renamed to its name, and its directory is
//! flushed. Then there is the old file or the new one at any time, and in the end the new one.
//!
//! # When a flush fails
//!
//! Linux tells the error once, takes the pages for clean, and a second flush succeeds. What was written may be nowhere.
//! So nobody may try again ([`Reason::FlushFailed`]). Whether the bytes are there is known after the next start.
//!
//! # Errors
//!
//! A [`DiskError`] names the operation, the whole path, the bytes and their place, and the reason. A [`Reason`] that
//! callers act on is a kind of its own: a disk that is full, a lock that is held, a name that is taken or not there.
//!
//! *Must not know* what is in a file.

#![forbid(unsafe_code)]

mod error;
mod interface;
mod path;
mod real;
mod simulated;
mod whole;

pub use error::{DiskError, Extent, Holder, Operation, Reason};
pub use interface::{Access, Disk, Entry, EntryKind, File, HeldLock, Lock};
pub use real::RealDisk;
pub use simulated::{Counts, Fault, SimulatedDisk};
