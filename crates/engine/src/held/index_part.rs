//! Building a secondary index in one partition, a few thousand rows per slice, while readers and writers go on.
//!
//! ```text
//! begin ── rows written from now on are entered when they are written ──────────────────────────▶
//!    └──── rows that are here: chunk after chunk, as they were at the beginning ── done ──▶ in use
//! ```
//!
//! The same makes an index anew in which too many entries lead nowhere; the old one is in use until the new one is
//! complete. In a tree of all owners there is no new one: what is missing is entered, and what leads nowhere is
//! [taken out](Partition::sweep).

use crate::held::entered::Entered;
use crate::held::partition::Partition;
use crate::held::secondary::{IndexedValues, OwnedKey, each_in_bytes};
use crate::object::data_object::DataObject;
use crate::object::indexes::Index;
use crate::object::path::Path;
use crate::object::shared_index::{Batch, Gathered, SharedBuild};
use arrow_array::ArrayRef;
use eris_column::{ColumnChunk, ObjectMemory, Selection};
use eris_index::IndexError;
use eris_numa::{Extent, OutOfMemory};
use eris_store::{Chunk, Segment};
use eris_types::{AeuId, RowId, StatementId, Timestamp};
use std::borrow::Borrow;
use std::ops::Range;
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
    entries: Entered,
    is_complete: bool,
    /// What will take its place; of a tree of all owners the same entries.
    next: Option<Entered>,
    /// Rows have come since it was begun that it was not told of.
    has_missed: bool,
}

impl IndexPart {
    /// Of a partition without rows.
    pub fn empty(
        index: Arc<Index>,
        object: &DataObject,
        owner: AeuId,
        home: ObjectMemory<'_>,
    ) -> Self {
        let words = index.has_words(&object.schema);
        IndexPart {
            entries: Entered::new(&index, words, owner, home),
            index,
            is_complete: true,
            next: None,
            has_missed: false,
        }
    }

    /// What finds all rows.
    pub fn usable(&self) -> Option<&Entered> {
        self.is_complete.then_some(&self.entries)
    }

    /// The memory that it takes.
    pub fn extents(&self, all: &mut Vec<Extent>) {
        self.entries.extents(all);
        if let Some(next @ Entered::Own(_)) = &self.next {
            next.extents(all);
        }
    }

    /// Takes rows that are gone out of what was looked at: the chains of some keys, or, in a tree of all owners,
    /// where a path leads.
    pub fn clean(&mut self, keys: &[OwnedKey], path: &Path, is_gone: impl Fn(RowId) -> bool) {
        match &mut self.entries {
            Entered::Own(own) => own.clean(keys, is_gone),
            Entered::Shared(shared) => shared.clean(path, is_gone),
        }
    }

    /// Rows have come that it was not told of.
    pub fn set_incomplete(&mut self) {
        self.is_complete = false;
        self.has_missed = true;
        self.tell_whether_complete();
    }

    fn tell_whether_complete(&self) {
        if let Entered::Shared(shared) = &self.entries {
            shared.set_incomplete(!self.is_complete);
        }
    }

    fn insert(&mut self, values: &IndexedValues, first: RowId) -> Result<(), IndexError> {
        self.entries.insert(values, first)?;
        if let Some(next @ Entered::Own(_)) = &mut self.next
            && let Err(error) = next.insert(values, first)
        {
            self.entries.remove(values, first);
            return Err(error);
        }
        Ok(())
    }

    fn remove(&mut self, values: &IndexedValues, first: RowId) {
        self.entries.remove(values, first);
        if let Some(next @ Entered::Own(_)) = &mut self.next {
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
            // The tree of all owners counts by itself.
            if let Some(own) = part.entries.own() {
                part.index.tell(self.owner, own.size());
            }
        }
    }

