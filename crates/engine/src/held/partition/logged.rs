//! What the log gets to know of a statement's rows.
//!
//! ```text
//! written ─ stored form of the rows ─▶ checked ─ room in the log ─▶ commit: said, and then stamped
//!    └───── columns of many rows ─▶ chunk files ─ their numbers ──────────────┘
//! ```
//!
//! A commit cannot fail, so all that can is done before it: the stored form takes memory, and the record takes room on
//! the disk. It is said before rows are stamped. If an owner panics over the stamping, the log has it, and the next
//! start finds it whole.

use super::Partition;
use crate::durability::{Denied, records};
use crate::error::{EngineError, store_error};
use eris_column::{ObjectMemory, StoredColumns};
use eris_log::{Purpose, ReservedRoom};
use eris_store::{Segment, StoreError, StoredIn};
use eris_types::{RowId, StatementId, Timestamp};
use std::sync::Arc;

/// What a statement that has not committed will say.
#[derive(Debug, Default)]
pub(crate) struct Unlogged {
    /// The bytes of the stored forms of its rows, and how many pieces these are.
    forms: u64,
    pieces: u64,
    /// How many chunks of many rows it has.
    many: u64,
    /// In how many runs of consecutive ids the rows are, at most, that it deletes.
    deleted: u64,
    /// Room for all of it.
    room: Option<ReservedRoom>,
}

/// In how many runs of consecutive ids so many of these rows are, at most. Each row that is not here parts a run.
fn most_runs(ids: &[RowId], here: u64) -> u64 {
    let follows = |pair: &[RowId]| pair[0].plus(1) == pair[1];
    let breaks = ids.windows(2).filter(|pair| !follows(pair)).count() as u64;
    let missing = ids.len() as u64 - here;
    here.min(1 + breaks + missing)
}

impl Partition {
    /// Notes which rows the statement will delete: those of `ids` that are here. Says how many they are.
    pub fn write_deletes(
        &mut self,
        statement: StatementId,
        ids: &[RowId],
        home: ObjectMemory<'_>,
    ) -> Result<u64, StoreError> {
        let (mut found, mut runs) = (0, 0);
        for segment in &mut self.segments {
            let first = ids.partition_point(|id| id.segment() < segment.id());
            let end = ids.partition_point(|id| id.segment() <= segment.id());
            let budget = home.memory.budget();
            let here = segment.delete_uncommitted(statement, &ids[first..end], budget)?;
            (found, runs) = (found + here, runs + most_runs(&ids[first..end], here));
        }
        self.note_deletes(statement, runs);
        Ok(found)
    }

    /// Makes the stored form of what a statement has written since.
    pub(super) fn store_forms(
        &mut self,
        statement: StatementId,
        home: ObjectMemory<'_>,
    ) -> Result<(), StoreError> {
        if self.log.is_none() {
            return Ok(());
        }
        let fields = self.object.schema.fields();
        let name = |column: usize| fields[column].name().clone();
        let (mut bytes, mut pieces, mut many) = (0, 0, 0);
        for segment in &mut self.segments {
            let made = segment.store_uncommitted(statement, name, home)?;
            bytes += made.bytes;
            pieces += made.pieces;
            many += made.chunks;
        }
        let unlogged = self.unlogged.entry(statement).or_default();
        unlogged.forms += bytes;
        unlogged.pieces += pieces;
        unlogged.many = many;
        if many > 0 {
            // Whoever finds no room asks again before the commit.
            let _ = self.push_chunks(statement, home)?;
        }
        Ok(())
    }

