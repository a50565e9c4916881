//! The file in which the log goes on, made before it is needed: by the log writer, or by somebody else meanwhile.
//!
//! ```text
//! log writer    ─ group ─ group ─ group ──────── goes on in file 8 ─ group ─ …     waits for one flush
//! somebody else          └ makes file 8 ────────┘                                  waits for three
//! ```

use crate::error::LogError;
use crate::file::{LOG, LogFile};
use crate::place::DatabaseId;
use crate::room::Room;
use eris_disk::{Disk, Reason};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The least file, on a disk that has no room for more.
pub(crate) const LEAST_FILE: u64 = 64 << 10;

/// Where files of a log are made. Clones are the same one.
#[derive(Clone, Debug)]
pub struct LogFiles {
    disk: Arc<dyn Disk>,
    database: DatabaseId,
    /// The number of the next one. A number that was tried is not used again.
    next: Arc<AtomicU64>,
    usual: u64,
    room: Room,
}

/// A file in which a log may go on. It is on the medium, and nothing of the log yet.
#[derive(Debug)]
pub struct NextFile(pub(crate) LogFile);

impl LogFiles {
    /// For files of so many bytes, from this number on.
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        database: DatabaseId,
        next: u64,
        usual: u64,
        room: &Room,
    ) -> Self {
        LogFiles {
            disk,
            database,
            next: Arc::new(AtomicU64::new(next)),
            usual,
            room: room.clone(),
        }
    }

    /// Bytes of a file.
    pub(crate) fn usual(&self) -> u64 {
        self.usual
    }

    /// Bytes of a new file. The last room of the disk is not for the log alone.
    fn length(&self) -> u64 {
        match self.room.is_kept() {
            true => LEAST_FILE.min(self.usual),
            false => self.usual,
        }
    }

    /// Makes a file of the usual length, which the log writer is then [given](crate::LogWriter::begin_file). If it
    /// never is, the next start removes the file.
    ///
    /// # Errors
    /// The disk has no room, or has failed.
    pub fn make(&self) -> Result<NextFile, LogError> {
        self.create(self.length()).map(NextFile)
    }

    /// Makes a file of the usual length, or of `bytes` if these are more. Of a disk that is nearly full it takes less,
    /// but not less than these.
    pub(crate) fn make_for(&self, bytes: u64) -> Result<LogFile, LogError> {
        let least = bytes.max(LEAST_FILE.min(self.usual));
        let mut length = self.length().max(least);
        loop {
            match self.create(length) {
                Err(LogError::Disk(error))
                    if matches!(error.reason, Reason::Full { .. }) && length > least =>
                {
                    length = (length / 2).max(least);
                }
                made => return made,
            }
        }
    }

    fn create(&self, length: u64) -> Result<LogFile, LogError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        LogFile::create(&*self.disk, self.database, number, length)
    }

    /// Removes a file that is not needed.
    pub(crate) fn remove(&self, file: LogFile) -> Result<(), LogError> {
        let path = LOG.path_of(file.number);
        drop(file);
        Ok(self.disk.remove(&path)?)
    }
}
