//! Building a secondary index in one partition, a few thousand rows per slice, while readers and writers go on.
//!
//! ```text
//! begin ── rows written from now on are entered when they are written ──────────────────────────▶
//!    └──── rows that are here: chunk after chunk, as they were at the beginning ── done ──▶ in use
//! ```
//!
//! The same makes an index anew in which too many entries lead nowhere; the old one is in use until the new one is
//! complete.

use crate::held::partition::Partition;
use crate::held::secondary::{IndexedValues, OwnedKey, Secondary};
use crate::object::data_object::DataObject;
use crate::object::indexes::Index;
use arrow_array::ArrayRef;
use eris_column::{ColumnChunk, ObjectMemory, Selection};
use eris_index::IndexError;
use eris_numa::Extent;
use eris_store::Chunk;
use eris_types::{RowId, StatementId};
use std::borrow::Borrow;
use std::sync::Arc;

/// Rows that are entered in one slice.
pub(crate) const SLICE_ROWS: usize = 4_096;

/// So many entries may lead nowhere before an index is built anew, beside as many as lead to rows.
const STALE: usize = 1 << 16;

/// One partition's part of a secondary index.
#[derive(Debug)]
pub(crate) struct IndexPart {
    pub index: Arc<Index>,
    /// Has all rows, unless it was never complete.
    entries: Secondary,
    is_complete: bool,
    /// What will take its place.
    next: Option<Secondary>,
    /// Rows have come since it was begun that it was not told of.
    has_missed: bool,
}

impl IndexPart {
    /// Of a partition without rows.
    pub fn empty(index: Arc<Index>, object: &DataObject, home: ObjectMemory<'_>) -> Self {
        let words = index.has_words(&object.schema);
        IndexPart {
            entries: Secondary::new(index.kind, words, home),
            index,
            is_complete: true,
            next: None,
            has_missed: false,
        }
    }

    /// What finds all rows.
    pub fn usable(&self) -> Option<&Secondary> {
        self.is_complete.then_some(&self.entries)
    }

    /// The memory that it takes.
    pub fn extents(&self, all: &mut Vec<Extent>) {
        self.entries.extents(all);
        self.next.iter().for_each(|next| next.extents(all));
    }

    /// Takes rows that are gone out of the chains of some keys.
    pub fn clean(&mut self, keys: &[OwnedKey], is_gone: impl Fn(RowId) -> bool) {
        self.entries.clean(keys, is_gone);
    }

    /// Rows have come that it was not told of.
    pub fn set_incomplete(&mut self) {
        self.is_complete = false;
        self.has_missed = true;
    }

    fn insert(&mut self, values: &IndexedValues, first: RowId) -> Result<(), IndexError> {
        self.entries.insert(values, first)?;
        if let Some(next) = &mut self.next
            && let Err(error) = next.insert(values, first)
        {
            self.entries.remove(values, first);
            return Err(error);
        }
        Ok(())
    }

    fn remove(&mut self, values: &IndexedValues, first: RowId) {
        self.entries.remove(values, first);
        if let Some(next) = &mut self.next {
            next.remove(values, first);
        }
    }
}

impl Partition {
    /// Whether an index is of the column.
    pub fn is_indexed(&self, column: usize) -> bool {
        let columns = self.secondary.iter().flat_map(|part| &part.index.columns);
        columns.into_iter().any(|other| other.index() == column)
    }

    /// Enters rows that are written, of which these are the columns that indexes are of. None is entered if that fails.
    pub fn enter(&mut self, columns: &[Option<ArrayRef>], first: RowId) -> Result<(), IndexError> {
        let values = |part: &IndexPart| {
            let of = part.index.columns.iter();
            let columns: Vec<ArrayRef> = of
                .map(|column| {
                    columns[column.index()]
                        .clone()
                        .expect("the column of an index")
                })
                .collect();
            IndexedValues::of(&columns, part.index.kind)
        };
        for at in 0..self.secondary.len() {
            let entered = values(&self.secondary[at]);
            if let Err(error) = self.secondary[at].insert(&entered, first) {
                for part in &mut self.secondary[..at] {
                    let entered = values(part);
                    part.remove(&entered, first);
                }
                return Err(error);
            }
        }
        self.tell_of_indexes();
        Ok(())
    }

    /// Takes the rows of a statement that is given up out of the indexes.
    pub fn leave(&mut self, statement: StatementId) {
        if self.secondary.is_empty() {
            return;
        }
        for segment in &self.segments {
            for (chunk, first) in segment.uncommitted_rows(statement).rev() {
                let Some(first) = first else {
                    continue;
                };
                let rows = chunk.first().map_or(0, |column| column.rows());
                for part in &mut self.secondary {
                    let all = Selection::all(rows);
                    let values = values_of(&part.index, &self.object, &self.known, chunk, &all);
                    part.remove(&values, first);
                }
            }
        }
        self.tell_of_indexes();
    }

    /// Rows of the statement that have no ids yet were not entered: they were written before there was an index. Called
    /// before they get ids.
    pub fn note_unentered(&mut self, statement: StatementId) {
        if self.secondary.is_empty() {
            return;
        }
        let mut rows = self
            .segments
            .iter()
            .flat_map(|segment| segment.uncommitted_rows(statement));
        if rows.any(|(_, first)| first.is_none()) {
            self.secondary
                .iter_mut()
                .for_each(IndexPart::set_incomplete);
        }
    }

