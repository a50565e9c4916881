//! A segment as its owner shows it.

use eris_store::{Chunk, ChunkView, Segment};
use eris_types::{AeuId, SegmentId};
use std::sync::Arc;

/// A segment, its chunks frozen as of now.
pub(crate) struct SegmentView {
    pub id: SegmentId,
    pub aeu: AeuId,
    pub bytes: u64,
    /// With the number of deleted rows.
    pub chunks: Vec<(Arc<Chunk>, usize)>,
    pub sealed: usize,
}

/// A segment, its chunks frozen as a snapshot sees them.
pub(crate) struct FrozenSegment {
    pub id: SegmentId,
    pub aeu: AeuId,
    pub chunks: Vec<ChunkView>,
}

impl SegmentView {
    pub fn new(segment: &Segment, aeu: AeuId) -> Self {
        SegmentView {
            id: segment.id(),
            aeu,
            bytes: segment.statistics().bytes,
            chunks: segment.stored().collect(),
            sealed: segment.sealed_since(0).count(),
        }
    }
}
