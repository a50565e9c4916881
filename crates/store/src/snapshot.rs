//! The chunks of an object as a snapshot sees them, whichever owners have their rows.
//!
//! ```text
//! owner 0   chunk, ids 0 … 99   sees 0 … 39 ┐
//! owner 1   chunk, ids 0 … 99   sees 60 … 99┴─▶ one chunk: columns, ids 0 … 99, not seen 40 … 59
//! ```
//!
//! Rows that were linked from one owner to another are in chunks of both, with the same columns and ids. They are
//! stored once. Who has which of them, the ranges of the object say.
//!
//! What [`Segment::restore`](crate::Segment::restore) takes is what is said here.

use crate::{Chunk, ChunkView, RowIds};
use eris_column::Selection;
use eris_types::{RowId, Timestamp};
use std::collections::HashMap;
use std::sync::Arc;

/// Chunks of which a snapshot sees rows.
#[derive(Debug, Default)]
pub struct SnapshotChunks {
    chunks: Vec<SnapshotChunk>,
    /// Where chunks are, by the ids that they share.
    places: HashMap<*const RowIds, usize>,
}

/// A chunk of which a snapshot sees some rows.
#[derive(Debug)]
pub struct SnapshotChunk {
    /// The chunk.
    pub chunk: Arc<Chunk>,
    /// The rows that it sees.
    seen: Selection,
}

impl SnapshotChunks {
    /// Adds what an owner has of a chunk at the snapshot.
    pub fn add(&mut self, view: ChunkView, snapshot: Timestamp) {
        let mut seen = Selection::all(view.chunk.rows());
        view.visible(snapshot, &mut seen);
        if seen.is_empty() {
            return;
        }
        let ids = Arc::as_ptr(view.chunk.shared_ids());
        match self.places.get(&ids) {
            Some(place) => self.chunks[*place].seen.or(&seen),
            None => {
                self.places.insert(ids, self.chunks.len());
                let chunk = view.chunk;
                self.chunks.push(SnapshotChunk { chunk, seen });
            }
        }
    }

    /// All of them, in the order of their first ids.
    pub fn into_chunks(mut self) -> impl Iterator<Item = SnapshotChunk> {
        let first = |chunk: &SnapshotChunk| chunk.chunk.ids().first();
        self.chunks.sort_by_key(first);
        self.chunks.into_iter()
    }
}

impl SnapshotChunk {
    /// The ids of all rows, ascending: the first of each run, and how many.
    pub fn ids(&self) -> Vec<(RowId, usize)> {
        let mut all: Vec<(RowId, usize)> = Vec::new();
        for (first, rows) in self.chunk.ids().runs() {
            match all.last_mut() {
                Some((before, count)) if before.plus(*count) == first => *count += rows,
                _ => all.push((first, rows)),
            }
        }
        all
    }

    /// The positions of rows that are not seen, ascending: the first of each run, and how many.
    pub fn deleted(&self) -> Vec<(usize, usize)> {
        let mut unseen = Selection::all(self.chunk.rows());
        unseen.and_not(&self.seen);
        let mut all: Vec<(usize, usize)> = Vec::new();
        for row in unseen.iter_ones() {
            match all.last_mut() {
                Some((first, count)) if *first + *count == row => *count += 1,
                _ => all.push((row, 1)),
            }
        }
        all
    }
}
