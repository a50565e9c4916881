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

use crate::chunk_part::KeptRows;
use crate::uncommitted::{Uncommitted, UncommittedChunk, are_few, encode_error};
use crate::{Segment, StoreError};
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

/// Rows with consecutive ids in their stored form: one column behind the other, the first byte at a multiple of 64.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredRows {
    /// The id of the first.
    pub first: RowId,
    /// How many.
    pub rows: usize,
    /// The columns.
    pub form: Vec<u8>,
}

/// No statement has this number: it is that of commits that are done again.
const REPLAY: StatementId = StatementId(0);

impl Segment {
    /// Makes the stored form of the rows that a statement has written, and that has not been made yet. Returns what it
    /// takes, and what the ids of rows take that the statement deletes.
    ///
    /// # Errors
    /// There is no memory for it. What was made stays.
    pub fn store_uncommitted(
        &mut self,
        statement: StatementId,
        names: impl Fn(usize) -> String,
        home: ObjectMemory<'_>,
    ) -> Result<u64, StoreError> {
        let Some(uncommitted) = self.uncommitted.get_mut(&statement) else {
            return Ok(0);
        };
        let Uncommitted {
            chunks, reserved, ..
        } = uncommitted;
        let mut bytes = 0;
        let new = chunks.iter_mut().filter(|chunk| chunk.kept.is_none());
        for chunk in new.filter(|chunk| chunk.form.is_none()) {
            let mut form = FormWriter::at(0);
            for (at, column) in chunk.columns.iter().enumerate() {
                let stored = column.store(home, &mut form);
                stored.map_err(|source| encode_error(&names(at), source))?;
            }
            reserved.push(home.memory.budget().try_reserve(form.len() as u64)?);
            bytes += form.len() as u64;
            chunk.form = Some(form.to_vec());
        }
        Ok(bytes)
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
            form: chunk.form.take().expect("it was made"),
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
        added: Vec<(RowId, Vec<ColumnChunk>)>,
        deleted: Vec<RowId>,
        at: Timestamp,
        budget: &Budget,
    ) {
        let chunks = added.into_iter().map(|(first, columns)| {
            assert_eq!(first.segment(), self.id());
            let columns: Vec<_> = columns.into_iter().map(Arc::new).collect();
            let rows = columns.first().map_or(0, |column| column.rows());
            self.pass(first.plus(rows));
            UncommittedChunk {
                few: are_few(&columns, rows),
                columns,
                rows,
                first: Some(first),
                kept: None::<KeptRows>,
                form: None,
            }
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
}
