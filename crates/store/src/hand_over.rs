//! Rows that another owner of the same node gets as they are: with their columns and their ids.
//!
//! ```text
//! former owner    chunk, inserted t3, t5        deleted at T: the rows that are given
//!                   │ columns, ids: shared
//! new owner       chunk, inserted T             deleted at T: all others
//! ```
//!
//! A snapshot before T sees the given rows in the former owner's chunk, and one from T on in the new owner's. So all
//! versions tell where a row is, and no row is touched: two bitmaps per chunk are all that is made. When most of a
//! chunk is another's, garbage collection writes the rest anew, and the row ids stay.

use crate::chunk_part::{ChunkPart, KeptRows};
use crate::join::Stored;
use crate::uncommitted::UncommittedChunk;
use crate::{Chunk, ChunkNumber, InsertedRun, Segment, StoreError};
use eris_column::{ColumnChunk, Selection};
use eris_numa::Budget;
use eris_types::{RowId, StatementId, Timestamp};
use std::sync::Arc;

impl KeptRows {
    /// A chunk of these rows, which are the new owner's from `at` on.
    pub fn stored(
        self,
        columns: Vec<Arc<ColumnChunk>>,
        number: ChunkNumber,
        at: Timestamp,
        budget: &Budget,
    ) -> Stored {
        let inserted = vec![InsertedRun {
            at,
            end: self.ids.rows(),
        }];
        let mut stored = Stored::new(Chunk::sharing(columns, number, self.ids, inserted));
        if let Some((words, count)) = self.others {
            stored.deletes.push(at, words, count, budget);
        }
        stored
    }
}

impl Segment {
    /// Notes that another owner gets rows of this segment when `statement` commits. Until then nobody else deletes
    /// rows.
    ///
    /// # Errors
    /// There is no memory for what the commit will have to write down. Nothing is noted then.
    pub fn give(
        &mut self,
        statement: StatementId,
        part: ChunkPart,
        budget: &Budget,
    ) -> Result<(), StoreError> {
        let reserved = budget.try_reserve(part.bitmap_bytes())?;
        let uncommitted = self.uncommitted.entry(statement).or_default();
        uncommitted.reserved.push(reserved);
        uncommitted.given.push(part);
        Ok(())
    }

    /// Keeps rows of another owner's segment of this number for `statement`: they are this one's from its commit on.
    ///
    /// # Errors
    /// There is no memory to note which rows these are. Nothing is kept then.
    pub fn receive(
        &mut self,
        statement: StatementId,
        part: &ChunkPart,
        budget: &Budget,
    ) -> Result<(), StoreError> {
        let reserved = budget.try_reserve(part.bitmap_bytes())?;
        let others = (!part.rows.is_all()).then(|| {
            let mut others = Selection::all(part.chunk.rows());
            others.and_not(&part.rows);
            (others.words().into(), others.count())
        });
        let ids = part.chunk.shared_ids().clone();
        let uncommitted = self.uncommitted.entry(statement).or_default();
        uncommitted.reserved.push(reserved);
        uncommitted.chunks.push(UncommittedChunk {
            columns: part.chunk.columns().to_vec(),
            rows: part.chunk.rows(),
            few: false,
            first: ids.first(),
            kept: Some(KeptRows { ids, others }),
            form: None,
            number: part.chunk.number().clone(),
        });
        Ok(())
    }

    /// Rows are another owner's from `at` on; how many of them there were.
    pub(crate) fn give_up(
        &mut self,
        part: &ChunkPart,
        at: Timestamp,
        horizon: Timestamp,
        budget: &Budget,
    ) -> u64 {
        let all = self.chunks.iter_mut().chain(&mut self.append_buffer.levels);
        let is_it = |stored: &&mut Stored| Arc::ptr_eq(&stored.chunk, &part.chunk);
        let (mut deleted, mut before, mut after) = (0, 0, 0);
        let mut delete = |stored: &mut Stored, delete: &dyn Fn(&mut Stored) -> usize| {
            before += stored.deletes.bytes() as u64;
            deleted += delete(stored) as u64;
            stored.deletes.forget(horizon);
            after += stored.deletes.bytes() as u64;
        };
        match all.into_iter().find(is_it) {
            Some(stored) => delete(stored, &|stored| {
                (stored.deletes).delete_all(part.rows.words(), at, budget)
            }),
            // It was joined with others, or stored anew, since it was noted.
            None => {
                let ids = part.rows.iter_ones().map(|row| part.chunk.ids().get(row));
                let ids: Vec<RowId> = ids.collect();
                for place in self.places(&ids) {
                    delete(self.at_mut(place), &|stored| {
                        stored.delete(&ids, at, horizon, budget)
                    });
                }
            }
        }
        self.statistics.bytes = self.statistics.bytes + after - before;
        deleted
    }
}
