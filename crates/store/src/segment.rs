//! The segment and its life: stage, commit or abort, view.

use crate::staged::{Staged, StagedChunk};
use crate::tail::Tail;
use crate::{Begin, Chunk, ChunkView, DeleteVector, Encoder, StoreError};
use eris_column::{Dictionary, Home};
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
}

/// What a segment holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentStatistics {
    /// Committed rows.
    pub rows: u64,
    /// Their bytes, append buffer included.
    pub bytes: u64,
    /// The newest commit among them.
    pub newest: Timestamp,
}

impl Segment {
    /// An empty segment.
    pub fn new(id: SegmentId) -> Self {
        Segment {
            id,
            chunks: Vec::new(),
            tail: Tail::default(),
            staged: HashMap::new(),
        }
    }

    /// Its identity.
    pub fn id(&self) -> SegmentId {
        self.id
    }

    /// The number of sealed chunks.
    pub fn sealed_chunks(&self) -> usize {
        self.chunks.len()
    }

    /// Keeps the encoded rows for `statement`, invisible until its commit.
    ///
    /// # Panics
    /// If the encoder is not done.
    pub fn stage(&mut self, statement: StatementId, rows: Encoder) {
        assert!(rows.is_done());
        let (batch, columns) = rows.into_parts();
        let staged = self.staged.entry(statement).or_default();
        if columns.is_empty() {
            staged.rest.push(batch);
        } else {
            let rows = batch.num_rows();
            staged.chunks.push(StagedChunk { columns, rows });
        }
    }

    /// Makes the statement's rows visible to snapshots from `at` on. Cannot fail; returns the number of rows.
    pub fn commit(&mut self, statement: StatementId, at: Timestamp) -> u64 {
        let Some(staged) = self.staged.remove(&statement) else {
            return 0;
        };
        let mut committed = 0;
        for StagedChunk { columns, rows } in staged.chunks {
            committed += rows as u64;
            let begins = vec![Begin { at, end: rows }];
            self.chunks.push(ChunkView {
                chunk: Arc::new(Chunk::new(columns, rows, begins)),
                deletes: None,
            });
        }
        for batch in staged.rest {
            committed += batch.num_rows() as u64;
            self.tail.push(at, batch);
        }
        committed
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

    /// Encodes the append buffer as far as it is not: fills chunks, then the tail's levels. Readers need it, and
    /// writers of many rows call it after their commit. On error no row is lost and readers before are unaffected.
    pub fn settle(
        &mut self,
        dictionaries: &[Option<Dictionary>],
        home: Home<'_>,
    ) -> Result<(), StoreError> {
        while let Some(chunk) = self.tail.seal(dictionaries, home)? {
            self.chunks.push(ChunkView {
                chunk,
                deletes: None,
            });
        }
        self.tail.settle(dictionaries, home)
    }

    /// Every chunk with committed rows, the append buffer's included, frozen as of now.
    pub fn view(
        &mut self,
        dictionaries: &[Option<Dictionary>],
        home: Home<'_>,
    ) -> Result<Vec<ChunkView>, StoreError> {
        self.settle(dictionaries, home)?;
        let mut views = self.chunks.clone();
        views.extend(self.tail.chunks().0.map(|chunk| ChunkView {
            chunk: chunk.clone(),
            deletes: None,
        }));
        Ok(views)
    }

    /// The sealed chunks from the `first` on, for statistics that are kept up to date step by step.
    pub fn sealed_since(&self, first: usize) -> impl Iterator<Item = &Chunk> {
        self.chunks[first..].iter().map(|view| view.chunk.as_ref())
    }

    /// The chunks of the append buffer that are encoded, and whether these are all of it.
    pub fn tail_chunks(&self) -> (impl Iterator<Item = &Chunk>, bool) {
        let (chunks, complete) = self.tail.chunks();
        (chunks.map(Arc::as_ref), complete)
    }

    /// What it holds. Deleted rows count until their chunk is rewritten.
    pub fn statistics(&self) -> SegmentStatistics {
        let mut statistics = SegmentStatistics {
            rows: self.tail.rows() as u64,
            bytes: self.tail.bytes() as u64,
            newest: self.tail.newest(),
        };
        for ChunkView { chunk, .. } in &self.chunks {
            statistics.rows += chunk.rows() as u64;
            statistics.bytes += chunk.bytes() as u64;
            statistics.newest = statistics.newest.max(chunk.newest());
        }
        statistics
    }
}
