//! The log writer: gathers what owners have said into groups, writes and flushes them.
//!
//! ```text
//! idle ──(commits are applied that are not durable)──▶ gather ──▶ write ──▶ flush ──▶ durable: idle
//!                                                                  │          │
//!                                                                  ▼          ▼
//!                                                                failed: nothing is written any more
//! ```
//!
//! Why there is one: docs/decisions/0035.
//!
//! It is a state machine that somebody steps: a thread, or a test. One group is under way at a time. While it is
//! flushed, others gather. A flush that has failed is never tried again: the kernel may have thrown the pages away, and
//! a second one would succeed without them. So the log ends there, and what its end is, the next start finds out.

use crate::buffers::{Buffers, Entry, Gathered, LogBuffer};
use crate::bytes::put_number;
use crate::chunks::ChunkWriter;
use crate::ends::{LogEnd, LogStart};
use crate::error::LogError;
use crate::file::{FIRST_GROUP, LOG, LogFile};
use crate::group::{ALIGNMENT, GroupBytes, GroupKind, HEADER};
use crate::next_file::{LogFiles, NextFile};
use crate::place::DatabaseId;
use crate::room::Room;
use eris_disk::{Access, Disk};
use eris_types::Timestamp;
use std::io::IoSlice;
use std::sync::Arc;

/// What a record takes beside its body, at most.
pub const RECORD_BYTES: u64 = 20;
/// What a group takes beside its records, at most.
const GROUP_BYTES: u64 = (HEADER + ALIGNMENT) as u64;
/// The group that says where the log goes on, and the one that closes it.
const LAST_GROUPS: u64 = 2 * (GROUP_BYTES + RECORD_BYTES);

/// How a log is written.
#[derive(Clone, Copy, Debug)]
pub struct LogSettings {
    /// Bytes of a file.
    pub file_bytes: u64,
}

impl Default for LogSettings {
    fn default() -> Self {
        LogSettings {
            file_bytes: 64 << 20,
        }
    }
}

/// What has been written so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Groups that were flushed.
    pub groups: u64,
    /// Bytes of these.
    pub bytes: u64,
}

/// Writes the log.
#[derive(Debug)]
pub struct LogWriter {
    files: LogFiles,
    buffers: Buffers,
    /// Who writes the chunks that entries refer to.
    chunks: Option<ChunkWriter>,
    room: Room,
    file: LogFile,
    /// The file in which it goes on.
    next: Option<LogFile>,
    group: u64,
    through: Timestamp,
    written: Written,
    /// What groups are put together in.
    bytes: Vec<u8>,
    has_failed: bool,
}

impl LogWriter {
    /// Begins the log of a new database, in a file of this number, or of a later one where the disk has little room;
    /// with log buffers for as many as have something to say.
    ///
    /// # Errors
    /// The disk does not have it. No file is left.
    pub fn create(
        disk: Arc<dyn Disk>,
        database: DatabaseId,
        file: u64,
        buffers: usize,
        settings: LogSettings,
    ) -> Result<(Self, Vec<LogBuffer>), LogError> {
        LOG.make_directory(&*disk)?;
        let usual = settings.file_bytes;
        let files = LogFiles::new(Arc::clone(&disk), database, file, usual, &Room::default());
        let first = files.make_for(FIRST_GROUP + LAST_GROUPS)?;
        let end = LogEnd {
            group: 1,
            through: Timestamp::ZERO,
            file: first.number,
            offset: FIRST_GROUP,
            next_file: first.number + 1,
            last: None,
        };
        Ok(LogWriter::on(disk, first, end, buffers, settings))
    }

    /// Goes on with a log that was read, in a new file: what lies behind its end in the last one may be left of a group
    /// that was never whole.
    ///
    /// Its last group is written again. If its flush has failed, the kernel may still show it, and never write it.
    ///
    /// # Errors
    /// The disk does not have it. The log is as it was.
    pub fn go_on(
        disk: Arc<dyn Disk>,
        database: DatabaseId,
        end: LogEnd,
        buffers: usize,
        settings: LogSettings,
    ) -> Result<(Self, Vec<LogBuffer>), LogError> {
        if let Some(last) = end.last {
            let file = LogFile::open(&*disk, database, last.file, Access::ReadWrite)?.file;
            let mut bytes = vec![0; last.bytes as usize];
            file.read_at(&mut bytes, last.offset)?;
            file.write_at(&[IoSlice::new(&bytes)], last.offset)?;
            file.flush()?;
        }
        let mut last = LogFile::open(&*disk, database, end.file, Access::ReadWrite)?;
        last.end = end.offset;
        let (mut writer, starts) = LogWriter::on(disk, last, end, buffers, settings);
        writer.prepare_next(0)?;
        writer.switch()?;
        Ok((writer, starts))
    }