    /// Tells planners how large the indexes are.
    pub fn tell_of_indexes(&self) {
        for part in &self.secondary {
            part.index.tell(self.owner, part.entries.size());
        }
    }

    /// An index in which most entries lead nowhere.
    pub fn stale_index(&self) -> Option<Arc<Index>> {
        let rows: usize = self.segments.iter().map(|segment| segment.all_rows()).sum();
        let mut parts = self.secondary.iter().filter(|part| part.next.is_none());
        let stale =
            parts.find(|part| !part.is_complete || part.entries.entries() > 2 * rows + STALE)?;
        Some(stale.index.clone())
    }

    /// Begins to build an index, with the rows that are written; what is left are these chunks.
    pub fn begin_build(
        &mut self,
        index: &Arc<Index>,
        home: ObjectMemory<'_>,
    ) -> Result<Vec<Arc<Chunk>>, IndexError> {
        let words = index.has_words(&self.object.schema);
        let mut next = Secondary::new(index.kind, words, home);
        for segment in &self.segments {
            for statement in segment.uncommitted_statements() {
                for (chunk, first) in segment.uncommitted_rows(statement) {
                    if let Some(first) = first {
                        let all = Selection::all(chunk.first().map_or(0, |column| column.rows()));
                        next.insert(
                            &values_of(index, &self.object, &self.known, chunk, &all),
                            first,
                        )?;
                    }
                }
            }
        }
        match self
            .secondary
            .iter_mut()
            .find(|part| part.index.id == index.id)
        {
            Some(part) => {
                part.next = Some(next);
                part.has_missed = false;
            }
            None => {
                let mut part = IndexPart::empty(index.clone(), &self.object, home);
                part.is_complete = false;
                part.next = Some(next);
                self.secondary.push(part);
            }
        }
        Ok(self
            .segments
            .iter()
            .flat_map(|segment| segment.chunks_of_rows())
            .collect())
    }

    /// Enters some rows of a chunk into an index that is being built; `None` if it is gone. A row that was given away
    /// and has come back is in two chunks: it is left to those that come `later`, for an index has each row once.
    pub fn build(
        &mut self,
        id: u32,
        chunk: &Chunk,
        later: &[Arc<Chunk>],
        from: usize,
    ) -> Option<Result<(), IndexError>> {
        let part = self.secondary.iter_mut().find(|part| part.index.id == id)?;
        let next = part.next.as_mut()?;
        let to = (from + SLICE_ROWS).min(chunk.rows());
        let mut rows = Selection::all(chunk.rows());
        rows.remove_range(0, from);
        rows.remove_range(to, chunk.rows());
        let values = values_of(
            &part.index,
            &self.object,
            &self.known,
            chunk.columns(),
            &rows,
        );
        let ids = chunk.ids();
        let later: Vec<&Arc<Chunk>> = (later.iter())
            .filter(|other| may_have(other, ids.get(from), ids.get(to - 1)))
            .collect();
        let is_later = |row: &usize| {
            let id = ids.get(*row);
            later.iter().any(|other| other.ids().position(id).is_some())
        };
        // Ids of neighbouring rows are not always consecutive.
        let mut at = from;
        while at < to {
            let first = ids.get(at);
            let mut end = to;
            if ids.get(to - 1) != first.plus(to - 1 - at) {
                end = (at + 1..to)
                    .find(|&row| ids.get(row) != first.plus(row - at))
                    .unwrap_or(to);
            }
            if !later.is_empty() {
                if is_later(&at) {
                    at += 1;
                    continue;
                }
                end = (at + 1..end).find(is_later).unwrap_or(end);
            }
            let values = values.part(at - from..end - from);
            if let Err(error) = next.insert(&values, first) {
                return Some(Err(error));
            }
            at = end;
        }
        if !part.is_complete {
            part.index.count_built(to - from);
        }
        Some(Ok(()))
    }

    /// What was built is in use from now on.
    pub fn finish_build(&mut self, id: u32) {
        let mut parts = self.secondary.iter_mut();
        if let Some(part) = parts.find(|part| part.index.id == id)
            && let Some(next) = part.next.take()
        {
            part.entries = next;
            part.is_complete = !part.has_missed;
        }
        self.tell_of_indexes();
    }

    /// Forgets what was built so far, or an index.
    pub fn give_up_build(&mut self, id: u32) {
        if let Some(part) = self.secondary.iter_mut().find(|part| part.index.id == id) {
            part.next = None;
        }
    }

    /// Forgets an index.
    pub fn drop_index(&mut self, id: u32) {
        self.secondary.retain(|part| part.index.id != id);
    }
}

/// Whether a chunk may have rows between two.
fn may_have(chunk: &Chunk, first: RowId, last: RowId) -> bool {
    let ids = chunk.ids();
    ids.rows() > 0 && ids.get(0) <= last && ids.get(ids.rows() - 1) >= first
}

/// The values that an index is of, in some rows of a chunk.
fn values_of(
    index: &Index,
    object: &DataObject,
    known: &[Option<eris_column::Dictionary>],
    chunk: &[impl Borrow<ColumnChunk>],
    rows: &Selection,
) -> IndexedValues {
    let columns = index.columns.iter().map(|column| {
        let at = column.index();
        chunk[at].borrow().select(
            rows,
            object.schema.field(at).data_type(),
            known[at].as_ref(),
        )
    });
    IndexedValues::of(&columns.collect::<Vec<_>>(), index.kind)
}
