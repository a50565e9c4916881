//! The chunk writer: writes what owners have pushed into the file in use, and flushes it.
//!
//! ```text
//! owners ── push ──▶ queue ── step: in the background ──▶ file in use: flushed every 8 MiB
//!                        └─── flush: before a group of the log that refers to chunks
//! ```
//!
//! It is a state machine that somebody steps. Two threads do: one in the background, and the log thread. So it has a
//! lock. A step in the background does nothing when the log thread waits, for that writes everything anyway.
//!
//! ```text
//! files of 4 · 4 · 6 · 9 … 256 MiB      each as long as what was written before
//! ```
//!
//! No file is made before somebody wants room, and a small database has small ones. The next one is made when half of
//! the one in use is full. What is reserved at a time fits into the rest of the file in use, or into the next one
//! ([`Room`]).
//!
//! A flush that has failed is never tried again, as in the log: nothing is written from then on.

use super::entry::{ChunkInfo, Head, chunk_bytes};
use super::file::{CHUNKS, ChunkFile, Contents, FIRST_ENTRY};
use super::files::{ChunkFiles, ChunkPlace, FileState};
use crate::error::LogError;
use crate::room::{ReservedRoom, Room};
use crossbeam_channel::{Receiver, Sender, unbounded};
use eris_disk::Reason;
use eris_types::ObjectId;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The stored form of a chunk, as whoever pushes it has it. It is written as it is, without a copy.
pub trait Form: Send + Debug {
    /// Calls `take` once with its pieces, one behind the other. The first byte will lie at a multiple of 64.
    fn with_pieces(&self, take: &mut dyn FnMut(&[&[u8]]));
}

impl Form for Vec<u8> {
    fn with_pieces(&self, take: &mut dyn FnMut(&[&[u8]])) {
        take(&[self]);
    }
}

/// A chunk on its way into a file.
#[derive(Debug)]
pub struct Chunk {
    /// [Its number](ChunkBuffer::next_number).
    pub number: u64,
    /// The data object.
    pub object: ObjectId,
    /// Rows.
    pub rows: u64,
    /// Its stored form.
    pub form: Box<dyn Form>,
    /// Room for it: [`chunk_bytes`] of its stored form.
    pub room: ReservedRoom,
}

/// An owner's end of the chunk writer's queue.
#[derive(Clone, Debug)]
pub struct ChunkBuffer {
    queue: Sender<Chunk>,
    numbers: Arc<AtomicU64>,
}

/// The first file is this part of one of a large database.
const FIRST_PART: u64 = 64;

/// How chunk files are written.
#[derive(Clone, Copy, Debug)]
pub struct ChunkSettings {
    /// Bytes of a file of a large database; one with a larger chunk is longer.
    pub file_bytes: u64,
    /// The most bytes that are written between two flushes.
    pub dirty_bytes: u64,
}

impl Default for ChunkSettings {
    fn default() -> Self {
        ChunkSettings {
            file_bytes: 256 << 20,
            dirty_bytes: 8 << 20,
        }
    }
}

/// What has been written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunksWritten {
    /// Chunks.
    pub chunks: u64,
    /// Bytes of these, with their heads.
    pub bytes: u64,
    /// Flushes of files.
    pub flushes: u64,
}

/// Writes chunk files. Clones are the same one.
#[derive(Clone, Debug)]
pub struct ChunkWriter(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    room: Room,
    /// How many wait for a flush. Whoever waits counts itself before it takes the lock; a step in the background only
    /// reads it, to give way, and nothing goes by it.
    waiting: AtomicU64,
}

#[derive(Debug)]
struct State {
    files: ChunkFiles,
    settings: ChunkSettings,
    queue: Receiver<Chunk>,
    room: Room,
    /// The file in use, and the one after it. `None` before somebody wants room.
    file: Option<ChunkFile>,
    next: Option<ChunkFile>,
    written: ChunksWritten,
    failed: Option<LogError>,
}

impl ChunkBuffer {
    /// A number that no other chunk of the database has.
    pub fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// A number behind all that were drawn, to be kept for the next start.
    pub fn next_undrawn(&self) -> u64 {
        self.numbers.load(Ordering::Relaxed)
    }

    /// Pushes a chunk, to be written soon. What is pushed after the writer has failed is lost; [`Room`] says so first.
    pub fn push(&self, chunk: Chunk) {
        let _ = self.queue.send(chunk);
    }
}

