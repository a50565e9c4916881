//! Snapshots that readers hold.

use eris_types::Timestamp;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A snapshot that a reader holds: while it does, the home keeps what the snapshot shows. Clones hold the same one.
#[derive(Clone)]
pub struct HeldSnapshot {
    at: Timestamp,
    _hold: Arc<dyn Any + Send + Sync>,
}

impl HeldSnapshot {
    /// A snapshot that is held until the last clone of `hold` is dropped.
    pub fn new(at: Timestamp, hold: Arc<dyn Any + Send + Sync>) -> Self {
        HeldSnapshot { at, _hold: hold }
    }

    /// The snapshot.
    pub fn at(&self) -> Timestamp {
        self.at
    }
}

impl fmt::Debug for HeldSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeldSnapshot({})", self.at)
    }
}
