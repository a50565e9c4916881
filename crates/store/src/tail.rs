//! The append buffer: committed rows that do not fill a chunk yet.
//!
//! ```text
//! levels   ┌──────────── 40,000 ────────────┐┌── 9,000 ──┐┌ 700 ┐┌ 3 ┐┌ 1 ┐
//! each              chunk                        chunk      chunk  chunk …     encoded when it was staged or joined
//! ```
//!
//! A reader sees a chunk per level, so there must be few; a writer of single rows must not encode the buffer again and again.
//! So levels are joined now and then, by a reader or by the writer of every thirty-second level: a level with its right
//! neighbour, when that one has grown to at least half its size. Every row is encoded about log₂ n times, and about log₂ n
//! levels are left. Joining needs memory; without it, levels stay as they are and nothing is lost.

use crate::staged::{compact, encode};
use crate::{Begin, Chunk, StoreError};
use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use eris_column::{CHUNK_ROWS, ColumnChunk, Dictionary, Home};
use eris_types::Timestamp;
use std::sync::Arc;

/// So many levels without a reader are joined by the writer.
const LEVELS: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Tail {
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    rows: Rows,
    chunk: Arc<Chunk>,
}

/// Rows as they came, with their commits.
#[derive(Clone, Debug, Default)]
struct Rows {
    batches: Vec<(Timestamp, RecordBatch)>,
    count: usize,
}

impl Tail {
    /// Adds rows of one commit, as they came and encoded.
    pub fn push(&mut self, at: Timestamp, batch: RecordBatch, columns: Vec<ColumnChunk>) {
        let count = batch.num_rows();
        let begins = vec![Begin { at, end: count }];
        self.levels.push(Level {
            chunk: Arc::new(Chunk::new(columns, count, begins)),
            rows: Rows {
                batches: vec![(at, batch)],
                count,
            },
        });
    }

    pub fn rows(&self) -> usize {
        self.levels.iter().map(|level| level.rows.count).sum()
    }

    /// Bytes of the rows as they came, which are kept beside the chunks.
    pub fn buffered_bytes(&self) -> usize {
        self.levels.iter().map(|level| level.rows.bytes()).sum()
    }

    /// A chunk per level.
    pub fn chunks(&self) -> impl Iterator<Item = &Arc<Chunk>> {
        self.levels.iter().map(|level| &level.chunk)
    }

    /// Whether so many levels have come up that it is time to join them.
    pub fn is_ragged(&self) -> bool {
        self.levels.len() >= LEVELS
    }

    /// Joins levels. On error they stay as they are.
    pub fn join(
        &mut self,
        dictionaries: &[Option<Dictionary>],
        home: Home<'_>,
    ) -> Result<(), StoreError> {
        let Some(last) = self.levels.last() else {
            return Ok(());
        };
        let mut first = self.levels.len() - 1;
        let mut count = last.rows.count;
        while first > 0 && count * 2 >= self.levels[first - 1].rows.count {
            first -= 1;
            count += self.levels[first].rows.count;
        }
        if first + 1 == self.levels.len() {
            return Ok(());
        }
        let mut joined = Rows::default();
        for level in &self.levels[first..] {
            joined.count += level.rows.count;
            joined.batches.extend_from_slice(&level.rows.batches);
        }
        let chunk = joined.encode(dictionaries, home)?;
        self.levels.truncate(first);
        self.levels.push(Level {
            rows: joined,
            chunk,
        });
        Ok(())
    }

    /// Takes the first 65,536 rows out as a full chunk, if there are so many. On error the rows stay as they are.
    pub fn seal(
        &mut self,
        dictionaries: &[Option<Dictionary>],
        home: Home<'_>,
    ) -> Result<Option<Arc<Chunk>>, StoreError> {
        if self.rows() < CHUNK_ROWS {
            return Ok(None);
        }
        let mut full = Rows::default();
        let mut rest = Rows::default();
        for (at, batch) in self.levels.iter().flat_map(|level| &level.rows.batches) {
            let room = (CHUNK_ROWS - full.count).min(batch.num_rows());
            if room > 0 {
                full.push(*at, batch.slice(0, room));
            }
            if room < batch.num_rows() {
                let beyond = batch.slice(room, batch.num_rows() - room);
                rest.push(*at, compact(&beyond));
            }
        }
        let chunk = full.encode(dictionaries, home)?;
        let mut levels = Vec::new();
        if rest.count > 0 {
            let chunk = rest.encode(dictionaries, home)?;
            levels.push(Level { rows: rest, chunk });
        }
        self.levels = levels;
        Ok(Some(chunk))
    }
}

impl Rows {
    fn push(&mut self, at: Timestamp, batch: RecordBatch) {
        self.count += batch.num_rows();
        self.batches.push((at, batch));
    }

    fn bytes(&self) -> usize {
        let batches = self.batches.iter();
        batches
            .map(|(_, batch)| batch.get_array_memory_size())
            .sum()
    }

    fn encode(
        &self,
        dictionaries: &[Option<Dictionary>],
        home: Home<'_>,
    ) -> Result<Arc<Chunk>, StoreError> {
        let schema = self.batches[0].1.schema();
        let rows = concat_batches(&schema, self.batches.iter().map(|(_, batch)| batch))?;
        let mut begins: Vec<Begin> = Vec::new();
        let mut end = 0;
        for (at, batch) in &self.batches {
            end += batch.num_rows();
            match begins.last_mut() {
                Some(run) if run.at == *at => run.end = end,
                _ => begins.push(Begin { at: *at, end }),
            }
        }
        let columns = encode(&rows, dictionaries, home)?;
        Ok(Arc::new(Chunk::new(columns, end, begins)))
    }
}
