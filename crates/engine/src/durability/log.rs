//! The end of the log that an owner, or a client, speaks to.

use super::chunks::{Chunks, KeptNumber};
use crate::error::EngineError;
use crate::sequencer::Sequencer;
use eris_column::StoredColumns;
use eris_log::{Entry, LogBuffer, NoRoom, Purpose, RECORD_BYTES, ReservedRoom, Room};
use eris_types::{ObjectId, Timestamp};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// A log buffer, and room for what is said.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    buffer: LogBuffer,
    room: Room,
    chunks: Arc<Chunks>,
    sequencer: Arc<Sequencer>,
    /// Where it is, for messages.
    directory: Arc<str>,
}

/// Why there is no room.
#[derive(Debug)]
pub(crate) enum Denied {
    /// The log thread makes some: it is to be asked again.
    Later,
    /// The statement fails.
    Failed(EngineError),
}

impl Log {
    pub fn new(
        buffer: LogBuffer,
        room: Room,
        chunks: Arc<Chunks>,
        sequencer: Arc<Sequencer>,
        directory: Arc<str>,
    ) -> Self {
        Log {
            buffer,
            room,
            chunks,
            sequencer,
            directory,
        }
    }

    /// Room for a record of so many bytes.
    pub fn reserve(
        &self,
        bytes: u64,
        purpose: Purpose,
        table: &str,
    ) -> Result<ReservedRoom, Denied> {
        let reserved = self.room.reserve(bytes + RECORD_BYTES, purpose);
        reserved.map_err(|denied| match denied {
            NoRoom::Later => {
                self.sequencer.flusher().ring();
                Denied::Later
            }
            NoRoom::Full { bytes } => Denied::Failed(EngineError::DiskFull {
                table: table.to_owned(),
                bytes,
                directory: self.directory.to_string(),
            }),
            NoRoom::Failed => Denied::Failed(self.failed()),
        })
    }

    /// The same, and waits for the log thread if it has to make some.
    ///
    /// # Errors
    /// The disk has none, or has failed.
    pub async fn reserved(
        &self,
        bytes: u64,
        purpose: Purpose,
        table: &str,
    ) -> Result<ReservedRoom, EngineError> {
        poll_fn(|cx| match self.reserve(bytes, purpose, table) {
            Ok(room) => Poll::Ready(Ok(room)),
            Err(Denied::Failed(error)) => Poll::Ready(Err(error)),
            Err(Denied::Later) => {
                // It takes milliseconds, and comes once per file.
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        })
        .await
    }

    /// Says what a commit did, or what belongs to none.
    pub fn say(&self, at: Timestamp, body: Vec<u8>, room: Option<ReservedRoom>) {
        self.buffer.push(Entry { at, body, room });
    }

    /// Has the columns of many rows written into a chunk file.
    pub fn push_chunk(
        &self,
        object: ObjectId,
        table: &str,
        rows: usize,
        columns: StoredColumns,
    ) -> Result<KeptNumber, Denied> {
        let failed = || self.failed();
        self.chunks.push(object, table, rows, columns, failed)
    }

    /// Says what a commit did, and refers to chunks.
    pub fn say_with_chunks(
        &self,
        at: Timestamp,
        body: Vec<u8>,
        room: Option<ReservedRoom>,
        chunks: &[u64],
    ) {
        self.chunks.refer(at, chunks);
        self.buffer.push_with_chunks(Entry { at, body, room });
    }

    /// The chunk files.
    pub fn chunks(&self) -> &Arc<Chunks> {
        &self.chunks
    }

    /// Says what makes up a commit of its own, at the timestamp that is returned, in the room for all of it.
    pub async fn commit(&self, bodies: Vec<Vec<u8>>, room: ReservedRoom) -> Timestamp {
        let at = poll_fn(|cx| self.sequencer.poll_draw(cx)).await;
        let mut room = Some(room);
        // Nothing in between can fail: a timestamp that is never finished stops all others.
        for body in bodies {
            self.say(at, body, room.take());
        }
        self.sequencer.finish(at);
        at
    }

    /// Says something small that belongs to no commit.
    ///
    /// # Errors
    /// The disk has no room, or has failed.
    pub fn note(&self, body: Vec<u8>, table: &str) -> Result<(), EngineError> {
        let room = match self.reserve(body.len() as u64, Purpose::Freeing, table) {
            Ok(room) => Some(room),
            // The next file is on the way, and has room for this, too.
            Err(Denied::Later) => None,
            Err(Denied::Failed(error)) => return Err(error),
        };
        self.say(Timestamp::ZERO, body, room);
        Ok(())
    }

    /// Nothing is written any more.
    pub fn failed(&self) -> EngineError {
        let reason = self.sequencer.failure();
        EngineError::LogFailed {
            reason: reason.map_or_else(String::new, |reason| reason.to_string()),
        }
    }
}
