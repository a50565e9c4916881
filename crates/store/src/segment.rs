//! The segment and its life: stage, commit or abort, view.

use crate::staged::{Staged, StagedChunk};
use crate::tail::Tail;
use crate::{Begin, Chunk, ChunkView, DeleteVector, Encoder, Recoder, StoreError};
use eris_types::{SegmentId, StatementId, Timestamp};
use std::collections::HashMap;
use std::sync::Arc;

/// A disjoint part of a partition's rows, with everything that moves along when it gets another owner.
#[derive(Debug)]
pub struct Segment {
    id: SegmentId,
    chunks: Vec<ChunkView>,
    tail: Tail,
    staged: HashMap<StatementId, Staged>,
    /// The statistics of `chunks`, kept up to date.
    sealed: SegmentStatistics,
}

/// What a segment holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentStatistics {
    /// Committed rows. Deleted ones count until their chunk is rewritten.
    pub rows: u64,
    /// Their bytes, append buffer included.
    pub bytes: u64,
    /// The newest commit among them.
    pub newest: Timestamp,
}

impl SegmentStatistics {
    fn add(&mut self, chunk: &Chunk) {
        self.rows += chunk.rows() as u64;
        self.bytes += chunk.bytes() as u64;
        self.newest = self.newest.max(chunk.newest());
    }
}

impl Segment {
    /// An empty segment.
    pub fn new(id: SegmentId) -> Self {
        Segment {
            id,
            chunks: Vec::new(),
            tail: Tail::default(),
            staged: HashMap::new(),
            sealed: SegmentStatistics::default(),
        }
    }

    /// Its identity.
    pub fn id(&self) -> SegmentId {
        self.id
    }

    /// The number of chunks, those included that have not committed; the append buffer is none.
    pub fn chunks(&self) -> usize {
        let staged = self.staged.values().map(|staged| staged.chunks.len());
        self.chunks.len() + staged.sum::<usize>()
    }

    /// Keeps the encoded rows for `statement`, invisible until its commit.
    ///
    /// # Panics
    /// If the encoder is not done.
    pub fn stage(&mut self, statement: StatementId, rows: Encoder) {
        assert!(rows.is_done());
        let staged = self.staged.entry(statement).or_default();
        staged.chunks.push(rows.finish());
    }

    /// Makes the statement's rows visible to snapshots from `at` on. Cannot fail; returns the number of rows.
    pub fn commit(&mut self, statement: StatementId, at: Timestamp) -> u64 {
        let Some(staged) = self.staged.remove(&statement) else {
            return 0;
        };
        let mut committed = 0;
        for StagedChunk { columns, rows, few } in staged.chunks {
            committed += rows as u64;
            match few {
                true => self.tail.push(at, columns, rows),
                false => {
                    let begins = vec![Begin { at, end: rows }];
                    self.push(Arc::new(Chunk::new(columns, rows, begins)));
                }
            }
        }
        committed
    }

    fn push(&mut self, chunk: Arc<Chunk>) {
        self.sealed.add(&chunk);
        self.chunks.push(ChunkView {
            chunk,
            deletes: None,
        });
    }

    /// Forgets what the statement has staged.
    pub fn abort(&mut self, statement: StatementId) {
        self.staged.remove(&statement);
    }

    /// Marks rows of a sealed chunk as deleted from `at` on.
    ///
    /// # Panics
    /// If there is no such chunk or row, or the chunk has deletions newer than `at`.
    pub fn delete(&mut self, chunk: usize, rows: &[usize], at: Timestamp) {
        let view = &mut self.chunks[chunk];
        let older = view.deletes.take();
        let chunk_rows = view.chunk.rows();
        view.deletes = Some(DeleteVector::after(older, chunk_rows, rows, at));
    }

    /// Whether the append buffer has become so long or so ragged that its owner should settle it.
    pub fn is_unsettled(&self) -> bool {
        self.tail.is_ragged() || self.tail.rows() >= eris_column::CHUNK_ROWS
    }

    /// Makes the append buffer into full chunks and few levels. On error, which is a want of memory, all rows stay where
    /// they are and can be read.
    pub fn settle(&mut self, recoder: Recoder<'_>) -> Result<(), StoreError> {
        while let Some(chunk) = self.tail.seal(recoder)? {
            self.push(chunk);
        }
        self.tail.join(recoder)
    }

    /// Every chunk with committed rows, the append buffer's included, frozen as of now.
    pub fn view(&self) -> impl Iterator<Item = ChunkView> + '_ {
        let tail = self.tail.chunks().map(|chunk| ChunkView {
            chunk: chunk.clone(),
            deletes: None,
        });
        self.chunks.iter().cloned().chain(tail)
    }

    /// The sealed chunks from the `first` on, for statistics that are kept up to date step by step.
    pub fn sealed_since(&self, first: usize) -> impl Iterator<Item = &Chunk> {
        self.chunks[first..].iter().map(|view| view.chunk.as_ref())
    }

    /// The chunks of the append buffer.
    pub fn tail_chunks(&self) -> impl Iterator<Item = &Chunk> {
        self.tail.chunks().map(Arc::as_ref)
    }

    /// What it holds.
    pub fn statistics(&self) -> SegmentStatistics {
        let mut statistics = self.sealed;
        for chunk in self.tail_chunks() {
            statistics.add(chunk);
        }
        statistics
    }
}
