//! The groups of a file, read one at a time: files may be longer than memory.
//!
//! ```text
//! file   │ group │ group │ group │ a long group                         │ group │ ░░░░░
//!        └─ read ahead ──────────┘ └ read for itself, where it will stay ┘
//! ```

use crate::error::LogError;
use crate::file::{LOG, LogFile};
use crate::group::{ALIGNMENT, Group, HEADER, MAGIC, group_bytes};
use crate::header::{FileKind, OpenFile};
use crate::place::DatabaseId;
use eris_disk::{DiskError, File};

/// Bytes that are read ahead, or looked through at once.
const BLOCK: u64 = 1 << 16;

/// A file that has groups.
#[derive(Debug)]
pub(crate) struct Groups<'a> {
    kind: &'a FileKind,
    database: DatabaseId,
    number: u64,
    pub file: &'a dyn File,
    length: u64,
    /// What was read ahead, and where it lies.
    ahead: Vec<u8>,
    ahead_at: u64,
}

impl<'a> Groups<'a> {
    /// Those of a file that was opened.
    pub fn of(kind: &'a FileKind, open: &'a OpenFile, database: DatabaseId, number: u64) -> Self {
        Groups {
            kind,
            database,
            number,
            file: &*open.file,
            length: open.length,
            ahead: Vec::new(),
            ahead_at: 0,
        }
    }

    /// Those of a file of the log.
    pub fn of_log(file: &'a LogFile) -> Self {
        Groups {
            kind: &LOG,
            database: file.database,
            number: file.number,
            file: &*file.file,
            length: file.length,
            ahead: Vec::new(),
            ahead_at: 0,
        }
    }

    /// The group in a place, and the bytes that it takes. `None`: there is no whole one.
    pub fn at(&mut self, offset: u64) -> Result<Option<(Group, u64)>, LogError> {
        let left = self.length.saturating_sub(offset);
        let mut header = [0; HEADER];
        if left < HEADER as u64 {
            return Ok(None);
        }
        self.read(&mut header, offset)?;
        // A wrong length asks for no more memory than the file has bytes.
        let Some(length) = group_bytes(&header).filter(|length| *length <= left) else {
            return Ok(None);
        };
        let mut bytes = vec![0; length as usize];
        self.read(&mut bytes, offset)?;
        let place = self.kind.place(self.database, self.number, offset);
        Ok(Group::of(bytes, place).map(|group| (group, length)))
    }

    /// Reads some bytes, and what comes behind if these are few.
    fn read(&mut self, bytes: &mut [u8], offset: u64) -> Result<(), DiskError> {
        if bytes.len() as u64 > BLOCK {
            return self.file.read_at(bytes, offset);
        }
        if self.read_ahead(bytes, offset) {
            return Ok(());
        }
        self.ahead
            .resize((self.length - offset).min(BLOCK) as usize, 0);
        self.ahead_at = offset;
        if self.file.read_at(&mut self.ahead, offset).is_err() {
            // What comes behind may be what cannot be read.
            self.ahead.clear();
            return self.file.read_at(bytes, offset);
        }
        self.read_ahead(bytes, offset);
        Ok(())
    }

    /// The same, if all of them were read ahead.
    fn read_ahead(&self, bytes: &mut [u8], offset: u64) -> bool {
        let from = offset.checked_sub(self.ahead_at);
        let read = from.and_then(|from| self.ahead.get(from as usize..)?.get(..bytes.len()));
        read.map(|read| bytes.copy_from_slice(read)).is_some()
    }

    /// Where the first group is that follows a place where none is. What cannot be read is passed over.
    pub fn behind(&mut self, offset: u64) -> Option<u64> {
        let mut at = offset + ALIGNMENT as u64;
        let mut block = Vec::new();
        while at < self.length {
            block.resize((self.length - at).min(BLOCK) as usize, 0);
            if self.file.read_at(&mut block, at).is_err() {
                block.fill(0);
            }
            let places = (at..).step_by(ALIGNMENT).zip(block.chunks(ALIGNMENT));
            for (place, _) in places.filter(|(_, bytes)| bytes.starts_with(&MAGIC)) {
                if let Ok(Some(_)) = self.at(place) {
                    return Some(place);
                }
            }
            at += block.len() as u64;
        }
        None
    }
}

/// Where the last byte of a file ends that is not zero, from a place on. `None`: there is none.
pub(crate) fn last_byte(
    file: &dyn File,
    length: u64,
    offset: u64,
) -> Result<Option<u64>, LogError> {
    let (mut at, mut end) = (offset, None);
    let mut block = Vec::new();
    while at < length {
        block.resize((length - at).min(BLOCK) as usize, 0);
        file.read_at(&mut block, at)?;
        if let Some(last) = block.iter().rposition(|byte| *byte != 0) {
            end = Some(at + last as u64 + 1);
        }
        at += block.len() as u64;
    }
    Ok(end)
}