    /// Has the columns of many rows written that are in no chunk file yet. Says whether there was room for all.
    fn push_chunks(
        &mut self,
        statement: StatementId,
        home: ObjectMemory<'_>,
    ) -> Result<Result<(), Denied>, StoreError> {
        let Some(log) = &self.log else {
            return Ok(Ok(()));
        };
        let many = (self.segments.iter()).flat_map(|segment| segment.chunks_for_files(statement));
        for (rows, columns, number) in many {
            let columns = columns.iter().enumerate().map(|(at, column)| {
                let column = column.unordered(home);
                column.map_err(|source| StoreError::Encode {
                    column: self.object.schema.field(at).name().clone(),
                    source,
                })
            });
            let columns = StoredColumns::new(columns.collect::<Result<_, _>>()?);
            let pushed = log.push_chunk(self.object.id, &self.object.name, rows, columns);
            match pushed {
                Ok(kept) => number.set(kept.number, Some(Arc::new(kept))),
                Err(denied) => return Ok(Err(denied)),
            }
        }
        Ok(Ok(()))
    }

    /// A statement will delete rows in so many runs of consecutive ids.
    fn note_deletes(&mut self, statement: StatementId, runs: u64) {
        if self.log.is_some() && runs > 0 {
            self.unlogged.entry(statement).or_default().deleted += runs;
        }
    }

    /// Takes room in the log, and in chunk files, for all that a statement does here, unless it has it. Says whether
    /// there was some; if not, it is to be asked again.
    ///
    /// # Errors
    /// The disk has none, or has failed.
    pub fn reserve_room(
        &mut self,
        statement: StatementId,
        home: ObjectMemory<'_>,
    ) -> Result<bool, EngineError> {
        let Some(unlogged) = self.unlogged.get(&statement) else {
            return Ok(true);
        };
        if unlogged.room.is_some() {
            return Ok(true);
        }
        if unlogged.many > 0 {
            let pushed = self.push_chunks(statement, home);
            match pushed.map_err(|error| store_error(&self.object.name, &error))? {
                Ok(()) => {}
                Err(Denied::Later) => return Ok(false),
                Err(Denied::Failed(error)) => return Err(error),
            }
        }
        let (Some(log), Some(unlogged)) = (&self.log, self.unlogged.get_mut(&statement)) else {
            return Ok(true);
        };
        let Unlogged {
            forms,
            pieces,
            many,
            deleted,
            ..
        } = *unlogged;
        let pieces = pieces + many;
        let purpose = match pieces {
            0 => Purpose::Freeing,
            _ => Purpose::Adding,
        };
        let bytes = records::rows_bytes(forms, pieces, deleted);
        match log.reserve(bytes, purpose, &self.object.name) {
            Ok(room) => {
                unlogged.room = Some(room);
                Ok(true)
            }
            Err(Denied::Later) => Ok(false),
            Err(Denied::Failed(error)) => Err(error),
        }
    }

    /// Says what a statement does, right before it is stamped.
    pub(super) fn say(&mut self, statement: StatementId, at: Timestamp) {
        let Some(log) = &self.log else {
            return;
        };
        // Rows that were another owner's and keep their ids are nothing to be said.
        let Some(unlogged) = self.unlogged.remove(&statement) else {
            return;
        };
        let segments = self.segments.iter_mut();
        let committed = segments.map(|segment: &mut Segment| segment.committed_rows(statement));
        let committed: Vec<_> = committed.collect();
        let Some(body) = records::rows(self.object.id, self.owner, &committed) else {
            return;
        };
        assert!(unlogged.room.is_some(), "room was taken before the commit");
        if unlogged.many == 0 {
            return log.say(at, body, unlogged.room);
        }
        let pieces = committed.iter().flat_map(|segment| &segment.added);
        let chunks = pieces.filter_map(|piece| match piece.columns {
            StoredIn::Bytes(_) => None,
            StoredIn::ChunkFile(number) => Some(number),
        });
        log.say_with_chunks(at, body, unlogged.room, &chunks.collect::<Vec<_>>());
    }

    /// The same as [`Partition::reserve_room`] for a statement that waits for nothing.
    pub(super) fn has_room(
        &mut self,
        statement: StatementId,
        home: ObjectMemory<'_>,
    ) -> Result<bool, EngineError> {
        let stored = self.store_forms(statement, home);
        stored.map_err(|error| store_error(&self.object.name, &error))?;
        self.reserve_room(statement, home)
    }
}
