//! Large chunks on their way to chunk files, and what the log says of them.
//!
//! ```text
//! owner ── columns, shared ──▶ chunk buffer ──▶ chunk thread ──▶ chunk file
//!   │         in memory: 7 9
//!   └─ commit t12: "rows of chunk 7" ──▶ log    said: 7 at t12      until a checkpoint has all up to t12
//! ```
//!
//! Columns are written while their statement runs, without a copy. If it fails, nothing refers to them. What may be
//! removed from chunk files, a checkpoint finds out: what neither its snapshot has, nor the log behind it, nor a chunk
//! in memory, whose number a later statement or checkpoint may refer to.

use super::checkpoint_error;
use super::log::Denied;
use crate::error::EngineError;
use crate::sequencer::Doorbell;
use eris_atomics::Lock;
use eris_column::StoredColumns;
use eris_log::{
    Chunk, ChunkBuffer, ChunkFiles, ChunkSettings, ChunkWriter, Form, LogError, NoRoom, Purpose,
    ReservedRoom, chunk_bytes,
};
use eris_types::{ObjectId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The chunk files of a database that is being written.
pub(crate) struct Chunks {
    pub files: ChunkFiles,
    pub writer: ChunkWriter,
    settings: ChunkSettings,
    buffer: ChunkBuffer,
    /// Wakes the chunk thread.
    pub bell: Doorbell,
    known: Lock<Known>,
    /// Where the database is, for messages.
    directory: Arc<str>,
}

/// Chunks that no snapshot needs to have.
#[derive(Debug, Default)]
struct Known {
    /// Those that chunks in memory have got in this process, also of statements that have not committed.
    in_memory: BTreeSet<u64>,
    /// What the log refers to, and the newest commit that does.
    said: BTreeMap<u64, Timestamp>,
}

/// The number of a chunk in memory, as long as there is one.
#[derive(Debug)]
pub(crate) struct KeptNumber {
    pub number: u64,
    chunks: Arc<Chunks>,
}

impl Drop for KeptNumber {
    fn drop(&mut self) {
        self.chunks.known.lock().in_memory.remove(&self.number);
    }
}

/// Columns as whoever writes chunk files takes them.
#[derive(Debug)]
struct Columns(StoredColumns);

impl Form for Columns {
    fn with_pieces(&self, take: &mut dyn FnMut(&[&[u8]])) {
        self.0.with_pieces(take);
    }
}

impl Chunks {
    /// Of what was read, and is written on. The log refers to these chunks.
    pub fn new(
        (files, writer, buffer): (ChunkFiles, ChunkWriter, ChunkBuffer),
        settings: ChunkSettings,
        said: BTreeMap<u64, Timestamp>,
        directory: Arc<str>,
    ) -> Self {
        Chunks {
            files,
            writer,
            settings,
            buffer,
            bell: Doorbell::default(),
            known: Lock::new(Known {
                said,
                ..Known::default()
            }),
            directory,
        }
    }

    /// Has columns of a statement written.
    pub fn push(
        self: &Arc<Self>,
        object: ObjectId,
        table: &str,
        rows: usize,
        columns: StoredColumns,
        failed: impl Fn() -> EngineError,
    ) -> Result<KeptNumber, Denied> {
        let room = self
            .reserve(&columns, table, Purpose::Adding, failed)
            .inspect_err(|denied| {
                if let Denied::Later = denied {
                    self.bell.ring();
                }
            })?;
        let kept = self.keep_number();
        self.push_as(kept.number, object, rows, columns, room);
        self.bell.ring();
        Ok(kept)
    }

    /// A new number.
    fn keep_number(self: &Arc<Self>) -> KeptNumber {
        let mut known = self.known.lock();
        let number = self.buffer.next_number();
        known.in_memory.insert(number);
        let chunks = Arc::clone(self);
        KeptNumber { number, chunks }
    }

    /// Has columns that a snapshot has written, on this thread if the chunk thread is not fast enough. Returns their
    /// number.
    ///
    /// # Errors
    /// The disk has no room, or has failed.
    pub fn write(
        self: &Arc<Self>,
        object: ObjectId,
        table: &str,
        rows: usize,
        columns: StoredColumns,
    ) -> Result<KeptNumber, EngineError> {
        // What has failed says so again.
        let failed = || EngineError::Checkpoint {
            reason: match self.writer.step() {
                Err(error) => error.to_string(),
                Ok(_) => "the database was closed".to_owned(),
            },
        };
        let room = loop {
            match self.reserve(&columns, table, Purpose::Freeing, failed) {
                Ok(room) => break room,
                Err(Denied::Failed(error)) => return Err(error),
                Err(Denied::Later) => {
                    // Whoever finds no room then is told.
                    let _ = self.writer.prepare();
                    self.writer
                        .step()
                        .map_err(|error| checkpoint_error(&error))?;
                }
            }
        };
        let kept = self.keep_number();
        self.push_as(kept.number, object, rows, columns, room);
        self.writer
            .step()
            .map_err(|error| checkpoint_error(&error))?;
        Ok(kept)
    }

    fn reserve(
        &self,
        columns: &StoredColumns,
        table: &str,
        purpose: Purpose,
        failed: impl Fn() -> EngineError,
    ) -> Result<ReservedRoom, Denied> {
        let bytes = chunk_bytes(columns.bytes() as u64);
        let reserved = self.writer.room().reserve(bytes, purpose);
        reserved.map_err(|denied| match denied {
            NoRoom::Later => Denied::Later,
            NoRoom::Full { bytes } => Denied::Failed(EngineError::DiskFull {
                table: table.to_owned(),
                bytes,
                directory: self.directory.to_string(),
            }),
            NoRoom::Failed => Denied::Failed(failed()),
        })
    }

    fn push_as(
        &self,
        number: u64,
        object: ObjectId,
        rows: usize,
        columns: StoredColumns,
        room: ReservedRoom,
    ) {
        self.buffer.push(Chunk {
            number,
            object,
            rows: rows as u64,
            form: Box::new(Columns(columns)),
            room,
        });
    }

    /// The log refers to chunks, with a commit.
    pub fn refer(&self, at: Timestamp, numbers: &[u64]) {
        let mut known = self.known.lock();
        for number in numbers {
            let newest = known.said.entry(*number).or_default();
            *newest = at.max(*newest);
        }
    }

    /// A number that no chunk has had.
    pub fn next_number(&self) -> u64 {
        self.buffer.next_undrawn()
    }

    /// A snapshot has all up to a commit, with these chunks. What nothing else refers to is removed.
    ///
    /// # Errors
    /// The disk has failed. It may have lost the name of a file that is being made, too.
    pub fn retain(&self, of_snapshot: &BTreeSet<u64>, at: Timestamp) -> Result<(), LogError> {
        let (referred, next) = {
            let mut known = self.known.lock();
            known.said.retain(|_, newest| *newest > at);
            let said = known.said.keys().chain(&known.in_memory);
            let referred: BTreeSet<u64> = said.copied().collect();
            // Chunks that come later are in memory, too.
            (referred, self.next_number())
        };
        self.files.retain(|number| {
            number >= next || referred.contains(&number) || of_snapshot.contains(&number)
        })
    }

    /// Files of which little is in use are written anew, as long as it goes on. Returns why some stay as they are:
    /// there is no room, or a chunk cannot be read.
    ///
    /// # Errors
    /// As [`Chunks::retain`].
    pub fn rewrite(&self, goes_on: impl Fn() -> bool) -> Result<Option<LogError>, LogError> {
        while let Some(mut rewrite) = self.files.rewrite(self.settings) {
            loop {
                if !goes_on() {
                    return Ok(None);
                }
                match rewrite.step() {
                    Ok(true) => break,
                    Ok(false) => {}
                    Err(error) => return Ok(Some(error)),
                }
            }
            rewrite.finish()?;
        }
        Ok(None)
    }
}

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunks({:?})", self.known.lock())
    }
}
