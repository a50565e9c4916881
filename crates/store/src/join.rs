//! Making one chunk of the living rows of several.
//!
//! ```text
//! 3 ✗ 5 6 │ ✗ ✗ 20        rows that are dead to every snapshot in use are left out;
//!    ▼                    ids, inserting commits and the deletions that only newer snapshots see come along
//! 3 5 6 20
//! ```

use crate::deletes::DeleteVector;
use crate::uncommitted::{are_few, encode_column};
use crate::{Chunk, ChunkNumber, ChunkView, InsertedRun, RowIds, StoreError};
use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat;
use eris_column::{ColumnChunk, Dictionary, ObjectMemory, Selection};
use eris_numa::Budget;
use eris_types::{ColumnId, RowId, Timestamp};
use std::ops::Range;
use std::sync::Arc;

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
    pub home: ObjectMemory<'a>,
    /// No snapshot in use is older: what was deleted up to it is garbage.
    pub horizon: Timestamp,
}

/// A chunk with its deletions, as its owner has it.
#[derive(Debug)]
pub(crate) struct Stored {
    pub chunk: Arc<Chunk>,
    pub deletes: DeleteVector,
}

impl Stored {
    pub fn new(chunk: Chunk) -> Self {
        Stored {
            chunk: Arc::new(chunk),
            deletes: DeleteVector::default(),
        }
    }

    /// The least and the greatest id; the other way round without rows.
    pub fn extent(&self) -> (RowId, RowId) {
        let ids = self.chunk.ids();
        let extent = ids.first().zip(ids.last());
        extent.unwrap_or((RowId(u64::MAX), RowId(0)))
    }

    /// Whether the snapshot sees the row at a position.
    pub fn sees(&self, snapshot: Timestamp, position: usize) -> bool {
        let deleted = self.deletes.at(snapshot);
        self.chunk.is_inserted(position, snapshot)
            && !deleted.is_some_and(|rows| rows.contains(position))
    }

    /// As a reader of this snapshot sees it; `None` if it sees no row.
    pub fn view(&self, snapshot: Timestamp) -> Option<ChunkView> {
        let deleted = self.deletes.at(snapshot).cloned();
        let all = deleted.as_ref().map(|rows| rows.count()) == Some(self.chunk.rows());
        (!all).then(|| ChunkView {
            chunk: self.chunk.clone(),
            deleted,
            rows: None,
        })
    }

    /// Deletes the rows that `ids` has of this chunk; returns their number.
    pub fn delete(
        &mut self,
        ids: &[RowId],
        at: Timestamp,
        horizon: Timestamp,
        budget: &Budget,
    ) -> usize {
        let positions: Vec<usize> = self.living_positions(ids).collect();
        if !positions.is_empty() {
            let before = self.deletes.count();
            self.deletes
                .delete(self.chunk.rows(), positions, at, horizon, budget);
            return self.deletes.count() - before;
        }
        0
    }

    /// Where the rows of `ids`, which ascend, are in this chunk.
    pub fn positions(&self, ids: &[RowId]) -> impl Iterator<Item = usize> {
        let chunk_ids = self.chunk.ids();
        let here = match (chunk_ids.first(), chunk_ids.last()) {
            (Some(first), Some(last)) => {
                let end = ids.partition_point(|&id| id <= last);
                &ids[ids.partition_point(|&id| id < first).min(end)..end]
            }
            _ => &[],
        };
        here.iter().filter_map(|&id| chunk_ids.position(id))
    }

    /// The same of rows that are not deleted yet. One that is may be another owner's, or have come back in another
    /// chunk.
    pub fn living_positions(&self, ids: &[RowId]) -> impl Iterator<Item = usize> {
        self.positions(ids).filter(|row| !self.deletes.has(*row))
    }

    /// Rows that no snapshot from `horizon` on sees.
    pub fn dead(&self, horizon: Timestamp) -> usize {
        self.deletes.at(horizon).map_or(0, |rows| rows.count())
    }

    pub fn living(&self, horizon: Timestamp) -> usize {
        self.chunk.rows() - self.dead(horizon)
    }

    /// Whether most of it is garbage.
    pub fn is_mostly_dead(&self, horizon: Timestamp) -> bool {
        self.dead(horizon) * 2 > self.chunk.rows()
    }

    /// The rows of a range that are not dead.
    pub fn living_rows(&self, range: Range<usize>, horizon: Timestamp) -> Selection {
        let mut living = Selection::all(self.chunk.rows());
        living.remove_range(0, range.start);
        living.remove_range(range.end, self.chunk.rows());
        if let Some(dead) = self.deletes.at(horizon) {
            let words = living.words_mut().iter_mut().zip(dead.words());
            words.for_each(|(word, dead)| *word &= !dead);
        }
        living
    }
}

