//! The append buffer: committed rows that do not fill a chunk yet.
//!
//! ```text
//! levels   ┌──────────── 40,000 ────────────┐┌── 9,000 ──┐┌ 700 ┐┌ 3 ┐┌ 1 ┐
//! each              chunk                        chunk      chunk  chunk …     encoded when it was staged or joined
//! ```
//!
//! A reader sees a chunk per level, so there must be few; a writer of single rows must not encode the buffer again and again.
//! So levels are joined now and then, by a reader or by the writer of every thirty-second level: a level with its right
//! neighbour, when that one has grown to at least half its size. Every row is decoded and encoded about log₂ n times, and
//! about log₂ n levels are left. Joining needs memory; without it, levels stay as they are and nothing is lost.

use crate::staged::encode;
use crate::{Begin, Chunk, StoreError};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat;
use eris_column::{CHUNK_ROWS, ColumnChunk, Dictionary, Home};
use eris_types::Timestamp;
use std::ops::Range;
use std::sync::Arc;

/// So many levels without a reader are joined by the writer.
const LEVELS: usize = 32;

/// What is needed to decode rows and encode them again.
#[derive(Clone, Copy, Debug)]
pub struct Recoder<'a> {
    /// The columns' names and types.
    pub schema: &'a SchemaRef,
    /// Per column the newest dictionary that it has had, also if text is no longer coded.
    pub known: &'a [Option<Dictionary>],
    /// Per column the dictionary that text is to be coded by.
    pub coding: &'a [Option<Dictionary>],
    /// Where encoded rows are to lie.
    pub home: Home<'a>,
}

#[derive(Debug, Default)]
pub(crate) struct Tail {
    levels: Vec<Arc<Chunk>>,
}

/// Some rows of a level.
type Piece = (Arc<Chunk>, Range<usize>);

impl Tail {
    /// Adds encoded rows of one commit.
    pub fn push(&mut self, at: Timestamp, columns: Vec<ColumnChunk>, rows: usize) {
        let begins = vec![Begin { at, end: rows }];
        self.levels
            .push(Arc::new(Chunk::new(columns, rows, begins)));
    }

    pub fn rows(&self) -> usize {
        self.levels.iter().map(|level| level.rows()).sum()
    }

    /// A chunk per level.
    pub fn chunks(&self) -> impl Iterator<Item = &Arc<Chunk>> {
        self.levels.iter()
    }

    /// Whether so many levels have come up that it is time to join them.
    pub fn is_ragged(&self) -> bool {
        self.levels.len() >= LEVELS
    }

    /// Joins levels. On error they stay as they are.
    pub fn join(&mut self, recoder: Recoder<'_>) -> Result<(), StoreError> {
        let Some(last) = self.levels.last() else {
            return Ok(());
        };
        let mut first = self.levels.len() - 1;
        let mut count = last.rows();
        while first > 0 && count * 2 >= self.levels[first - 1].rows() {
            first -= 1;
            count += self.levels[first].rows();
        }
        if first + 1 == self.levels.len() {
            return Ok(());
        }
        let whole = |level: &Arc<Chunk>| (level.clone(), 0..level.rows());
        let pieces: Vec<Piece> = self.levels[first..].iter().map(whole).collect();
        let joined = recoder.join(&pieces)?;
        self.levels.truncate(first);
        self.levels.push(joined);
        Ok(())
    }

    /// Takes the first 65,536 rows out as a full chunk, if there are so many. On error the rows stay as they are.
    pub fn seal(&mut self, recoder: Recoder<'_>) -> Result<Option<Arc<Chunk>>, StoreError> {
        if self.rows() < CHUNK_ROWS {
            return Ok(None);
        }
        let (mut full, mut rest): (Vec<Piece>, Vec<Piece>) = Default::default();
        let mut room = CHUNK_ROWS;
        for level in &self.levels {
            let here = room.min(level.rows());
            if here > 0 {
                full.push((level.clone(), 0..here));
            }
            if here < level.rows() {
                rest.push((level.clone(), here..level.rows()));
            }
            room -= here;
        }
        let chunk = recoder.join(&full)?;
        let rest = match &rest[..] {
            [] => Vec::new(),
            rest => vec![recoder.join(rest)?],
        };
        self.levels = rest;
        Ok(Some(chunk))
    }
}

impl Recoder<'_> {
    /// One chunk of rows of several.
    fn join(&self, pieces: &[Piece]) -> Result<Arc<Chunk>, StoreError> {
        let columns = (0..self.schema.fields().len()).map(|column| {
            let decoded: Vec<ArrayRef> = pieces
                .iter()
                .map(|piece| self.decode(piece, column))
                .collect();
            let decoded: Vec<_> = decoded.iter().map(AsRef::as_ref).collect();
            concat(&decoded)
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let rows = RecordBatch::try_new(self.schema.clone(), columns)?;
        let mut begins: Vec<Begin> = Vec::new();
        let mut first = 0;
        for (chunk, range) in pieces {
            for run in chunk.begins().iter().filter(|run| run.end > range.start) {
                let end = first + run.end.min(range.end) - range.start;
                match begins.last_mut() {
                    Some(last) if last.at == run.at => last.end = last.end.max(end),
                    _ => begins.push(Begin { at: run.at, end }),
                }
                if run.end >= range.end {
                    break;
                }
            }
            first += range.len();
        }
        let columns = encode(&rows, self.coding, self.home)?;
        Ok(Arc::new(Chunk::new(columns, first, begins)))
    }

    fn decode(&self, (chunk, range): &Piece, column: usize) -> ArrayRef {
        let data_type = self.schema.field(column).data_type();
        chunk.columns()[column].decode(range.clone(), data_type, self.known[column].as_ref())
    }
}