    fn on(
        disk: Arc<dyn Disk>,
        file: LogFile,
        end: LogEnd,
        buffers: usize,
        settings: LogSettings,
    ) -> (Self, Vec<LogBuffer>) {
        let (starts, buffers) = Buffers::new(buffers);
        let (usual, room) = (settings.file_bytes, Room::default());
        let files = LogFiles::new(disk, file.database, end.next_file, usual, &room);
        let writer = LogWriter {
            files,
            buffers,
            chunks: None,
            room,
            file,
            next: None,
            group: end.group,
            through: end.through,
            written: Written::default(),
            bytes: Vec::new(),
            has_failed: false,
        };
        writer.set_limit(false);
        (writer, starts)
    }

    /// From now on entries may refer to chunks that this one writes.
    pub fn refer_to(&mut self, chunks: ChunkWriter) {
        self.chunks = Some(chunks);
    }

    /// Where room for records is reserved.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Where the next file is made by whoever has time for that.
    pub fn files(&self) -> &LogFiles {
        &self.files
    }

    /// The number of the file in use.
    pub(crate) fn file_number(&self) -> u64 {
        self.file.number
    }

    /// What it has written.
    pub fn written(&self) -> Written {
        self.written
    }

    /// All commits up to here are durable.
    pub fn through(&self) -> Timestamp {
        self.through
    }

    /// Whether it has failed: nothing is written any more.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Makes all commits up to `applied` durable, which is read before this is called; returns up to where they are.
    ///
    /// # Errors
    /// The disk has failed. Whether these commits are durable is open until the log is read again, and nothing is
    /// written any more.
    ///
    /// # Panics
    /// If it has failed, or if entries refer to chunks that nobody writes.
    pub fn step(&mut self, applied: Timestamp) -> Result<Timestamp, LogError> {
        assert!(!self.has_failed, "a log that has failed is not written");
        let Gathered {
            entries,
            needs_chunks,
        } = self.buffers.gather(applied);
        if !entries.is_empty() {
            let group = self.group_of(&entries, applied);
            self.has_failed = true;
            let appended = self
                .flush_chunks(needs_chunks)
                .and_then(|()| self.append(group, GroupKind::Records));
            appended.inspect_err(|_| self.room.fail())?;
            self.has_failed = false;
            // What was reserved for them is in use now.
            drop(entries);
            self.set_limit(false);
        }
        self.through = self.through.max(applied);
        Ok(self.through)
    }

    /// What a group refers to is durable before the group is.
    fn flush_chunks(&self, needs_chunks: bool) -> Result<(), LogError> {
        match &self.chunks {
            _ if !needs_chunks => Ok(()),
            Some(chunks) => chunks.flush(),
            None => panic!("entries refer to chunks that nobody writes"),
        }
    }

    fn group_of(&mut self, entries: &[Entry], applied: Timestamp) -> GroupBytes {
        let mut group = GroupBytes::new(std::mem::take(&mut self.bytes), applied);
        for entry in entries {
            group.push(entry.at, &entry.body);
        }
        group
    }

    /// Writes a group and flushes it.
    fn append(&mut self, group: GroupBytes, kind: GroupKind) -> Result<(), LogError> {
        let bytes = group.len() as u64 + GROUP_BYTES;
        if bytes + LAST_GROUPS > self.file.rest() {
            if self.next.as_ref().is_none_or(|next| next.rest() < bytes) {
                self.prepare_next(bytes)?;
            }
            self.switch()?;
        }
        self.write(group, kind)
    }

    fn write(&mut self, group: GroupBytes, kind: GroupKind) -> Result<(), LogError> {
        let bytes = group.finish(self.group, kind, self.file.place());
        self.file.write(&bytes)?;
        self.file.file.flush()?;
        self.group += 1;
        self.written.groups += 1;
        self.written.bytes += bytes.len() as u64;
        self.bytes = bytes;
        Ok(())
    }

    /// The log goes on in the next file. That it does is flushed before anything is written there.
    fn switch(&mut self) -> Result<(), LogError> {
        let next = self.next.take().expect("it was prepared");
        let mut body = Vec::new();
        put_number(&mut body, next.number);
        let mut group = GroupBytes::new(std::mem::take(&mut self.bytes), self.through);
        group.push(Timestamp::ZERO, &body);
        self.write(group, GroupKind::Continued)?;
        self.file.give_back_rest();
        self.file = next;
        Ok(())
    }

