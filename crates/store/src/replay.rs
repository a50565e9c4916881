//! What a commit does to a segment, for a log, and doing it again.
//!
//! ```text
//! commit    rows with ids and columns ─▶ CommittedRows ─▶ log ─▶ CommittedRows ─▶ the same rows with the same ids
//!           ids of deleted rows       ─▶                                      ─▶ the same rows are deleted
//! ```
//!
//! Ids stay whatever becomes of chunks. So a log needs nothing of what an owner does between commits: that it merges
//! levels, rewrites chunks and stores columns by an order of keys. Nor of rows that change owners with their ids: their
//! segment has them still.

use crate::join::Stored;
use crate::uncommitted::{Uncommitted, UncommittedChunk, are_few, encode_error};
use crate::{Chunk, ChunkNumber, InsertedRun, RowIds, Segment, StoreError};
use eris_column::{ColumnChunk, FormWriter, ObjectMemory};
use eris_numa::Budget;
use eris_types::{RowId, StatementId, Timestamp};
use std::sync::Arc;

/// What a commit does to the rows of a segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommittedRows {
    /// The rows that it adds, in the order of their ids.
    pub added: Vec<StoredRows>,
    /// The rows that it deletes, ascending.
    pub deleted: Vec<RowId>,
}

/// Rows with consecutive ids, as a log has them.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredRows {
    /// The id of the first.
    pub first: RowId,
    /// How many.
    pub rows: usize,
    /// Their columns.
    pub columns: StoredIn,
}

/// Where the stored form of columns is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredIn {
    /// Here: one column behind the other, the first byte at a multiple of 64.
    Bytes(Vec<u8>),
    /// In a chunk file, under this number.
    ChunkFile(u64),
}

/// Stored forms that were made of what a statement has written.
#[derive(Clone, Copy, Debug, Default)]
pub struct NewForms {
    /// Their bytes.
    pub bytes: u64,
    /// How many they are.
    pub pieces: u64,
    /// How many chunks of many rows the statement has written here, now or before.
    pub chunks: u64,
}

/// Columns that were read.
#[derive(Debug)]
pub struct ReadColumns {
    /// The columns, in the order of the schema.
    pub columns: Vec<Arc<ColumnChunk>>,
    /// Their number, if they come from a chunk file.
    pub number: Option<u64>,
}

/// A chunk as a snapshot has it.
#[derive(Debug)]
pub struct RestoredRows {
    /// What was read.
    pub read: ReadColumns,
    /// The ids of its rows, ascending: the first of each run, and how many follow.
    pub ids: Vec<(RowId, usize)>,
    /// The positions of rows that the snapshot does not see, ascending: the first of each run, and how many.
    pub deleted: Vec<(usize, usize)>,
}

/// No statement has this number: it is that of commits that are done again.
const REPLAY: StatementId = StatementId(0);

impl Segment {
    /// Makes the stored form of the few rows that a statement has written, and that has not been made yet. Many rows go
    /// to [chunk files](Self::chunks_for_files).
    ///
    /// # Errors
    /// There is no memory for it. What was made stays.
    pub fn store_uncommitted(
        &mut self,
        statement: StatementId,
        names: impl Fn(usize) -> String,
        home: ObjectMemory<'_>,
    ) -> Result<NewForms, StoreError> {
        let mut made = NewForms::default();
        let Some(uncommitted) = self.uncommitted.get_mut(&statement) else {
            return Ok(made);
        };
        let Uncommitted {
            chunks, reserved, ..
        } = uncommitted;
        for chunk in chunks.iter_mut().filter(|chunk| chunk.kept.is_none()) {
            if chunk.number.is_open() {
                made.chunks += 1;
                continue;
            }
            if chunk.form.is_some() {
                continue;
            }
            let mut form = FormWriter::at(0);
            for (at, column) in chunk.columns.iter().enumerate() {
                let stored = column.store(home, &mut form);
                stored.map_err(|source| encode_error(&names(at), source))?;
            }
            reserved.push(home.memory.budget().try_reserve(form.len() as u64)?);
            made.bytes += form.len() as u64;
            made.pieces += 1;
            chunk.form = Some(form.to_vec());
        }
        Ok(made)
    }

    /// The chunks of many rows that a statement has written and that are in no chunk file yet: how many rows, the
    /// columns, and where the number is to be noted.
    pub fn chunks_for_files(
        &self,
        statement: StatementId,
    ) -> impl Iterator<Item = (usize, &[Arc<ColumnChunk>], &ChunkNumber)> {
        let uncommitted = self.uncommitted.get(&statement);
        let chunks = uncommitted.map_or(&[][..], |uncommitted| &uncommitted.chunks);
        let new = chunks.iter().filter(|chunk| chunk.kept.is_none());
        let many = new.filter(|chunk| chunk.number.is_open() && chunk.number.get().is_none());
        many.map(|chunk| (chunk.rows, &chunk.columns[..], &chunk.number))
    }

