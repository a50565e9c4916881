//! What a durable engine says to its log, and who flushes it.
//!
//! ```text
//! AEU 0 ── rows that a commit adds and deletes ──▶ log buffer ┐
//! AEU 1 ── strings that a dictionary has got ────▶ log buffer ├─▶ log thread ── groups ──▶ disk
//! clients ─ objects, ranges, definitions ────────▶ log buffer ┘       └─▶ sequencer: durable up to t10
//! ```
//!
//! All that is said is a [record](records). Room for it was reserved before, so that a commit cannot fail. What belongs
//! to no commit, such as new strings, is said before any commit that builds on it. So it is in the same group, or an
//! earlier one.
//!
//! Rows are stored as they were encoded. What an owner does between commits is not said: merging, garbage collection,
//! key orders, indexes. It follows from the rows.

mod chunks;
mod log;
mod log_thread;
pub(crate) mod records;
mod requests;
mod state;

pub(crate) use chunks::{Chunks, UncommittedChunk};
pub(crate) use log::{Denied, Log};
pub(crate) use log_thread::{Flusher, LogThread};
pub(crate) use requests::Requests;
pub(crate) use state::Durability;

use crate::error::EngineError;
use eris_log::LogError;

/// Why a database cannot be opened.
pub(crate) fn open_error(error: &LogError) -> EngineError {
    EngineError::Open(error.to_string())
}
