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
//! A database that is open for reading only has no log, and so no log buffers: what was read is as in memory.
//!
//! Rows are stored as they were encoded. What an owner does between commits is not said: merging, garbage collection,
//! key orders, indexes. It follows from the rows.

mod chunks;
mod flushes;
mod log;
mod log_thread;
pub(crate) mod records;
mod requests;
mod state;
mod status;

pub(crate) use chunks::Chunks;
pub(crate) use log::{Denied, Log};
pub(crate) use log_thread::{Flusher, LogThread};
pub(crate) use requests::Requests;
pub(crate) use state::{Durability, Open, OpenLog, OpenToRead};

use crate::error::EngineError;
use crate::settings::Synchronous;
use eris_disk::{DiskError, Reason};
use eris_log::{ChunkSettings, DatabaseId, LogError, LogSettings};
use std::hash::{BuildHasher, RandomState};
use std::num::NonZero;
use std::thread::available_parallelism;

/// How a database is written and read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StorageSettings {
    /// When commits are durable. `None`: as the database has it.
    pub synchronous: Option<Synchronous>,
    pub log: LogSettings,
    pub chunks: ChunkSettings,
    /// So many bytes of the log are worth a checkpoint.
    pub checkpoint_bytes: u64,
    /// So many threads recover.
    pub threads: usize,
}

impl StorageSettings {
    /// As is best on this machine.
    pub fn of_machine(synchronous: Option<Synchronous>) -> Self {
        StorageSettings {
            synchronous,
            log: LogSettings::default(),
            chunks: ChunkSettings::default(),
            checkpoint_bytes: 256 << 20,
            threads: available_parallelism().map_or(1, NonZero::get),
        }
    }
}

/// Why there is no checkpoint.
pub(crate) fn checkpoint_error(error: &LogError) -> EngineError {
    match error {
        LogError::Disk(DiskError {
            reason: Reason::Full { asked, .. },
            path,
            ..
        }) => EngineError::DiskFull {
            table: "a snapshot".to_owned(),
            bytes: *asked,
            directory: path.display().to_string(),
        },
        _ => EngineError::Checkpoint {
            reason: error.to_string(),
        },
    }
}

/// Why a database cannot be opened.
pub(crate) fn open_error(error: &LogError) -> EngineError {
    EngineError::Open(error.to_string())
}

/// The identity of a new database: no two have the same, by all chance.
pub(crate) fn any_database() -> DatabaseId {
    // Each has keys from the system's source of randomness.
    let any = || {
        RandomState::new()
            .hash_one(std::process::id())
            .to_le_bytes()
    };
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&any());
    bytes[8..].copy_from_slice(&any());
    DatabaseId(bytes)
}