    /// What the commit of a statement will do; called right before it. The stored form of its rows has been made.
    ///
    /// # Panics
    /// If it has not.
    pub fn committed_rows(&mut self, statement: StatementId) -> CommittedRows {
        self.number(statement);
        let Some(uncommitted) = self.uncommitted.get_mut(&statement) else {
            return CommittedRows::default();
        };
        let chunks = uncommitted.chunks.iter_mut();
        let new = chunks.filter(|chunk| chunk.kept.is_none());
        let added = new.map(|chunk| StoredRows {
            first: chunk.first.expect("it was numbered"),
            rows: chunk.rows,
            columns: match chunk.number.get() {
                Some(number) => StoredIn::ChunkFile(number),
                None => StoredIn::Bytes(chunk.form.take().expect("it was made")),
            },
        });
        let added = added.collect();
        let ids = std::mem::take(&mut uncommitted.deleted);
        let mut deleted: Vec<RowId> = (self.places(&ids).into_iter())
            .flat_map(|place| {
                let stored = self.at(place);
                let rows = stored.living_positions(&ids);
                rows.map(|row| stored.chunk.ids().get(row))
                    .collect::<Vec<_>>()
            })
            .collect();
        deleted.sort_unstable();
        let uncommitted = self.uncommitted.get_mut(&statement);
        uncommitted.expect("it was there").deleted = ids;
        CommittedRows { added, deleted }
    }

    /// Does again what a commit has done: adds rows, of which each entry has the first id and the columns, and deletes
    /// others. Commits come in their order.
    ///
    /// # Panics
    /// If a row is of another segment.
    pub fn replay(
        &mut self,
        added: Vec<(RowId, ReadColumns)>,
        deleted: Vec<RowId>,
        at: Timestamp,
        budget: &Budget,
    ) {
        let chunks = added.into_iter().map(|(first, read)| {
            assert_eq!(first.segment(), self.id());
            let rows = read.rows();
            self.pass(first.plus(rows));
            let mut chunk = UncommittedChunk::new(read.columns, rows);
            chunk.first = Some(first);
            read.number
                .inspect(|number| chunk.number.set(*number, None));
            chunk
        });
        let uncommitted = Uncommitted {
            chunks: chunks.collect(),
            deleted,
            ..Uncommitted::default()
        };
        self.uncommitted.insert(REPLAY, uncommitted);
        // Nobody reads what was there before.
        self.commit(REPLAY, at, at, budget);
    }

    /// Takes a chunk that a snapshot has; all of its rows are inserted, or deleted, at `at`.
    ///
    /// # Panics
    /// If the ids are of another segment or do not ascend, if they are not those of all rows, or if a row is deleted
    /// that is not there.
    pub fn restore(&mut self, restored: RestoredRows, at: Timestamp, budget: &Budget) {
        let RestoredRows { read, ids, deleted } = restored;
        let rows = read.rows();
        let ids = RowIds::of_runs(&ids, budget);
        assert_eq!(ids.rows(), rows, "each row has an id");
        // The last rows may be younger than the snapshot. The log has these, and gives them their ids again.
        let living = match deleted.last() {
            Some((first, count)) if first + count == rows => *first,
            _ => rows,
        };
        if let Some(last) = living.checked_sub(1) {
            assert_eq!(ids.get(last).segment(), self.id());
            self.pass(ids.get(last).plus(1));
        }
        let few = are_few(&read.columns, rows);
        let number = match few {
            true => ChunkNumber::default(),
            false => ChunkNumber::open(),
        };
        read.number.inspect(|is| number.set(*is, None));
        let inserted = vec![InsertedRun { at, end: rows }];
        let chunk = Chunk::sharing(read.columns, number, Arc::new(ids), inserted);
        let mut stored = Stored::new(chunk);
        if !deleted.is_empty() {
            let mut words: Box<[u64]> = vec![0; rows.div_ceil(64)].into();
            let positions = deleted
                .iter()
                .flat_map(|(first, count)| *first..first + count);
            positions.for_each(|row| words[row / 64] |= 1 << (row % 64));
            let count = deleted.iter().map(|(_, count)| count).sum();
            stored.deletes.push(at, words, count, budget);
        }
        // Levels are joined in their order. Rows of others that lie among these ids stay for themselves.
        let last = self.append_buffer.levels.last();
        let ascends = last.is_none_or(|last| last.extent().1 < stored.extent().0);
        match few && ascends {
            true => self.append_buffer.levels.push(stored),
            false => self.chunks.push(stored),
        }
        self.statistics.newest = self.statistics.newest.max(at);
        self.recount();
    }
}

impl ReadColumns {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.rows())
    }
}
