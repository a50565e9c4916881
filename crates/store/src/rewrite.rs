//! Getting rid of garbage in sealed chunks, one column at a time, so that the owner can do other work in between.
//!
//! ```text
//! chunks   ┌ 65,536, 60,000 dead ┐┌ 65,536, 40,000 dead ┐┌ 65,536 ┐
//!          └───────────┬─────────┘└──────────┬──────────┘└────────┘
//!                      └───── 31,072 ────────┘
//! ```
//!
//! The rows that are alive when it begins make a new chunk, and readers who hold the old ones finish with these. Rows
//! that are deleted meanwhile are deleted in the new chunk, too.

use crate::join::{Recoder, Stored, assemble};
use crate::{Chunk, StoreError};
use eris_column::{CHUNK_ROWS, ColumnChunk, Selection};
use eris_numa::Budget;
use eris_types::{SegmentId, Timestamp};
use std::sync::Arc;

/// A rewriting of some neighbouring chunks of a segment that has begun.
#[derive(Debug)]
pub struct Rewrite {
    segment: SegmentId,
    pieces: Vec<(Arc<Chunk>, Selection)>,
    columns: Vec<ColumnChunk>,
    /// The rows that are left out were dead to every snapshot from here on.
    horizon: Timestamp,
}

impl Rewrite {
    /// Neighbouring chunks that are worth it, if there are any: one that is mostly dead, and after it others that are,
    /// or that are small, as long as all fit into one chunk.
    pub(crate) fn find(segment: SegmentId, chunks: &[Stored], horizon: Timestamp) -> Option<Self> {
        let first = (chunks.iter()).position(|stored| stored.is_mostly_dead(horizon))?;
        let (mut end, mut rows) = (first, 0);
        while let Some(next) = chunks.get(end) {
            let small = next.living(horizon) * 2 <= CHUNK_ROWS;
            let ascending =
                end == first || chunks[end - 1].chunk.ids().last() < next.chunk.ids().first();
            rows += next.living(horizon);
            if !(small && ascending && rows <= CHUNK_ROWS) {
                break;
            }
            end += 1;
        }
        let pieces = chunks[first..end.max(first + 1)].iter().map(|stored| {
            let all = 0..stored.chunk.rows();
            (stored.chunk.clone(), stored.living_rows(all, horizon))
        });
        Some(Rewrite {
            segment,
            pieces: pieces.collect(),
            columns: Vec::new(),
            horizon,
        })
    }

    /// The segment whose chunks they are.
    pub fn segment(&self) -> SegmentId {
        self.segment
    }

    fn is_empty(&self) -> bool {
        self.pieces.iter().all(|(_, rows)| rows.is_empty())
    }

    /// Whether nothing is left to encode.
    pub fn is_done(&self) -> bool {
        let columns = self.pieces[0].0.columns().len();
        self.is_empty() || self.columns.len() == columns
    }

    /// Encodes the next column.
    pub fn step(&mut self, recoder: Recoder<'_>) -> Result<(), StoreError> {
        let pieces = self.pieces.iter().filter(|(_, rows)| !rows.is_empty());
        let pieces: Vec<_> = pieces.map(|(chunk, rows)| (&**chunk, rows)).collect();
        let column = recoder.recode(&pieces, self.columns.len())?;
        self.columns.push(column);
        Ok(())
    }

    /// Puts the new chunk in the place of the old ones, if they are all still there.
    pub(crate) fn finish(self, chunks: &mut Vec<Stored>, budget: &Budget) {
        let same = |stored: &Stored| Arc::ptr_eq(&stored.chunk, &self.pieces[0].0);
        let Some(first) = chunks.iter().position(same) else {
            return;
        };
        let end = first + self.pieces.len();
        let all_there = chunks.len() >= end
            && (chunks[first..end].iter().zip(&self.pieces))
                .all(|(stored, (chunk, _))| Arc::ptr_eq(&stored.chunk, chunk));
        if !all_there {
            return;
        }
        let joined = (!self.is_empty()).then(|| {
            let pieces = chunks[first..end].iter().zip(self.pieces);
            let pieces: Vec<_> = pieces.map(|(stored, (_, rows))| (stored, rows)).collect();
            assemble(&pieces, self.columns, self.horizon, budget)
        });
        chunks.splice(first..end, joined);
    }
}
