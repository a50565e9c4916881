//! Chunks that another owner may adopt.

use super::Partition;
use eris_column::Selection;
use eris_store::{Chunk, Segment};
use eris_types::AeuId;
use std::sync::Arc;

/// A chunk that may be moved.
#[derive(Debug)]
pub(crate) struct OfferedChunk {
    /// Who has it now.
    pub owner: AeuId,
    pub chunk: Arc<Chunk>,
    /// The rows that were not deleted.
    pub living: Selection,
    /// The columns whose text is stored as it is from now on, where others may still give it codes.
    pub plain: Arc<[bool]>,
}

impl Partition {
    /// Whole chunks, so many at most, which have about `rows` rows together.
    pub fn offer(&self, rows: u64, chunks: usize) -> Vec<OfferedChunk> {
        let plain = self.dictionaries().iter().map(Option::is_none).collect();
        let plain: Arc<[bool]> = plain;
        let segments = self.segments.iter().rev();
        let all = segments.flat_map(Segment::living_chunks);
        let mut left = rows as usize;
        let mut offered = Vec::new();
        for (chunk, living) in all {
            if left == 0 || offered.len() == chunks {
                break;
            }
            // Half of it too many is as good as none.
            if living.count() < 2 * left {
                left = left.saturating_sub(living.count());
                offered.push(OfferedChunk {
                    owner: self.owner,
                    chunk,
                    living,
                    plain: plain.clone(),
                });
            }
        }
        offered
    }
}
