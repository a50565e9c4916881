//! The number under which the columns of a chunk are in a chunk file.

use std::sync::{Arc, OnceLock};

/// The number under which columns are in a chunk file, once they are. All chunks that share columns share it. Chunks
/// that are joined with others soon never get one.
#[derive(Clone, Debug, Default)]
pub struct ChunkNumber(Option<Arc<OnceLock<u64>>>);

impl ChunkNumber {
    /// Of columns that may be in a chunk file one day.
    pub(crate) fn open() -> Self {
        ChunkNumber(Some(Arc::default()))
    }

    /// The number, once there is one.
    pub fn get(&self) -> Option<u64> {
        self.0.as_ref()?.get().copied()
    }

    /// The columns are in a chunk file, or on their way. What is said first holds.
    pub fn set(&self, number: u64) {
        if let Some(slot) = &self.0 {
            let _ = slot.set(number);
        }
    }

    /// Whether columns are worth a chunk file.
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }
}