/// Some rows of a chunk.
pub(crate) type Piece<'a> = (&'a Stored, Selection);

impl Recoder<'_> {
    /// One chunk of the living rows of several; `None` if there are none.
    pub(crate) fn join(
        &self,
        pieces: &[(&Stored, Range<usize>)],
    ) -> Result<Option<Stored>, StoreError> {
        let pieces: Vec<Piece<'_>> = pieces
            .iter()
            .map(|(stored, range)| (*stored, stored.living_rows(range.clone(), self.horizon)))
            .filter(|(_, rows)| !rows.is_empty())
            .collect();
        if pieces.is_empty() {
            return Ok(None);
        }
        let chunks: Vec<(&Chunk, &Selection)> = pieces
            .iter()
            .map(|(stored, rows)| (&*stored.chunk, rows))
            .collect();
        let columns = 0..self.schema.fields().len();
        let columns = columns.map(|column| self.recode(&chunks, column));
        let columns = columns.collect::<Result<_, _>>()?;
        Ok(Some(assemble(
            &pieces,
            columns,
            self.horizon,
            self.home.memory.budget(),
        )))
    }

    /// One column of the selected rows, encoded anew.
    pub(crate) fn recode(
        &self,
        pieces: &[(&Chunk, &Selection)],
        column: usize,
    ) -> Result<ColumnChunk, StoreError> {
        let field = self.schema.field(column);
        let dictionary = self.known[column].as_ref();
        let decoded: Vec<ArrayRef> = pieces
            .iter()
            .map(|(chunk, rows)| {
                let values = chunk.column(ColumnId(column as u32));
                values.select(rows, field.data_type(), dictionary)
            })
            .collect();
        let decoded: Vec<_> = decoded.iter().map(AsRef::as_ref).collect();
        encode_column(
            &concat(&decoded)?,
            field.name(),
            self.coding[column].as_ref(),
            self.home,
        )
    }
}

/// A chunk of these columns, which have the selected rows of the pieces one after the other. Deletions up to `horizon`
/// are those of rows that were not selected.
pub(crate) fn assemble(
    pieces: &[Piece<'_>],
    columns: Vec<ColumnChunk>,
    horizon: Timestamp,
    budget: &Budget,
) -> Stored {
    let mut ids = RowIds::default();
    let mut inserted: Vec<InsertedRun> = Vec::new();
    for (stored, rows) in pieces {
        for range in ranges(rows) {
            let first = ids.rows();
            ids.push_part(stored.chunk.ids(), range.start, range.end);
            let runs = stored.chunk.inserted();
            let from = runs.partition_point(|run| run.end <= range.start);
            for run in &runs[from..] {
                let end = first + run.end.min(range.end) - range.start;
                match inserted.last_mut() {
                    Some(last) if last.at == run.at => last.end = end,
                    _ => inserted.push(InsertedRun { at: run.at, end }),
                }
                if run.end >= range.end {
                    break;
                }
            }
        }
    }
    ids.shrink(budget);
    let mut deletes = DeleteVector::default();
    let mut commits: Vec<Timestamp> = pieces
        .iter()
        .flat_map(|(stored, _)| stored.deletes.after(horizon).map(|(at, _)| at))
        .collect();
    commits.sort_unstable();
    commits.dedup();
    for at in commits {
        let mut words: Box<[u64]> = vec![0; ids.rows().div_ceil(64)].into();
        let mut position = 0;
        for (stored, rows) in pieces {
            match stored.deletes.at(at) {
                Some(deleted) => {
                    for row in rows.iter_ones() {
                        words[position / 64] |= u64::from(deleted.contains(row)) << (position % 64);
                        position += 1;
                    }
                }
                None => position += rows.count(),
            }
        }
        let count = words.iter().map(|word| word.count_ones() as usize).sum();
        deletes.push(at, words, count, budget);
    }
    let columns: Vec<_> = columns.into_iter().map(Arc::new).collect();
    let number = match are_few(&columns, ids.rows()) {
        true => ChunkNumber::default(),
        false => ChunkNumber::open(),
    };
    Stored {
        chunk: Arc::new(Chunk::sharing(columns, number, Arc::new(ids), inserted)),
        deletes,
    }
}

/// The selected rows as ranges.
fn ranges(rows: &Selection) -> Vec<Range<usize>> {
    if rows.is_all() {
        return std::iter::once(0..rows.rows()).collect();
    }
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for row in rows.iter_ones() {
        match ranges.last_mut() {
            Some(last) if last.end == row => last.end += 1,
            _ => ranges.push(row..row + 1),
        }
    }
    ranges
}
