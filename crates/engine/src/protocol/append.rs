//! A statement that takes in the rows of a fragment where they are found.
//!
//! ```text
//! client ── Scan ─▶ AEU 0: claims chunks ──▶ rows fill a chunk ──▶ encoded into its own partition, uncommitted
//!    │   └─ Scan ─▶ AEU 1: the same                                        │
//!    ◀───────────────────── End, how many in the run's report ────────────┘
//!    └── Commit | Abort ─▶ both
//! ```
//!
//! Results that are as large as what they come from are written where they were made (ERIS paper, Section 3.1: an AEU
//! allocates memory of its node only). No row passes through the client.

use crate::error::EngineError;
use crate::object::data_object::DataObject;
use crate::object::statement::Statement;
use std::sync::{Arc, OnceLock};

/// Where the rows of a run go, instead of to result streams.
pub(crate) struct Append {
    /// Its rows are assigned to partitions by size.
    pub object: Arc<DataObject>,
    pub statement: Arc<Statement>,
    /// Why rows could not be written. Set before the run fails for it, and read behind that.
    failed: OnceLock<EngineError>,
}

impl Append {
    pub fn new(object: Arc<DataObject>, statement: Arc<Statement>) -> Self {
        Append {
            object,
            statement,
            failed: OnceLock::new(),
        }
    }

    /// Rows cannot be written; the first reason counts.
    pub fn fail(&self, error: EngineError) {
        let _ = self.failed.set(error);
    }

    /// Why rows could not be written, if that is so.
    pub fn failure(&self) -> Option<&EngineError> {
        self.failed.get()
    }
}