    /// Goes on in a new file: in one that was `made`, if no other is ready. With the last room of the disk, one that
    /// has nothing is as good. All that was written before belongs to commits up to the start that this returns.
    ///
    /// # Errors
    /// There is no room for a new file: the log goes on as it was. Or the disk has failed: nothing is written any more,
    /// as after [`LogWriter::step`].
    ///
    /// # Panics
    /// If it has failed.
    pub fn begin_file(&mut self, made: Option<NextFile>) -> Result<LogStart, LogError> {
        assert!(!self.has_failed, "a log that has failed is not written");
        if let Some(made) = made {
            self.take_made(made)?;
        }
        // Checkpoints that fail for want of room must not take some each time.
        if self.room.is_kept() && self.file.end == FIRST_GROUP {
            return Ok(self.start_here());
        }
        // What is reserved has to fit into the new file. Whoever reserves from now on goes by its limit.
        let next = self.next.as_ref().map_or(0, room_for_records);
        self.room.set_limit(next, false);
        let reserved = self.room.reserved();
        if self.next.is_none() || next < reserved {
            let made = self.prepare_next(reserved + GROUP_BYTES);
            made.inspect_err(|_| self.set_limit(true))?;
        }
        self.has_failed = true;
        self.switch().inspect_err(|_| self.room.fail())?;
        self.has_failed = false;
        self.set_limit(false);
        Ok(self.start_here())
    }

    fn start_here(&self) -> LogStart {
        LogStart {
            file: self.file.number,
            group: self.group,
            through: self.through,
        }
    }

    /// Takes a file that was made for it. Numbers rise along the log, and meanwhile it may have gone on in a later one.
    fn take_made(&mut self, made: NextFile) -> Result<(), LogError> {
        match self.next.is_none() && made.0.number > self.file.number {
            true => self.next = Some(made.0),
            false => self.files.remove(made.0)?,
        }
        Ok(())
    }

    /// Makes the next file, with room for so many bytes of a group at least.
    fn prepare_next(&mut self, bytes: u64) -> Result<(), LogError> {
        if let Some(small) = self.next.take() {
            self.files.remove(small)?;
        }
        let made = self.files.make_for(FIRST_GROUP + bytes + LAST_GROUPS)?;
        self.next = Some(made);
        Ok(())
    }

    /// Sees to it that there is room for what others will say: makes the next file before the present one is full. To
    /// be called when nobody waits for a flush.
    ///
    /// # Errors
    /// The disk has no room. What was reserved is kept, and who wants more is told.
    pub fn prepare(&mut self) -> Result<(), LogError> {
        let wanted = self.room.take_wanted();
        let is_short = |file: &LogFile| file.rest() < wanted + GROUP_BYTES + LAST_GROUPS;
        let half_full = self.file.rest() < self.files.usual() / 2 && !self.room.is_kept();
        let needed = match &self.next {
            None => half_full || is_short(&self.file),
            Some(next) => is_short(next) && is_short(&self.file),
        };
        let made = match needed {
            // Whoever has found too little asks again soon, with others.
            true => self.prepare_next(2 * wanted + GROUP_BYTES),
            false => Ok(()),
        };
        self.set_limit(made.is_err());
        made
    }

    fn set_limit(&self, is_full: bool) {
        let next = self.next.as_ref().map_or(0, room_for_records);
        let limit = room_for_records(&self.file).max(next);
        self.room.set_limit(limit, is_full);
    }

    /// Says that the log is closed; nobody has anything to say any more.
    ///
    /// # Errors
    /// The disk has failed. Then the next start finds a log that was not closed.
    pub fn close(mut self, applied: Timestamp) -> Result<(), LogError> {
        self.step(applied)?;
        self.room.fail();
        let group = GroupBytes::new(std::mem::take(&mut self.bytes), self.through);
        // Its room is kept back in every file.
        self.write(group, GroupKind::Closed)?;
        self.file.give_back_rest();
        match self.next.take() {
            Some(next) => self.files.remove(next),
            None => Ok(()),
        }
    }
}

/// Bytes of records that find room in a file as one group.
fn room_for_records(file: &LogFile) -> u64 {
    file.rest().saturating_sub(GROUP_BYTES + LAST_GROUPS)
}