impl ChunkWriter {
    /// Begins to write, in a new file. What nothing refers to any more is removed.
    ///
    /// The next chunk has the number `next_chunk`, or a greater one if there are such. Whoever keeps up to where
    /// numbers were drawn says so. Otherwise a number may be drawn again that a removed file had; and if its removal
    /// was never stored, the next start finds two chunks of this number, and says so.
    ///
    /// # Errors
    /// A chunk that is referred to is not there, or the disk has failed.
    pub fn go_on(
        files: &ChunkFiles,
        referred_to: &BTreeSet<u64>,
        next_chunk: u64,
        settings: ChunkSettings,
    ) -> Result<(Self, ChunkBuffer), LogError> {
        files.make_ready(referred_to, next_chunk)?;
        CHUNKS.make_directory(&**files.disk())?;
        let (start, queue) = unbounded();
        let room = Room::default();
        let state = State {
            files: files.clone(),
            settings,
            queue,
            room: room.clone(),
            file: None,
            next: None,
            written: ChunksWritten::default(),
            failed: None,
        };
        let buffer = ChunkBuffer {
            queue: start,
            numbers: Arc::new(AtomicU64::new(files.next_chunk())),
        };
        let shared = Shared {
            state: Mutex::new(state),
            room,
            waiting: AtomicU64::new(0),
        };
        Ok((ChunkWriter(Arc::new(shared)), buffer))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().expect("nothing panics while it has it")
    }

    /// Where room for chunks is reserved: [`chunk_bytes`] for each.
    pub fn room(&self) -> &Room {
        &self.0.room
    }

    /// What it has written.
    pub fn written(&self) -> ChunksWritten {
        self.state().written()
    }

    /// Writes what was pushed, until so much was written that it flushes. Returns whether more is waiting.
    ///
    /// # Errors
    /// The disk has failed, now or before. Nothing is written any more.
    pub fn step(&self) -> Result<bool, LogError> {
        if self.0.waiting.load(Ordering::Relaxed) > 0 {
            return Ok(true);
        }
        self.state().or_fail(State::step)
    }

    /// Has all on the medium that was pushed before.
    ///
    /// # Errors
    /// The disk has failed, now or before. Nothing is written any more.
    pub fn flush(&self) -> Result<(), LogError> {
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state();
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        state.or_fail(State::flush)
    }

    /// Sees to it that there is room for what others will push: makes the next file before the present one is full.
    ///
    /// # Errors
    /// The disk has no room. What was reserved is kept, and who wants more is told.
    pub fn prepare(&self) -> Result<(), LogError> {
        let mut state = self.state();
        match &state.failed {
            Some(error) => Err(error.clone()),
            None => state.prepare(),
        }
    }

    /// Has all on the medium that was pushed, and gives back what is left of the file. There is no room any more.
    ///
    /// # Errors
    /// The disk has failed.
    pub fn close(&self) -> Result<(), LogError> {
        self.state().or_fail(State::close)
    }
}

impl State {
    /// Does something, unless it has failed. An error ends it.
    fn or_fail<T>(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        act(self).inspect_err(|error| {
            self.failed = Some(error.clone());
            self.room.fail();
            // Nobody will write them.
            self.queue.try_iter().for_each(drop);
        })
    }

    fn written(&self) -> ChunksWritten {
        let flushes = self.file.as_ref().map_or(0, |file| file.flushes);
        ChunksWritten {
            flushes: self.written.flushes + flushes,
            ..self.written
        }
    }

    fn step(&mut self) -> Result<bool, LogError> {
        let until = self.written.bytes + self.settings.dirty_bytes;
        while self.written.bytes < until {
            let Ok(chunk) = self.queue.try_recv() else {
                return Ok(false);
            };
            self.append(chunk)?;
        }
        Ok(!self.queue.is_empty())
    }

    fn flush(&mut self) -> Result<(), LogError> {
        // Others go on pushing meanwhile.
        for _ in 0..self.queue.len() {
            let chunk = self.queue.try_recv().expect("nobody else takes any");
            self.append(chunk)?;
        }
        self.file.as_mut().map_or(Ok(()), ChunkFile::flush)
    }