    /// An index in which most entries lead nowhere.
    pub fn stale_index(&self) -> Option<Arc<Index>> {
        let rows: usize = self.segments.iter().map(|segment| segment.all_rows()).sum();
        // Whoever makes it goes on with it first.
        let is_ready = |part: &&IndexPart| part.next.is_none() && part.index.is_ready();
        let mut parts = self.secondary.iter().filter(is_ready);
        let stale = parts.find(|part| {
            !part.is_complete || part.entries.size().entries as usize > 2 * rows + STALE
        })?;
        Some(stale.index.clone())
    }

    /// Begins to build an index, with the rows that are written; what is left are these chunks.
    pub fn begin_build(
        &mut self,
        index: &Arc<Index>,
        home: ObjectMemory<'_>,
    ) -> Result<Vec<Arc<Chunk>>, IndexError> {
        let words = index.has_words(&self.object.schema);
        let mut next = Entered::new(index, words, self.owner, home);
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
                if part.is_complete && part.entries.own().is_none() {
                    return Ok(Vec::new());
                }
            }
            None => {
                let mut part = IndexPart::empty(index.clone(), &self.object, self.owner, home);
                part.is_complete = false;
                part.next = Some(next);
                self.secondary.push(part);
            }
        }
        Ok(self.all_chunks())
    }

    /// Enters some rows of a chunk into an index that is being built; `None` if it is gone. A row that was given away
    /// and has come back is in two chunks: it is left to those that come `later`, for an index has each row once.
    pub fn build(
        &mut self,
        id: u32,
        (chunk, later): (&Chunk, &[Arc<Chunk>]),
        from: usize,
    ) -> Option<Result<(), IndexError>> {
        let part = self.secondary.iter_mut().find(|part| part.index.id == id)?;
        let next = part.next.as_mut()?;
        let (rows, to) = slice_of(chunk, from);
        let values = values_of(
            &part.index,
            &self.object,
            &self.known,
            chunk.columns(),
            &rows,
        );
        let ids = chunk.ids();
        let later = Later::of(later, chunk, from..to);
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
            if !later.0.is_empty() {
                if later.has(ids.get(at)) {
                    at += 1;
                    continue;
                }
                let is_later = |row: &usize| later.has(ids.get(*row));
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

    /// Gathers the entries of some rows of a chunk for a tree of all owners. Rows that come later as above.
    ///
    /// # Errors
    /// No memory.
    pub fn gather(
        &self,
        index: &Index,
        (chunk, later): (&Chunk, &[Arc<Chunk>]),
        from: usize,
        gathered: &mut Gathered,
    ) -> Result<(), OutOfMemory> {
        let (rows, to) = slice_of(chunk, from);
        let columns = columns_of(index, &self.object, &self.known, chunk.columns(), &rows);
        let (ids, owner) = (chunk.ids(), self.owner);
        let later = Later::of(later, chunk, from..to);
        let mut adding = gathered.adding();
        each_in_bytes(&columns, index.kind, |row, value| {
            let id = ids.get(from + row);
            if !later.has(id) {
                adding.add(value.expect("NULL has a place"), owner, id);
            }
        });
        index.count_built(to - from);
        adding.end()
    }

    /// All chunks, with rows that are deleted.
    pub fn all_chunks(&self) -> Vec<Arc<Chunk>> {
        let segments = self.segments.iter();
        segments.flat_map(Segment::chunks_of_rows).collect()
    }

    /// The entries of an index that some rows of a chunk would have.
    pub fn sample(&self, index: &Index, chunk: &Chunk) -> Batch {
        let mut rows = Selection::none(chunk.rows());
        SharedBuild::sampled_rows(chunk.rows()).for_each(|row| rows.insert(row));
        let values = values_of(index, &self.object, &self.known, chunk.columns(), &rows);
        let mut batch = Batch::default();
        for (value, row) in values.all_bytes().zip(rows.iter_ones()) {
            batch.push(value, self.owner, chunk.ids().get(row));
        }
        batch
    }

    /// Enters some of the rows that were written while a tree of all owners was built, behind an entry. The one behind
    /// which it goes on, if it does.
    ///
    /// # Errors
    /// No memory.
    pub fn enter_beside(
        &self,
        id: u32,
        behind: Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>, IndexError> {
        let part = self.secondary.iter().find(|part| part.index.id == id);
        match part.map(|part| &part.entries) {
            Some(Entered::Shared(shared)) => shared.enter_beside(behind),
            Some(Entered::Own(_)) | None => Ok(None),
        }
    }

    /// Takes out some entries of a tree of all owners whose rows are gone, behind a key. The key behind which it goes
    /// on; `None`: that was all.
    pub fn sweep(&self, id: u32, behind: Option<&[u8]>, horizon: Timestamp) -> Option<Vec<u8>> {
        let part = self.secondary.iter().find(|part| part.index.id == id)?;
        match &part.entries {
            Entered::Shared(shared) => {
                shared.sweep(behind, |row| is_gone(&self.segments, row, horizon))
            }
            Entered::Own(_) => None,
        }
    }

    /// What was built is in use from now on.
    pub fn finish_build(&mut self, id: u32) {
        let mut parts = self.secondary.iter_mut();
        if let Some(part) = parts.find(|part| part.index.id == id)
            && let Some(next) = part.next.take()
        {
            part.entries = next;
            if let Entered::Shared(shared) = &mut part.entries {
                shared.end_build();
            }
            part.is_complete = !part.has_missed;
            part.tell_whether_complete();
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

/// Whether no snapshot from `horizon` on sees a row, and it is not uncommitted.
pub(crate) fn is_gone(segments: &[Segment], row: RowId, horizon: Timestamp) -> bool {
    let mut segments = segments.iter();
    !segments
        .find(|segment| segment.id() == row.segment())
        .is_some_and(|segment| segment.may_be_seen(row, horizon))
}

/// Whether a chunk may have rows between two.
fn may_have(chunk: &Chunk, first: RowId, last: RowId) -> bool {
    let ids = chunk.ids();
    ids.rows() > 0 && ids.get(0) <= last && ids.get(ids.rows() - 1) >= first
}

/// Some rows of a chunk, and the row behind them.
fn slice_of(chunk: &Chunk, from: usize) -> (Selection, usize) {
    let to = (from + SLICE_ROWS).min(chunk.rows());
    let mut rows = Selection::all(chunk.rows());
    rows.remove_range(0, from);
    rows.remove_range(to, chunk.rows());
    (rows, to)
}

/// Chunks that come later and may have some rows of one.
struct Later<'a>(Vec<&'a Arc<Chunk>>);

impl<'a> Later<'a> {
    fn of(later: &'a [Arc<Chunk>], chunk: &Chunk, rows: Range<usize>) -> Self {
        let ids = chunk.ids();
        if rows.is_empty() {
            return Later(Vec::new());
        }
        let (first, last) = (ids.get(rows.start), ids.get(rows.end - 1));
        let later = later.iter();
        Later(later.filter(|other| may_have(other, first, last)).collect())
    }

    fn has(&self, id: RowId) -> bool {
        let mut chunks = self.0.iter();
        chunks.any(|other| other.ids().position(id).is_some())
    }
}

/// The columns that an index is of, in some rows of a chunk.
fn columns_of(
    index: &Index,
    object: &DataObject,
    known: &[Option<eris_column::Dictionary>],
    chunk: &[impl Borrow<ColumnChunk>],
    rows: &Selection,
) -> Vec<ArrayRef> {
    let columns = index.columns.iter().map(|column| {
        let at = column.index();
        chunk[at].borrow().select(
            rows,
            object.schema.field(at).data_type(),
            known[at].as_ref(),
        )
    });
    columns.collect()
}

/// The values that an index is of, in some rows of a chunk.
fn values_of(
    index: &Index,
    object: &DataObject,
    known: &[Option<eris_column::Dictionary>],
    chunk: &[impl Borrow<ColumnChunk>],
    rows: &Selection,
) -> IndexedValues {
    IndexedValues::of(&columns_of(index, object, known, chunk, rows), index.kind)
}
