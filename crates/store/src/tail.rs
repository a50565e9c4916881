//! The append buffer: committed rows that do not fill a chunk yet.
//!
//! ```text
//! levels   ┌──────────── 40,000 ────────────┐┌── 9,000 ──┐┌ 700 ┐┌ 3 ┐   fresh rows go to the last level
//! encoded           chunk                        chunk      chunk    –      until the next reader comes
//! ```
//!
//! A reader needs encoded rows, a writer of single rows must not encode the buffer again and again. So rows are encoded
//! when a reader first wants them, and a level is joined with its right neighbour when that one has grown to at least half its
//! size: every row is encoded about log₂ n times, and a reader sees about log₂ n small chunks.

use crate::staged::encode;
use crate::{Begin, Chunk, StoreError};
use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use eris_column::{CHUNK_ROWS, Dictionary, Home};
use eris_types::Timestamp;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Tail {
    levels: Vec<Level>,
}

#[derive(Debug, Default)]
struct Level {
    batches: Vec<(Timestamp, RecordBatch)>,
    rows: usize,
    chunk: Option<Arc<Chunk>>,
}

impl Tail {
    pub fn push(&mut self, at: Timestamp, batch: RecordBatch) {
        if self.levels.last().is_none_or(|last| last.chunk.is_some()) {
            self.levels.push(Level::default());
        }
        let fresh = self.levels.last_mut().expect("pushed above");
        fresh.rows += batch.num_rows();
        fresh.batches.push((at, batch));
    }

    pub fn rows(&self) -> usize {
        self.levels.iter().map(|level| level.rows).sum()
    }

    /// Bytes of the buffered rows, encoded and not.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(Level::bytes).sum()
    }

    /// The newest commit among the rows.
    pub fn newest(&self) -> Timestamp {
        let batches = self.levels.iter().flat_map(|level| &level.batches);
        batches.map(|(at, _)| *at).max().unwrap_or_default()
    }

    /// The chunks of the levels that are encoded, and whether these are all.
    pub fn chunks(&self) -> (impl Iterator<Item = &Arc<Chunk>>, bool) {
        let complete = self.levels.iter().all(|level| level.chunk.is_some());
        let chunks = self.levels.iter().filter_map(|level| level.chunk.as_ref());
        (chunks, complete)
    }

    /// Encodes what is not encoded yet. On error the rows stay as they are.
    pub fn settle(
        &mut self,
        dictionaries: &[Option<Dictionary>],
        home: Home<'_>,
    ) -> Result<(), StoreError> {
        if self.levels.last().is_none_or(|last| last.chunk.is_some()) {
            return Ok(());
        }
        while let [.., left, right] = self.levels.as_mut_slice()
            && right.rows * 2 >= left.rows
        {
            left.rows += right.rows;
            left.batches.append(&mut right.batches);
            left.chunk = None;
            self.levels.pop();
        }
        let fresh = self.levels.last_mut().expect("checked above");
        fresh.chunk = Some(fresh.encode(dictionaries, home)?);
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
        let mut full = Level::default();
        let mut rest = Tail::default();
        for (at, batch) in self.levels.iter().flat_map(|level| &level.batches) {
            let room = (CHUNK_ROWS - full.rows).min(batch.num_rows());
            if room > 0 {
                full.batches.push((*at, batch.slice(0, room)));
                full.rows += room;
            }
            if room < batch.num_rows() {
                rest.push(*at, batch.slice(room, batch.num_rows() - room));
            }
        }
        let chunk = full.encode(dictionaries, home)?;
        *self = rest;
        Ok(Some(chunk))
    }
}

impl Level {
    fn bytes(&self) -> usize {
        let batches = self.batches.iter();
        let plain: usize = batches
            .map(|(_, batch)| batch.get_array_memory_size())
            .sum();
        plain + self.chunk.as_ref().map_or(0, |chunk| chunk.bytes())
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
