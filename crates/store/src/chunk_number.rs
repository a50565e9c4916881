//! The number under which the columns of a chunk are in a chunk file.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// What keeps a number in use, as long as a chunk has it.
type Kept = Option<Arc<dyn Any + Send + Sync>>;

/// The number under which columns are in a chunk file, once they are. All chunks that share columns share it. Chunks
/// that are joined with others soon never get one.
#[derive(Clone, Default)]
pub struct ChunkNumber(Option<Arc<OnceLock<(u64, Kept)>>>);

impl ChunkNumber {
    /// Of columns that may be in a chunk file one day.
    pub(crate) fn open() -> Self {
        ChunkNumber(Some(Arc::default()))
    }

    /// The number, once there is one.
    pub fn get(&self) -> Option<u64> {
        let (number, _) = self.0.as_ref()?.get()?;
        Some(*number)
    }

    /// The columns are in a chunk file, or on their way. What is said first holds. `kept` is dropped with the last
    /// chunk that has the number, or at once if there is another one.
    pub fn set(&self, number: u64, kept: Kept) {
        if let Some(slot) = &self.0 {
            let _ = slot.set((number, kept));
        }
    }

    /// Whether columns are worth a chunk file.
    pub fn is_open(&self) -> bool {
        self.0.is_some()
    }
}

impl fmt::Debug for ChunkNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkNumber({:?})", self.get())
    }
}
