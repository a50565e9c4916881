//! A file of the log ([its header](crate::header)): groups, one behind the other, from byte 64 on.
//!
//! It is allocated in advance, so behind the groups there are zeros. It becomes part of the log with the group that
//! says that the log goes on there. The header says how much was allocated: only a file that is complete gives back the
//! rest. So another one that is shorter was cut off.

use crate::error::LogError;
use crate::header::{FileKind, HEADER_BYTES, NO_HEADER, OpenFile, Own};
use crate::place::{DatabaseId, Place};
use eris_disk::{Access, Disk, File};
use std::io::IoSlice;

/// Where groups begin.
pub(crate) const FIRST_GROUP: u64 = HEADER_BYTES;

/// The files of the log.
pub(crate) const LOG: FileKind = FileKind {
    magic: *b"ERISLOG\n",
    directory: "log",
    suffix: "log",
    kind: 0,
    own: &[],
};

/// A file of the log, and where it ends.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub file: Box<dyn File>,
    pub number: u64,
    pub database: DatabaseId,
    /// Where the next group goes.
    pub end: u64,
    /// Up to where room is allocated.
    pub length: u64,
    /// Up to where it was at first.
    pub allocated: u64,
}

impl LogFile {
    /// Makes a file in which the log may go on, and has it on the medium with its name.
    pub fn create(
        disk: &dyn Disk,
        database: DatabaseId,
        number: u64,
        length: u64,
    ) -> Result<Self, LogError> {
        let mut own = Own::default();
        own[..8].copy_from_slice(&length.to_le_bytes());
        Ok(LogFile {
            file: LOG.create(disk, database, number, length, own)?,
            number,
            database,
            end: FIRST_GROUP,
            length,
            allocated: length,
        })
    }

    /// Opens a file that the log is known to go on in.
    pub fn open(
        disk: &dyn Disk,
        database: DatabaseId,
        number: u64,
        access: Access,
    ) -> Result<Self, LogError> {
        let open = LOG.open(disk, database, number, access)?;
        let Some(own) = open.own else {
            let path = open.file.path();
            return Err(LogError::damaged(path, 0, NO_HEADER));
        };
        let allocated = u64::from_le_bytes(own[..8].try_into().expect("eight bytes"));
        Ok(LogFile {
            allocated,
            ..LogFile::of_any_length(open, number, database)
        })
    }

    /// A file that was opened, of which nobody knows what was allocated.
    pub fn of_any_length(open: OpenFile, number: u64, database: DatabaseId) -> Self {
        LogFile {
            file: open.file,
            number,
            database,
            end: FIRST_GROUP,
            length: open.length,
            allocated: open.length,
        }
    }

    /// Bytes that are left for groups.
    pub fn rest(&self) -> u64 {
        self.length.saturating_sub(self.end)
    }

    /// Where the next group goes.
    pub fn place(&self) -> Place {
        LOG.place(self.database, self.number, self.end)
    }

    /// Gives back the room behind the last group: nothing more comes. It need not be durable, and may fail: the file
    /// says the same with it and without.
    pub fn give_back_rest(&mut self) {
        if self.file.set_len(self.end).is_ok() {
            self.length = self.end;
        }
    }

    /// Writes a group, without a flush.
    pub fn write(&mut self, group: &[u8]) -> Result<(), LogError> {
        self.file.write_at(&[IoSlice::new(group)], self.end)?;
        self.end += group.len() as u64;
        self.length = self.length.max(self.end);
        Ok(())
    }
}