    fn append(&mut self, chunk: Chunk) -> Result<(), LogError> {
        let mut appended = Ok(());
        chunk
            .form
            .with_pieces(&mut |form| appended = self.append_form(&chunk, form));
        appended?;
        // What was reserved for it is in use now.
        drop(chunk);
        self.set_limit(false);
        Ok(())
    }

    fn append_form(&mut self, chunk: &Chunk, form: &[&[u8]]) -> Result<(), LogError> {
        let info = ChunkInfo {
            object: chunk.object,
            rows: chunk.rows,
            bytes: form.iter().map(|piece| piece.len() as u64).sum(),
        };
        let bytes = chunk_bytes(info.bytes);
        if rest(&self.file) < bytes {
            if rest(&self.next) < bytes {
                self.prepare_next(bytes)?;
            }
            self.switch()?;
        }
        let head = Head {
            number: chunk.number,
            info,
            checksum: 0,
        };
        let file = self.file.as_mut().expect("it has room");
        let (offset, head) = file.append(head, form)?;
        let file = file.number;
        self.written.chunks += 1;
        self.written.bytes += bytes;
        let place = ChunkPlace { file, offset, head };
        self.files.state().add(place);
        Ok(())
    }

    /// Goes on in the next file, once all of this one is on the medium.
    fn switch(&mut self) -> Result<(), LogError> {
        self.finish_file()?;
        let next = self.next.take().expect("it was prepared");
        let state = FileState {
            length: next.end,
            end: next.end,
            live: 0,
            is_busy: true,
        };
        self.files.state().files.insert(next.number, state);
        self.file = Some(next);
        Ok(())
    }

    fn finish_file(&mut self) -> Result<(), LogError> {
        if let Some(mut file) = self.file.take() {
            file.finish()?;
            self.written.flushes += file.flushes;
            let mut state = self.files.state();
            let known = state.files.get_mut(&file.number);
            known.expect("it was in use").is_busy = false;
        }
        Ok(())
    }

    /// Makes the next file, with room for an entry of so many bytes. Of a disk that is nearly full it takes less than
    /// usual.
    fn prepare_next(&mut self, bytes: u64) -> Result<(), LogError> {
        self.drop_next()?;
        let least = FIRST_ENTRY + bytes;
        let mut length = match self.room.is_kept() {
            // The last room of the disk is not for chunks alone.
            true => least,
            false => self.usual().max(least),
        };
        let (disk, database) = (self.files.disk(), self.files.database());
        let made = loop {
            let number = self.files.next_file();
            match ChunkFile::create(&**disk, database, number, length, Contents::Chunks) {
                Err(LogError::Disk(error))
                    if matches!(error.reason, Reason::Full { .. }) && length > least =>
                {
                    length = (length / 2).max(least);
                }
                made => break made?,
            }
        };
        self.next = Some(made.flushing_every(self.settings.dirty_bytes));
        Ok(())
    }

    /// Bytes of a new file: as many as all files have written.
    fn usual(&self) -> u64 {
        let file_bytes = self.settings.file_bytes;
        let all = self.files.state().files.values().map(|file| file.end).sum();
        file_bytes.min(all).max(file_bytes / FIRST_PART)
    }

    /// Throws away a next file that is too short or not needed. It may come back after a crash, and then has nothing.
    fn drop_next(&mut self) -> Result<(), LogError> {
        if let Some(small) = self.next.take() {
            let path = CHUNKS.path_of(small.number);
            drop(small);
            self.files.disk().remove(&path)?;
        }
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), LogError> {
        let longest = self.room.take_longest();
        let is_short = rest(&self.file) < longest && rest(&self.next) < longest;
        let is_half_full = match &self.file {
            Some(file) => self.next.is_none() && file.is_half_full() && !self.room.is_kept(),
            None => false,
        };
        let made = match is_short || is_half_full {
            // Whoever has found too little is not alone.
            true => self.prepare_next(2 * longest),
            false => Ok(()),
        };
        self.set_limit(made.is_err());
        made
    }

    fn set_limit(&self, is_full: bool) {
        let limit = rest(&self.file).max(rest(&self.next));
        self.room.set_limit(limit, is_full);
    }

    fn close(&mut self) -> Result<(), LogError> {
        self.flush()?;
        self.finish_file()?;
        self.room.fail();
        self.drop_next()
    }
}

fn rest(file: &Option<ChunkFile>) -> u64 {
    file.as_ref().map_or(0, ChunkFile::rest)
}
